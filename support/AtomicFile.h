//===- AtomicFile.h - Atomically written files ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_ATOMICFILE_H
#define DTC_SUPPORT_ATOMICFILE_H

#include "support/Error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace dtc {

/// Writes to a temporary file beside the target, which commit() renames over it. Until then it has
/// no name, where the file system can do that, so that nothing is left of a process that is killed.
/// A target that is no regular file (a device, a pipe) is written directly. All errors begin with
/// the target's path.
class AtomicFile {
public:
  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&other) noexcept;
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;
  /// Removes the temporary file if commit() has not succeeded.
  ~AtomicFile();

  /// Does not wait for a reader of a pipe: a pipe without a reader is an error.
  static Expected<AtomicFile> create(const std::string &path);

  const std::string &getPath() const { return path; }
  /// Reserves room on the disk for a file of `bytes` bytes. Writing within it gives no error then,
  /// even if the disk fills up before, where the file system can guarantee that.
  MaybeError reserve(uint64_t bytes);
  MaybeError write(std::span<const std::byte> bytes);
  MaybeError write(std::string_view text);
  /// Flushes to the disk and gives the file its name.
  MaybeError commit();

private:
  friend class AtomicFolder;
  AtomicFile() = default;
  Error failure(const char *what, int code) const;
  MaybeError openTemporary(mode_t mode);
  MaybeError nameTemporary();
  MaybeError commitTo(const std::string &finalPath);

  std::string path;          // as the caller gave it, for messages
  std::string target;        // with symbolic links resolved
  std::string temporaryPath; // of a temporary file that has a name
  bool isTemporary = false;  // false if the target is written directly
  int fd = -1;
};

/// A folder of files that appear together or not at all, also where there is an older folder: at
/// any time, also if the process ends, the path has all new files or all old ones. All errors begin
/// with the path of the folder or of the file in it.
class AtomicFolder {
public:
  /// An older folder is replaced as a whole, so that it may have no other files than these.
  static Expected<AtomicFolder> create(const std::string &path,
                                       const std::vector<std::string> &names);

  /// The files in the order of their names, to be written but not committed.
  AtomicFile &file(size_t index) { return files[index]; }
  MaybeError commit();

private:
  AtomicFolder() = default;
  MaybeError checkReplaceable() const;
  MaybeError replaceWith(const std::string &folder) const;

  std::string path;   // as the caller gave it, for messages
  std::string target; // with symbolic links resolved
  mode_t mode = 0;
  std::vector<std::string> names;
  std::vector<AtomicFile> files;
};

/// Takes the room on the disk for the first bytes of a file that is open for writing; see
/// AtomicFile::reserve(). The error begins with the path.
MaybeError reserveRoom(int fd, const std::string &path, uint64_t bytes);

/// Writes a whole file.
MaybeError writeTextFile(const std::string &path, std::string_view text);

/// Finds out whether `path` can be written later, and leaves the file as it is. A pipe is not
/// opened, which its reader would notice.
MaybeError checkWritable(const std::string &path);

} // namespace dtc

#endif // DTC_SUPPORT_ATOMICFILE_H
