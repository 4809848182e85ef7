//===- LoadNccl.cpp - NCCL, loaded at run time ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/VendorLibrary.h"
#include "runtime/fabrics/nccl/Nccl.h"

#include <cstdlib>

namespace dtc::runtime::nccl {

static Expected<Nccl> load() {
#if NCCL_VERSION_CODE < 22900
  // NcclGroup says the same in its configuration where NCCL's header has a field for it. NCCL reads
  // the variable at its first communicator.
  (void)setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", /*overwrite=*/0);
#endif
  Expected<cuda::VendorLibrary> library =
      cuda::VendorLibrary::open("NCCL", "libnccl.so.2", "nvidia-nccl-cu13");
  if (!library)
    return library.error();
  Nccl table = {};
  library->find(table.getVersion, "ncclGetVersion");
  library->find(table.getErrorString, "ncclGetErrorString");
  library->find(table.getLastError, "ncclGetLastError");
  library->find(table.getUniqueId, "ncclGetUniqueId");
  library->find(table.commInitRankConfig, "ncclCommInitRankConfig");
  library->find(table.commDestroy, "ncclCommDestroy");
  library->find(table.commAbort, "ncclCommAbort");
  library->find(table.commGetAsyncError, "ncclCommGetAsyncError");
  library->find(table.allReduce, "ncclAllReduce");
  library->find(table.reduceScatter, "ncclReduceScatter");
  library->find(table.allGather, "ncclAllGather");
  library->find(table.send, "ncclSend");
  library->find(table.recv, "ncclRecv");
  library->find(table.groupStart, "ncclGroupStart");
  library->find(table.groupEnd, "ncclGroupEnd");
  if (library->missing())
    return *library->missing();
  return table;
}

Expected<const Nccl *> loadNccl() {
  static const Expected<Nccl> loaded = load();
  if (!loaded)
    return loaded.error();
  return &*loaded;
}

} // namespace dtc::runtime::nccl
