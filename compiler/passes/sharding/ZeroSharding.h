//===- ZeroSharding.h - Which dimension ZeRO splits -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_SHARDING_ZEROSHARDING_H
#define DTC_COMPILER_PASSES_SHARDING_ZEROSHARDING_H

#include "compiler/analysis/Layout.h"

#include <optional>

namespace dtc {

/// The dimension of a state that ZeRO splits: the first one that divides, of those that the
/// gradient's op can split if there is one, else the one that is largest on a device. None where
/// that would leave devices with nothing: the state stays whole.
std::optional<unsigned> chooseZeroDim(const Mesh &mesh, llvm::ArrayRef<int64_t> shape,
                                      const Layout &layout, llvm::ArrayRef<unsigned> axes,
                                      llvm::ArrayRef<bool> splittable);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_SHARDING_ZEROSHARDING_H
