//===- DtcOps.cpp - The generated definitions of the ops ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/DtcOps.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

/// Dimensions without an order: they are kept in increasing order.
static ParseResult parseDimSet(OpAsmParser &parser, DenseI64ArrayAttr &dims) {
  auto parsed = dyn_cast_or_null<DenseI64ArrayAttr>(DenseI64ArrayAttr::parse(parser, Type()));
  if (!parsed)
    return failure();
  SmallVector<int64_t> sorted(parsed.asArrayRef());
  llvm::sort(sorted);
  dims = parser.getBuilder().getDenseI64ArrayAttr(sorted);
  return success();
}

static void printDimSet(OpAsmPrinter &printer, Operation *, DenseI64ArrayAttr dims) {
  dims.print(printer);
}

#define GET_OP_CLASSES
#include "dialects/dtc/DtcOps.cpp.inc"
