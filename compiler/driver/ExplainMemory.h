//===- ExplainMemory.h - Error that no plan fits, with remedies -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_EXPLAINMEMORY_H
#define DTC_COMPILER_DRIVER_EXPLAINMEMORY_H

#include "compiler/driver/CandidateSearch.h"

namespace dtc {

/// Emits the error that no candidate fits the memory limit of the options: what `closest`, the one
/// that needs least, needs it for, and which single changes of the options would help, which are
/// compiled to find out.
void explainMemory(mlir::ModuleOp model, llvm::StringRef name, const ResolvedOptions &options,
                   const Candidate &closest);

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_EXPLAINMEMORY_H
