//===- Reduce.h - Reductions of the members' operands ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_LOCAL_REDUCE_H
#define DTC_RUNTIME_FABRICS_LOCAL_REDUCE_H

#include "runtime/fabrics/Communicator.h"

#include <cstddef>
#include <span>

namespace dtc::runtime {

/// How results reach the memory. A streaming store does not read the line that it overwrites and
/// keeps no copy of it in the caches: it is for results that the caches could not hold.
enum class Store { Cached, Streaming };

/// For `count` elements: inputs[0][i] op inputs[1][i] op ..., from left to right, goes to all
/// outputs. Elements of 16 bits are combined in f32 and the result is rounded once. An output may
/// equal one of the inputs. The element type is not Bool. Outputs have that of the inputs, or one
/// of the two is F32 and the other of 16 bits.
void reduceElements(ReductionKind reduction, DType inputType, DType outputType,
                    std::span<const std::byte *const> inputs, std::span<std::byte *const> outputs,
                    size_t count, Store store);

/// Copies `bytes` bytes to all outputs.
void copyToAll(const std::byte *input, std::span<std::byte *const> outputs, size_t bytes,
               Store store);

/// Makes the streaming stores of this thread visible to those who meet it from now on.
void finishStores();

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_LOCAL_REDUCE_H
