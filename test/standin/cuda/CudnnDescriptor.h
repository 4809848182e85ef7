//===- CudnnDescriptor.h - The descriptors of cuDNN's graph interface ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_CUDNNDESCRIPTOR_H
#define DTC_TEST_STANDIN_CUDA_CUDNNDESCRIPTOR_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cudnn_graph.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dtc::standin {

struct CudnnGraph;

/// Why a function of cuDNN fails: thrown, and caught where the program has called.
struct CudnnError {
  cudnnStatus_t status;
  std::string message;
};

struct CudnnDescriptor;
using CudnnDescriptorPointer = std::shared_ptr<const CudnnDescriptor>;

struct CudnnAttribute {
  cudnnBackendAttributeType_t type;
  int64_t count;
  std::vector<std::byte> bytes;                    // of `count` elements
  std::vector<CudnnDescriptorPointer> descriptors; // of CUDNN_TYPE_BACKEND_DESCRIPTOR, instead
};

/// Holds what cudnnBackendSetAttribute gave it; once it is finalized, nothing changes.
struct CudnnDescriptor {
  cudnnBackendDescriptorType_t type;
  bool isFinalized = false;
  std::map<cudnnBackendAttributeName_t, CudnnAttribute> attributes;
  /// Of a finalized operation graph.
  std::shared_ptr<const CudnnGraph> graph = nullptr;

  bool has(cudnnBackendAttributeName_t name) const { return attributes.count(name); }
  template <typename T> std::vector<T> list(cudnnBackendAttributeName_t name) const {
    auto found = attributes.find(name);
    if (found == attributes.end())
      return {};
    std::vector<T> values(found->second.bytes.size() / sizeof(T));
    if (!values.empty())
      std::memcpy(static_cast<void *>(values.data()), found->second.bytes.data(),
                  values.size() * sizeof(T));
    return values;
  }
  template <typename T> T get(cudnnBackendAttributeName_t name, T otherwise = {}) const {
    auto found = attributes.find(name);
    if (found == attributes.end() || found->second.bytes.size() < sizeof(T))
      return otherwise;
    std::memcpy(static_cast<void *>(&otherwise), found->second.bytes.data(), sizeof(T));
    return otherwise;
  }
  /// The descriptor that an attribute is; null if it is not set.
  CudnnDescriptorPointer part(cudnnBackendAttributeName_t name) const {
    auto found = attributes.find(name);
    return found == attributes.end() ? nullptr : found->second.descriptors.front();
  }
};

/// "CUDNN_BACKEND_TENSOR_DESCRIPTOR".
std::string nameOf(cudnnBackendDescriptorType_t type);

/// Whether the stand-in has descriptors of that type.
bool isKnown(cudnnBackendDescriptorType_t type);
/// Checks the value against what is known of the attribute, and sets it.
void setAttribute(CudnnDescriptor &descriptor, cudnnBackendAttributeName_t name,
                  CudnnAttribute value);
/// Checks that all attributes are set without which there is no such descriptor.
void checkComplete(const CudnnDescriptor &descriptor);
/// The bytes of an element of an attribute.
size_t bytesOf(cudnnBackendAttributeType_t type);

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_CUDNNDESCRIPTOR_H
