//===- AttentionGraph.cpp - Attention as a graph of cuDNN -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// cudnn-frontend builds the graph of products, softmax and masks that cuDNN computes by one kernel
// forward and a few backward, as in FlashAttention. Some of its functions throw.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/AttentionGraph.h"

#include "runtime/backends/cuda/OpenCudnn.h"

#include <cudnn_frontend.h>

#include <array>
#include <fmt/format.h>
#include <unordered_map>

namespace frontend = cudnn_frontend;

namespace dtc::runtime::cuda {

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

/// The first version that makes graphs for a GPU by its properties.
static constexpr size_t kOldestVersion = 90800;

static std::string describeVersion(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

static Expected<std::string> load() {
  Expected<std::string> path = openCudnn();
  if (!path)
    return path.error();
  size_t version = frontend::detail::get_backend_version();
  if (version < kOldestVersion)
    return Error{fmt::format("cuDNN {} ({}) is too old, expected {} or newer",
                             describeVersion(version), *path, describeVersion(kOldestVersion))};
  return fmt::format("cuDNN {} ({})", describeVersion(version), *path);
}

Expected<std::string> loadCudnn() {
  static const Expected<std::string> loaded = load();
  return loaded;
}

static Error failure(const char *what, const char *why) {
  return Error{fmt::format("cuDNN cannot {}: {}", what, why)};
}

/// The error of a function of the frontend, if it failed.
static MaybeError check(frontend::error_t status, const char *what) {
  if (status.is_good())
    return std::nullopt;
  return failure(what, status.get_message().c_str());
}

/// The error of a function of cuDNN, if it failed.
static MaybeError check(cudnnStatus_t status, const char *what) {
  if (status == CUDNN_STATUS_SUCCESS)
    return std::nullopt;
  return failure(what, cudnnGetErrorString(status));
}

Expected<std::shared_ptr<cudnnContext>> createCudnnHandle() {
  cudnnHandle_t handle = nullptr;
  if (MaybeError error = check(cudnnCreate(&handle), "create a handle"))
    return *error;
  return std::shared_ptr<cudnnContext>(handle,
                                       [](cudnnContext *used) { (void)cudnnDestroy(used); });
}

MaybeError setStream(cudnnContext *handle, void *stream) {
  return check(cudnnSetStream(handle, static_cast<cudaStream_t>(stream)), "use a stream");
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

struct AttentionGraph::Graph {
  frontend::graph::Graph graph;
  int64_t workspace = 0;
};

AttentionGraph::AttentionGraph(std::unique_ptr<Graph> graph) : graph(std::move(graph)) {}
AttentionGraph::~AttentionGraph() = default;

namespace {

using Tensor = std::shared_ptr<frontend::graph::Tensor_attributes>;

/// Gives each tensor the number of its place among the arguments.
class Builder {
public:
  Builder(frontend::graph::Graph &graph, const PlacedAttention &placed)
      : graph(graph), placed(placed), shape(placed.call.shape) {}

  void addForward() {
    auto [q, k, v] = inputs();
    frontend::graph::SDPA_attributes attributes;
    attributes.set_name("attention").set_generate_stats(true);
    setShape(attributes);
    auto [out, lse] = graph.sdpa(q, k, v, attributes);
    output(out, shape.queries, shape.heads, shape.heads);
    describe(*lse, statisticsDimensions(), statisticsStrides());
    lse->set_output(true).set_data_type(frontend::DataType_t::FLOAT);
  }

  void addGradient() {
    auto [q, k, v] = inputs();
    Tensor out = input("out", shape.queries, shape.heads, shape.heads);
    Tensor lse = graph.tensor(frontend::graph::Tensor_attributes().set_name("lse").set_data_type(
        frontend::DataType_t::FLOAT));
    describe(*lse, statisticsDimensions(), statisticsStrides());
    Tensor dout = input("dout", shape.queries, shape.heads, shape.heads);
    frontend::graph::SDPA_backward_attributes attributes;
    attributes.set_name("attention_grad").set_deterministic_algorithm(true);
    setShape(attributes);
    auto [dq, dk, dv] = graph.sdpa_backward(q, k, v, out, dout, lse, attributes);
    output(dq, shape.queries, shape.heads, placed.rowHeads(shape.heads));
    output(dk, shape.keys, shape.kvHeads, placed.rowHeads(shape.kvHeads));
    output(dv, shape.keys, shape.kvHeads, placed.rowHeads(shape.kvHeads));
  }

private:
  using Sizes = std::vector<int64_t>;

  void describe(frontend::graph::Tensor_attributes &tensor, const Sizes &dimensions,
                const Sizes &strides) {
    tensor.set_dim(dimensions).set_stride(strides).set_uid(count++);
  }

  /// Describes a tensor [batch, rows, heads, head size] to cuDNN as [batch, heads, rows, head
  /// size]. Each of its rows has `rowHeads` heads in memory.
  void describe(frontend::graph::Tensor_attributes &tensor, int64_t rows, int64_t heads,
                int64_t rowHeads) {
    int64_t size = shape.headSize, row = rowHeads * size;
    describe(tensor, {shape.batch, heads, rows, size}, {rows * row, size, row, 1});
  }

  Tensor input(const char *name, int64_t rows, int64_t heads, int64_t rowHeads) {
    Tensor tensor = graph.tensor(frontend::graph::Tensor_attributes().set_name(name));
    describe(*tensor, rows, heads, rowHeads);
    return tensor;
  }

  /// q, k and v.
  std::array<Tensor, 3> inputs() {
    Tensor q = input("q", shape.queries, shape.heads, placed.rowHeads(shape.heads));
    int64_t keyHeads = placed.rowHeads(shape.kvHeads);
    Tensor k = input("k", shape.keys, shape.kvHeads, keyHeads);
    return {q, k, input("v", shape.keys, shape.kvHeads, keyHeads)};
  }

  void output(const Tensor &tensor, int64_t rows, int64_t heads, int64_t rowHeads) {
    describe(*tensor, rows, heads, rowHeads);
    tensor->set_output(true);
  }

  /// The log-sum-exp of each row, [batch, heads, queries].
  Sizes statisticsDimensions() const { return {shape.batch, shape.heads, shape.queries, 1}; }
  Sizes statisticsStrides() const { return {shape.heads * shape.queries, shape.queries, 1, 1}; }

  template <typename Attributes> void setShape(Attributes &attributes) {
    attributes.set_attn_scale(static_cast<float>(shape.scale));
    if (!shape.causal)
      return;
    // Query i stands for key i + (keys - queries).
    attributes.set_diagonal_alignment(frontend::DiagonalAlignment_t::BOTTOM_RIGHT)
        .set_diagonal_band_right_bound(0);
    if (shape.window)
      attributes.set_diagonal_band_left_bound(static_cast<int>(shape.window));
  }

  frontend::graph::Graph &graph;
  const PlacedAttention &placed;
  const AttentionShape &shape;
  int64_t count = 0;
};

MaybeError setTarget(frontend::graph::Graph &graph, const GraphTarget &target) {
  auto device = std::make_shared<frontend::DeviceProperties>();
  frontend::error_t status;
  if (target.properties.empty())
    status = device->set_device_id(target.ordinal).build();
  else
    status = device->deserialize({target.properties.begin(), target.properties.end()});
  if (MaybeError error = check(status, "read the properties of the GPU"))
    return error;
  graph.set_device_properties(device).set_sm_version(target.computeCapability);
  return std::nullopt;
}

/// Describes the call and finds how to compute it.
MaybeError buildGraph(frontend::graph::Graph &graph, const PlacedAttention &placed,
                      const GraphTarget &target) {
  graph
      .set_io_data_type(placed.call.dtype == DType::BF16 ? frontend::DataType_t::BFLOAT16
                                                         : frontend::DataType_t::HALF)
      .set_intermediate_data_type(frontend::DataType_t::FLOAT)
      .set_compute_data_type(frontend::DataType_t::FLOAT);
  if (MaybeError error = setTarget(graph, target))
    return error;
  Builder builder(graph, placed);
  if (placed.isGradient)
    builder.addGradient();
  else
    builder.addForward();
  if (MaybeError error = check(graph.validate(), "take the call"))
    return error;
  if (MaybeError error = check(graph.build_operation_graph(), "describe the call"))
    return error;
  if (MaybeError error = check(graph.create_execution_plans({frontend::HeurMode_t::A}),
                               "find an engine for the call"))
    return error;
  return check(graph.check_support(), "find an engine for the call");
}

/// Returns the result of `function`; exceptions of the frontend become errors.
template <typename Function> auto guarded(const char *what, Function function) {
  try {
    return function();
  } catch (const std::exception &exception) {
    return decltype(function())(failure(what, exception.what()));
  }
}

} // namespace

bool AttentionGraph::isAsked(const AttentionCall &call) {
  const AttentionShape &shape = call.shape;
  bool hasElements = shape.batch > 0 && shape.queries > 0 && shape.keys > 0 && shape.heads > 0;
  bool isPlain = call.sequence.isWhole() && !call.keyShift && !call.mask && !call.segments &&
                 shape.softcap == 0;
  bool seesKeys = !shape.causal || shape.queries <= shape.keys;
  // With a negative scale, cuDNN 9.14 gives infinities and NaNs.
  return (call.dtype == DType::BF16 || call.dtype == DType::F16) && isPlain && hasElements &&
         seesKeys && shape.scale > 0;
}

MaybeError AttentionGraph::findEngine(const PlacedAttention &placed, const GraphTarget &target) {
  if (Expected<std::string> loaded = loadCudnn(); !loaded)
    return loaded.error();
  return guarded("find an engine for the call", [&] {
    frontend::graph::Graph graph;
    return buildGraph(graph, placed, target);
  });
}

Expected<std::unique_ptr<AttentionGraph>> AttentionGraph::create(const PlacedAttention &placed,
                                                                 const GraphTarget &target) {
  if (Expected<std::string> loaded = loadCudnn(); !loaded)
    return loaded.error();
  return guarded("compile the call", [&]() -> Expected<std::unique_ptr<AttentionGraph>> {
    auto built = std::make_unique<Graph>();
    if (MaybeError error = buildGraph(built->graph, placed, target))
      return *error;
    if (MaybeError error = check(built->graph.build_plans(), "compile the call"))
      return *error;
    if (MaybeError error = check(built->graph.get_workspace_size(built->workspace),
                                 "tell the size of a workspace"))
      return *error;
    return std::unique_ptr<AttentionGraph>(new AttentionGraph(std::move(built)));
  });
}

size_t AttentionGraph::workspaceBytes() const { return static_cast<size_t>(graph->workspace); }

MaybeError AttentionGraph::enqueue(cudnnContext *handle, std::span<void *const> tensors,
                                   void *workspace) const {
  std::lock_guard lock(mutex);
  return guarded("enqueue the call", [&] {
    std::unordered_map<int64_t, void *> byNumber;
    for (size_t i = 0; i < tensors.size(); ++i)
      byNumber[static_cast<int64_t>(i)] = tensors[i];
    return check(graph->graph.execute(handle, byNumber, workspace), "enqueue the call");
  });
}

} // namespace dtc::runtime::cuda
