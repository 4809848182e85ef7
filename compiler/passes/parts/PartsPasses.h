//===- PartsPasses.h - Passes about parts of one tensor -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PARTS_PARTSPASSES_H
#define DTC_COMPILER_PASSES_PARTS_PARTSPASSES_H

#include "dialects/dtc/DtcOps.h"
#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace dtc {

#define GEN_PASS_DECL
#include "compiler/passes/PartsPasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/PartsPasses.h.inc"

} // namespace dtc

#endif // DTC_COMPILER_PASSES_PARTS_PARTSPASSES_H
