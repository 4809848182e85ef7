//===- BucketConformanceTest.cpp - Several tensors at once, and permutes --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/files/Sanitizer.h"
#include "test/runtime/fabrics/Network.h"

#include <cstring>
#include <numeric>
#include <span>

namespace bucketConformanceTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

class BucketConformance : public FabricConformance {
protected:
  static std::vector<Network::Tensors> randomTensors(const Mesh &mesh,
                                                     const std::vector<CollectiveSpec> &specs) {
    std::vector<Network::Tensors> inputs;
    for (const CollectiveSpec &spec : specs)
      inputs.push_back(spec.input.dtype == DType::F32 ? randomInputs<float>(mesh, spec.input, 1)
                       : spec.input.dtype == DType::F64
                           ? randomInputs<double>(mesh, spec.input, 2)
                           : randomInputs<int32_t>(mesh, spec.input, 3));
    return inputs;
  }
};

/// Specs that differ in shape, dimension and element type. `scale` multiplies the sizes.
std::vector<CollectiveSpec> mixedBucket(CollectiveKind kind, int64_t members, int64_t scale) {
  std::vector<CollectiveSpec> specs;
  auto add = [&](DType dtype, std::vector<int64_t> shape, int64_t dim, int64_t split) {
    specs.push_back(makeSpec(kind, {dtype, std::move(shape)}, dim, split));
  };
  if (kind == CollectiveKind::AllReduce || kind == CollectiveKind::Permute) {
    add(DType::F32, {}, 0, 0); // a scalar has no dimension
    add(DType::F64, {3 * scale + 1}, 0, 0);
  }
  bool exchange = kind == CollectiveKind::AllToAll;
  add(DType::F32, {2 * members, 3, scale}, 0, 0);
  add(DType::F64, {3, members, 5}, exchange ? 2 : 1, 1);
  add(DType::F32, {members, 0}, 0, 0);
  add(DType::I32, {7, scale * members}, exchange ? 0 : 1, 1);
  add(DType::F32, {members, 17}, 0, 0);
  return specs;
}

std::shared_ptr<const std::vector<int64_t>> sourcesOf(const Mesh &mesh, const Axes &axes,
                                                      const Axes &sourceAxes, int64_t shift) {
  auto sources = std::make_shared<std::vector<int64_t>>();
  int64_t members = mesh.groupSize(axes);
  for (int64_t member : mesh.group(0, axes))
    sources->push_back((mesh.blockIndex(member, sourceAxes) + members - shift) % members);
  return sources;
}

/// As ==, which compares bytes one by one.
bool sameBytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || !std::memcmp(a.data(), b.data(), a.size()));
}

} // namespace

TEST_P(BucketConformance, ATensorIsTheSameAloneAndInABucket) {
  struct Case {
    Mesh mesh;
    Axes axes;
  };
  for (const Case &c : {Case{Mesh({{"a", 1, false}}), {"a"}},
                        {Mesh({{"a", 2, false}}), {"a"}},
                        {Mesh({{"a", 3, false}, {"b", 2, false}}), {"b", "a"}},
                        {Mesh({{"a", 2, false}, {"b", 4, false}}), {"b"}},
                        {Mesh({{"a", 16, false}}), {"a"}}}) {
    Network network(c.mesh, fabric());
    // One thread does the work, each member does its part, results are too large for the caches.
    for (int64_t scale : {1, 300, c.mesh.numDevices() == 2 ? 80000 : is("Local") ? 3000 : 700}) {
      // The stand-in looks at all memory after each copy; the thread sanitizer takes twenty times
      // as long, and finds in small tensors what it finds in large ones.
      if (isOnCuda() && (scale > 1 || c.mesh.numDevices() > 6))
        continue;
      if (DTC_SANITIZE_THREAD && ((scale > 300 && !(is("Processes") && c.mesh.numDevices() == 2) &&
                                   !(is("Local") && c.mesh.numDevices() <= 6)) ||
                                  (scale > 1 && c.mesh.numDevices() > 6)))
        continue;
      for (CollectiveKind kind : kAllCollectiveKinds)
        for (bool inPlace : {false, true}) {
          if (inPlace && kind != CollectiveKind::AllReduce)
            continue;
          int64_t members = c.mesh.groupSize(c.axes);
          auto specs = mixedBucket(kind, members, scale);
          if (kind == CollectiveKind::Permute)
            for (CollectiveSpec &spec : specs)
              spec.sources = sourcesOf(c.mesh, c.axes, {c.axes.rbegin(), c.axes.rend()}, 0);
          auto inputs = randomTensors(c.mesh, specs);
          CommunicatorBytes before = network.ends[0]->sent();
          auto together = network.run(specs, c.axes, inputs, inPlace);
          CommunicatorBytes between = network.ends[0]->sent();
          for (size_t i = 0; i < specs.size(); ++i) {
            auto alone = network.run(specs[i], c.axes, inputs[i]);
            for (size_t device = 0; device < alone.size(); ++device)
              ASSERT_TRUE(sameBytes(together[i][device].bytes, alone[device].bytes))
                  << name(kind) << " tensor " << i << " device " << device;
          }
          // The bytes of the tensors alone come on top.
          CommunicatorBytes after = network.ends[0]->sent();
          EXPECT_EQ(after.total() - between.total(), between.total() - before.total());
          EXPECT_EQ(after.of(kind) - before.of(kind), after.total() - before.total());
        }
    }
  }
}

TEST_P(BucketConformance, LargeTensorsAreRight) {
  Mesh mesh({{"a", 2, false}});
  int64_t count = (3 << 20) + 5; // beyond the caches, and no whole number of lines
  TensorType type{DType::F32, {count}};
  auto inputs = randomInputs<float>(mesh, type, 1);
  for (bool inPlace : {false, true}) {
    auto outputs = Network(mesh, fabric())
                       .run(makeSpec(CollectiveKind::AllReduce, type), {"a"}, inputs, inPlace);
    for (int64_t i = 0; i < count; ++i) {
      float sum = inputs[0].as<float>()[i] + inputs[1].as<float>()[i];
      ASSERT_EQ(outputs[0].as<float>()[i], sum);
      ASSERT_EQ(outputs[1].as<float>()[i], sum);
    }
  }
  auto gathered =
      Network(mesh, fabric()).run(makeSpec(CollectiveKind::AllGather, type), {"a"}, inputs);
  std::vector<std::byte> both = inputs[0].bytes;
  both.insert(both.end(), inputs[1].bytes.begin(), inputs[1].bytes.end());
  EXPECT_TRUE(gathered[0].bytes == both);
  EXPECT_TRUE(gathered[1].bytes == both);
}

TEST_P(BucketConformance, MembersThatDisagreeOnTheBucketGetAnError) {
  if (is("NcclProcesses"))
    GTEST_SKIP() << kComparedByNobody;
  Mesh mesh({{"a", 2, false}});
  Network network(mesh, fabric());
  (void)network.open({"a"});
  std::vector<std::vector<float>> data(2, std::vector<float>(8));
  MaybeError error = network.threads.run([&](size_t device) {
    CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::F32, {4}});
    spec.members = 2;
    // The same elements in one tensor and in two.
    if (device == 0)
      spec.input.shape = {8};
    std::vector<CollectiveSpec> specs(device + 1, spec);
    std::vector<CollectiveOperands> operands;
    for (size_t i = 0; i <= device; ++i)
      operands.push_back({data[device].data() + 4 * i, data[device].data() + 4 * i});
    return network.run(device, 0, specs, operands);
  });
  // Messages only have sizes: all have the same plan. The results of each are right, besides.
  if (hasProcesses() && !sharesMemory()) {
    EXPECT_OK(error);
  } else {
    EXPECT_ERROR(error, "different collectives");
  }
}

TEST_P(BucketConformance, AnEmptyBucketIsNothing) {
  Network network(Mesh({{"a", 2, false}}), fabric());
  (void)network.open({"a"});
  EXPECT_OK(network.run(0, 0, std::vector<CollectiveSpec>(), {})); // the other device need not come
}

TEST_P(BucketConformance, PermuteFollowsTheDefinition) {
  struct Case {
    Axes axes, sourceAxes;
    int64_t shift = 0;
  };
  Mesh mesh({{"a", 2, false}, {"b", 3, false}, {"m", 2, true}, {"c", 4, false}});
  for (const Case &c : {Case{{"a", "b"}, {"b", "a"}},
                        {{"b", "a"}, {"a", "b"}},
                        {{"c", "a"}, {"a", "c"}},
                        {{"a", "b", "c"}, {"c", "b", "a"}},
                        {{"a", "b", "c"}, {"b", "c", "a"}},
                        {{"c", "a", "b"}, {"a", "c", "b"}},
                        {{"b"}, {"b"}},
                        {{"b"}, {"b"}, 1},
                        {{"c"}, {"c"}, 3},
                        {{"a", "c"}, {"a", "c"}, 5},
                        {{"a", "b"}, {"b", "a"}, 2}}) {
    for (int64_t size : {1, 5000}) {
      CollectiveSpec spec = makeSpec(CollectiveKind::Permute, {DType::F32, {size}});
      spec.sources = sourcesOf(mesh, c.axes, c.sourceAxes, c.shift);
      auto inputs = randomInputs<float>(mesh, spec.input, 5);
      Network network(mesh, fabric());
      auto outputs = network.run(spec, c.axes, inputs);
      for (int64_t device = 0; device < mesh.numDevices(); ++device) {
        // From plan.proto: the member whose rank is this device's number over the source axes, less
        // the shift.
        int64_t members = mesh.groupSize(c.axes);
        auto source = static_cast<size_t>(
            (mesh.blockIndex(device, c.sourceAxes) + members - c.shift) % members);
        auto from = static_cast<size_t>(mesh.group(device, c.axes)[source]);
        EXPECT_EQ(outputs[static_cast<size_t>(device)].bytes, inputs[from].bytes);
        EXPECT_EQ(network.ends[static_cast<size_t>(device)]->sent().of(CollectiveKind::Permute),
                  static_cast<uint64_t>(size) * 4);
      }
    }
  }
}

INSTANTIATE_FABRIC_CONFORMANCE(BucketConformance);

} // namespace bucketConformanceTest
