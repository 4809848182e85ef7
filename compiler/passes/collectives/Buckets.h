//===- Buckets.h - Buckets of collectives ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_COLLECTIVES_BUCKETS_H
#define DTC_COMPILER_PASSES_COLLECTIVES_BUCKETS_H

#include "dialects/dist/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dtc {

/// The bytes of the larger of a collective's operand and result on one device.
int64_t collectiveBytes(mlir::Operation *collective);

/// Puts collectives of one block that do not need each other's results into a dist.bucket, at the
/// place of the last of them. One collective alone stays as it is.
void makeBucket(llvm::ArrayRef<mlir::Operation *> collectives);

/// Puts collectives, in the order of the block, into buckets of at most `bucketBytes` each. One
/// that is larger stays alone.
void makeBuckets(llvm::ArrayRef<mlir::Operation *> collectives, int64_t bucketBytes);

/// Calls `visit` for each block whose ops a device runs in their order: those of fragments, the
/// body of a loop over microbatches without a schedule, and the function's own.
void forEachStraightBlock(mlir::func::FuncOp function,
                          llvm::function_ref<void(mlir::Block &)> visit);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_COLLECTIVES_BUCKETS_H
