//===- KernelThreads.cpp - The threads that kernels use -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/KernelThreads.h"

#include "runtime/backends/cpu/GemmGrid.h"
#include "runtime/backends/cpu/ThreadTeam.h"
#include "support/Memory.h"

#include <mutex>
#include <oneapi/dnnl/dnnl.h>

namespace dtc::runtime::cpu {

/// The library of products makes code in memory of its own when it is first used, and does not
/// survive it if there is none.
static MaybeError startLibrary() {
  constexpr size_t enough = size_t{64} << 20;
  if (Expected<PageMemory> trial = PageMemory::allocate(enough); !trial)
    return trial.error().inContext("for products of matrices");
  SingleThreadedLibrary alone;
  float a = 0, b = 0, c = 0;
  dnnl_sgemm('N', 'N', 1, 1, 1, 1, &a, 1, &b, 1, 0, &c, 1);
  return std::nullopt;
}

MaybeError startKernelThreads(int threads) {
  {
    static std::mutex mutex;
    static bool hasLibrary = false;
    std::lock_guard lock(mutex);
    if (!hasLibrary)
      if (MaybeError error = startLibrary())
        return error;
    hasLibrary = true;
  }
  return ThreadTeam::ofThisThread().grow(threads - 1);
}

} // namespace dtc::runtime::cpu
