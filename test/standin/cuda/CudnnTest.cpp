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

#include "support/Float16.h"
#include "test/standin/cuda/CudnnReference.h"
#include "test/standin/cuda/StandinFixture.h"

#include <cudnn_frontend.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

namespace dtc::standin {

namespace {

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using fe::graph::Tensor_attributes;
using Values = std::vector<double>;

enum Id : int64_t { Q = 1, K, V, Out, Stats, DOut, DQ, DK, DV };

struct Variant {
  std::string name;
  AttentionProblem problem;
  bool isF16 = false;
  /// Heads of queries, keys and values take turns in one buffer, and those of gradients in another.
  bool isJoined = false;
  bool isDeterministic = true;
  fe::AttentionImplementation_t implementation = fe::AttentionImplementation_t::AUTO;

  friend std::ostream &operator<<(std::ostream &out, const Variant &variant) {
    return out << variant.name;
  }
};

uint16_t toBits(bool isF16, double value) {
  return isF16 ? Float16(value).bits : BFloat16(value).bits;
}
double fromBits(bool isF16, uint16_t bits) {
  if (isF16) {
    Float16 value;
    value.bits = bits;
    return value;
  }
  BFloat16 value;
  value.bits = bits;
  return value;
}

class CudnnStandin : public StandinFixture {
protected:
  void SetUp() override {
    StandinFixture::SetUp();
    stream = openStream();
    ASSERT_EQ(cudnnCreate(&handle), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cudnnSetStream(handle, stream), CUDNN_STATUS_SUCCESS);
  }
  void TearDown() override {
    cudnnDestroy(handle);
    StandinFixture::TearDown();
  }

  static std::string lastError() {
    char text[1000];
    cudnnGetLastErrorString(text, sizeof(text));
    return text;
  }

  /// A tensor [batch, heads, positions, size] of memory [batch, positions, heads, size].
  static Tensor_attributes heads(const Variant &x, Id id) {
    const AttentionProblem &p = x.problem;
    bool isOfQueries = id == Q || id == Out || id == DOut || id == DQ;
    int64_t count = isOfQueries ? p.heads : p.keyHeads, length = isOfQueries ? p.queries : p.keys;
    bool isJoined = x.isJoined && id != Out && id != DOut;
    int64_t row = (isJoined ? p.heads + 2 * p.keyHeads : count) * p.size;
    return Tensor_attributes()
        .set_uid(id)
        .set_dim({p.batch, count, length, p.size})
        .set_stride({length * row, p.size, row, 1});
  }
  static Tensor_attributes stats(const Variant &x) {
    const AttentionProblem &p = x.problem;
    return Tensor_attributes()
        .set_uid(Stats)
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim({p.batch, p.heads, p.queries, 1})
        .set_stride({p.heads * p.queries, p.queries, 1, 1});
  }
  static void become(const std::shared_ptr<Tensor_attributes> &output,
                     const Tensor_attributes &like) {
    output->set_output(true)
        .set_uid(like.get_uid())
        .set_dim(like.get_dim())
        .set_stride(like.get_stride());
  }
  template <typename Attributes> static void setMask(const Variant &x, Attributes &attributes) {
    attributes.set_name("attention").set_attn_scale(static_cast<float>(x.problem.scale));
    if (x.problem.isCausal || x.problem.window)
      attributes.set_diagonal_alignment(x.problem.isBottomRight
                                            ? fe::DiagonalAlignment_t::BOTTOM_RIGHT
                                            : fe::DiagonalAlignment_t::TOP_LEFT);
    if (x.problem.isCausal)
      attributes.set_diagonal_band_right_bound(0);
    if (x.problem.window)
      attributes.set_diagonal_band_left_bound(x.problem.window);
  }

  static std::shared_ptr<Graph> describe(const Variant &x, bool isBackward, fe::DataType_t type) {
    auto graph = std::make_shared<Graph>();
    graph->set_io_data_type(type)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    auto q = graph->tensor(heads(x, Q)), k = graph->tensor(heads(x, K)),
         v = graph->tensor(heads(x, V));
    if (!isBackward) {
      fe::graph::SDPA_attributes attributes;
      setMask(x, attributes);
      attributes.set_generate_stats(true).set_implementation(x.implementation);
      auto [out, logSums] = graph->sdpa(q, k, v, attributes);
      become(out, heads(x, Out));
      become(logSums, stats(x));
      logSums->set_data_type(fe::DataType_t::FLOAT);
      return graph;
    }
    fe::graph::SDPA_backward_attributes attributes;
    setMask(x, attributes);
    attributes.set_deterministic_algorithm(x.isDeterministic);
    auto [dQ, dK, dV] =
        graph->sdpa_backward(q, k, v, graph->tensor(heads(x, Out)), graph->tensor(heads(x, DOut)),
                             graph->tensor(stats(x)), attributes);
    become(dQ, heads(x, DQ));
    become(dK, heads(x, DK));
    become(dV, heads(x, DV));
    return graph;
  }
  /// All steps from the description to a plan.
  fe::error_t plan(Graph &graph) {
    for (auto step :
         {+[](Graph &g, cudnnHandle_t) { return g.validate(); },
          +[](Graph &g, cudnnHandle_t handle) { return g.build_operation_graph(handle); },
          +[](Graph &g, cudnnHandle_t) { return g.create_execution_plans({fe::HeurMode_t::A}); },
          +[](Graph &g, cudnnHandle_t) { return g.check_support(); },
          +[](Graph &g, cudnnHandle_t) { return g.build_plans(); }})
      if (fe::error_t error = step(graph, handle); error.is_bad())
        return error;
    return {};
  }
  std::shared_ptr<Graph> build(const Variant &x, bool isBackward) {
    auto graph = describe(x, isBackward, x.isF16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16);
    fe::error_t error = plan(*graph);
    EXPECT_TRUE(error.is_good()) << error.get_message() << "\n" << lastError();
    return graph;
  }
  static size_t workspaceBytes(const Graph &graph) {
    int64_t bytes = 0;
    EXPECT_TRUE(graph.get_workspace_size(bytes).is_good());
    return static_cast<size_t>(bytes);
  }
  fe::error_t execute(const Graph &graph, void *workspace) {
    auto all = pointers;
    return graph.execute(handle, all, workspace);
  }
  void run(const Graph &graph) {
    size_t bytes = workspaceBytes(graph);
    ASSERT_GT(bytes, 0u);
    fe::error_t error = execute(graph, onDevice<std::byte>(bytes));
    ASSERT_TRUE(error.is_good()) << error.get_message() << "\n" << lastError();
  }

  // Memory. Values are in the order of a packed tensor [batch, position, head, size].

  template <typename Body> static void forEachPlace(const Variant &x, Id id, Body body) {
    Tensor_attributes like = heads(x, id);
    auto dim = like.get_dim(), stride = like.get_stride();
    size_t number = 0;
    for (int64_t b = 0; b < dim[0]; ++b)
      for (int64_t s = 0; s < dim[2]; ++s)
        for (int64_t h = 0; h < dim[1]; ++h)
          for (int64_t i = 0; i < dim[3]; ++i)
            body(number++, b * stride[0] + h * stride[1] + s * stride[2] + i);
  }
  static int64_t elements(const Variant &x, Id id) {
    int64_t last = 0;
    forEachPlace(x, id, [&](size_t, int64_t place) { last = std::max(last, place); });
    return last + 1;
  }
  /// Gives memory of their own, or of one buffer, to the tensors, as many as there are names.
  void place(const Variant &x, const std::vector<Id> &ids, bool isJoined) {
    uint16_t *joined = nullptr;
    int64_t offset = 0;
    for (Id id : ids) {
      if (!isJoined) {
        pointers[id] = onDevice<uint16_t>(elements(x, id));
        continue;
      }
      if (!joined)
        joined = onDevice<uint16_t>(x.problem.batch * x.problem.keys * x.problem.size *
                                    (x.problem.heads + 2 * x.problem.keyHeads));
      pointers[id] = joined + offset;
      offset += (offset ? x.problem.keyHeads : x.problem.heads) * x.problem.size;
    }
  }
  void fill(const Variant &x, Id id, const Values &values) {
    std::vector<uint16_t> bits =
        read(static_cast<uint16_t *>(pointers[id]), static_cast<size_t>(elements(x, id)), stream);
    forEachPlace(x, id, [&](size_t i, int64_t at) { bits[at] = toBits(x.isF16, values[i]); });
    EXPECT_CUDA(cudaMemcpyAsync(pointers[id], bits.data(), bits.size() * 2, cudaMemcpyHostToDevice,
                                stream));
  }
  Values fetch(const Variant &x, Id id) {
    std::vector<uint16_t> bits =
        read(static_cast<uint16_t *>(pointers[id]), static_cast<size_t>(elements(x, id)), stream);
    EXPECT_CUDA(cudaStreamSynchronize(stream));
    Values values;
    forEachPlace(x, id, [&](size_t, int64_t at) { values.push_back(fromBits(x.isF16, bits[at])); });
    return values;
  }
  Values fetchStats(const Variant &x) {
    std::vector<float> found =
        read(static_cast<float *>(pointers[Stats]), static_cast<size_t>(x.problem.rows()), stream);
    EXPECT_CUDA(cudaStreamSynchronize(stream));
    return {found.begin(), found.end()};
  }
  /// Memory for a forward pass, with these inputs.
  void prepare(const Variant &x, const AttentionValues &values) {
    place(x, {Q, K, V}, x.isJoined);
    place(x, {Out}, false);
    pointers[Stats] = onDevice<float>(static_cast<size_t>(x.problem.rows()));
    fill(x, Q, values.q);
    fill(x, K, values.k);
    fill(x, V, values.v);
  }

  cudaStream_t stream = nullptr;
  cudnnHandle_t handle = nullptr;
  std::unordered_map<int64_t, void *> pointers;
};

/// Normal values that the type has.
Values draw(int64_t count, bool isF16, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Values values(static_cast<size_t>(count));
  for (double &value : values)
    value = fromBits(isF16, toBits(isF16, normal(random)));
  return values;
}
AttentionValues drawInputs(const AttentionProblem &p, bool isF16) {
  AttentionValues values;
  values.q = draw(p.queryElements(), isF16, 1);
  values.k = draw(p.keyElements(), isF16, 2);
  values.v = draw(p.keyElements(), isF16, 3);
  values.dOut = draw(p.queryElements(), isF16, 4);
  return values;
}

void expectNear(const char *what, const Values &found, const Values &expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double largest = 0, error = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    error = std::isnan(found[i]) ? INFINITY : std::max(error, std::fabs(found[i] - expected[i]));
    ASSERT_LE(error, tolerance * std::max(largest, 1.0))
        << what << "[" << i << "] is " << found[i] << ", expected " << expected[i];
  }
}

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

/// cudnn-frontend's left bound is a number of keys: a query sees exactly that number up to its own
/// position, whose key counts too. With the bottom right as alignment, the last
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

// Refused calls.

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

class CudnnDescriptors : public CudnnStandin {
protected:
  void SetUp() override {
    CudnnStandin::SetUp();
    ASSERT_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &tensor),
              CUDNN_STATUS_SUCCESS);
  }
  void expectError(cudnnStatus_t found, cudnnStatus_t expected, const std::string &part) {
    EXPECT_EQ(found, expected);
    EXPECT_NE(lastError().find(part), std::string::npos) << lastError() << "\nexpected: " << part;
  }
  cudnnBackendDescriptor_t tensor = nullptr;
  int64_t number = 8;
};

TEST_F(CudnnDescriptors, RefuseWhatTheyDoNotHave) {
  expectError(cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_VECTOR_COUNT, CUDNN_TYPE_INT64, 1,
                                       &number),
              CUDNN_STATUS_NOT_SUPPORTED, "which the stand-in does not have");
  expectError(
      cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT32, 1, &number),
      CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "CUDNN_ATTR_TENSOR_UNIQUE_ID");
  int64_t several[2] = {1, 2};
  expectError(
      cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 2, several),
      CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "2 elements, expected 1 to 1");
  cudnnBackendDescriptor_t other = nullptr;
  expectError(
      cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, &other),
      CUDNN_STATUS_NOT_SUPPORTED, "descriptor type 10");
}
TEST_F(CudnnDescriptors, AreCompleteOrNotFinalized) {
  expectError(cudnnBackendFinalize(tensor), CUDNN_STATUS_BAD_PARAM,
              "is not set in a CUDNN_BACKEND_"
              "TENSOR_DESCRIPTOR");
  int64_t found = 0;
  expectError(cudnnBackendGetAttribute(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1,
                                       nullptr, &found),
              CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "not finalized");
  cudnnBackendDescriptor_t operation = nullptr;
  ASSERT_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, &operation),
            CUDNN_STATUS_SUCCESS);
  expectError(cudnnBackendSetAttribute(operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                       static_cast<const void *>(&tensor)),
              CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "before it is finalized");
  EXPECT_EQ(cudnnBackendDestroyDescriptor(tensor), CUDNN_STATUS_SUCCESS);
  expectError(cudnnBackendDestroyDescriptor(tensor), CUDNN_STATUS_BAD_PARAM,
              "no descriptor that exists");
}

} // namespace

} // namespace dtc::standin
