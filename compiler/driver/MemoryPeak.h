//===- MemoryPeak.h - Peak memory of a program --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_MEMORYPEAK_H
#define DTC_COMPILER_DRIVER_MEMORYPEAK_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace dtc {

/// The moment at which a device needs the most memory.
struct MemoryPeak {
  struct Tensor {
    std::string what; ///< "activation f32[4,8] of h.3.attn, for 3 microbatches"
    int64_t bytes = 0;
    mlir::Location where;
  };
  std::string device; ///< "a device", or "a device of coordinate 2 on pp"
  std::string moment; ///< "backward.2, in h.3.mlp"
  int64_t bytes = 0;  ///< of the arena
  mlir::Location where;
  std::vector<Tensor> largest; ///< of those that are in use then, the largest first
};

/// The peak of the program with the largest arena, of a module whose memory is planned.
MemoryPeak findPeak(mlir::ModuleOp module);

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_MEMORYPEAK_H
