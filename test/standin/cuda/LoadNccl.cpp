//===- LoadNccl.cpp - The stand-in's NCCL for the fabric -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// In place of the file of the same name in runtime/fabrics/nccl, which loads the library.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/nccl/Nccl.h"

namespace dtc::runtime::nccl {

Expected<const Nccl *> loadNccl() {
  static constexpr Nccl kTable = {
      .getVersion = ncclGetVersion,
      .getErrorString = ncclGetErrorString,
      .getLastError = ncclGetLastError,
      .getUniqueId = ncclGetUniqueId,
      .commInitRankConfig = ncclCommInitRankConfig,
      .commDestroy = ncclCommDestroy,
      .commAbort = ncclCommAbort,
      .commGetAsyncError = ncclCommGetAsyncError,
      .allReduce = ncclAllReduce,
      .reduceScatter = ncclReduceScatter,
      .allGather = ncclAllGather,
      .send = ncclSend,
      .recv = ncclRecv,
      .groupStart = ncclGroupStart,
      .groupEnd = ncclGroupEnd,
  };
  return &kTable;
}

} // namespace dtc::runtime::nccl
