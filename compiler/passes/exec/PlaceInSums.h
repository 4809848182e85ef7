//===- PlaceInSums.h - Values in the bytes of sums that are free again ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_EXEC_PLACEINSUMS_H
#define DTC_COMPILER_PASSES_EXEC_PLACEINSUMS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

#include <cstdint>
#include <vector>

namespace dtc {

/// The bytes of a buffer, `offset` bytes behind the beginning of another one.
struct PlaceInBuffer {
  mlir::Operation *buffer = nullptr;
  int64_t offset = 0;
};

/// A sum over microbatches that nothing reads or writes after a program point.
struct FreedSum {
  mlir::Operation *buffer;
  int64_t bytes;
  int last;
};

/// A value that is written at a program point, once in a step, after the last microbatch was added
/// to the sums that are free then.
struct LateValue {
  mlir::Operation *buffer;
  int64_t bytes;
  int first;
};

/// Gives values bytes of sums that are free when they are written, each to one value: the smallest
/// room that suffices. A value that finds none has no place. Both lists are in order of their
/// points; sizes are multiples of the alignment of buffers.
llvm::DenseMap<mlir::Operation *, PlaceInBuffer> placeInSums(const std::vector<FreedSum> &sums,
                                                             const std::vector<LateValue> &values);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_EXEC_PLACEINSUMS_H
