//===- ErrorRelay.cpp - Passes on what programs say of errors --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-run/ErrorRelay.h"

#include "support/StartThread.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <string_view>
#include <unistd.h>

namespace dtc {

using namespace dtc;

static constexpr std::string_view kErrorPrefix = "error: ";

Expected<std::unique_ptr<ErrorRelay>> ErrorRelay::open() {
  std::unique_ptr<ErrorRelay> relay(new ErrorRelay);
  if (pipe2(relay->files, O_CLOEXEC) != 0)
    return Error{fmt::format("--processes: there is no pipe: {}", std::strerror(errno))};
  try {
    relay->thread = startThread("the errors of processes", [self = relay.get()] { self->loop(); });
  } catch (const ThreadStartError &error) {
    return Error{error.what()};
  }
  return relay;
}

ErrorRelay::~ErrorRelay() {
  (void)finish();
  for (int file : files)
    if (file >= 0)
      close(file);
}

bool ErrorRelay::finish() {
  stopping = true;
  if (thread.joinable())
    thread.join();
  return hasError;
}

void ErrorRelay::loop() {
  // Nobody may read what goes on.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  char bytes[4096];
  while (true) {
    bool isLast = stopping; // the program's output is complete by now
    pollfd file{files[0], POLLIN, 0};
    if (poll(&file, 1, isLast ? 0 : 50) <= 0) {
      if (isLast)
        return;
      continue;
    }
    ssize_t count = read(files[0], bytes, sizeof(bytes));
    if (count <= 0)
      return;
    for (ssize_t done = 0; done < count;) {
      ssize_t more = write(STDERR_FILENO, bytes + done, static_cast<size_t>(count - done));
      if (more < 0)
        break;
      done += more;
    }
    for (char byte : std::string_view(bytes, static_cast<size_t>(count))) {
      if (byte == '\n')
        line.clear();
      else if (line.size() < kErrorPrefix.size())
        line.push_back(byte);
      hasError |= line == kErrorPrefix;
    }
  }
}

} // namespace dtc
