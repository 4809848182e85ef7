//===- Encode.h - Elements as NCCL reduces them ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_NCCL_ENCODE_H
#define DTC_RUNTIME_FABRICS_NCCL_ENCODE_H

#include "runtime/backends/cuda/CudaDevice.h"
#include "runtime/backends/cuda/DeviceLoops.h"
#include "support/Tensor.h"

namespace dtc::runtime::nccl {

/// How elements are sent.
enum class Code {
  Same,
  Widened, // 16 bits as f32
  /// Floats as unsigned integers of the same order, 16 bits as those of f32. NaN is the largest
  /// integer of MaxKey and the smallest of MinKey.
  MaxKey,
  MinKey
};

/// Enqueues a copy of elements of `dtype` that encodes them. The loops have the offsets of `to` and
/// of `from`.
MaybeError enqueueEncode(cuda::CudaQueue &queue, const cuda::DeviceLoops<2> &loops, Code code,
                         DType dtype, void *to, const void *from);
/// The reverse.
MaybeError enqueueDecode(cuda::CudaQueue &queue, const cuda::DeviceLoops<2> &loops, Code code,
                         DType dtype, void *to, const void *from);

} // namespace dtc::runtime::nccl

#endif // DTC_RUNTIME_FABRICS_NCCL_ENCODE_H
