//===- StridedCopy.h - Copies between memory orders -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_STRIDEDCOPY_H
#define DTC_RUNTIME_BACKENDS_CUDA_STRIDEDCOPY_H

#include "runtime/backends/cuda/CudaDevice.h"
#include "runtime/backends/cuda/DeviceLoops.h"

namespace dtc::runtime::cuda {

/// Enqueues a copy of elements of `width` bytes (1, 2, 4 or 8): the loops have the offsets of `to`
/// and of `from`.
MaybeError enqueueStridedCopy(CudaQueue &queue, const DeviceLoops<2> &loops, size_t width, void *to,
                              const void *from);

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_STRIDEDCOPY_H
