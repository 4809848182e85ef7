//===- MeshTest.cpp - Tests of meshes -------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Mesh.h"

#include "support/MeshAxes.h"

#include <gtest/gtest.h>

namespace meshTest {

using namespace dtc;

static Mesh exampleMesh() {
  return Mesh({{"a", 2, false}, {"micro", 4, true}, {"b", 3, false}, {"c", 2, false}});
}

TEST(Mesh, TheLastAxisVariesFastest) {
  Mesh mesh = exampleMesh();
  EXPECT_EQ(mesh.numDevices(), 12);
  EXPECT_EQ(mesh.coordinates(0), (std::vector<int64_t>{0, 0, 0, 0}));
  EXPECT_EQ(mesh.coordinates(1), (std::vector<int64_t>{0, 0, 0, 1}));
  EXPECT_EQ(mesh.coordinates(2), (std::vector<int64_t>{0, 0, 1, 0}));
  EXPECT_EQ(mesh.coordinates(11), (std::vector<int64_t>{1, 0, 2, 1}));
}

TEST(Mesh, WithoutAxesThereIsOneDevice) {
  Mesh mesh;
  EXPECT_EQ(mesh.numDevices(), 1);
  EXPECT_EQ(mesh.group(0, {}), std::vector<int64_t>{0});
  EXPECT_EQ(mesh.firstReplica(0, {}), 0);
}

TEST(Mesh, GroupsAreInTheOrderOfTheirAxes) {
  Mesh mesh = exampleMesh();
  EXPECT_EQ(mesh.group(7, {"b"}), (std::vector<int64_t>{7, 9, 11}));
  EXPECT_EQ(mesh.group(7, {"a", "c"}), (std::vector<int64_t>{0, 1, 6, 7}));
  EXPECT_EQ(mesh.group(7, {"c", "a"}), (std::vector<int64_t>{0, 6, 1, 7}));
  EXPECT_EQ(mesh.groupSize({"c", "a"}), 4);
}

TEST(Mesh, TheBlockIndexIsTheRankInTheGroup) {
  Mesh mesh = exampleMesh();
  for (const std::vector<std::string> &axes :
       {std::vector<std::string>{"a"}, {"b", "a"}, {"c", "b", "a"}, {}})
    for (int64_t device = 0; device < mesh.numDevices(); ++device) {
      auto rank = static_cast<size_t>(mesh.blockIndex(device, axes));
      EXPECT_EQ(mesh.group(device, axes)[rank], device);
    }
}

TEST(Mesh, FirstReplicas) {
  Mesh mesh = exampleMesh();
  std::vector<int64_t> first;
  for (int64_t device = 0; device < mesh.numDevices(); ++device)
    first.push_back(mesh.firstReplica(device, {"b"}));
  EXPECT_EQ(first, (std::vector<int64_t>{0, 0, 2, 2, 4, 4, 0, 0, 2, 2, 4, 4}));
  EXPECT_EQ(mesh.firstReplica(11, {"c", "a"}), 7);
  EXPECT_EQ(mesh.firstReplica(11, {}), 0);
}

TEST(Mesh, AxesInsideMicrobatchesComeAfterTheTemporalOne) {
  Mesh mesh = exampleMesh();
  using Axes = std::vector<std::string>;
  EXPECT_EQ(mesh.axesInsideMicrobatches({"a", "micro", "c", "b"}), (Axes{"c", "b"}));
  EXPECT_EQ(mesh.axesInsideMicrobatches({"micro", "a"}), Axes{"a"});
  for (const Axes &axes : {Axes{}, Axes{"a", "b"}, Axes{"micro"}, Axes{"a", "micro"}})
    EXPECT_EQ(mesh.axesInsideMicrobatches(axes), Axes());
}

TEST(MeshAxes, SaysWhatIsSplit) {
  std::string order;
  for (const MeshAxisInfo &axis : meshAxes()) {
    order += std::string(axis.name) + " ";
    EXPECT_EQ(splitsBatch(axis.name), axis.splitsBatch) << axis.name;
    EXPECT_TRUE(axis.splitsBatch || !axis.splitsBatchOfExperts) << axis.name;
  }
  EXPECT_EQ(order, "pp dp fsdp ep cp tp ");
  for (const char *axis : {"dp", "fsdp", "ep"})
    EXPECT_TRUE(splitsBatch(axis)) << axis;
  for (const char *axis : {"pp", "tp", "micro", "x", ""})
    EXPECT_FALSE(splitsBatch(axis)) << axis;
  std::string tensors;
  for (const char *name : tensorAxisNames())
    tensors += std::string(name) + " ";
  EXPECT_EQ(tensors, "heads kv_heads mlp vocab ");
}
} // namespace meshTest
