//===- FabricConformanceTest.cpp - Conformance tests of fabrics -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Devices, decisions of the host and the end of a run. Each process runs all of it.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/Fabric.h"

#include "test/lib/plans/Expect.h"
#include "test/runtime/fabrics/Network.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace fabricConformanceTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

TEST_P(FabricConformance, EachDeviceLivesInOneProcess) {
  for (int64_t numDevices : {1, 6}) {
    std::shared_ptr<Fabric> opened = std::move(*fabric()(Mesh({{"a", numDevices, false}})));
    std::span<const int64_t> devices = opened->devices();
    ASSERT_FALSE(devices.empty());
    EXPECT_TRUE(std::ranges::is_sorted(devices));
    EXPECT_GE(devices.front(), 0);
    EXPECT_LT(devices.back(), numDevices);
    EXPECT_EQ(opened->holdsAllDevices(), std::ssize(devices) == numDevices);
    int64_t held = *opened->agree(ReductionKind::Sum, std::ssize(devices));
    EXPECT_EQ(held, numDevices);
  }
}

TEST_P(FabricConformance, ProcessesAgree) {
  std::shared_ptr<Fabric> opened = std::move(*fabric()(Mesh({{"a", 4, false}})));
  int64_t process = opened->process(), processes = opened->numProcesses();
  ASSERT_GE(process, 0);
  ASSERT_LT(process, processes);
  for (int64_t offset : {int64_t{-3}, int64_t{0}, int64_t{1} << 60}) {
    EXPECT_EQ(*opened->agree(ReductionKind::Max, offset + process), offset + processes - 1);
    EXPECT_EQ(*opened->agree(ReductionKind::Min, offset + process), offset);
  }
  EXPECT_EQ(*opened->agree(ReductionKind::Sum, process + 1), processes * (processes + 1) / 2);
  for (int64_t from : {int64_t{0}, processes - 1}) {
    std::string bytes = "of process " + std::to_string(process) + std::string(1, '\0');
    std::string expected = "of process " + std::to_string(from) + std::string(1, '\0');
    EXPECT_EQ(*opened->broadcast(from, bytes), expected);
    EXPECT_EQ(*opened->broadcast(from, ""), "");
  }
}

TEST_P(FabricConformance, AnAbortEndsAllThatComesLater) {
  Network network(Mesh({{"a", 2, false}}), fabric());
  network.fabric->abort(Error{"the disk is full"});
  network.fabric->abort(Error{"another reason, which came later"});
  EXPECT_ERROR(network.fabric->agree(ReductionKind::Max, 1), "the disk is full");
  EXPECT_ERROR(network.fabric->broadcast(0, "bytes"), "the disk is full");
  CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::F32, {4}});
  spec.members = 2;
  std::vector<float> values(4);
  for (size_t device = 0; device < network.ends.size(); ++device) {
    Communicator::Group group = *network.ends[device]->openGroup({"a"});
    EXPECT_ERROR(network.run(device, group, spec, values.data(), values.data()),
                 "the disk is full");
  }
}

INSTANTIATE_FABRIC_CONFORMANCE(FabricConformance);

} // namespace fabricConformanceTest
