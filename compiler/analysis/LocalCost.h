//===- LocalCost.h - Cost model of ops on one device ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_LOCALCOST_H
#define DTC_COMPILER_ANALYSIS_LOCALCOST_H

#include "compiler/analysis/Layout.h"

namespace dtc {

/// The bytes of a tensor type.
int64_t tensorBytes(mlir::Type tensor);

/// An estimate of the seconds that one device takes for `op`, of the local view: for a kernel the
/// larger of its floating point operations and the bytes of its operands and results, each by the
/// device's rate (the roofline of Williams, Waterman and Patterson 2009); for a collective
/// collectiveTime(), as if nothing hid it; for a region the sum of its ops. A reshape is free.
double localSeconds(const LinkedMesh &mesh, mlir::Operation *op);

/// The seconds of a message of `bytes` bytes to a device of another stage; 0 without a pipeline.
double transferSeconds(const LinkedMesh &mesh, double bytes);

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_LOCALCOST_H
