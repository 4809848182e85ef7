//===- CudnnTest.cpp - Tests of the stand-in's cuDNN ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Attention as cudnn-frontend builds it, executed by the stand-in, against attention in double
// precision. Compiled with CUDA's own headers.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/CudnnFixture.h"

namespace dtc::standin {

namespace {

class CudnnAttention : public CudnnStandin, public ::testing::WithParamInterface<Variant> {};

TEST_P(CudnnAttention, IsThatOfDoublePrecision) {
  const Variant &x = GetParam();
  AttentionValues values = drawInputs(x.problem, x.isF16);
  attend(x.problem, values);
  double precision = x.isF16 ? 1.0 / 1024 : 1.0 / 128;
  prepare(x, values);
  run(*build(x, false));
  expectNear("out", fetch(x, Out), values.out, 2 * precision);
  expectNear("the sums' logarithms", fetchStats(x), values.logSums, 1e-5);

  // The backward pass gets what the forward pass gave.
  values.out = fetch(x, Out);
  attendBackward(x.problem, values);
  place(x, {DQ, DK, DV}, x.isJoined);
  pointers[DOut] = onDevice<uint16_t>(static_cast<size_t>(x.problem.queryElements()));
  fill(x, DOut, values.dOut);
  run(*build(x, true));
  expectNear("dQ", fetch(x, DQ), values.dQ, 3 * precision);
  expectNear("dK", fetch(x, DK), values.dK, 3 * precision);
  expectNear("dV", fetch(x, DV), values.dV, 3 * precision);
}

constexpr auto kComposite = fe::AttentionImplementation_t::COMPOSITE;

INSTANTIATE_TEST_SUITE_P(
    Variants, CudnnAttention,
    ::testing::Values(
        Variant{"Causal", {}}, Variant{"CausalF16", {}, true},
        // The operation for all of attention, and the same from elementary ones.
        Variant{"Full", {.isCausal = false}},
        Variant{"FullF16", {.keyHeads = 2, .size = 64, .isCausal = false, .scale = 0.125}, true},
        Variant{.name = "FullComposite",
                .problem = {.keyHeads = 2, .isCausal = false},
                .implementation = kComposite},
        Variant{"GroupedHeads", {.heads = 6, .keyHeads = 2, .size = 64, .scale = 0.125}},
        Variant{"OneKeyHead", {.keyHeads = 1, .queries = 9, .keys = 9, .size = 96, .scale = 0.1}},
        Variant{"Size128", {.batch = 1, .heads = 2, .keyHeads = 2, .size = 128, .scale = 0.09}},
        Variant{"FewerQueries", {.keyHeads = 2, .queries = 5, .keys = 19}},
        Variant{"OneQuery", {.queries = 1, .keys = 13, .size = 16}},
        Variant{"Window", {.keyHeads = 2, .queries = 17, .keys = 17, .window = 5}, true},
        Variant{"WindowOfOne", {.window = 1}},
        Variant{"WindowFewerQueries", {.queries = 6, .keys = 20, .window = 4}},
        Variant{"TopLeft", {.queries = 6, .keys = 20, .isBottomRight = false}},
        Variant{"WindowTopLeft", {.window = 3, .isBottomRight = false}},
        Variant{"JoinedBuffers", {.keyHeads = 2, .size = 16}, false, true},
        Variant{"NotDeterministic", {.keyHeads = 2}, false, false, false}),
    [](const auto &info) { return info.param.name; });

/// cudnn-frontend's left bound is a number of keys: a query sees so many, the one at its own
/// position among them, and not one more before them. With the bottom right as alignment, the last
/// query is at the position of the last key.
TEST_F(CudnnStandin, LeftBoundIsTheNumberOfKeysThatAQuerySees) {
  for (bool isBottomRight : {true, false}) {
    Variant x{"", {.batch = 1, .heads = 1, .keyHeads = 1, .queries = 6, .keys = 10, .size = 16}};
    x.problem.window = 4;
    x.problem.isBottomRight = isBottomRight;
    // All that a query sees has the same share; value j is the unit vector j.
    AttentionValues values{
        Values(6 * 16), Values(10 * 16), Values(10 * 16), {}, {}, {}, {}, {}, {}};
    for (int j = 0; j < 10; ++j)
      values.v[j * 16 + j] = 1;
    prepare(x, values);
    run(*build(x, false));
    Values out = fetch(x, Out);
    for (int i = 0; i < 6; ++i) {
      int position = isBottomRight ? i + 4 : i, first = std::max(0, position - 3);
      for (int j = 0; j < 10; ++j) {
        double share = j >= first && j <= position ? 1.0 / (position - first + 1) : 0;
        EXPECT_NEAR(out[i * 16 + j], share, 1e-2) << "query " << i << ", key " << j;
      }
    }
  }
}

TEST(CudnnReference, HasTheGradientsOfFiniteDifferences) {
  AttentionProblem p{.batch = 1, .keyHeads = 2, .queries = 4, .keys = 7, .size = 8, .window = 3};
  AttentionValues values = drawInputs(p, false);
  attend(p, values);
  attendBackward(p, values);
  auto loss = [&](AttentionValues at) {
    attend(p, at);
    double sum = 0;
    for (size_t i = 0; i < at.out.size(); ++i)
      sum += at.out[i] * at.dOut[i];
    return sum;
  };
  using Member = Values AttentionValues::*;
  for (auto [input, gradient] :
       {std::pair<Member, Member>{&AttentionValues::q, &AttentionValues::dQ},
        {&AttentionValues::k, &AttentionValues::dK},
        {&AttentionValues::v, &AttentionValues::dV}})
    for (size_t i = 0; i < (values.*input).size(); ++i) {
      AttentionValues more = values, less = values;
      (more.*input)[i] += 1e-4;
      (less.*input)[i] -= 1e-4;
      ASSERT_NEAR((values.*gradient)[i], (loss(more) - loss(less)) / 2e-4, 1e-6) << i;
    }
}

TEST_F(CudnnStandin, IsPartOfACapturedGraph) {
  Variant x{"", {.keyHeads = 2}};
  AttentionValues values = drawInputs(x.problem, false);
  prepare(x, values);
  auto graph = build(x, false);
  void *workspace = onDevice<std::byte>(workspaceBytes(*graph));
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  cudaGraph_t captured = nullptr;
  cudaGraphExec_t executable = nullptr;
  EXPECT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_TRUE(execute(*graph, workspace).is_good()) << lastError();
  EXPECT_CUDA(cudaStreamEndCapture(stream, &captured));
  EXPECT_CUDA(cudaGraphInstantiate(&executable, captured, 0));
  for (unsigned seed : {10, 11}) {
    values.v = draw(x.problem.keyElements(), false, seed);
    fill(x, V, values.v);
    EXPECT_CUDA(cudaGraphLaunch(executable, stream));
    attend(x.problem, values);
    expectNear("out", fetch(x, Out), values.out, 1.0 / 64);
  }
  EXPECT_EQ(launchesByKernel()["cudnnBackendExecute"], 1u);
}

TEST_F(CudnnStandin, PlansForTheDeviceOfAText) {
  Variant x{"", {}};
  auto device = std::make_shared<fe::DeviceProperties>();
  std::string text = R"({"deviceName":"NVIDIA H100 80GB HBM3","deviceVer":900})";
  ASSERT_TRUE(device->deserialize({text.begin(), text.end()}).is_good());
  auto graph = describe(x, true, fe::DataType_t::BFLOAT16);
  graph->set_device_properties(device).set_sm_version(90);
  cudnnHandle_t none = nullptr;
  std::swap(handle, none);
  EXPECT_TRUE(plan(*graph).is_good()) << lastError();
  std::swap(handle, none);
}

TEST_F(CudnnStandin, WritesToTheWorkspace) {
  Variant x{"", {}};
  prepare(x, drawInputs(x.problem, false));
  auto graph = build(x, false);
  size_t bytes = workspaceBytes(*graph);
  auto *workspace = onDevice<uint8_t>(bytes);
  EXPECT_CUDA(cudaMemsetAsync(workspace, 7, bytes, stream));
  EXPECT_TRUE(execute(*graph, workspace).is_good());
  std::vector<uint8_t> left = read(workspace, bytes, stream);
  EXPECT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(std::count(left.begin(), left.end(), 7), 0);
}

/// The layout of CUDA's header, with which this file is compiled.
TEST_F(CudnnStandin, DevicePropertiesHaveTheLayoutOfCuda) {
  cudaDeviceProp properties;
  EXPECT_CUDA(cudaGetDeviceProperties(&properties, 1));
  EXPECT_STREQ(properties.name, "CUDA stand-in");
  EXPECT_EQ(properties.uuid.bytes[0], 2);
  EXPECT_EQ(properties.totalGlobalMem, Settings().memoryBytes);
  EXPECT_EQ(properties.warpSize, 32);
  EXPECT_EQ(properties.maxGridSize[1], 65535);
  EXPECT_EQ(properties.major, 9);
  EXPECT_EQ(properties.multiProcessorCount, 2);
  EXPECT_EQ(properties.pciBusID, 2);
  cudaPointerAttributes attributes;
  EXPECT_CUDA(cudaPointerGetAttributes(&attributes, onDevice<float>(8)));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
}

// What is refused.

class CudnnRefusal : public CudnnStandin {
protected:
  void SetUp() override {
    CudnnStandin::SetUp();
    prepare(variant, drawInputs(variant.problem, false));
    graph = build(variant, false);
    workspace = onDevice<std::byte>(workspaceBytes(*graph));
    collect();
  }
  void expectRefused(const std::string &part) {
    EXPECT_TRUE(execute(*graph, workspace).is_bad());
    if (!violations.empty())
      return expectViolation(part);
    EXPECT_NE(lastError().find(part), std::string::npos) << lastError() << "\nexpected: " << part;
  }
  /// A plan for such a graph.
  void expectNoPlan(Graph &of, const std::string &part) {
    fe::error_t error = plan(of);
    EXPECT_TRUE(error.is_bad());
    std::string all = error.get_message() + lastError();
    EXPECT_NE(all.find(part), std::string::npos) << all << "\nexpected: " << part;
  }

  Variant variant{"", {}};
  std::shared_ptr<Graph> graph;
  std::byte *workspace = nullptr;
};

TEST_F(CudnnRefusal, UnalignedTensor) {
  pointers[Q] = static_cast<std::byte *>(pointers[Q]) + 8;
  expectRefused("expected a multiple of 16 bytes");
}
TEST_F(CudnnRefusal, TensorThatIsReadAndWritten) {
  pointers[Out] = pointers[Q];
  expectRefused("overlaps");
}
TEST_F(CudnnRefusal, TensorInTheWorkspace) {
  pointers[Stats] = workspace + 1024;
  expectRefused("overlaps the workspace");
}
TEST_F(CudnnRefusal, TensorThatEndsOutsideOfItsAllocation) {
  pointers[K] = static_cast<std::byte *>(pointers[K]) + 16;
  expectRefused("expected memory of device 0");
}
TEST_F(CudnnRefusal, TensorInMemoryOfTheHost) {
  pointers[V] = pinned<uint16_t>(static_cast<size_t>(elements(variant, V)));
  expectRefused("expected memory of device 0");
}
TEST_F(CudnnRefusal, NoWorkspace) {
  workspace = nullptr;
  expectRefused("the workspace is");
}
TEST_F(CudnnRefusal, WorkspaceThatIsTooSmall) {
  workspace += 16;
  expectRefused("the workspace is");
}
TEST_F(CudnnRefusal, TensorWithoutMemory) {
  pointers[V] = nullptr;
  expectRefused("no memory for tensor 3");
}
TEST_F(CudnnRefusal, DefaultStream) {
  cudnnHandle_t fresh = nullptr;
  ASSERT_EQ(cudnnCreate(&fresh), CUDNN_STATUS_SUCCESS);
  std::swap(handle, fresh);
  expectRefused("the default stream");
  cudnnDestroy(fresh);
}
TEST_F(CudnnRefusal, StreamOfAnotherDevice) {
  EXPECT_CUDA(cudaSetDevice(1));
  EXPECT_NE(cudnnSetStream(handle, openStream()), CUDNN_STATUS_SUCCESS);
  expectViolation("a handle of device 0 and a stream of device 1");
  EXPECT_CUDA(cudaSetDevice(0));
}
TEST_F(CudnnRefusal, CallThatFails) {
  failCall(0, cudaErrorLaunchFailure, "cudnnBackendExecute");
  expectRefused("unspecified launch failure");
  EXPECT_TRUE(execute(*graph, workspace).is_good());
}
TEST_F(CudnnRefusal, HandleInACapture) {
  cudnnHandle_t fresh = nullptr;
  EXPECT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_NE(cudnnCreate(&fresh), CUDNN_STATUS_SUCCESS);
}

TEST_F(CudnnRefusal, HeadsOf12Elements) {
  for (bool isBackward : {false, true})
    expectNoPlan(*describe({"", {.size = 12}}, isBackward, fe::DataType_t::BFLOAT16),
                 "multiple of 8");
}
TEST_F(CudnnRefusal, HeadsOf264Elements) {
  for (bool isBackward : {false, true})
    expectNoPlan(*describe({"", {.size = 264}}, isBackward, fe::DataType_t::BFLOAT16), "256");
}
TEST_F(CudnnRefusal, ValuesOf32Bits) {
  for (bool isCausal : {false, true})
    expectNoPlan(*describe({"", {.isCausal = isCausal}}, false, fe::DataType_t::FLOAT),
                 "operands of 16 bits");
}
TEST_F(CudnnRefusal, GraphWithoutMatrixProduct) {
  Graph other;
  other.set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  auto x = other.tensor(heads(variant, Q));
  other.pointwise(x, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::EXP))
      ->set_output(true);
  expectNoPlan(other, "no attention");
}
TEST_F(CudnnRefusal, ModeThatTheStandinDoesNotHave) {
  Graph other;
  other.set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  auto x = other.tensor(heads(variant, Q));
  other.pointwise(x, fe::graph::Pointwise_attributes().set_mode(fe::PointwiseMode_t::SIN))
      ->set_output(true);
  expectNoPlan(other, "mode 18, which the stand-in does not have");
}

} // namespace

} // namespace dtc::standin
