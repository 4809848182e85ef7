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
/// those of all operands, also where an output lies in place of an input; accumulate reads its
/// output as well. Of an operand of which a
/// kernel takes only some rows (slice, shard_slice, select_row, embedding, pick) as many bytes
/// count as it writes; of the cache of cache_update and its result, those of the rows that are
/// written.
int64_t kernelBytes(std::string_view kernel, std::span<const TensorType> inputs,
                    std::span<const TensorType> outputs);

} // namespace dtc::runtime

#endif // DTC_SIMULATOR_CLUSTER_KERNELBYTES_H
