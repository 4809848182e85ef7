//===- Float8Passes.h - Passes about operands of 8 bits -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_FLOAT8_FLOAT8PASSES_H
#define DTC_COMPILER_PASSES_FLOAT8_FLOAT8PASSES_H

#include "dialects/dist/Dist.h"
#include "dialects/dtc/DtcOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace dtc {

#define GEN_PASS_DECL
#include "compiler/passes/Float8Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/Float8Passes.h.inc"

} // namespace dtc

#endif // DTC_COMPILER_PASSES_FLOAT8_FLOAT8PASSES_H
