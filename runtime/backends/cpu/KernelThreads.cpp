//===- KernelThreads.cpp - The threads that kernels use -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/KernelThreads.h"

#include "runtime/backends/cpu/GemmGrid.h"
#include "runtime/backends/cpu/Parallel.h"
#include "support/Memory.h"
#include "support/StartThread.h"

#include <latch>
#include <mutex>
#include <oneapi/dnnl/dnnl.h>
#include <vector>

namespace dtc::runtime::cpu {

/// Whether `count` more threads can run at once.
static MaybeError tryThreads(int count) {
  std::latch end(1);
  std::vector<std::thread> threads;
  MaybeError failure;
  try {
    threads.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i)
      threads.push_back(startThread("kernels", [&] { end.wait(); }));
  } catch (const ThreadStartError &error) {
    failure = Error{error.what()};
  }
  end.count_down();
  for (std::thread &thread : threads)
    thread.join();
  return failure;
}

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
  // OpenMP keeps the threads of a thread that has had them.
  static thread_local int started = 0;
  if (threads <= started)
    return std::nullopt;
  // One caller at a time, so that the tried threads are still free when they are started.
  static std::mutex mutex;
  static bool hasLibrary = false;
  std::lock_guard lock(mutex);
  if (!hasLibrary)
    if (MaybeError error = startLibrary())
      return error;
  hasLibrary = true;
  if (threads > 1) {
    // OpenMP's library ends the process if it cannot start a thread.
    if (MaybeError error = tryThreads(threads - 1))
      return error;
    forParts(threads, [](int) {});
  }
  started = threads;
  return std::nullopt;
}

} // namespace dtc::runtime::cpu
