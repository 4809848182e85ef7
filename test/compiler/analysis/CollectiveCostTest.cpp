//===- CollectiveCostTest.cpp - What the compiler and reports assume ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The compiler chooses by the costs that dtc-plan explain shows. The formulas and the assumed link
// stand in both; here they are held together.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/CollectiveCost.h"
#include "simulator/CollectiveCost.h"

#include <gtest/gtest.h>

TEST(CollectiveCost, TheCompilerAndReportsAgree) {
  dtc::Mesh mesh{"mesh", {{"a", 2, false, 10., .5}, {"b", 4, false, 5., .25}, {"c", 1}}};
  const std::pair<dtc::CollectiveKind, dtc::runtime::CollectiveKind> kinds[] = {
      {dtc::CollectiveKind::AllReduce, dtc::runtime::CollectiveKind::AllReduce},
      {dtc::CollectiveKind::AllGather, dtc::runtime::CollectiveKind::AllGather},
      {dtc::CollectiveKind::ReduceScatter, dtc::runtime::CollectiveKind::ReduceScatter},
      {dtc::CollectiveKind::AllToAll, dtc::runtime::CollectiveKind::AllToAll},
      {dtc::CollectiveKind::Permute, dtc::runtime::CollectiveKind::Permute}};
  const llvm::SmallVector<unsigned> groups[] = {{0}, {1}, {2}, {0, 1}, {1, 2}, {0, 1, 2}};
  for (auto [mine, theirs] : kinds)
    for (const auto &group : groups) {
      dtc::runtime::CollectiveSpec spec;
      spec.kind = theirs;
      spec.input = {dtc::runtime::DType::F32, {64}};
      std::vector<dtc::runtime::GroupAxis> axes;
      for (unsigned axis : group) {
        spec.members *= mesh.axes[axis].size;
        axes.push_back(
            {mesh.axes[axis].size, {mesh.axes[axis].bandwidth, mesh.axes[axis].latency}});
      }
      dtc::CollectiveCost cost = dtc::collectiveCost(mesh, mine, group, 256);
      if (spec.members == 1 && theirs == dtc::runtime::CollectiveKind::Permute)
        continue; // a plan has none: a device would send to itself
      EXPECT_EQ(cost.bytes, double(spec.ringBytes())) << name(theirs);
      EXPECT_DOUBLE_EQ(cost.seconds, estimateSeconds(theirs, spec.ringBytes(), axes))
          << name(theirs);
    }
}

TEST(CollectiveCost, TheSameLinkIsAssumed) {
  EXPECT_EQ(dtc::kDefaultBandwidth, dtc::runtime::kAssumedLink.bandwidth);
  EXPECT_EQ(dtc::kDefaultLatency, dtc::runtime::kAssumedLink.latency);
}
