//===- VendorLibrary.h - Libraries of CUDA, found at run time -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One program runs with and without the libraries of a vendor: it opens them when it needs them.
// They are sought, in this order, in the folders that DTC_CUDA_LIBRARIES names (with colons
// between), where the dynamic linker looks (LD_LIBRARY_PATH, /etc/ld.so.conf), in the CUDA toolkit
// (CUDA_HOME, CUDA_PATH, /usr/local/cuda), and in the Python wheels nvidia-* (of the active virtual
// environment, of the first python3 of PATH, of the system).
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_VENDORLIBRARY_H
#define DTC_RUNTIME_BACKENDS_CUDA_VENDORLIBRARY_H

#include "support/Error.h"

#include <string>
#include <vector>

namespace dtc::runtime::cuda {

/// The folders in which open() looks, but for those of the dynamic linker.
struct LibraryFolders {
  std::vector<std::string> before, after;
};
LibraryFolders libraryFolders();

/// A shared library, open until the process ends.
class VendorLibrary {
public:
  /// `library` is its name for people, `file` that of the file ("libcublasLt.so.13"), `wheel` the
  /// Python package that has it. The error names all places where the file was sought.
  static Expected<VendorLibrary> open(const std::string &library, const std::string &file,
                                      const std::string &wheel);

  /// The path under which the library was found.
  const std::string &path() const { return foundAt; }

  /// Sets `function` to the address of `name`; an error names the function and the library's path.
  template <typename Function> MaybeError find(Function &function, const char *name) const {
    void *address = nullptr;
    MaybeError error = findAddress(address, name);
    function = reinterpret_cast<Function>(address);
    return error;
  }

private:
  MaybeError findAddress(void *&address, const char *name) const;

  void *handle = nullptr;
  std::string foundAt;
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_VENDORLIBRARY_H
