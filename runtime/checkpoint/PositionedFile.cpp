//===- PositionedFile.cpp - Files that are written in any order -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/PositionedFile.h"

#include "support/AtomicFile.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

namespace dtc::runtime {

/// What is handed to the disk at once, so that it works while more is written and not only at the
/// end.
static constexpr size_t kPartBytes = size_t{8} << 20;

PositionedFile::PositionedFile(PositionedFile &&other) noexcept
    : path(std::move(other.path)), fd(std::exchange(other.fd, -1)) {}

PositionedFile &PositionedFile::operator=(PositionedFile &&other) noexcept {
  std::swap(path, other.path);
  std::swap(fd, other.fd);
  return *this;
}

PositionedFile::~PositionedFile() {
  if (fd >= 0)
    close(fd);
}

Error PositionedFile::failure() const {
  return Error{fmt::format("{}: cannot write: {}", path, std::strerror(errno))};
}

Expected<PositionedFile> PositionedFile::create(const std::string &path, uint64_t bytes) {
  PositionedFile file;
  file.path = path;
  file.fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file.fd < 0)
    return file.failure();
  if (MaybeError error = reserveRoom(file.fd, path, bytes))
    return *error;
  return file;
}

MaybeError PositionedFile::write(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t written =
        pwrite(fd, bytes.data(), std::min(bytes.size(), kPartBytes), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR)
        continue;
      return failure();
    }
    // Only a hint: that all is on the disk is what fsync() tells.
    if (static_cast<size_t>(written) == kPartBytes)
      sync_file_range(fd, static_cast<off_t>(offset), written, SYNC_FILE_RANGE_WRITE);
    offset += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return std::nullopt;
}

MaybeError PositionedFile::finish() {
  if (fsync(fd) != 0)
    return failure();
  if (close(std::exchange(fd, -1)) != 0)
    return failure();
  return std::nullopt;
}

} // namespace dtc::runtime
