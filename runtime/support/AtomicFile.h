//===- AtomicFile.h - Files that appear whole or not at all ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_SUPPORT_ATOMICFILE_H
#define DTC_RUNTIME_SUPPORT_ATOMICFILE_H

#include "runtime/support/Error.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace dtc::runtime {

/// Writes to a temporary file beside the target, which commit() renames over it. A target that is
/// no regular file (a device, a pipe) is written directly. All errors begin with the target's path.
class AtomicFile {
public:
  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&other) noexcept;
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;
  /// Removes the temporary file if commit() has not succeeded.
  ~AtomicFile();

  static Expected<AtomicFile> create(const std::string &path);

  MaybeError write(std::span<const std::byte> bytes);
  MaybeError write(std::string_view text);
  /// Flushes to the disk and gives the file its name.
  MaybeError commit();

private:
  AtomicFile() = default;
  Error failure(const char *what, int code) const;

  std::string path;          // as the caller gave it, for messages
  std::string target;        // with symbolic links resolved
  std::string temporaryPath; // empty if the target is written directly
  int fd = -1;
};

/// Writes a whole file.
MaybeError writeTextFile(const std::string &path, std::string_view text);

/// Finds out whether `path` can be written later, and leaves the file as it is.
MaybeError checkWritable(const std::string &path);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_SUPPORT_ATOMICFILE_H
