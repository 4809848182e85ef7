//===- HostCollective.h - Collectives through shared memory ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_HOSTCOLLECTIVE_H
#define DTC_RUNTIME_FABRICS_PROCESSES_HOSTCOLLECTIVE_H

#include "runtime/fabrics/processes/CollectiveParts.h"
#include "runtime/fabrics/processes/HostExchange.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dtc::runtime {

/// The collectives of a group whose processes share memory.
class HostCollective final : public CollectiveParts {
public:
  HostCollective(const ProcessGroup &group, std::unique_ptr<HostExchange> exchange)
      : CollectiveParts(group), exchange(std::move(exchange)) {}

private:
  MaybeError move() override;
  MaybeError reduce() override;
  MaybeError reduceSmall();
  /// Publishes and takes chunks. Two chunks are on their way at a time.
  template <typename Start, typename Take>
  MaybeError runChunks(size_t count, const Start &start, const Take &take);
  void startReduction(size_t segment);
  void finishReduction(size_t segment, bool spreads);
  void takeResults(size_t segment) const;
  size_t movedBytes() const;

  std::unique_ptr<HostExchange> exchange;
  // State of the running call.
  Segment everything;
  std::vector<Segments> segments;                // of each process
  std::array<std::vector<std::byte>, 2> partial; // what this process adds up of its own segments
  std::vector<const std::byte *> values;         // of each process
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_HOSTCOLLECTIVE_H
