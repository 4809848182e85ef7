//===- GpuMemory.cpp - What runs take of a GPU beside their plan ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/GpuMemory.h"

#include "support/Format.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtc {

static constexpr uint64_t kMiB = uint64_t{1} << 20, kSteps = 8, kGranule = 2 * kMiB,
                          kFlags = uint64_t{4} << 10;

static constexpr uint64_t roundUp(uint64_t bytes) {
  return (bytes + kGranule - 1) / kGranule * kGranule;
}

static constexpr uint64_t kLowLatency = uint64_t{8} * 512 * kSteps * 16,
                          kLowLatency128 = uint64_t{120} * 640 * kSteps * 8, kSimple = 4 * kMiB;
/// Of one channel of a connection, on either side.
static constexpr uint64_t kReceiver = roundUp(kFlags + kLowLatency + kLowLatency128 + kSimple),
                          kSender = roundUp(kFlags);
static_assert(kReceiver == 10 * kMiB && kSender == 2 * kMiB);

/// The description of the communicator and of its channels on the device, and those of its peers:
/// two allocations.
static constexpr uint64_t kStructures = 2 * kGranule;
static constexpr uint64_t kMulticastStep = uint64_t{128} << 10;
static constexpr int64_t kMulticastChannels = 16, kMostPerTree = 2;

int64_t NcclChannels::collectives() const { return std::min(most, kCollectives); }

int64_t NcclChannels::messages() const {
  return int64_t(std::bit_ceil(static_cast<uint64_t>(collectives())));
}

NcclMemory estimateNcclMemory(const CommunicatorNeeds &needs, const NcclChannels &channels) {
  NcclMemory memory;
  const auto ofCollectives = static_cast<uint64_t>(channels.collectives());
  const auto ofMessages = static_cast<uint64_t>(channels.messages());
  for (const CommunicatorNeeds::Group &group : needs.groups) {
    ++memory.communicators;
    int64_t connections = group.reducesAll ? std::min(group.members - 1, kMostPerTree)
                          : group.hasRings ? 1
                                           : 0;
    memory.collectives +=
        static_cast<uint64_t>(connections) * ofCollectives * (kReceiver + kSender);
    if (group.reducesAll && group.members > 2 && channels.multicasts)
      memory.multicasts += static_cast<uint64_t>(group.members) * 2 * kSteps * kMulticastStep *
                           static_cast<uint64_t>(std::min(channels.most, kMulticastChannels));
    memory.messages += static_cast<uint64_t>(group.peers) * ofMessages * (kReceiver + kSender);
  }
  memory.communicators += needs.sends + needs.receives;
  memory.messages += static_cast<uint64_t>(needs.sends) * ofMessages * kSender +
                     static_cast<uint64_t>(needs.receives) * ofMessages * kReceiver;
  memory.structures = static_cast<uint64_t>(memory.communicators) * kStructures;
  return memory;
}

std::string NcclMemory::describe(const NcclChannels &channels) const {
  std::vector<std::string> parts;
  auto part = [&](const char *kind, uint64_t bytes) {
    if (bytes > 0)
      parts.push_back(fmt::format("{} {}", kind, formatBytes(bytes)));
  };
  part("structures", structures);
  part("collectives", collectives);
  part("sums in the switch", multicasts);
  part("messages", messages);
  return fmt::format("{} communicator{} of NCCL with up to {} channel{} take{} about {} ({})",
                     communicators, communicators == 1 ? "" : "s", channels.collectives(),
                     channels.collectives() == 1 ? "" : "s", communicators == 1 ? "s" : "",
                     formatBytes(total()), fmt::join(parts, ", "));
}

} // namespace dtc
