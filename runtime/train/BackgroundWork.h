//===- BackgroundWork.h - Work beside the steps of a run -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_BACKGROUNDWORK_H
#define DTC_RUNTIME_TRAIN_BACKGROUNDWORK_H

#include "support/Error.h"

#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace dtc::runtime {

/// Work on a thread of its own, one piece at a time.
class BackgroundWork {
public:
  /// `name`: what the thread is for, in the error where it cannot start.
  explicit BackgroundWork(std::string name) : name(std::move(name)) {}
  ~BackgroundWork() { (void)settle(); }

  /// Begins work(); the piece before is settled. Throws ThreadStartError.
  void start(std::function<MaybeError()> work);
  bool isUnderWay() const { return thread.joinable(); }
  /// Waits for the piece under way, if there is one. Returns its error, or its exception as one.
  MaybeError settle();

  /// The seconds of all settled pieces, and those in which settle() waited for them.
  double workedSeconds() const { return workedFor; }
  double waitedSeconds() const { return waitedFor; }

private:
  std::string name;
  std::thread thread;
  MaybeError failure; // of the piece, once the thread is joined
  double workedFor = 0, waitedFor = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_BACKGROUNDWORK_H
