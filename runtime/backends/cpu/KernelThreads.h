//===- KernelThreads.h - The threads that kernels use ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_KERNELTHREADS_H
#define DTC_RUNTIME_BACKENDS_CPU_KERNELTHREADS_H

#include "support/Error.h"

namespace dtc::runtime::cpu {

/// Starts the threads that kernels on the calling thread will use, which are its own, and what the
/// process needs for them once. The error says that the process may not have that many threads, or
/// that much memory.
MaybeError startKernelThreads(int threads);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_KERNELTHREADS_H
