//===- cuda_runtime_api.h - The stand-in's CUDA runtime, for the host ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The names, values and meanings of the CUDA runtime API that dtc uses; what is not here, dtc does
// not use. Source: NVIDIA, "CUDA Runtime API", version 13.0.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_INCLUDE_CUDA_RUNTIME_API_H
#define DTC_TEST_STANDIN_CUDA_INCLUDE_CUDA_RUNTIME_API_H

#include "test/standin/cuda/VectorTypes.h"

#include <cstddef>

#define CUDART_VERSION 13000
#define CUDART_CB

// X(name, value, text) for each error.
#define DTC_STANDIN_CUDA_ERRORS(X)                                                                 \
  X(cudaSuccess, 0, "no error")                                                                    \
  X(cudaErrorInvalidValue, 1, "invalid argument")                                                  \
  X(cudaErrorMemoryAllocation, 2, "out of memory")                                                 \
  X(cudaErrorInitializationError, 3, "initialization error")                                       \
  X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                            \
  X(cudaErrorInvalidDevicePointer, 17, "invalid device pointer")                                   \
  X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                      \
  X(cudaErrorInsufficientDriver, 35, "CUDA driver version is insufficient")                        \
  X(cudaErrorDevicesUnavailable, 46, "CUDA-capable device(s) is/are busy or unavailable")          \
  X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                                 \
  X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                                  \
  X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                         \
  X(cudaErrorECCUncorrectable, 214, "uncorrectable ECC error encountered")                         \
  X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                                \
  X(cudaErrorNotReady, 600, "device not ready")                                                    \
  X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                      \
  X(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")                 \
  X(cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated")                        \
  X(cudaErrorAssert, 710, "device-side assert triggered")                                          \
  X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                                     \
  X(cudaErrorNotPermitted, 800, "operation not permitted")                                         \
  X(cudaErrorNotSupported, 801, "operation not supported")                                         \
  X(cudaErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing")    \
  X(cudaErrorStreamCaptureInvalidated, 901,                                                        \
    "operation failed due to a previous error during capture")                                     \
  X(cudaErrorStreamCaptureMerge, 902,                                                              \
    "operation would result in a merge of separate capture sequences")                             \
  X(cudaErrorStreamCaptureUnmatched, 903, "capture was not ended in the same stream as it began")  \
  X(cudaErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work")                     \
  X(cudaErrorStreamCaptureIsolation, 905,                                                          \
    "dependency created on uncaptured work in another stream")                                     \
  X(cudaErrorCapturedEvent, 907,                                                                   \
    "operation not permitted on an event last recorded in a "                                      \
    "capturing stream")                                                                            \
  X(cudaErrorStreamCaptureWrongThread, 908,                                                        \
    "attempt to terminate a thread-local capture sequence from another thread")                    \
  X(cudaErrorUnknown, 999, "unknown error")

enum cudaError {
#define DTC_STANDIN_ENUMERATOR(name, value, text) name = value,
  DTC_STANDIN_CUDA_ERRORS(DTC_STANDIN_ENUMERATOR)
#undef DTC_STANDIN_ENUMERATOR
};
using cudaError_t = cudaError;

struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
using cudaStream_t = CUstream_st *;
using cudaEvent_t = CUevent_st *;
using cudaGraph_t = CUgraph_st *;
using cudaGraphExec_t = CUgraphExec_st *;

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};

enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxGridDimX = 5,
  cudaDevAttrMaxGridDimY = 6,
  cudaDevAttrMaxGridDimZ = 7,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};

enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9
};

struct cudaUUID_t {
  char bytes[16];
};

/// CUDA's structure, whose layout sources have that are compiled with CUDA's own headers: the
/// fields that dtc reads have their names, and the others their size.
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  char otherIds[16];
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  int regsPerBlock;
  int warpSize;
  size_t memPitch;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  size_t totalConstMem;
  int major;
  int minor;
  size_t textureAlignments[2];
  int multiProcessorCount;
  int otherLimits[45];
  int pciBusID;
  int pciDeviceID;
  int pciDomainID;
  int otherFields[107];
};

enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2
};

struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void *devicePointer;
  void *hostPointer;
  long reserved[8];
};

struct cudaLaunchAttribute;

struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned numAttrs;
};

enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2
};

enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2
};

using cudaHostFn_t = void (*)(void *userData);

enum : unsigned {
  cudaStreamDefault = 0,
  cudaStreamNonBlocking = 1,
  cudaEventDefault = 0,
  cudaEventBlockingSync = 1,
  cudaEventDisableTiming = 2,
  cudaHostAllocDefault = 0,
  cudaHostAllocPortable = 1,
  cudaEventRecordDefault = 0,
  cudaEventWaitDefault = 0
};

extern "C" {
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDriverGetVersion(int *version);

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize();
struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion;
};
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function);
cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);

cudaError_t cudaMalloc(void **pointer, size_t bytes);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaMallocHost(void **pointer, size_t bytes);
cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *pointer);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *userData);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status);
constexpr unsigned long long cudaGraphInstantiateFlagUseNodePriority = 8;
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);

cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);
}

#endif // DTC_TEST_STANDIN_CUDA_INCLUDE_CUDA_RUNTIME_API_H
