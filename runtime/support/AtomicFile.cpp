//===- AtomicFile.cpp - Files that appear whole or not at all -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/support/AtomicFile.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace dtc::runtime {

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : path(std::move(other.path)), target(std::move(other.target)),
      temporaryPath(std::exchange(other.temporaryPath, {})), fd(std::exchange(other.fd, -1)) {}

AtomicFile &AtomicFile::operator=(AtomicFile &&other) noexcept {
  std::swap(path, other.path);
  std::swap(target, other.target);
  std::swap(temporaryPath, other.temporaryPath);
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

Expected<AtomicFile> AtomicFile::create(const std::string &path) {
  AtomicFile file;
  file.path = path;
  if (path.empty())
    return file.failure("cannot write", ENOENT);
  // Renaming over a symbolic link would replace the link and not the file that it names.
  std::error_code code;
  file.target = std::filesystem::weakly_canonical(path, code).string();
  if (code)
    file.target = path;
  struct stat status;
  bool exists = stat(file.target.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode))
    return file.failure("cannot write", EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    file.fd = open(file.target.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.fd < 0)
      return file.failure("cannot write", errno);
    return file;
  }
  if (exists && access(file.target.c_str(), W_OK) != 0)
    return file.failure("cannot write", errno);
  std::string pattern = file.target + ".tmp.XXXXXX";
  file.fd = mkostemp(pattern.data(), O_CLOEXEC);
  if (file.fd < 0)
    return file.failure("cannot write", errno);
  file.temporaryPath = pattern;
  // mkostemp makes the file private; give it the mode that an ordinary new file has, or keep the
  // mode of the one that it replaces.
  mode_t mask = umask(0);
  umask(mask);
  fchmod(file.fd, exists ? status.st_mode & 07777 : 0666 & ~mask);
  return file;
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

MaybeError AtomicFile::commit() {
  if (!temporaryPath.empty() && fsync(fd) != 0)
    return failure("cannot write", errno);
  if (close(std::exchange(fd, -1)) != 0)
    return failure("cannot write", errno);
  if (temporaryPath.empty())
    return std::nullopt;
  if (rename(temporaryPath.c_str(), target.c_str()) != 0)
    return failure("cannot rename the finished file", errno);
  temporaryPath.clear();
  return std::nullopt;
}

MaybeError writeTextFile(const std::string &path, std::string_view text) {
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  if (MaybeError error = file->write(text))
    return error;
  return file->commit();
}

MaybeError checkWritable(const std::string &path) {
  // Making the temporary file finds a missing folder and missing rights; dropping it removes it.
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  return std::nullopt;
}

} // namespace dtc::runtime
