//===- CudnnInterpreter.cpp - Executing graphs of cuDNN's operations -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Float16.h"
#include "test/standin/cuda/CudnnGraph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace dtc::standin {

namespace {

using Kind = CudnnOperation::Kind;
using Values = std::vector<float>; // of a tensor, packed

template <typename T> T load(const std::byte *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}
template <typename T> void store(std::byte *to, T value) { std::memcpy(to, &value, sizeof(T)); }

void storeElement(cudnnDataType_t type, std::byte *to, float value) {
  switch (type) {
  case CUDNN_DATA_HALF:
    return store(to, Float16(value));
  case CUDNN_DATA_BFLOAT16:
    return store(to, BFloat16(value));
  case CUDNN_DATA_INT32:
    return store(to, static_cast<int32_t>(value));
  case CUDNN_DATA_BOOLEAN:
    return store(to, static_cast<uint8_t>(value != 0));
  default:
    return store(to, value);
  }
}

float roundTo(cudnnDataType_t type, float value) {
  if (type == CUDNN_DATA_FLOAT)
    return value;
  std::byte bytes[4];
  storeElement(type, bytes, value);
  return loadElement(type, bytes);
}

/// For each axis and each coordinate on it, how far an operand's element is from its first.
using Offsets = std::vector<std::vector<int64_t>>;

CudnnDims packedStrides(const CudnnDims &dims) {
  CudnnDims strides(dims.size(), 1);
  for (size_t axis = dims.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * dims[axis];
  return strides;
}

/// The offsets of an operand whose `dims` each divide those of `over`: an element serves
/// consecutive elements of `over`.
Offsets offsetsOver(const CudnnDims &over, const CudnnDims &dims, const CudnnDims &strides) {
  Offsets offsets(over.size());
  for (size_t axis = 0; axis < over.size(); ++axis)
    for (int64_t i = 0; i < over[axis]; ++i)
      offsets[axis].push_back(i * dims[axis] / over[axis] * strides[axis]);
  return offsets;
}

constexpr size_t kOperands = 3;

/// Calls body(number of the element, offsets of the operands) for all elements of `dims` in order.
template <typename Body>
void forEach(const CudnnDims &dims, const std::vector<Offsets> &operands, Body body) {
  size_t last = dims.size() - 1, number = 0;
  CudnnDims index(dims.size(), 0);
  for (bool isMore = true; isMore;) {
    std::array<int64_t, kOperands> row = {}, at = {};
    for (size_t k = 0; k < operands.size(); ++k)
      for (size_t axis = 0; axis < last; ++axis)
        row[k] += operands[k][axis][index[axis]];
    for (int64_t i = 0; i < dims[last]; ++i) {
      for (size_t k = 0; k < operands.size(); ++k)
        at[k] = row[k] + operands[k][last][i];
      body(number++, at);
    }
    isMore = false;
    for (size_t axis = last; axis-- > 0 && !isMore;) {
      isMore = ++index[axis] < dims[axis];
      if (!isMore)
        index[axis] = 0;
    }
  }
}

/// Of up to three numbers.
float apply(cudnnPointwiseMode_t mode, float x, float b, float t) {
  switch (mode) {
  case CUDNN_POINTWISE_ADD:
    return x + b;
  case CUDNN_POINTWISE_SUB:
    return x - b;
  case CUDNN_POINTWISE_MUL:
    return x * b;
  case CUDNN_POINTWISE_DIV:
    return x / b;
  case CUDNN_POINTWISE_EXP:
    return std::exp(x);
  case CUDNN_POINTWISE_LOG:
    return std::log(x);
  case CUDNN_POINTWISE_CMP_GT:
    return x > b;
  case CUDNN_POINTWISE_CMP_GE:
    return x >= b;
  case CUDNN_POINTWISE_CMP_LT:
    return x < b;
  case CUDNN_POINTWISE_LOGICAL_AND:
    return x != 0 && b != 0;
  case CUDNN_POINTWISE_BINARY_SELECT:
    return t != 0 ? x : b;
  default: // CUDNN_POINTWISE_IDENTITY
    return x;
  }
}

class Interpreter {
public:
  Interpreter(const CudnnGraph &graph, const std::vector<CudnnBinding> &bindings)
      : graph(graph), bindings(bindings), values(graph.tensors.size()) {}

  void run() {
    std::vector<size_t> lastUse(graph.tensors.size(), 0);
    for (size_t i = 0; i < graph.operations.size(); ++i)
      for (size_t input : graph.operations[i].inputs)
        lastUse[input] = i;
    for (size_t i = 0; i < graph.operations.size(); ++i) {
      const CudnnOperation &operation = graph.operations[i];
      for (size_t input : operation.inputs)
        if (values[input].empty())
          read(input);
      compute(operation);
      write(operation.output);
      for (size_t input : operation.inputs)
        if (lastUse[input] == i)
          values[input] = {};
    }
  }

private:
  const CudnnGraph &graph;
  const std::vector<CudnnBinding> &bindings;
  std::vector<Values> values;

  const CudnnDims &dims(size_t tensor) const { return graph.tensors[tensor].dims; }
  Offsets packed(const CudnnDims &over, size_t tensor) const {
    CudnnDims from = graph.tensors[tensor].isByValue ? CudnnDims(over.size(), 1) : dims(tensor);
    return offsetsOver(over, from, packedStrides(from));
  }
  Offsets inMemory(const CudnnTensor &tensor) const {
    return offsetsOver(tensor.dims, tensor.dims, tensor.strides);
  }

  void read(size_t number) {
    const CudnnTensor &tensor = graph.tensors[number];
    if (tensor.isByValue) {
      values[number] = {bindings[number].value};
      return;
    }
    values[number].resize(tensor.elements());
    size_t width = bytesOf(tensor.type);
    forEach(tensor.dims, {inMemory(tensor)}, [&](size_t i, const auto &at) {
      values[number][i] = loadElement(tensor.type, bindings[number].data + at[0] * width);
    });
  }

  /// Rounds what was computed, and stores it if the tensor is in memory.
  void write(size_t number) {
    const CudnnTensor &tensor = graph.tensors[number];
    for (float &value : values[number])
      value = roundTo(tensor.type, value);
    if (tensor.isVirtual)
      return;
    size_t width = bytesOf(tensor.type);
    forEach(tensor.dims, {inMemory(tensor)}, [&](size_t i, const auto &at) {
      storeElement(tensor.type, bindings[number].data + at[0] * width, values[number][i]);
    });
  }

  void compute(const CudnnOperation &operation) {
    values[operation.output].resize(graph.tensors[operation.output].elements());
    switch (operation.kind) {
    case Kind::Matmul:
      return multiply(operation);
    case Kind::Pointwise:
      return operation.mode == CUDNN_POINTWISE_GEN_INDEX ? index(operation) : map(operation);
    case Kind::Reduction:
      return reduce(operation);
    case Kind::Reshape:
      return reshape(operation);
    }
  }

  void map(const CudnnOperation &operation) {
    Values &to = values[operation.output];
    std::vector<Offsets> operands;
    std::array<const float *, kOperands> from = {};
    for (size_t input : operation.inputs) {
      from[operands.size()] = values[input].data();
      operands.push_back(packed(dims(operation.output), input));
    }
    forEach(dims(operation.output), operands, [&](size_t i, const auto &at) {
      to[i] = apply(operation.mode, from[0][at[0]], from[1] ? from[1][at[1]] : 0,
                    from[2] ? from[2][at[2]] : 0);
    });
  }

  void index(const CudnnOperation &operation) {
    Values &to = values[operation.output];
    Offsets coordinates(dims(operation.output).size());
    for (size_t axis = 0; axis < coordinates.size(); ++axis)
      for (int64_t i = 0; i < dims(operation.output)[axis]; ++i)
        coordinates[axis].push_back(axis == static_cast<size_t>(operation.axis) ? i : 0);
    forEach(dims(operation.output), {coordinates},
            [&](size_t i, const auto &at) { to[i] = static_cast<float>(at[0]); });
  }

  void reduce(const CudnnOperation &operation) {
    bool adds = operation.reduction == CUDNN_REDUCE_TENSOR_ADD;
    Values &to = values[operation.output];
    const Values &from = values[operation.inputs[0]];
    std::fill(to.begin(), to.end(), adds ? 0 : -std::numeric_limits<float>::infinity());
    forEach(dims(operation.inputs[0]), {packed(dims(operation.inputs[0]), operation.output)},
            [&](size_t i, const auto &at) {
              float &result = to[at[0]];
              if (adds)
                result += from[i];
              else if (from[i] > result || std::isnan(from[i]))
                result = from[i];
            });
  }

  /// The same memory, seen with other dimensions and strides.
  void reshape(const CudnnOperation &operation) {
    const CudnnTensor &source = graph.tensors[operation.inputs[0]];
    const CudnnTensor &target = graph.tensors[operation.output];
    Values memory(source.bytes() / bytesOf(source.type), std::numeric_limits<float>::quiet_NaN());
    forEach(source.dims, {inMemory(source)},
            [&](size_t i, const auto &at) { memory[at[0]] = values[operation.inputs[0]][i]; });
    forEach(target.dims, {inMemory(target)},
            [&](size_t i, const auto &at) { values[operation.output][i] = memory[at[0]]; });
  }

  void multiply(const CudnnOperation &operation) {
    size_t left = operation.inputs[0], right = operation.inputs[1];
    size_t rank = dims(operation.output).size();
    int64_t m = dims(left)[rank - 2], k = dims(left)[rank - 1], n = dims(right)[rank - 1];
    // One element of these stands for a matrix.
    auto matrices = [&](size_t tensor) {
      CudnnDims batches = dims(tensor);
      batches[rank - 2] = batches[rank - 1] = 1;
      return batches;
    };
    CudnnDims over = matrices(operation.output);
    auto offsets = [&](size_t tensor) {
      return offsetsOver(over, matrices(tensor), packedStrides(dims(tensor)));
    };
    forEach(over, {offsets(left), offsets(right), offsets(operation.output)},
            [&](size_t, const auto &at) {
              multiply(m, n, k, values[left].data() + at[0], values[right].data() + at[1],
                       values[operation.output].data() + at[2]);
            });
  }

  static void multiply(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c) {
    std::fill(c, c + m * n, 0.0f);
    for (int64_t row = 0; row < m; ++row)
      for (int64_t i = 0; i < k; ++i)
        for (int64_t column = 0; column < n; ++column)
          c[row * n + column] += a[row * k + i] * b[i * n + column];
  }
};

} // namespace

float loadElement(cudnnDataType_t type, const std::byte *from) {
  switch (type) {
  case CUDNN_DATA_HALF:
    return load<Float16>(from);
  case CUDNN_DATA_BFLOAT16:
    return load<BFloat16>(from);
  case CUDNN_DATA_INT32:
    return static_cast<float>(load<int32_t>(from));
  case CUDNN_DATA_BOOLEAN:
    return load<uint8_t>(from);
  default:
    return load<float>(from);
  }
}

void interpret(const CudnnGraph &graph, const std::vector<CudnnBinding> &bindings) {
  Interpreter(graph, bindings).run();
}

} // namespace dtc::standin
