//===- LockedFile.h - Files with a lock -----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_LOCKEDFILE_H
#define DTC_SUPPORT_LOCKEDFILE_H

#include "support/Error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace dtc {

/// A file that is written line by line while others may read it, but no other process that opens it
/// in this way may write to it. The lock (flock) is the system's, so it ends with the process in
/// any case. A pipe or a terminal is no regular file and is not locked; a pipe without a reader is
/// an error. All errors begin with the path.
class LockedFile {
public:
  LockedFile(LockedFile &&other) noexcept;
  LockedFile &operator=(LockedFile &&other) noexcept;
  LockedFile(const LockedFile &) = delete;
  LockedFile &operator=(const LockedFile &) = delete;
  /// Removes a file that open() has made if nothing was written to it.
  ~LockedFile();

  /// Opens the file and keeps its content. The error names the process that holds it, where the
  /// system tells.
  static Expected<LockedFile> open(const std::string &path);

  /// Removes all that is in the file from that byte on; write() goes on there.
  MaybeError truncate(uint64_t bytes);
  MaybeError clear() { return truncate(0); }
  MaybeError write(std::string_view text);

private:
  LockedFile() = default;
  Error failure(int code) const;

  std::string path;
  std::string madePath; // with symbolic links resolved; empty unless an empty file was made
  int fd = -1;
};

} // namespace dtc

#endif // DTC_SUPPORT_LOCKEDFILE_H
