//===- EmptyRows.h - Calls whose operands have rows of zeros --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Experts have room for more rows than there are tokens. `embedding` and `grouped_product` make
// zeros of the rows whose index is negative, and kernels that keep zeros (KernelInfo) make zeros of
// these. A backend may leave such rows out (Backend::prepareOfRows). The call then has the indices
// as one more operand, which the plan does not list: their memory still holds them if an
// instruction that comes later in the task reads them.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_EMPTYROWS_H
#define DTC_RUNTIME_EXECUTOR_EMPTYROWS_H

#include "calls/fusion/ValueReaders.h"
#include "plan/plan.pb.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace dtc::runtime {

/// The rows of a value: as many as the indices, in groups of the last dimension of these. In a
/// group those with a negative index come last.
struct RowIndices {
  uint32_t buffer = 0;
  int64_t rows = 0, rowsOfGroup = 0;
};

class EmptyRows {
public:
  explicit EmptyRows(const plan::Program &program);

  /// The indices for a call that keeps zeros, if all its operands have rows of zeros by the same
  /// ones.
  std::optional<RowIndices> ofCall(const plan::Task &task, int instruction) const;

private:
  /// The indices that tell the rows of zeros in the result of a call.
  std::optional<uint32_t> indicesOfResult(const plan::KernelCall &call) const;
  /// The same of one operand.
  std::optional<uint32_t> indicesOfOperand(const plan::KernelCall &call, int operand) const;
  const plan::Buffer &bufferOf(uint32_t index) const {
    return program.buffers(static_cast<int>(index));
  }

  const plan::Program &program;
  ValueReaders readers;
  std::vector<std::optional<uint32_t>> indices; // by value
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_EMPTYROWS_H
