//===- CudnnGraph.h - Graphs of cuDNN's operations -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A finalized operation graph has tensors, and operations in an order in which each comes
// after those that it reads from. The operations are elementary ones; an operation for all of
// attention is lowered to them.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_CUDNNGRAPH_H
#define DTC_TEST_STANDIN_CUDA_CUDNNGRAPH_H

#include "test/standin/cuda/CudnnDescriptor.h"

#include <functional>
#include <map>
#include <optional>

namespace dtc::standin {

using CudnnDims = std::vector<int64_t>;

struct CudnnTensor {
  int64_t id;
  cudnnDataType_t type;
  CudnnDims dims, strides; // in elements
  int64_t alignment = 1;   // of its address, in bytes
  bool isVirtual = false;  // in no memory
  bool isByValue = false;  // a number, in memory of the host

  bool operator==(const CudnnTensor &) const = default;
  bool isInMemory() const { return !isVirtual && !isByValue; }
  size_t elements() const;
  /// The memory from its first element to its last.
  size_t bytes() const;
  /// "tensor 3 (2x4x16x64)".
  std::string describe() const;
};

/// Zero for a type that the stand-in does not have.
size_t bytesOf(cudnnDataType_t type);

struct CudnnOperation {
  enum class Kind { Matmul, Pointwise, Reduction, Reshape };
  Kind kind;
  std::vector<size_t> inputs; // numbers of tensors
  size_t output;
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_IDENTITY;
  int64_t axis = -1; // of CUDNN_POINTWISE_GEN_INDEX
  cudnnReduceTensorOp_t reduction = CUDNN_REDUCE_TENSOR_ADD;
};

struct CudnnGraph {
  std::vector<CudnnTensor> tensors;
  std::vector<CudnnOperation> operations;

  bool isWritten(size_t tensor) const;
};

/// The graph of a complete operation graph's descriptor; throws a CudnnError.
std::shared_ptr<const CudnnGraph> buildGraph(const CudnnDescriptor &descriptor);

/// Throws a CudnnError for a graph that no engine executes: matrices have 16 bits, and heads have a
/// multiple of 8 elements and at most 256, which cuDNN has kernels for in both passes on an H100.
void checkSupported(const CudnnGraph &graph);

/// The binding of a tensor for an execution: its memory on the device, or its value.
struct CudnnBinding {
  std::byte *data = nullptr;
  float value = 0;
};
/// Executes all operations, on the host: sums in f32, results rounded to the types of their
/// tensors. `bindings` has one for each tensor.
void interpret(const CudnnGraph &graph, const std::vector<CudnnBinding> &bindings);

/// A number of the type.
float loadElement(cudnnDataType_t type, const std::byte *from);

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_CUDNNGRAPH_H
