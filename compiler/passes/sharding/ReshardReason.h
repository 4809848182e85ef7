//===- ReshardReason.h - Readable reasons of reshards ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_SHARDING_RESHARDREASON_H
#define DTC_COMPILER_PASSES_SHARDING_RESHARDREASON_H

#include "compiler/analysis/Layout.h"

namespace dtc {

/// What moves, for whom, and what would keep it in place: the dist.reason of a reshard of `value`
/// before `user`.
mlir::DictionaryAttr describeReason(const LinkedMesh &mesh, mlir::Value value, const Layout &from,
                                    const Layout &to, mlir::Operation *user);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_SHARDING_RESHARDREASON_H
