//===- ValueLives.h - When the values of a step are needed ----*- C++ -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_VALUELIVES_H
#define DTC_REPORT_VALUELIVES_H

#include "plan/plan.pb.h"

#include <cstdint>
#include <vector>

namespace dtc {

/// A value of a device, and when it is needed. Program points number the executed instructions of a
/// step.
struct ValueLife {
  uint32_t buffer = 0;         ///< that it was written to
  uint32_t storage = 0;        ///< whose bytes it takes; see storageOf()
  int64_t bytes = 0;           ///< of one copy, rounded up as the arena does
  int64_t begin = 0, last = 0; ///< the first and the last program point where it is there
  const plan::Instruction *maker = nullptr; ///< null: it is there before the step
};

/// The lives of all values of a step. A value lives from the instruction that writes it to the last
/// that reads it; that of a buffer with slots in one copy. States live throughout, an input from
/// the start of the step, an output to its end; what is there before the loop over microbatches and
/// read in it, to the loop's end, because that may run again. Transfers and asynchronous
/// collectives use their tensors until they are waited for. The plan is one that findPlanError()
/// accepts, and outlives the result. Takes memory and time in proportion to the executed
/// instructions.
std::vector<ValueLife> findValueLives(const plan::Program &program);

} // namespace dtc

#endif // DTC_REPORT_VALUELIVES_H
