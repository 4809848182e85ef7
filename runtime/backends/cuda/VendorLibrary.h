//===- VendorLibrary.h - Libraries of CUDA, found at run time -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One program runs with and without the libraries of a vendor: it opens them when it needs them.
// They are sought, in this order, in the folders that DTC_CUDA_LIBRARIES names (with colons
// between), in the Python wheels nvidia-* beside the package dtc, where the dynamic linker looks
// (LD_LIBRARY_PATH, /etc/ld.so.conf), in the CUDA toolkit (CUDA_HOME, CUDA_PATH, /usr/local/cuda),
// and in the wheels nvidia-* of the active virtual environment, of the first python3 of PATH, of
// the user and of the system. Wheels beside dtc come before the linker, since PyTorch loads them
// too: of two files with the same name of a library, a process has the one that was loaded first.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_VENDORLIBRARY_H
#define DTC_RUNTIME_BACKENDS_CUDA_VENDORLIBRARY_H

#include "support/Error.h"

#include <string>
#include <vector>

namespace dtc::runtime::cuda {

/// The folders in which open() looks, before and after those of the dynamic linker.
struct LibraryFolders {
  std::vector<std::string> before, after;
};
/// Those of the program or the shared library `file`, which may be empty.
LibraryFolders libraryFolders(const std::string &file);

/// The folders of libraries of the wheels nvidia-* that are installed where the file's own package
/// is: it is `packages/dtc/_native.abi3.so` or `packages/dtc/bin/dtc-run`.
std::vector<std::string> wheelFoldersBeside(const std::string &file);

/// A shared library, open until the process ends.
class VendorLibrary {
public:
  /// `library` is its name for people, `file` that of the file ("libcublasLt.so.13"), `wheel` the
  /// Python package that has it. The error names all places where the file was sought.
  static Expected<VendorLibrary> open(const std::string &library, const std::string &file,
                                      const std::string &wheel);

  /// The path under which the library was found.
  const std::string &path() const { return foundAt; }

  /// Sets `function` to the address of `name`, null where the library has none.
  template <typename Function> void find(Function &function, const char *name) {
    function = reinterpret_cast<Function>(findAddress(name));
  }
  /// Names the first function that was not found, and the library's path.
  const MaybeError &missing() const { return firstMissing; }

private:
  void *findAddress(const char *name);

  void *handle = nullptr;
  std::string foundAt;
  MaybeError firstMissing;
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_VENDORLIBRARY_H
