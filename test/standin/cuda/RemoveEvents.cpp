//===- RemoveEvents.cpp - Programs without one of their events -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/RemoveEvents.h"

#include <fmt/format.h>
#include <mutex>

namespace dtc::standin {

namespace {

/// The result of one run, with the first violation.
std::string runOnce(const std::function<std::string()> &program, const Settings &settings,
                    const std::function<void()> &prepare) {
  reset(settings);
  std::mutex mutex;
  std::string violation;
  collectViolations([&](const std::string &message) {
    std::lock_guard guard(mutex);
    if (violation.empty())
      violation = message;
  });
  prepare();
  std::string result = program();
  collectViolations(nullptr);
  return violation.empty() ? result : "violation: " + violation;
}

} // namespace

std::string RemovedEvents::redundant() const {
  std::string text;
  for (const RemovedCall &call : calls)
    if (!call.seed)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", call.isWait ? "wait" : "record",
                          call.number);
  return text;
}

RemovedEvents removeEvents(const std::function<std::string()> &program, uint64_t orders,
                           Settings settings) {
  RemovedEvents removed;
  settings.seed = 1;
  std::string expected = runOnce(program, settings, [] {});
  Counts made = counts();
  while (settings.seed < orders) {
    ++settings.seed;
    if (runOnce(program, settings, [] {}) != expected) {
      removed.unstableSeed = settings.seed;
      return removed;
    }
  }
  for (bool isWait : {false, true}) {
    for (uint64_t number = 0; number < (isWait ? made.waits : made.records); ++number) {
      RemovedCall call{isWait, number, std::nullopt};
      auto remove = [&] { isWait ? ignoreWait(number) : ignoreRecord(number); };
      for (settings.seed = 1; settings.seed <= orders && !call.seed; ++settings.seed)
        if (runOnce(program, settings, remove) != expected)
          call.seed = settings.seed;
      removed.calls.push_back(call);
    }
  }
  reset();
  return removed;
}

} // namespace dtc::standin
