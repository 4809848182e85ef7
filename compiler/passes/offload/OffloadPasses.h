//===- OffloadPasses.h - Passes about the memory of the host ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_OFFLOAD_OFFLOADPASSES_H
#define DTC_COMPILER_PASSES_OFFLOAD_OFFLOADPASSES_H

#include "dialects/dtc/DtcOps.h"
#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace dtc {

#define GEN_PASS_DECL
#include "compiler/passes/OffloadPasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/OffloadPasses.h.inc"

} // namespace dtc

#endif // DTC_COMPILER_PASSES_OFFLOAD_OFFLOADPASSES_H
