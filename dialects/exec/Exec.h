//===- Exec.h - The exec dialect ------------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_EXEC_EXEC_H
#define DTC_DIALECTS_EXEC_EXEC_H

#include "dialects/dist/Dist.h"
#include "support/Kinds.h"

#include "mlir/IR/RegionKindInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

#include "dialects/exec/ExecDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/exec/ExecAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/exec/ExecTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/exec/ExecOps.h.inc"

namespace dtc::exec {

/// Every buffer starts at a multiple of this many bytes.
inline constexpr int64_t kBufferAlignment = 64;

/// The bytes of a dense buffer of type `type`; one for each element of i1.
int64_t getNumBytes(mlir::MemRefType type);

/// The memory space of what lies in the memory of the host.
inline constexpr llvm::StringLiteral kHostSpace = "host";
bool isOnHost(mlir::Value buffer);

/// The lane of a kernel or a collective, by the memory of its buffers; that of an asynchronous
/// collective is Communication.
Lane laneOf(mlir::Operation *instruction);
/// The token of an asynchronous instruction; null for others.
mlir::Value tokenOf(mlir::Operation *instruction);

/// The exec.buffer whose bytes `buffer` uses: itself, or the root of a view or a reuse.
BufferOp getRoot(mlir::Value buffer);

/// The microbatches of a step, by the program's mesh.
int64_t countMicrobatches(ProgramOp program);

/// The buffers that an instruction of a task reads and writes. Those of a transfer are in use from
/// its start until it is finished; starts and finishes count as reads of a send's buffers and
/// writes of a receive's.
struct Accesses {
  llvm::SmallVector<mlir::Value> reads, writes;
};

/// Answers which buffers the instructions of one program access.
class AccessFinder {
public:
  explicit AccessFinder(ProgramOp program);
  Accesses of(mlir::Operation *instruction) const;

private:
  llvm::DenseMap<mlir::StringAttr, TransferOp> transfers;
};

} // namespace dtc::exec

#endif // DTC_DIALECTS_EXEC_EXEC_H
