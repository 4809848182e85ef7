//===- CommunicationMarks.cpp - How far a device has come, as it says -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/CommunicationMarks.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace dtc::runtime {

using Number = uint32_t;

Expected<std::unique_ptr<CommunicationMarks>>
CommunicationMarks::create(size_t instructions, Device &device, Queue &queue) {
  std::unique_ptr<CommunicationMarks> marks(new CommunicationMarks);
  const size_t count = kNumPlaces + instructions;
  auto numbers = device.allocate(count * sizeof(Number));
  if (!numbers)
    return numbers.error();
  marks->numbers = std::move(*numbers);
  auto staging = device.allocateStaging(count * sizeof(Number));
  if (!staging)
    return staging.error();
  auto *values = reinterpret_cast<Number *>((*staging)->data());
  std::fill_n(values, kNumPlaces, Number{0});
  std::iota(values + kNumPlaces, values + count, Number{1});
  if (MaybeError error =
          queue.copy(marks->numbers->data(), (*staging)->data(), count * sizeof(Number)))
    return *error;
  if (MaybeError error = queue.finish())
    return *error;
  auto written = device.allocateStaging(kNumPlaces * sizeof(Number));
  if (!written)
    return written.error();
  marks->written = std::move(*written);
  std::memset(marks->written->data(), 0, kNumPlaces * sizeof(Number));
  return marks;
}

MaybeError CommunicationMarks::clear(Queue &queue) const {
  return queue.copy(written->data(), numbers->data(), kNumPlaces * sizeof(Number));
}

MaybeError CommunicationMarks::write(Queue &queue, Place place, size_t instruction) const {
  return queue.copy(written->data() + place * sizeof(Number),
                    numbers->data() + (kNumPlaces + instruction) * sizeof(Number), sizeof(Number));
}

ReachedCommunication CommunicationMarks::reached() const {
  auto at = [&](Place place) -> std::optional<size_t> {
    // The device writes it at any time.
    Number number = *(reinterpret_cast<const volatile Number *>(written->data()) + place);
    return number > 0 ? std::optional<size_t>(number - 1) : std::nullopt;
  };
  return {at(kCollective), at(kTransfer)};
}

} // namespace dtc::runtime
