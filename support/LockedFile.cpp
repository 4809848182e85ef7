//===- LockedFile.cpp - Files with a lock ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/LockedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <utility>

namespace dtc {

LockedFile::LockedFile(LockedFile &&other) noexcept
    : path(std::move(other.path)), madePath(std::exchange(other.madePath, {})),
      fd(std::exchange(other.fd, -1)) {}

LockedFile &LockedFile::operator=(LockedFile &&other) noexcept {
  std::swap(path, other.path);
  std::swap(madePath, other.madePath);
  std::swap(fd, other.fd);
  return *this;
}

LockedFile::~LockedFile() {
  // Before the lock ends: afterwards the file may be another's.
  if (!madePath.empty())
    unlink(madePath.c_str());
  if (fd >= 0)
    close(fd);
}

Error LockedFile::failure(int code) const {
  return Error{fmt::format("{}: cannot write: {}", path, std::strerror(code))};
}

/// " (process 1234)", as Linux tells it in lines such as "1: FLOCK  ADVISORY  WRITE 1234
/// fe:00:10952792 0 EOF"; empty where it does not.
static std::string holderOf(const struct stat &status) {
  std::ifstream locks("/proc/locks");
  std::string file =
      fmt::format("{:02x}:{:02x}:{}", major(status.st_dev), minor(status.st_dev), status.st_ino);
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, mode, access, process, lockedFile;
    words >> number >> kind >> mode >> access >> process >> lockedFile;
    if (kind == "FLOCK" && lockedFile == file)
      return fmt::format(" (process {})", process);
  }
  return "";
}

Expected<LockedFile> LockedFile::open(const std::string &path) {
  while (true) {
    LockedFile file;
    file.path = path;
    bool isMade = false;
    // Without O_NONBLOCK, opening a named pipe waits for its reader.
    file.fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (file.fd < 0 && errno == ENXIO)
      return Error{fmt::format("{}: cannot write: it is a pipe that nobody reads", path)};
    if (file.fd < 0 && errno == ENOENT) {
      isMade = true;
      file.fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    }
    struct stat status;
    if (file.fd < 0 || fstat(file.fd, &status) != 0 || fcntl(file.fd, F_SETFL, 0) != 0)
      return file.failure(errno);
    if (!S_ISREG(status.st_mode))
      return file;
    // A file system without locks is no reason to write nothing.
    if (flock(file.fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      return Error{fmt::format("{}: another process{} is writing to it; name another file, or wait "
                               "until that one ends",
                               path, holderOf(status))};
    // The process that held the lock may have removed the file in the meantime.
    struct stat now;
    if (stat(path.c_str(), &now) != 0 || now.st_dev != status.st_dev || now.st_ino != status.st_ino)
      continue;
    std::error_code code;
    if (isMade && now.st_size == 0)
      file.madePath = std::filesystem::canonical(path, code).string();
    return file;
  }
}

MaybeError LockedFile::truncate(uint64_t bytes) {
  madePath.clear();
  // A file that is not regular has nothing to remove.
  auto end = static_cast<off_t>(bytes);
  if (ftruncate(fd, end) != 0)
    return errno == EINVAL ? std::nullopt : MaybeError(failure(errno));
  return lseek(fd, end, SEEK_SET) == end ? std::nullopt : MaybeError(failure(errno));
}

MaybeError LockedFile::write(std::string_view text) {
  madePath.clear();
  while (!text.empty()) {
    ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR)
        continue;
      return failure(errno);
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
  return std::nullopt;
}

} // namespace dtc
