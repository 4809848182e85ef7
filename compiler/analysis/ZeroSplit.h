//===- ZeroSplit.h - Choice of the dimension that ZeRO splits -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_ZEROSPLIT_H
#define DTC_COMPILER_ANALYSIS_ZEROSPLIT_H

#include "compiler/analysis/Layout.h"

#include <optional>

namespace dtc {

/// The dimension that ZeRO splits over `axes` of a tensor that lies as `layout`: the first one that
/// divides, of the `splittable` ones if there is one, else the one that is largest on a device.
/// None where that would leave devices with nothing: the tensor stays as it is, whole over `axes`.
std::optional<unsigned> chooseZeroDim(const LinkedMesh &mesh, llvm::ArrayRef<int64_t> shape,
                                      const Layout &layout, llvm::ArrayRef<unsigned> axes,
                                      llvm::ArrayRef<bool> splittable);

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_ZEROSPLIT_H
