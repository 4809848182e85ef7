//===- ReshardReason.h - Readable reasons of reshards ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_SHARDING_RESHARDREASON_H
#define DTC_COMPILER_PASSES_SHARDING_RESHARDREASON_H

#include "compiler/analysis/Layout.h"

namespace dtc {

/// The dist.reason of a reshard of `value` before `user`: the data that moves, the op that needs
/// it, and the change that would keep it in place.
mlir::DictionaryAttr describeReason(const LinkedMesh &mesh, mlir::Value value, const Layout &from,
                                    const Layout &to, mlir::Operation *user);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_SHARDING_RESHARDREASON_H
