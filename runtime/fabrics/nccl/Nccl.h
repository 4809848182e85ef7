//===- Nccl.h - NCCL, loaded at run time ----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_NCCL_NCCL_H
#define DTC_RUNTIME_FABRICS_NCCL_NCCL_H

#include "support/Error.h"

#include <nccl.h>

namespace dtc::runtime::nccl {

/// The functions of NCCL that are used, under the names that they have there.
struct Nccl {
  decltype(&ncclGetVersion) getVersion;
  decltype(&ncclGetErrorString) getErrorString;
  decltype(&ncclGetLastError) getLastError;
  decltype(&ncclGetUniqueId) getUniqueId;
  decltype(&ncclCommInitRankConfig) commInitRankConfig;
  decltype(&ncclCommDestroy) commDestroy;
  decltype(&ncclCommAbort) commAbort;
  decltype(&ncclCommGetAsyncError) commGetAsyncError;
  decltype(&ncclAllReduce) allReduce;
  decltype(&ncclReduceScatter) reduceScatter;
  decltype(&ncclAllGather) allGather;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) recv;
  decltype(&ncclGroupStart) groupStart;
  decltype(&ncclGroupEnd) groupEnd;
};

/// The library, which is loaded at the first call and stays. The error says which file was looked
/// for and where.
Expected<const Nccl *> loadNccl();

} // namespace dtc::runtime::nccl

#endif // DTC_RUNTIME_FABRICS_NCCL_NCCL_H
