//===- ExecDialect.cpp - The exec dialect ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/exec/Exec.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dtc::exec;

#include "dialects/exec/ExecDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/exec/ExecAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/exec/ExecTypes.cpp.inc"

void ExecDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/exec/ExecAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/exec/ExecTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/exec/ExecOps.cpp.inc"
      >();
}

BufferOp dtc::exec::getRoot(Value buffer) {
  Operation *op = buffer.getDefiningOp();
  while (!isa<BufferOp>(op))
    op = op->getOperand(0).getDefiningOp(); // of a view or a reuse
  return cast<BufferOp>(op);
}

bool dtc::exec::isOnHost(Value buffer) {
  return cast<MemRefType>(buffer.getType()).getMemorySpace() != nullptr;
}

dtc::Lane dtc::exec::laneOf(Operation *instruction) {
  auto kernel = dyn_cast<KernelOp>(instruction);
  if (!kernel)
    return tokenOf(instruction) ? Lane::Communication : Lane::Compute;
  bool writesHost = isOnHost(kernel.getOutputs().front());
  bool readsHost = kernel.getInputs().empty() ? writesHost : isOnHost(kernel.getInputs().front());
  return laneOfKernel(readsHost, writesHost);
}

Value dtc::exec::tokenOf(Operation *instruction) {
  if (auto kernel = dyn_cast<KernelOp>(instruction))
    return kernel.getToken();
  auto collective = dyn_cast<CollectiveOp>(instruction);
  return collective ? collective.getToken() : Value();
}

int64_t dtc::exec::getNumBytes(MemRefType type) {
  int64_t bits = type.getElementTypeBitWidth();
  return type.getNumElements() * (bits <= 8 ? 1 : bits / 8);
}

AccessFinder::AccessFinder(ProgramOp program) {
  for (auto transfer : program.getOps<TransferOp>())
    transfers[transfer.getSymNameAttr()] = transfer;
}

Accesses AccessFinder::of(Operation *instruction) const {
  Accesses accesses;
  if (auto kernel = dyn_cast<KernelOp>(instruction)) {
    accesses.reads = kernel.getInputs();
    accesses.writes = kernel.getOutputs();
  } else if (auto collective = dyn_cast<CollectiveOp>(instruction)) {
    accesses.reads = collective.getInputs();
    accesses.writes = collective.getOutputs();
  } else if (auto name = instruction->getAttrOfType<FlatSymbolRefAttr>("transfer")) {
    TransferOp transfer = transfers.at(name.getAttr());
    auto &list = transfer.getKind() == TransferKind::Send ? accesses.reads : accesses.writes;
    list = transfer.getBuffers();
  }
  return accesses;
}
