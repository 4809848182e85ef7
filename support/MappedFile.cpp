//===- MappedFile.cpp - A file's bytes ------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace dtc {

MappedFile::MappedFile(MappedFile &&other) noexcept
    : filePath(std::move(other.filePath)), begin(std::exchange(other.begin, nullptr)),
      length(std::exchange(other.length, 0)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(filePath, other.filePath);
  std::swap(begin, other.begin);
  std::swap(length, other.length);
  return *this;
}

MappedFile::~MappedFile() {
  if (begin)
    munmap(const_cast<std::byte *>(begin), length);
}

Expected<MappedFile> MappedFile::open(const std::string &path) {
  // Without O_NONBLOCK, opening a named pipe waits for its writer.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return Error{fmt::format("{}: cannot open: {}", path, std::strerror(errno))};
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd);
    return Error{fmt::format("{}: is not a regular file", path)};
  }
  MappedFile file;
  file.filePath = path;
  file.length = static_cast<size_t>(status.st_size);
  if (file.length == 0) {
    close(fd);
    return file;
  }
  void *mapped = mmap(nullptr, file.length, PROT_READ, MAP_PRIVATE, fd, 0);
  int mapError = errno;
  close(fd);
  if (mapped == MAP_FAILED)
    return Error{fmt::format("{}: cannot read: {}", path, std::strerror(mapError))};
  file.begin = static_cast<const std::byte *>(mapped);
  return file;
}

} // namespace dtc
