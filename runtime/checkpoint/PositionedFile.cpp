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

/// The bytes that are handed to the disk at once. Bytes in the system's page cache are written back
/// while more is written, and not only at the end.
static constexpr size_t kPartBytes = size_t{8} << 20;

PositionedFile::PositionedFile(PositionedFile &&other) noexcept
    : path(std::move(other.path)), fd(std::exchange(other.fd, -1)),
      directFd(std::exchange(other.directFd, -1)) {}

PositionedFile &PositionedFile::operator=(PositionedFile &&other) noexcept {
  std::swap(path, other.path);
  std::swap(fd, other.fd);
  std::swap(directFd, other.directFd);
  return *this;
}

void PositionedFile::stopDirect() {
  if (directFd >= 0)
    close(std::exchange(directFd, -1));
}

PositionedFile::~PositionedFile() {
  stopDirect();
  if (fd >= 0)
    close(fd);
}

Error PositionedFile::failure() const {
  return Error{fmt::format("{}: cannot write: {}", path, std::strerror(errno))};
}

Expected<PositionedFile> PositionedFile::create(const std::string &path, uint64_t bytes) {
  PositionedFile file;
  file.path = path;
  file.fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file.fd < 0)
    return file.failure();
  file.directFd = ::open(path.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
  if (MaybeError error = reserveRoom(file.fd, path, bytes))
    return *error;
  return file;
}

Expected<PositionedFile> PositionedFile::open(const std::string &path) {
  PositionedFile file;
  file.path = path;
  file.fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file.fd < 0)
    return file.failure();
  file.directFd = ::open(path.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
  return file;
}

PositionedFile::Part PositionedFile::nextPart(uint64_t offset,
                                              std::span<const std::byte> bytes) const {
  size_t most = std::min(bytes.size(), kPartBytes);
  if (directFd < 0 || (reinterpret_cast<uintptr_t>(bytes.data()) - offset) % kBlockBytes != 0)
    return {false, most};
  if (uint64_t begun = offset % kBlockBytes)
    return {false, std::min(most, kBlockBytes - begun)};
  size_t blocks = most / kBlockBytes * kBlockBytes;
  return blocks > 0 ? Part{true, blocks} : Part{false, most};
}

MaybeError PositionedFile::write(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    Part part = nextPart(offset, bytes);
    ssize_t written =
        pwrite(part.direct ? directFd : fd, bytes.data(), part.bytes, static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR)
        continue;
      if (part.direct && errno == EINVAL) {
        stopDirect(); // this disk has larger blocks
        continue;
      }
      return failure();
    }
    // This is only a hint: fsync() tells that everything is on the disk.
    if (!part.direct && static_cast<size_t>(written) == kPartBytes)
      sync_file_range(fd, static_cast<off_t>(offset), written, SYNC_FILE_RANGE_WRITE);
    offset += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return std::nullopt;
}

MaybeError PositionedFile::finish() {
  stopDirect(); // what is written directly fails at once or not at all
  if (fsync(fd) != 0)
    return failure();
  if (close(std::exchange(fd, -1)) != 0)
    return failure();
  return std::nullopt;
}

} // namespace dtc::runtime
