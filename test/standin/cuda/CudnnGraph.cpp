//===- CudnnGraph.cpp - Graphs of cuDNN's operations ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/CudnnGraph.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtc::standin {

namespace {

/// How many tensors an operation with the mode reads from; none for a mode that the stand-in does
/// not have.
std::optional<size_t> inputsOf(cudnnPointwiseMode_t mode) {
  switch (mode) {
  case CUDNN_POINTWISE_EXP:
  case CUDNN_POINTWISE_LOG:
  case CUDNN_POINTWISE_IDENTITY:
  case CUDNN_POINTWISE_GEN_INDEX:
    return 1;
  case CUDNN_POINTWISE_ADD:
  case CUDNN_POINTWISE_SUB:
  case CUDNN_POINTWISE_MUL:
  case CUDNN_POINTWISE_DIV:
  case CUDNN_POINTWISE_CMP_GT:
  case CUDNN_POINTWISE_CMP_GE:
  case CUDNN_POINTWISE_CMP_LT:
  case CUDNN_POINTWISE_LOGICAL_AND:
    return 2;
  case CUDNN_POINTWISE_BINARY_SELECT:
    return 3;
  default:
    return std::nullopt;
  }
}

[[noreturn]] void refuseShapes(const char *operation, const std::string &tensors) {
  throw CudnnError{CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                   fmt::format("{} with shapes that do not go together: {}", operation, tensors)};
}

size_t countOf(const CudnnDims &dims) {
  size_t count = 1;
  for (int64_t dim : dims)
    count *= static_cast<size_t>(dim);
  return count;
}

class Builder {
public:
  void add(const CudnnDescriptor &operation) {
    switch (operation.type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return addPointwise(operation);
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return add({CudnnOperation::Kind::Matmul,
                  {tensor(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC),
                   tensor(operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC)},
                  tensor(operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC)});
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return addReduction(operation);
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return add({CudnnOperation::Kind::Reshape,
                  {tensor(operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC)},
                  tensor(operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC)});
    case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
      return addAttention(operation);
    default:
      throw CudnnError{
          CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
          fmt::format("an operation graph has a {} among its operations", nameOf(operation.type))};
    }
  }

  /// Orders the operations, and gives them.
  CudnnGraph finish() {
    std::vector<bool> isThere(graph.tensors.size());
    for (size_t i = 0; i < isThere.size(); ++i)
      isThere[i] = !graph.isWritten(i);
    for (size_t i = 0; i < isThere.size(); ++i)
      if (isThere[i] && graph.tensors[i].isVirtual)
        throw CudnnError{CUDNN_STATUS_BAD_PARAM,
                         fmt::format("{} is virtual, and no operation of the graph writes it",
                                     graph.tensors[i].describe())};
    std::vector<CudnnOperation> left = std::move(graph.operations), ordered;
    while (!left.empty()) {
      auto next = std::find_if(left.begin(), left.end(), [&](const CudnnOperation &operation) {
        return std::all_of(operation.inputs.begin(), operation.inputs.end(),
                           [&](size_t input) { return isThere[input]; });
      });
      if (next == left.end())
        throw CudnnError{CUDNN_STATUS_BAD_PARAM,
                         fmt::format("the operations of a graph are a cycle at {}",
                                     graph.tensors[left.front().output].describe())};
      isThere[next->output] = true;
      ordered.push_back(std::move(*next));
      left.erase(next);
    }
    graph.operations = std::move(ordered);
    return std::move(graph);
  }

private:
  CudnnGraph graph;
  std::map<int64_t, size_t> numbers; // of tensors, by their ids
  int64_t nextOwnId = -1;            // of a tensor that no descriptor has

  size_t add(CudnnTensor tensor) {
    auto [found, isNew] = numbers.try_emplace(tensor.id, graph.tensors.size());
    if (isNew)
      graph.tensors.push_back(std::move(tensor));
    else if (!(graph.tensors[found->second] == tensor))
      throw CudnnError{CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES,
                       fmt::format("{} and {} have the same id and are not the same",
                                   graph.tensors[found->second].describe(), tensor.describe())};
    return found->second;
  }

  size_t tensor(const CudnnDescriptor &operation, cudnnBackendAttributeName_t attribute) {
    CudnnDescriptorPointer from = operation.part(attribute);
    if (!from || from->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR)
      throw CudnnError{CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                       fmt::format("attribute {} of {} is {}, expected a tensor",
                                   static_cast<int>(attribute), nameOf(operation.type),
                                   from ? nameOf(from->type) : "not set")};
    CudnnTensor made{from->get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID),
                     from->get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE),
                     from->list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
                     from->list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES),
                     from->get<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT),
                     from->get<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL),
                     from->get<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE)};
    bool areSizes = std::all_of(made.dims.begin(), made.dims.end(), [](auto d) { return d > 0; });
    bool areSteps =
        std::all_of(made.strides.begin(), made.strides.end(), [](auto s) { return s >= 0; });
    if (!areSizes || !areSteps || made.strides.size() != made.dims.size() ||
        (made.isByValue && countOf(made.dims) != 1))
      throw CudnnError{CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
                       fmt::format("{} has strides {}{}", made.describe(),
                                   fmt::join(made.strides, ", "),
                                   made.isByValue ? ", and is one number" : "")};
    if (!bytesOf(made.type))
      throw CudnnError{CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
                       fmt::format("{} has data type {}, which the stand-in does not have",
                                   made.describe(), static_cast<int>(made.type))};
    return add(std::move(made));
  }

  /// A tensor between operations that a descriptor stands for.
  size_t between(CudnnDims dims, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    CudnnDims strides(dims.size(), 1);
    for (size_t axis = dims.size() - 1; axis > 0; --axis)
      strides[axis - 1] = strides[axis] * dims[axis];
    return add(CudnnTensor{nextOwnId--, type, std::move(dims), std::move(strides), 1, true});
  }

  void add(CudnnOperation operation) {
    check(operation);
    const CudnnTensor &output = graph.tensors[operation.output];
    if (output.isByValue || graph.isWritten(operation.output))
      throw CudnnError{CUDNN_STATUS_BAD_PARAM,
                       fmt::format("{} is {}", output.describe(),
                                   output.isByValue ? "a number, and an operation writes it"
                                                    : "written by two operations")};
    graph.operations.push_back(std::move(operation));
  }

  void addPointwise(const CudnnDescriptor &operation) {
    CudnnDescriptorPointer how = operation.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    auto mode = how->get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    std::optional<size_t> count = inputsOf(mode);
    if (!count)
      throw CudnnError{CUDNN_STATUS_NOT_SUPPORTED,
                       fmt::format("a pointwise operation has mode {}, which the stand-in does not "
                                   "have",
                                   static_cast<int>(mode))};
    for (auto factor :
         {CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2})
      if (float given = operation.get<float>(factor, 1); given != 1)
        throw CudnnError{CUDNN_STATUS_NOT_SUPPORTED,
                         fmt::format("a pointwise operation has the factor {}; the stand-in has 1 "
                                     "alone",
                                     given)};
    std::vector<size_t> inputs;
    for (auto input : {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                       CUDNN_ATTR_OPERATION_POINTWISE_TDESC})
      if (operation.has(input))
        inputs.push_back(tensor(operation, input));
    if (inputs.size() != *count)
      throw CudnnError{CUDNN_STATUS_BAD_PARAM,
                       fmt::format("a pointwise operation with mode {} has {} inputs, expected {}",
                                   static_cast<int>(mode), inputs.size(), *count)};
    add({CudnnOperation::Kind::Pointwise, std::move(inputs),
         tensor(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC), mode,
         how->get<int64_t>(CUDNN_ATTR_POINTWISE_AXIS, -1)});
  }

  void addReduction(const CudnnDescriptor &operation) {
    auto reduction = operation.part(CUDNN_ATTR_OPERATION_REDUCTION_DESC)
                         ->get<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
    if (reduction != CUDNN_REDUCE_TENSOR_ADD && reduction != CUDNN_REDUCE_TENSOR_MAX)
      throw CudnnError{CUDNN_STATUS_NOT_SUPPORTED,
                       fmt::format("a reduction has operator {}, which the stand-in does not have",
                                   static_cast<int>(reduction))};
    add(reduce(reduction, tensor(operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC),
               tensor(operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC)));
  }

  static CudnnOperation reduce(cudnnReduceTensorOp_t reduction, size_t from, size_t to) {
    return {CudnnOperation::Kind::Reduction, {from}, to, CUDNN_POINTWISE_IDENTITY, -1, reduction};
  }

  /// The result of a pointwise operation on tensors; the first of them has all elements.
  size_t compute(cudnnPointwiseMode_t mode, std::vector<size_t> inputs) {
    size_t result = between(graph.tensors[inputs[0]].dims);
    add({CudnnOperation::Kind::Pointwise, std::move(inputs), result, mode});
    return result;
  }

  /// softmax(scale Q K^T) V, and the logarithms of the sums of exponentials.
  void addAttention(const CudnnDescriptor &operation) {
    size_t q = tensor(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC);
    size_t k = tensor(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC);
    size_t v = tensor(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC);
    size_t out = tensor(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC);
    if (graph.tensors[q].dims.size() != 4 || graph.tensors[k].dims.size() != 4)
      refuseShapes("attention", graph.tensors[q].describe() + ", " + graph.tensors[k].describe());
    CudnnTensor turned = graph.tensors[k];
    turned.id = nextOwnId--;
    turned.isVirtual = true;
    std::swap(turned.dims[2], turned.dims[3]);
    std::swap(turned.strides[2], turned.strides[3]);
    CudnnDims scoreDims = graph.tensors[q].dims, rowDims = scoreDims;
    scoreDims[3] = turned.dims[3];
    rowDims[3] = 1;

    size_t kTurned = add(std::move(turned)), scores = between(scoreDims);
    add({CudnnOperation::Kind::Reshape, {k}, kTurned});
    add({CudnnOperation::Kind::Matmul, {q, kTurned}, scores});
    if (operation.has(CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC))
      scores = compute(CUDNN_POINTWISE_MUL,
                       {scores, tensor(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC)});
    size_t largest = between(rowDims), sum = between(rowDims);
    add(reduce(CUDNN_REDUCE_TENSOR_MAX, scores, largest));
    size_t powers = compute(CUDNN_POINTWISE_EXP, {compute(CUDNN_POINTWISE_SUB, {scores, largest})});
    add(reduce(CUDNN_REDUCE_TENSOR_ADD, powers, sum));
    if (operation.has(CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC))
      add({CudnnOperation::Kind::Pointwise,
           {largest, compute(CUDNN_POINTWISE_LOG, {sum})},
           tensor(operation, CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC),
           CUDNN_POINTWISE_ADD});
    size_t shares = between(scoreDims, graph.tensors[q].type);
    add({CudnnOperation::Kind::Pointwise, {powers, sum}, shares, CUDNN_POINTWISE_DIV});
    add({CudnnOperation::Kind::Matmul, {shares, v}, out});
  }

  void check(const CudnnOperation &operation) const;
};

/// Whether the operation can have tensors of these shapes.
void Builder::check(const CudnnOperation &operation) const {
  const CudnnDims &to = graph.tensors[operation.output].dims;
  std::string all = graph.tensors[operation.output].describe();
  bool sameRank = true;
  for (size_t input : operation.inputs) {
    all.insert(0, graph.tensors[input].describe() + ", ");
    sameRank &= graph.tensors[input].isByValue || graph.tensors[input].dims.size() == to.size();
  }
  // A number goes with every shape, of whatever rank it is.
  auto fits = [&](size_t input, auto matches) {
    const CudnnTensor &tensor = graph.tensors[operation.inputs[input]];
    if (tensor.isByValue)
      return operation.kind == CudnnOperation::Kind::Pointwise;
    for (size_t axis = 0; axis < to.size(); ++axis)
      if (!matches(tensor.dims[axis], to[axis], axis))
        return false;
    return true;
  };
  auto broadcasts = [](int64_t from, int64_t to, size_t) { return from == to || from == 1; };
  switch (operation.kind) {
  case CudnnOperation::Kind::Pointwise:
    for (size_t i = 0; i < operation.inputs.size(); ++i)
      if (!sameRank || !fits(i, broadcasts))
        refuseShapes("a pointwise operation", all);
    if (operation.mode == CUDNN_POINTWISE_GEN_INDEX &&
        (operation.axis < 0 || operation.axis >= static_cast<int64_t>(to.size())))
      refuseShapes("the index along an axis that is not there", all);
    return;
  case CudnnOperation::Kind::Reduction:
    if (!sameRank || !fits(0, [](int64_t from, int64_t to, size_t) { return from % to == 0; }))
      refuseShapes("a reduction", all);
    return;
  case CudnnOperation::Kind::Matmul: {
    size_t rank = to.size();
    const CudnnDims &a = graph.tensors[operation.inputs[0]].dims;
    const CudnnDims &b = graph.tensors[operation.inputs[1]].dims;
    // A matrix of A or B is for one of C, or for several that follow each other.
    auto shares = [rank](int64_t from, int64_t to, size_t axis) {
      return axis + 2 >= rank || to % from == 0;
    };
    if (!sameRank || rank < 2 || !fits(0, shares) || !fits(1, shares) ||
        a[rank - 2] != to[rank - 2] || b[rank - 1] != to[rank - 1] || a[rank - 1] != b[rank - 2])
      refuseShapes("a matrix product", all);
    return;
  }
  case CudnnOperation::Kind::Reshape: {
    const CudnnTensor &from = graph.tensors[operation.inputs[0]];
    const CudnnTensor &output = graph.tensors[operation.output];
    if (from.elements() != output.elements() ||
        from.bytes() / bytesOf(from.type) != output.bytes() / bytesOf(output.type))
      refuseShapes("a reshape", all);
    return;
  }
  }
}

/// Of a matrix whose rows, or columns, are heads in memory: whether cuDNN's kernels take them.
void checkHeads(const CudnnTensor &tensor) {
  if (tensor.type != CUDNN_DATA_HALF && tensor.type != CUDNN_DATA_BFLOAT16)
    throw CudnnError{CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
                     fmt::format("{} has data type {}; matrix products of attention have operands "
                                 "of 16 bits",
                                 tensor.describe(), static_cast<int>(tensor.type))};
  size_t rank = tensor.dims.size();
  size_t axis = tensor.strides[rank - 1] == 1 ? rank - 1 : rank - 2;
  if (tensor.strides[axis] != 1)
    throw CudnnError{CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
                     fmt::format("{} has strides {}, and neither of the last two is 1",
                                 tensor.describe(), fmt::join(tensor.strides, ", "))};
  if (tensor.dims[axis] % 8 != 0 || tensor.dims[axis] > 256)
    throw CudnnError{CUDNN_STATUS_NOT_SUPPORTED_SHAPE,
                     fmt::format("{} has heads of {} elements, expected a multiple of 8 of at most "
                                 "256",
                                 tensor.describe(), tensor.dims[axis])};
}

} // namespace

size_t bytesOf(cudnnDataType_t type) {
  switch (type) {
  case CUDNN_DATA_FLOAT:
  case CUDNN_DATA_INT32:
    return 4;
  case CUDNN_DATA_HALF:
  case CUDNN_DATA_BFLOAT16:
    return 2;
  case CUDNN_DATA_BOOLEAN:
    return 1;
  default:
    return 0;
  }
}

size_t CudnnTensor::elements() const { return countOf(dims); }

size_t CudnnTensor::bytes() const {
  int64_t last = 0;
  for (size_t axis = 0; axis < dims.size(); ++axis)
    last += (dims[axis] - 1) * strides[axis];
  return (static_cast<size_t>(last) + 1) * bytesOf(type);
}

std::string CudnnTensor::describe() const {
  return fmt::format("tensor {} ({})", id, fmt::join(dims, "x"));
}

bool CudnnGraph::isWritten(size_t tensor) const {
  return std::any_of(operations.begin(), operations.end(),
                     [tensor](const auto &operation) { return operation.output == tensor; });
}

std::shared_ptr<const CudnnGraph> buildGraph(const CudnnDescriptor &descriptor) {
  if (descriptor.get<bool>(CUDNN_ATTR_OPERATIONGRAPH_IS_DYNAMIC_SHAPE_ENABLED))
    throw CudnnError{CUDNN_STATUS_NOT_SUPPORTED,
                     "an operation graph has dynamic shapes, which the stand-in does not have"};
  Builder builder;
  for (const auto &operation : descriptor.attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).descriptors)
    builder.add(*operation);
  return std::make_shared<const CudnnGraph>(builder.finish());
}

void checkSupported(const CudnnGraph &graph) {
  std::optional<cudnnDataType_t> type;
  for (const CudnnOperation &operation : graph.operations) {
    if (operation.kind != CudnnOperation::Kind::Matmul &&
        operation.kind != CudnnOperation::Kind::Reshape)
      continue;
    for (size_t input : operation.inputs) {
      const CudnnTensor &tensor = graph.tensors[input];
      if (!tensor.isInMemory())
        continue;
      checkHeads(tensor);
      if (type.value_or(tensor.type) != tensor.type)
        throw CudnnError{CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
                         tensor.describe() + " has another data type than other matrices"};
      type = tensor.type;
    }
  }
  if (!type)
    throw CudnnError{CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN,
                     "the graph has no matrix product, and is no attention"};
}

} // namespace dtc::standin
