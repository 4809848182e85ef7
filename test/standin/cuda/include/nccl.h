//===- nccl.h - The stand-in's NCCL --------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The names, values and meanings of NCCL that dtc uses; what is not here, dtc does not use.
// Source: NVIDIA, "NVIDIA Collective Communication Library (NCCL) Documentation", version 2.28.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_INCLUDE_NCCL_H
#define DTC_TEST_STANDIN_CUDA_INCLUDE_NCCL_H

#include <cuda_runtime_api.h>

#include <cstddef>

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
};

enum ncclDataType_t {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9
};

enum ncclRedOp_t { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3 };

struct ncclComm;
using ncclComm_t = ncclComm *;
struct ncclUniqueId {
  char internal[128];
};
#define NCCL_CONFIG_UNDEF_INT (-2147483647 - 1)
struct ncclConfig_t {
  int blocking, minCTAs, maxCTAs;
};
#define NCCL_CONFIG_INITIALIZER                                                                    \
  { 1, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT }

extern "C" {

ncclResult_t ncclGetVersion(int *version);
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t communicator);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config);
ncclResult_t ncclCommDestroy(ncclComm_t communicator);
ncclResult_t ncclCommAbort(ncclComm_t communicator);
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t *error);
ncclResult_t ncclAllReduce(const void *sent, void *received, size_t count, ncclDataType_t type,
                           ncclRedOp_t reduction, ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void *sent, void *received, size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclAllGather(const void *sent, void *received, size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclSend(const void *sent, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclRecv(void *received, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();

} // extern "C"

#endif // DTC_TEST_STANDIN_CUDA_INCLUDE_NCCL_H
