//===- ModelFingerprint.h - Fingerprint of a model for checkpoints --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_MODELFINGERPRINT_H
#define DTC_COMPILER_DRIVER_MODELFINGERPRINT_H

#include "compiler/driver/CompileOptions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace dtc {

/// plan::Plan::model_fingerprint of a model as the user gave it: 32 hexadecimal digits. It depends
/// on the operations in their order, on the origin of each operand, on numbers and names among
/// their attributes, and on the shapes in which parameters are used, such as that of heads; neither
/// on the batch, the sequence and the element type, nor on frozen parameters and shardings.
///
/// Integers are left out, as most are sizes. So are constants that are tables. Where a constant
/// belongs to a sum, as the factor of a mean does, it counts times the number of summands.
std::string fingerprintOf(mlir::func::FuncOp function);

/// plan::Plan::update_settings: "clip=1, *.bias:lr_scale=0.5".
std::string describeUpdates(const CompileOptions &options);

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_MODELFINGERPRINT_H
