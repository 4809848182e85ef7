//===- CudnnFixture.h - Tests that build graphs with cudnn-frontend ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_CUDNNFIXTURE_H
#define DTC_TEST_STANDIN_CUDA_CUDNNFIXTURE_H

#include "support/Float16.h"
#include "test/standin/cuda/CudnnReference.h"
#include "test/standin/cuda/StandinFixture.h"

#include <cudnn_frontend.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

namespace dtc::standin {

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

inline uint16_t toBits(bool isF16, double value) {
  return isF16 ? Float16(value).bits : BFloat16(value).bits;
}
inline double fromBits(bool isF16, uint16_t bits) {
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
  static void become(const std::shared_ptr<Tensor_attributes> &output, Tensor_attributes like) {
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
inline Values draw(int64_t count, bool isF16, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Values values(static_cast<size_t>(count));
  for (double &value : values)
    value = fromBits(isF16, toBits(isF16, normal(random)));
  return values;
}
inline AttentionValues drawInputs(const AttentionProblem &p, bool isF16) {
  AttentionValues values;
  values.q = draw(p.queryElements(), isF16, 1);
  values.k = draw(p.keyElements(), isF16, 2);
  values.v = draw(p.keyElements(), isF16, 3);
  values.dOut = draw(p.queryElements(), isF16, 4);
  return values;
}

inline void expectNear(const char *what, const Values &found, const Values &expected,
                       double tolerance) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double largest = 0, error = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    error = std::isnan(found[i]) ? INFINITY : std::max(error, std::fabs(found[i] - expected[i]));
    ASSERT_LE(error, tolerance * std::max(largest, 1.0))
        << what << "[" << i << "] is " << found[i] << ", expected " << expected[i];
  }
}

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_CUDNNFIXTURE_H
