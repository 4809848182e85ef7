//===- HeldLaunches.cpp - Calls that share a launch -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/HeldLaunches.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace dtc::runtime::cuda {

void HeldLaunches::Addresses::add(HeldCall::Range range) {
  auto begin = reinterpret_cast<uintptr_t>(range.begin), end = begin + range.bytes;
  if (begin == end)
    return;
  // Takes in all that it overlaps or touches.
  auto next = ends.upper_bound(begin);
  if (next != ends.begin() && std::prev(next)->second >= begin)
    --next;
  while (next != ends.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = ends.erase(next);
  }
  ends.emplace_hint(next, begin, end);
}

bool HeldLaunches::Addresses::overlaps(HeldCall::Range range) const {
  auto begin = reinterpret_cast<uintptr_t>(range.begin), end = begin + range.bytes;
  auto next = ends.lower_bound(end); // the first that begins at the end or later
  return begin != end && next != ends.begin() && std::prev(next)->second > begin;
}

bool HeldLaunches::Together::mustPrecede(const HeldCall &call) const {
  return std::any_of(call.reads.begin(), call.reads.end(),
                     [&](HeldCall::Range range) { return writes.overlaps(range); }) ||
         std::any_of(call.writes.begin(), call.writes.end(), [&](HeldCall::Range range) {
           return writes.overlaps(range) || reads.overlaps(range);
         });
}

bool HeldLaunches::Together::takes(const HeldCall &call) const {
  return launch == call.launch && shared == call.shared && groups.size() < kMaxGroups;
}

void HeldLaunches::Together::add(const HeldCall &call) {
  groups.push_back(call.tensors);
  for (HeldCall::Range range : call.reads)
    reads.add(range);
  for (HeldCall::Range range : call.writes)
    writes.add(range);
}

void HeldLaunches::add(const std::string &kernel, HeldCall call) {
  // After the last launch that the call depends on; it may go before what follows that one.
  auto last = std::find_if(launches.rbegin(), launches.rend(),
                           [&](const Together &each) { return each.mustPrecede(call); });
  auto place = std::find_if(last.base(), launches.end(),
                            [&](const Together &each) { return each.takes(call); });
  if (place == launches.end())
    place = launches.insert(place, {kernel, call.launch, std::move(call.shared), {}, {}, {}});
  place->add(call);
}

MaybeError HeldLaunches::enqueue(CudaQueue &queue) {
  for (const Together &each : std::exchange(launches, {}))
    if (MaybeError error = each.launch(queue, each.shared.data(), each.groups))
      return error->inContext("kernel '" + each.kernel + "'");
  return std::nullopt;
}

} // namespace dtc::runtime::cuda
