//===- OpenCudnn.cpp - cuDNN, loaded at run time --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// cudnn-frontend calls the functions of cuDNN by their names. Here they are, for this program alone
// (the file is compiled with hidden symbols), and pass the call on to the library.
//
// The frontend can look for the functions itself, but then it wants CUDA's runtime as a shared
// library too, which dtc contains.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/OpenCudnn.h"

#include "runtime/backends/cuda/VendorLibrary.h"

#include <cudnn.h>

namespace dtc::runtime::cuda {

namespace {

struct Cudnn {
  decltype(&cudnnCreate) create;
  decltype(&cudnnDestroy) destroy;
  decltype(&cudnnSetStream) setStream;
  decltype(&cudnnGetStream) getStream;
  decltype(&cudnnGetVersion) getVersion;
  decltype(&cudnnGetErrorString) getErrorString;
  decltype(&cudnnGetLastErrorString) getLastErrorString;
  decltype(&cudnnBackendCreateDescriptor) createDescriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroyDescriptor;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendSetAttribute) setAttribute;
  decltype(&cudnnBackendGetAttribute) getAttribute;
  decltype(&cudnnBackendExecute) execute;
};

Cudnn library; // complete once openCudnn() has returned a path

} // namespace

Expected<std::string> openCudnn() {
  Expected<VendorLibrary> opened =
      VendorLibrary::open("cuDNN", "libcudnn.so.9", "nvidia-cudnn-cu13");
  if (!opened)
    return opened.error();
  opened->find(library.create, "cudnnCreate");
  opened->find(library.destroy, "cudnnDestroy");
  opened->find(library.setStream, "cudnnSetStream");
  opened->find(library.getStream, "cudnnGetStream");
  opened->find(library.getVersion, "cudnnGetVersion");
  opened->find(library.getErrorString, "cudnnGetErrorString");
  opened->find(library.getLastErrorString, "cudnnGetLastErrorString");
  opened->find(library.createDescriptor, "cudnnBackendCreateDescriptor");
  opened->find(library.destroyDescriptor, "cudnnBackendDestroyDescriptor");
  opened->find(library.finalize, "cudnnBackendFinalize");
  opened->find(library.setAttribute, "cudnnBackendSetAttribute");
  opened->find(library.getAttribute, "cudnnBackendGetAttribute");
  opened->find(library.execute, "cudnnBackendExecute");
  if (opened->missing())
    return *opened->missing();
  return opened->path();
}

} // namespace dtc::runtime::cuda

using dtc::runtime::cuda::library;

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) { return library.create(handle); }
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) { return library.destroy(handle); }
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return library.setStream(handle, stream);
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream) {
  return library.getStream(handle, stream);
}
size_t cudnnGetVersion() { return library.getVersion(); }
const char *cudnnGetErrorString(cudnnStatus_t status) { return library.getErrorString(status); }
void cudnnGetLastErrorString(char *message, size_t size) {
  library.getLastErrorString(message, size);
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *descriptor) {
  return library.createDescriptor(type, descriptor);
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return library.destroyDescriptor(descriptor);
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return library.finalize(descriptor);
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *elements) {
  return library.setAttribute(descriptor, name, type, count, elements);
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t requested,
                                       int64_t *count, void *elements) {
  return library.getAttribute(descriptor, name, type, requested, count, elements);
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t operands) {
  return library.execute(handle, plan, operands);
}

} // extern "C"
