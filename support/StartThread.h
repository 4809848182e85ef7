//===- StartThread.h - Starting threads, with errors ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_STARTTHREAD_H
#define DTC_SUPPORT_STARTTHREAD_H

#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace dtc {

/// Thrown where a thread cannot start. what() is for the user.
class ThreadStartError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Starts a thread, "device 3" for the message.
template <typename Body> std::thread startThread(const std::string &name, Body body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error &error) {
    throw ThreadStartError("cannot start a thread for " + name + ": " + error.code().message() +
                           "; the limits of this process or its container allow too few threads, "
                           "or too little memory for their stacks (ulimit -u, ulimit -v, "
                           "pids.max); raise them, or use fewer devices or threads");
  }
}

} // namespace dtc

#endif // DTC_SUPPORT_STARTTHREAD_H
