//===- ReadText.cpp - Texts from files, pipes and terminals ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/ReadText.h"

#include "support/Format.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dtc {

/// Whether the text of such a file is read.
static MaybeError checkMode(int fd, mode_t mode) {
  if (S_ISREG(mode) || S_ISFIFO(mode) || S_ISSOCK(mode) || isatty(fd))
    return std::nullopt;
  return Error{S_ISDIR(mode) ? std::strerror(EISDIR) : "it is a device; expected a file or a pipe"};
}

static Expected<std::string> readOpenFile(int fd, bool isStandardInput) {
  struct stat status;
  if (fstat(fd, &status) != 0)
    return Error{std::strerror(errno)};
  if (MaybeError error = checkMode(fd, status.st_mode))
    return *error;
  std::string text;
  constexpr size_t step = size_t{1} << 16;
  while (true) {
    size_t length = text.size();
    text.resize(length + step);
    ssize_t count = read(fd, text.data() + length, step);
    text.resize(length + (count > 0 ? static_cast<size_t>(count) : 0));
    if (count > 0) {
      if (!S_ISREG(status.st_mode) && text.size() > kMaxStreamedBytes)
        return Error{fmt::format("a pipe may have {}, and it has more; write it to a file",
                                 formatBytes(kMaxStreamedBytes))};
    } else if (count == 0) {
      if (text.empty() && S_ISFIFO(status.st_mode) && !isStandardInput)
        return Error{"nobody writes to the pipe"};
      return text;
    } else if (errno == EAGAIN) {
      pollfd ready = {fd, POLLIN, 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return Error{std::strerror(errno)};
    }
  }
}

Expected<std::string> readText(const std::string &path) {
  bool isStandardInput = path == "-";
  // Without O_NONBLOCK, opening a named pipe waits for its writer.
  int fd = isStandardInput ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  Expected<std::string> text = fd < 0 ? Expected<std::string>(Error{std::strerror(errno)})
                                      : readOpenFile(fd, isStandardInput);
  if (fd >= 0 && !isStandardInput)
    close(fd);
  if (!text)
    return text.error().inContext("cannot read " + path);
  return text;
}

} // namespace dtc
