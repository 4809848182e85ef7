//===- DtcOps.h - The ops of the dtc dialect ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Ops are built without result types wherever these follow from the operands and attributes:
// `EinsumOp::create(builder, loc, x, w, "bsd,df->bsf")`. The others (convert, broadcast, reshape,
// embedding_grad, pick_grad) take the result type first.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCOPS_H
#define DTC_DIALECTS_DTC_DTCOPS_H

#include "dialects/dtc/DtcDialect.h"
#include "dialects/dtc/DtcInterfaces.h"
#include "dialects/dtc/ShardingRule.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "dialects/dtc/DtcOps.h.inc"

#endif // DTC_DIALECTS_DTC_DTCOPS_H
