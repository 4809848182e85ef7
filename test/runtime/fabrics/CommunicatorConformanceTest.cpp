//===- CommunicatorConformanceTest.cpp - Collectives of every fabric ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Results are compared with naive ones, on all fabrics.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/Communicator.h"

#include "support/Float16.h"
#include "test/lib/plans/Expect.h"
#include "test/runtime/fabrics/Network.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <gtest/gtest.h>
#include <limits>

namespace communicatorConformanceTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

using CommunicatorConformance = FabricConformance;

/// Element by element, from the definition of each collective in plan.proto.
template <typename T>
T naiveElement(const CollectiveSpec &spec, const std::vector<const HostTensor *> &members,
               int64_t rank, std::vector<int64_t> index) {
  auto flat = [](const std::vector<int64_t> &shape, const std::vector<int64_t> &at) {
    int64_t position = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      position = position * shape[d] + at[d];
    return position;
  };
  auto n = static_cast<int64_t>(members.size());
  const std::vector<int64_t> &shape = spec.input.shape;
  auto dim = static_cast<size_t>(spec.dim), split = static_cast<size_t>(spec.splitDim);
  if (spec.kind == CollectiveKind::AllReduce || spec.kind == CollectiveKind::ReduceScatter) {
    if (spec.kind == CollectiveKind::ReduceScatter)
      index[dim] += rank * (shape[dim] / n);
    // Elements of 16 bits are combined as floats, and the result is rounded once.
    using W = Wide<T>;
    W result = static_cast<W>(members[0]->as<T>()[flat(shape, index)]);
    for (int64_t m = 1; m < n; ++m) {
      W value = static_cast<W>(members[static_cast<size_t>(m)]->as<T>()[flat(shape, index)]);
      if (spec.reduction == ReductionKind::Sum) {
        if constexpr (std::is_integral_v<W>)
          result = static_cast<W>(static_cast<uint32_t>(result) + static_cast<uint32_t>(value));
        else
          result += value;
      } else {
        result = spec.reduction == ReductionKind::Max ? std::max(result, value)
                                                      : std::min(result, value);
      }
    }
    return static_cast<T>(result);
  }
  // The member that an element comes from is its block along `dim`.
  int64_t block = spec.kind == CollectiveKind::AllGather ? shape[dim]
                  : dim == split                         ? shape[dim] / n
                                                         : shape[dim];
  int64_t from = index[dim] / block;
  index[dim] %= block;
  if (spec.kind == CollectiveKind::AllToAll)
    index[split] += rank * (shape[split] / n);
  return members[static_cast<size_t>(from)]->as<T>()[flat(shape, index)];
}

template <typename T>
void expectNaive(const CollectiveSpec &spec, const Mesh &mesh, const Axes &axes,
                 const std::vector<HostTensor> &inputs, const std::vector<HostTensor> &outputs) {
  using Bits = std::array<std::byte, sizeof(T)>;
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    std::vector<const HostTensor *> members;
    for (int64_t member : mesh.group(device, axes))
      members.push_back(&inputs[static_cast<size_t>(member)]);
    const HostTensor &output = outputs[static_cast<size_t>(device)];
    std::vector<int64_t> index(output.type.shape.size(), 0);
    for (int64_t i = 0; i < output.type.numElements(); ++i) {
      T expected = naiveElement<T>(spec, members, mesh.blockIndex(device, axes), index);
      T actual = output.as<T>()[i];
      ASSERT_TRUE(std::bit_cast<Bits>(actual) == std::bit_cast<Bits>(expected))
          << name(spec.kind) << " of " << spec.input.str() << " device " << device << " element "
          << i << ": " << static_cast<Wide<T>>(actual) << " instead of "
          << static_cast<Wide<T>>(expected);
      for (size_t d = index.size(); d-- > 0;) {
        if (++index[d] < output.type.shape[d])
          break;
        index[d] = 0;
      }
    }
  }
}

struct MeshCase {
  Mesh mesh;
  std::vector<Axes> groups;
};

std::vector<MeshCase> meshCases() {
  std::vector<MeshCase> cases = {
      {Mesh({{"a", 1, false}}), {{"a"}}},
      {Mesh({{"a", 3, false}}), {{"a"}}},
      {Mesh({{"a", 2, false}, {"b", 2, false}}), {{"a"}, {"b"}, {"a", "b"}, {"b", "a"}}},
      {Mesh({{"a", 2, false}, {"m", 3, true}, {"b", 3, false}, {"c", 2, false}}),
       {{"a"}, {"b"}, {"c", "a"}, {"b", "c"}, {"c", "b", "a"}}},
      {Mesh({{"a", 4, false}, {"b", 4, false}}), {{"a"}, {"b"}, {"b", "a"}}},
      {Mesh({{"a", 16, false}}), {{"a"}}},
  };
  // The thread sanitizer takes long, and sixteen devices have no path that twelve have not.
  if (DTC_SANITIZE_THREAD)
    cases.resize(4);
  return cases;
}

} // namespace

TEST_P(CommunicatorConformance, AllReduceOnEveryGroup) {
  for (const MeshCase &c : meshCases())
    for (const Axes &axes : c.groups) {
      Network network(c.mesh, fabric());
      // Empty, scalar, small, not divisible by the members, and beyond the small path.
      for (const std::vector<int64_t> &shape :
           {std::vector<int64_t>{0}, {}, {7}, {33, 31}, {5, 1001}})
        for (bool inPlace : {false, true}) {
          CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::F32, shape});
          auto inputs = randomInputs<float>(c.mesh, spec.input, 1);
          auto outputs = network.run(spec, axes, inputs, inPlace);
          expectNaive<float>(spec, c.mesh, axes, inputs, outputs);
        }
    }
}

TEST_P(CommunicatorConformance, EveryReductionAndType) {
  Mesh mesh({{"a", 4, false}});
  Network network(mesh, fabric());
  for (ReductionKind reduction : {ReductionKind::Sum, ReductionKind::Max, ReductionKind::Min})
    for (int64_t size : {12, 4000}) {
      for (CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter}) {
        CollectiveSpec spec = makeSpec(kind, {DType::F32, {size}});
        spec.reduction = reduction;
        auto floats = randomInputs<float>(mesh, spec.input, 2);
        expectNaive<float>(spec, mesh, {"a"}, floats, network.run(spec, {"a"}, floats));
        spec.input.dtype = DType::F64;
        auto doubles = randomInputs<double>(mesh, spec.input, 3);
        expectNaive<double>(spec, mesh, {"a"}, doubles, network.run(spec, {"a"}, doubles));
        spec.input.dtype = DType::I32;
        auto ints = randomInputs<int32_t>(mesh, spec.input, 4);
        expectNaive<int32_t>(spec, mesh, {"a"}, ints, network.run(spec, {"a"}, ints));
        spec.input.dtype = DType::BF16;
        auto brains = randomInputs<BFloat16>(mesh, spec.input, 5);
        expectNaive<BFloat16>(spec, mesh, {"a"}, brains, network.run(spec, {"a"}, brains));
        spec.input.dtype = DType::F16;
        auto halves = randomInputs<Float16>(mesh, spec.input, 6);
        expectNaive<Float16>(spec, mesh, {"a"}, halves, network.run(spec, {"a"}, halves));
      }
    }
}

/// 256 + 1 + 1 + ... with a rounding at each step would stay at 256 in bf16.
TEST_P(CommunicatorConformance, SumsOf16BitsAreRoundedOnce) {
  Mesh mesh({{"a", 9, false}});
  for (int64_t size : {1, 5000}) {
    CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::BF16, {size}});
    std::vector<HostTensor> inputs(9, HostTensor(spec.input));
    for (size_t device = 0; device < inputs.size(); ++device)
      for (int64_t i = 0; i < size; ++i)
        setElement(inputs[device], i, device == 0 ? 256 : 1);
    for (bool inPlace : {false, true})
      for (const HostTensor &output : Network(mesh, fabric()).run(spec, {"a"}, inputs, inPlace))
        for (int64_t i = 0; i < size; ++i)
          ASSERT_EQ(elementAt(output, i), 264);
  }
}

TEST_P(CommunicatorConformance, MaximumAndMinimumKeepNaN) {
  Mesh mesh({{"a", 3, false}});
  for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16})
    for (size_t nanAt : {0, 1, 2})
      for (ReductionKind reduction : {ReductionKind::Max, ReductionKind::Min}) {
        CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {dtype, {1}});
        spec.reduction = reduction;
        std::vector<HostTensor> inputs(3, HostTensor(spec.input));
        setElement(inputs[nanAt], 0, std::numeric_limits<double>::quiet_NaN());
        for (const HostTensor &output : Network(mesh, fabric()).run(spec, {"a"}, inputs))
          EXPECT_TRUE(std::isnan(elementAt(output, 0)));
      }
}

TEST_P(CommunicatorConformance, GatherScatterAndAllToAllAlongEveryDimension) {
  for (const MeshCase &c : meshCases())
    for (const Axes &axes : c.groups) {
      int64_t n = c.mesh.groupSize(axes);
      Network network(c.mesh, fabric());
      // Only the dimensions that are split need to be multiples of the members.
      auto typeFor = [&](int64_t dim, int64_t split) {
        TensorType type{DType::F32, {2, 3, 4}};
        type.shape[static_cast<size_t>(dim)] = 2 * n;
        type.shape[static_cast<size_t>(split)] = split == dim ? 2 * n : n;
        return type;
      };
      // The thread sanitizer takes long, and threads do the same along all dimensions.
      for (int64_t dim = DTC_SANITIZE_THREAD ? 2 : 0; dim < 3; ++dim) {
        for (CollectiveKind kind : {CollectiveKind::AllGather, CollectiveKind::ReduceScatter}) {
          CollectiveSpec spec = makeSpec(kind, typeFor(dim, dim), dim);
          spec.members = n;
          auto inputs = randomInputs<float>(c.mesh, spec.input, 5);
          expectNaive<float>(spec, c.mesh, axes, inputs, network.run(spec, axes, inputs));
        }
        for (int64_t split = 0; split < 3; ++split) {
          CollectiveSpec spec = makeSpec(CollectiveKind::AllToAll, typeFor(dim, split), dim, split);
          spec.members = n;
          auto inputs = randomInputs<float>(c.mesh, spec.input, 5);
          expectNaive<float>(spec, c.mesh, axes, inputs, network.run(spec, axes, inputs));
        }
      }
    }
}

TEST_P(CommunicatorConformance, MovesOneByteElements) {
  Mesh mesh({{"a", 2, false}});
  CollectiveSpec spec = makeSpec(CollectiveKind::AllGather, {DType::Bool, {3}});
  spec.members = 2;
  auto inputs = randomInputs<uint8_t>(mesh, spec.input, 6);
  expectNaive<uint8_t>(spec, mesh, {"a"}, inputs, Network(mesh, fabric()).run(spec, {"a"}, inputs));
}

TEST_P(CommunicatorConformance, CountsTheBytesOfARing) {
  Mesh mesh({{"a", 4, false}, {"b", 2, false}});
  Network network(mesh, fabric());
  TensorType type{DType::F32, {8, 8}}; // 256 bytes
  auto inputs = randomInputs<float>(mesh, type, 7);
  network.run(makeSpec(CollectiveKind::AllReduce, type), {"a"}, inputs);
  network.run(makeSpec(CollectiveKind::AllGather, type, 1), {"a"}, inputs);
  network.run(makeSpec(CollectiveKind::ReduceScatter, type, 1), {"b"}, inputs);
  network.run(makeSpec(CollectiveKind::AllToAll, type, 0, 1), {"a", "b"}, inputs);
  for (auto &end : network.ends) {
    EXPECT_EQ(end->sent().of(CollectiveKind::AllReduce), 2 * 3 * 256 / 4);
    EXPECT_EQ(end->sent().of(CollectiveKind::AllGather), 3 * 256); // 3/4 of 1024
    EXPECT_EQ(end->sent().of(CollectiveKind::ReduceScatter), 256 / 2);
    EXPECT_EQ(end->sent().of(CollectiveKind::AllToAll), 7 * 256 / 8);
    EXPECT_EQ(end->sent().total(), 384u + 768u + 128u + 224u);
  }
}

TEST_P(CommunicatorConformance, AGroupOfOneSendsNothing) {
  Mesh mesh({{"a", 1, false}});
  Network network(mesh, fabric());
  TensorType type{DType::F32, {4}};
  auto inputs = randomInputs<float>(mesh, type, 8);
  network.run(makeSpec(CollectiveKind::AllReduce, type), {"a"}, inputs);
  EXPECT_EQ(network.ends[0]->sent().total(), 0u);
}

TEST_P(CommunicatorConformance, RepeatsWithTheSameBits) {
  Mesh mesh({{"a", 8, false}});
  CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::F32, {10007}});
  auto inputs = randomInputs<float>(mesh, spec.input, 9);
  auto first = Network(mesh, fabric()).run(spec, {"a"}, inputs);
  for (int repeat = 0; repeat < 5; ++repeat) {
    auto again = Network(mesh, fabric()).run(spec, {"a"}, inputs, repeat % 2 == 0);
    for (size_t device = 0; device < 8; ++device)
      EXPECT_EQ(again[device].bytes, first[0].bytes);
  }
}

TEST_P(CommunicatorConformance, ManyCollectivesInARowDoNotMixUp) {
  Mesh mesh({{"a", 4, false}, {"b", 2, false}});
  Network network(mesh, fabric());
  (void)network.open({"a"});
  (void)network.open({"b"});
  CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::I32, {1}});
  std::vector<int32_t> values(8, 1);
  MaybeError error = network.threads.run([&](size_t device) -> MaybeError {
    for (int i = 0; i < 500; ++i) {
      bool overA = i % 2 == 0;
      CollectiveSpec mine = spec;
      mine.members = overA ? 4 : 2;
      mine.reduction = ReductionKind::Max;
      values[device] += i % 3;
      if (MaybeError failed =
              network.run(device, overA ? 0 : 1, mine, &values[device], &values[device]))
        return failed;
    }
    return std::nullopt;
  });
  EXPECT_OK(error);
  for (int32_t value : values)
    EXPECT_EQ(value, 1 + 499);
}

TEST_P(CommunicatorConformance, AFailingDeviceWakesTheOthers) {
  Mesh mesh({{"a", 16, false}});
  Network network(mesh, fabric());
  (void)network.open({"a"});
  CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::F32, {4}});
  spec.members = 16;
  std::vector<std::vector<float>> data(16, std::vector<float>(4));
  MaybeError error = network.threads.run([&](size_t device) -> MaybeError {
    if (device == 11)
      return Error{"out of luck"};
    return network.run(device, 0, spec, data[device].data(), data[device].data());
  });
  EXPECT_EQ(messageOf(error), "device 11: out of luck");
  // And nobody waits afterwards.
  error = network.threads.run([&](size_t device) {
    return network.run(device, 0, spec, data[device].data(), data[device].data());
  });
  EXPECT_ERROR(error, "another device failed");
}

TEST_P(CommunicatorConformance, MembersThatDisagreeGetAnError) {
  if (is("NcclProcesses"))
    GTEST_SKIP() << kComparedByNobody;
  Mesh mesh({{"a", 2, false}});
  Network network(mesh, fabric());
  (void)network.open({"a"});
  std::vector<std::vector<float>> data(2, std::vector<float>(8));
  MaybeError error = network.threads.run([&](size_t device) {
    auto size = static_cast<int64_t>(4 + device);
    CollectiveSpec spec = makeSpec(CollectiveKind::AllReduce, {DType::F32, {size}});
    spec.members = 2;
    return network.run(device, 0, spec, data[device].data(), data[device].data());
  });
  EXPECT_ERROR(error, hasProcesses() && !sharesMemory() ? "its receiver expects"
                                                        : "different collectives");
}

INSTANTIATE_FABRIC_CONFORMANCE(CommunicatorConformance);

} // namespace communicatorConformanceTest
