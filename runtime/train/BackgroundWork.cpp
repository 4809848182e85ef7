//===- BackgroundWork.cpp - Work beside the steps of a run ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/BackgroundWork.h"

#include "runtime/train/Guarded.h"
#include "support/StartThread.h"

#include <chrono>

namespace dtc::runtime {

static double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void BackgroundWork::start(std::function<MaybeError()> work) {
  thread = startThread(name, [this, work = std::move(work)] {
    auto begin = std::chrono::steady_clock::now();
    failure = guarded(work);
    workedFor += secondsSince(begin);
  });
}

MaybeError BackgroundWork::settle() {
  if (!thread.joinable())
    return std::nullopt;
  auto begin = std::chrono::steady_clock::now();
  thread.join();
  waitedFor += secondsSince(begin);
  return failure;
}

} // namespace dtc::runtime
