//===- LoadNccl.cpp - NCCL, loaded at run time ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/VendorLibrary.h"
#include "runtime/fabrics/nccl/Nccl.h"

namespace dtc::runtime::nccl {

static Expected<Nccl> load() {
  Expected<cuda::VendorLibrary> library =
      cuda::VendorLibrary::open("NCCL", "libnccl.so.2", "nvidia-nccl-cu13");
  if (!library)
    return library.error();
  Nccl table = {};
  MaybeError missing;
  auto find = [&](auto &function, const char *name) {
    if (MaybeError error = library->find(function, name); error && !missing)
      missing = error;
  };
  find(table.getVersion, "ncclGetVersion");
  find(table.getErrorString, "ncclGetErrorString");
  find(table.getLastError, "ncclGetLastError");
  find(table.getUniqueId, "ncclGetUniqueId");
  find(table.commInitRankConfig, "ncclCommInitRankConfig");
  find(table.commDestroy, "ncclCommDestroy");
  find(table.commAbort, "ncclCommAbort");
  find(table.commGetAsyncError, "ncclCommGetAsyncError");
  find(table.allReduce, "ncclAllReduce");
  find(table.reduceScatter, "ncclReduceScatter");
  find(table.allGather, "ncclAllGather");
  find(table.send, "ncclSend");
  find(table.recv, "ncclRecv");
  find(table.groupStart, "ncclGroupStart");
  find(table.groupEnd, "ncclGroupEnd");
  if (missing)
    return *missing;
  return table;
}

Expected<const Nccl *> loadNccl() {
  static const Expected<Nccl> loaded = load();
  if (!loaded)
    return loaded.error();
  return &*loaded;
}

} // namespace dtc::runtime::nccl
