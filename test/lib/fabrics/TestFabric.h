//===- TestFabric.h - Test fabric with delays and faults ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_FABRICS_TESTFABRIC_H
#define DTC_TEST_LIB_FABRICS_TESTFABRIC_H

#include "runtime/fabrics/Fabric.h"

#include <chrono>
#include <cstdint>
#include <optional>

namespace dtc::runtime::testing {

struct TestFabricOptions {
  uint64_t seed = 1; // of the delays and of the order of messages
  std::chrono::microseconds longestDelay{100};
  /// The collective or message, counted from 0 in the order in which queues come to them, that
  /// fails.
  std::optional<uint64_t> failAt = std::nullopt;
};

/// Opens a fabric of threads of this process that is not the local one: a message is copied when it
/// is sent, and messages of different pairs of devices arrive in any order. Collectives are those
/// of the local fabric; each device comes to them after a delay of its own.
OpenFabric testFabric(TestFabricOptions options = {});

} // namespace dtc::runtime::testing

#endif // DTC_TEST_LIB_FABRICS_TESTFABRIC_H
