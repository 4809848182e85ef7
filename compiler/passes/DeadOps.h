//===- DeadOps.h - Dead-code elimination ----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_DEADOPS_H
#define DTC_COMPILER_PASSES_DEADOPS_H

#include "mlir/IR/Block.h"

namespace dtc {

/// Erases the ops of a block, but for its terminator, whose results nothing needs.
void eraseDeadOps(mlir::Block &block);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_DEADOPS_H
