//===- RunWatch.cpp - Observation of the devices of a run -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/RunWatch.h"

namespace dtc::runtime {

void RunWatch::add(const void *session, Watched watched) {
  std::lock_guard lock(mutex);
  sessions[session] = std::move(watched);
}

void RunWatch::remove(const void *session) {
  std::lock_guard lock(mutex);
  sessions.erase(session);
}

std::string RunWatch::describe() const {
  std::lock_guard lock(mutex);
  std::string all;
  for (const auto &[session, watched] : sessions)
    if (std::string text = watched.describe(); !text.empty())
      all += (all.empty() ? "" : "; ") + text;
  return all;
}

std::vector<DeviceFlight> RunWatch::flight() const {
  std::lock_guard lock(mutex);
  std::vector<DeviceFlight> all;
  for (const auto &[session, watched] : sessions)
    for (DeviceFlight &device : watched.flight())
      if (!device.last.empty())
        all.push_back(std::move(device));
  return all;
}

} // namespace dtc::runtime
