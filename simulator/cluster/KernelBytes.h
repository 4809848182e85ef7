//===- KernelBytes.h - What a kernel moves --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_CLUSTER_KERNELBYTES_H
#define DTC_SIMULATOR_CLUSTER_KERNELBYTES_H

#include "support/Tensor.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace dtc::runtime {

/// The bytes that a call of a kernel reads and writes, as the times of KernelRate are told by:
/// those of its KernelTraffic, also where an output lies in place of an input.
int64_t kernelBytes(std::string_view kernel, std::span<const TensorType> inputs,
                    std::span<const TensorType> outputs);

} // namespace dtc::runtime

#endif // DTC_SIMULATOR_CLUSTER_KERNELBYTES_H
