//===- Reduce.h - Reductions of the members' operands ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_COMMUNICATORS_LOCAL_REDUCE_H
#define DTC_RUNTIME_COMMUNICATORS_LOCAL_REDUCE_H

#include "runtime/communicators/Communicator.h"

#include <cstddef>
#include <span>

namespace dtc::runtime {

/// output[i] = inputs[0][i] op inputs[1][i] op ..., from left to right, for `count` elements.
/// `output` may equal one of the inputs. The element type is not Bool.
void reduceElements(Reduction reduction, DType dtype, std::span<const std::byte *const> inputs,
                    std::byte *output, size_t count);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_COMMUNICATORS_LOCAL_REDUCE_H
