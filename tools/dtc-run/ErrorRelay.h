//===- ErrorRelay.h - Passes on what programs say of errors ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_RUN_ERRORRELAY_H
#define DTC_TOOLS_DTC_RUN_ERRORRELAY_H

#include "support/Error.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>

namespace dtc {

/// A pipe for the standard error of a program, whose bytes go on to that of this one, on a thread.
class ErrorRelay {
public:
  static Expected<std::unique_ptr<ErrorRelay>> open();
  ~ErrorRelay();
  ErrorRelay(const ErrorRelay &) = delete;
  ErrorRelay &operator=(const ErrorRelay &) = delete;

  /// Where the program writes.
  int input() const { return files[1]; }
  /// Passes on what is left, once the program has ended. Whether some line was an error, as every
  /// tool prints it.
  bool finish();

private:
  ErrorRelay() = default;
  void loop();

  int files[2] = {-1, -1};
  std::atomic<bool> stopping = false;
  std::string line; // what has come of the last one
  bool hasError = false;
  std::thread thread;
};

} // namespace dtc

#endif // DTC_TOOLS_DTC_RUN_ERRORRELAY_H
