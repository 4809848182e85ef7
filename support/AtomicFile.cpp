//===- AtomicFile.cpp - Atomically written files --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/AtomicFile.h"

#include "support/FilePath.h"
#include "support/Format.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <random>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>

namespace dtc {

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : path(std::move(other.path)), target(std::move(other.target)),
      temporaryPath(std::exchange(other.temporaryPath, {})), isTemporary(other.isTemporary),
      fd(std::exchange(other.fd, -1)) {}

AtomicFile &AtomicFile::operator=(AtomicFile &&other) noexcept {
  std::swap(path, other.path);
  std::swap(target, other.target);
  std::swap(temporaryPath, other.temporaryPath);
  std::swap(isTemporary, other.isTemporary);
  std::swap(fd, other.fd);
  return *this;
}

AtomicFile::~AtomicFile() {
  if (fd >= 0)
    close(fd);
  if (!temporaryPath.empty())
    unlink(temporaryPath.c_str());
}

Error AtomicFile::failure(const char *what, int code) const {
  return Error{fmt::format("{}: {}: {}", path, what, std::strerror(code))};
}

/// Renaming over a symbolic link would replace the link and not its target.
static std::string resolve(const std::string &path) { return followLinks(path); }

static std::string folderOf(const std::string &path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// The mode of an ordinary new file or folder.
static mode_t newMode(mode_t all) {
  mode_t mask = umask(0);
  umask(mask);
  return all & ~mask;
}

static std::string pathOf(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

MaybeError AtomicFile::openTemporary(mode_t mode) {
  isTemporary = true;
  fd = open(folderOf(target).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  // Only /proc can give it a name later.
  if (fd >= 0 && access(pathOf(fd).c_str(), F_OK) != 0)
    close(std::exchange(fd, -1));
  if (fd < 0) {
    std::string pattern = target + ".tmp.XXXXXX";
    fd = mkostemp(pattern.data(), O_CLOEXEC);
    if (fd < 0)
      return failure("cannot write", errno);
    temporaryPath = pattern;
  }
  fchmod(fd, mode);
  return std::nullopt;
}

MaybeError AtomicFile::nameTemporary() {
  std::random_device random;
  while (temporaryPath.empty()) {
    std::string name = fmt::format("{}.tmp.{:08x}", target, random());
    if (linkat(AT_FDCWD, pathOf(fd).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0)
      temporaryPath = name;
    else if (errno != EEXIST)
      return failure("cannot write", errno);
  }
  return std::nullopt;
}

/// Opens a file that is not regular.
static int openSpecial(const std::string &path, bool isPipe) {
  // Opening a pipe waits for a reader without O_NONBLOCK; writing to it should wait.
  int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | (isPipe ? O_NONBLOCK : 0));
  if (fd >= 0 && isPipe)
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

Expected<AtomicFile> AtomicFile::create(const std::string &path) {
  AtomicFile file;
  file.path = path;
  if (path.empty())
    return file.failure("cannot write", ENOENT);
  file.target = resolve(path);
  struct stat status;
  bool exists = stat(file.target.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode))
    return file.failure("cannot write", EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    file.fd = openSpecial(file.target, S_ISFIFO(status.st_mode));
    if (file.fd < 0 && errno == ENXIO && S_ISFIFO(status.st_mode))
      return Error{fmt::format("{}: cannot write: it is a pipe that nobody reads", path)};
    if (file.fd < 0)
      return file.failure("cannot write", errno);
    return file;
  }
  if (exists && access(file.target.c_str(), W_OK) != 0)
    return file.failure("cannot write", errno);
  if (MaybeError error = file.openTemporary(exists ? status.st_mode & 07777 : newMode(0666)))
    return *error;
  return file;
}

/// The error code if a file of `bytes` bytes does not fit on the disk; 0 if it does.
static int takeRoom(int fd, uint64_t bytes) {
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur)
    return EFBIG;
  int result = 0;
  do
    result = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes));
  while (result != 0 && errno == EINTR);
  if (result == 0)
    return 0;
  if (errno != EOPNOTSUPP && errno != ENOSYS)
    return errno;
  // The file system cannot reserve room; all that can be known is whether there is some.
  struct statvfs disk;
  return fstatvfs(fd, &disk) == 0 && bytes / disk.f_frsize >= disk.f_bavail ? ENOSPC : 0;
}

MaybeError AtomicFile::reserve(uint64_t bytes) {
  return isTemporary ? reserveRoom(fd, path, bytes) : std::nullopt;
}

MaybeError reserveRoom(int fd, const std::string &path, uint64_t bytes) {
  int code = bytes == 0 ? 0 : takeRoom(fd, bytes);
  if (code == 0)
    return std::nullopt;
  struct statvfs disk;
  std::string free = code == ENOSPC && fstatvfs(fd, &disk) == 0
                         ? fmt::format(" ({} are free)", formatBytes(disk.f_bavail * disk.f_frsize))
                         : "";
  return Error{fmt::format("{}: there is no room for its {}: {}{}", path, formatBytes(bytes),
                           std::strerror(code), free)};
}

MaybeError AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR)
        continue;
      return failure("cannot write", errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return std::nullopt;
}

MaybeError AtomicFile::write(std::string_view text) {
  return write(std::as_bytes(std::span(text.data(), text.size())));
}

MaybeError AtomicFile::commit() { return commitTo(target); }

MaybeError AtomicFile::commitTo(const std::string &finalPath) {
  if (isTemporary) {
    if (fsync(fd) != 0)
      return failure("cannot write", errno);
    if (MaybeError error = nameTemporary())
      return error;
  }
  if (close(std::exchange(fd, -1)) != 0)
    return failure("cannot write", errno);
  if (!isTemporary)
    return std::nullopt;
  // A finished file is kept, with or without its name.
  std::string finished = std::exchange(temporaryPath, {});
  if (rename(finished.c_str(), finalPath.c_str()) != 0)
    return Error{fmt::format("{}: cannot rename the finished file, which is {} now: {}", path,
                             finished, std::strerror(errno))};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Folders
//===----------------------------------------------------------------------===//

static bool isMountPoint(const std::string &path) {
  struct statx status;
  return statx(AT_FDCWD, path.c_str(), AT_NO_AUTOMOUNT, STATX_MODE, &status) == 0 &&
         (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

MaybeError AtomicFolder::checkReplaceable() const {
  std::error_code code;
  std::filesystem::file_status status = std::filesystem::status(target, code);
  if (!std::filesystem::exists(status))
    return std::nullopt;
  if (!std::filesystem::is_directory(status))
    return Error{fmt::format("{}: is not a folder", path)};
  if (isMountPoint(target) || std::filesystem::equivalent(target, ".", code))
    return Error{fmt::format("{}: is {}, which cannot be replaced as a whole; give a folder in it",
                             path, isMountPoint(target) ? "a mount point" : "the current folder")};
  std::filesystem::directory_iterator entries(target, code);
  if (code)
    return Error{fmt::format("{}: cannot read: {}", path, code.message())};
  for (const std::filesystem::directory_entry &entry : entries) {
    std::string name = entry.path().filename().string();
    if (std::find(names.begin(), names.end(), name) == names.end() || entry.is_directory(code))
      return Error{fmt::format("{}: is replaced as a whole, but holds \"{}\" too; give another "
                               "folder, or one that has at most {}",
                               path, name, fmt::join(names, " and "))};
  }
  return std::nullopt;
}

Expected<AtomicFolder> AtomicFolder::create(const std::string &path,
                                            const std::vector<std::string> &names) {
  AtomicFolder folder;
  folder.path = path;
  // "folder/" names the folder.
  std::filesystem::path resolved = resolve(path);
  folder.target = (resolved.has_filename() ? resolved : resolved.parent_path()).string();
  folder.names = names;
  struct stat status;
  folder.mode = stat(folder.target.c_str(), &status) == 0 ? status.st_mode & 07777 : newMode(0777);
  if (MaybeError error = folder.checkReplaceable())
    return *error;
  for (const std::string &name : names) {
    AtomicFile &file = folder.files.emplace_back(AtomicFile());
    file.path = (std::filesystem::path(path) / name).string();
    // The place of its temporary file while the folder has a temporary name.
    file.target = fmt::format("{}.{}", folder.target, name);
    if (MaybeError error = file.openTemporary(newMode(0666)))
      return *error;
  }
  return folder;
}

/// Gives a finished folder the name of the target.
MaybeError AtomicFolder::replaceWith(const std::string &folder) const {
  // An empty folder is replaced as a file is.
  if (rename(folder.c_str(), target.c_str()) == 0)
    return std::nullopt;
  if (errno == ENOTEMPTY || errno == EEXIST) {
    // It may have got other files meanwhile.
    if (MaybeError error = checkReplaceable())
      return Error{fmt::format("{}; the new one is {} now", error->message, folder)};
    std::string old = folder;
    if (renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) != 0) {
      // The file system cannot exchange two names: for a moment the path has no folder at all.
      old += ".old";
      if (rename(target.c_str(), old.c_str()) != 0 || rename(folder.c_str(), target.c_str()) != 0)
        return Error{fmt::format("{}: cannot rename the finished folder, which is {} now: {}", path,
                                 folder, std::strerror(errno))};
    }
    std::error_code ignored;
    std::filesystem::remove_all(old, ignored);
    return std::nullopt;
  }
  return Error{fmt::format("{}: cannot rename the finished folder, which is {} now: {}", path,
                           folder, std::strerror(errno))};
}

MaybeError AtomicFolder::commit() {
  std::string folder = target + ".tmp.XXXXXX";
  if (!mkdtemp(folder.data()))
    return Error{fmt::format("{}: cannot write: {}", path, std::strerror(errno))};
  for (size_t i = 0; i < files.size(); ++i)
    if (MaybeError error = files[i].commitTo((std::filesystem::path(folder) / names[i]).string())) {
      std::error_code ignored;
      std::filesystem::remove_all(folder, ignored);
      return error;
    }
  chmod(folder.c_str(), mode);
  if (int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); fd >= 0) {
    fsync(fd);
    close(fd);
  }
  return replaceWith(folder);
}

//===----------------------------------------------------------------------===//
// Whole files
//===----------------------------------------------------------------------===//

MaybeError writeTextFile(const std::string &path, std::string_view text) {
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  if (MaybeError error = file->write(text))
    return error;
  return file->commit();
}

MaybeError checkWritable(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    if (access(path.c_str(), W_OK) != 0)
      return Error{fmt::format("{}: cannot write: {}", path, std::strerror(errno))};
    return std::nullopt;
  }
  // Making the temporary file finds a missing folder and missing rights; dropping it removes it.
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  return std::nullopt;
}

} // namespace dtc
