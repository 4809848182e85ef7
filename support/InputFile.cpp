//===- InputFile.cpp - Reading of files in parts --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/InputFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace dtc {

InputFile::InputFile(InputFile &&other) noexcept
    : filePath(std::move(other.filePath)), bytes(std::exchange(other.bytes, 0)),
      fd(std::exchange(other.fd, -1)) {}

InputFile &InputFile::operator=(InputFile &&other) noexcept {
  std::swap(filePath, other.filePath);
  std::swap(bytes, other.bytes);
  std::swap(fd, other.fd);
  return *this;
}

InputFile::~InputFile() {
  if (fd >= 0)
    close(fd);
}

Expected<InputFile> InputFile::open(const std::string &path) {
  InputFile file;
  file.filePath = path;
  // Without O_NONBLOCK, opening a named pipe waits for its writer.
  file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd < 0)
    return Error{fmt::format("{}: cannot open: {}", path, std::strerror(errno))};
  struct stat status;
  if (fstat(file.fd, &status) != 0 || !S_ISREG(status.st_mode))
    return Error{fmt::format("{}: is not a regular file", path)};
  file.bytes = static_cast<uint64_t>(status.st_size);
  return file;
}

MaybeError InputFile::read(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    ssize_t count = pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return Error{fmt::format("{}: cannot read: {}", filePath, std::strerror(errno))};
    if (count == 0) {
      struct stat status;
      auto now = fstat(fd, &status) == 0 ? static_cast<uint64_t>(status.st_size) : offset;
      return Error{fmt::format("{}: had {} bytes when it was opened, and has {} now; do not change "
                               "a file while it is in use",
                               filePath, bytes, now)};
    }
    offset += static_cast<uint64_t>(count);
    out = out.subspan(static_cast<size_t>(count));
  }
  return std::nullopt;
}

} // namespace dtc
