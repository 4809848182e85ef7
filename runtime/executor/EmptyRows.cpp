//===- EmptyRows.cpp - Calls whose operands have rows of zeros ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/EmptyRows.h"

#include "plan/KernelTable.h"
#include "plan/PlanTypes.h"

namespace dtc::runtime {

namespace {

/// Whether a call that reads `value` says by it which rows are empty, and that these come last.
bool groupsRowsBy(const ValueReaders &readers, const plan::KernelCall &call, uint32_t value) {
  return call.kernel() == "grouped_product" && readers.valueOf(call.inputs(2)) == value;
}

/// Whether operand `operand` has the elements of the result, or one for each row of it.
bool hasRows(const plan::KernelCall &call, int operand, const TensorType &type,
             const TensorType &result, int64_t rows) {
  auto dims = call.attributes().find(operand == 0 ? "lhs_dims" : "rhs_dims");
  if (dims == call.attributes().end())
    return type.shape == result.shape;
  const auto &each = dims->second.ints().values();
  for (int i = 0; i < each.size(); ++i)
    if (each[i] != i)
      return false;
  return type.numElements() == rows;
}

} // namespace

EmptyRows::EmptyRows(const plan::Program &program)
    : program(program), readers(program), indices(static_cast<size_t>(program.buffers_size())) {
  // A value may be read by a task that stands before the task that makes it.
  for (bool isNew = true; isNew;) {
    isNew = false;
    for (const plan::Task &task : program.tasks())
      for (const plan::Instruction &instruction : task.instructions()) {
        const plan::KernelCall &call = instruction.kernel();
        if (!instruction.has_kernel() || call.outputs_size() != 1)
          continue;
        std::optional<uint32_t> &known = indices[readers.valueOf(call.outputs(0))];
        if (!known && (known = indicesOfResult(call)))
          isNew = true;
      }
  }
}

std::optional<uint32_t> EmptyRows::indicesOfResult(const plan::KernelCall &call) const {
  if (isOnHost(bufferOf(call.outputs(0))))
    return std::nullopt;
  if (call.kernel() == "embedding")
    return readers.valueOf(call.inputs(1));
  if (call.kernel() == "grouped_product") {
    // Sums over the rows have none.
    bool hasRows =
        bufferOf(call.outputs(0)).shape_size() == bufferOf(call.inputs(2)).shape_size() + 1;
    return hasRows ? std::optional(readers.valueOf(call.inputs(2))) : std::nullopt;
  }
  if (!findKernel(call.kernel()).keepsZeros || call.inputs().empty())
    return std::nullopt;
  std::optional<uint32_t> first = indicesOfOperand(call, 0);
  for (int operand = 1; operand < call.inputs_size(); ++operand)
    if (indicesOfOperand(call, operand) != first)
      return std::nullopt;
  return first;
}

std::optional<uint32_t> EmptyRows::indicesOfOperand(const plan::KernelCall &call,
                                                    int operand) const {
  uint32_t buffer = call.inputs(operand);
  std::optional<uint32_t> known = indices[readers.valueOf(buffer)];
  if (!known || !hasRows(call, operand, typeOf(bufferOf(buffer)), typeOf(bufferOf(call.outputs(0))),
                         typeOf(bufferOf(*known)).numElements()))
    return std::nullopt;
  return known;
}

std::optional<RowIndices> EmptyRows::ofCall(const plan::Task &task, int instruction) const {
  const plan::KernelCall &call = task.instructions(instruction).kernel();
  if (call.outputs_size() != 1 || !findKernel(call.kernel()).keepsZeros)
    return std::nullopt;
  std::optional<uint32_t> value = indicesOfResult(call);
  if (!value)
    return std::nullopt;
  TensorType type = typeOf(bufferOf(*value)), result = typeOf(bufferOf(call.outputs(0)));
  int64_t rows = type.numElements();
  if (rows == 0 || result.numElements() == 0 || result.numElements() % rows != 0)
    return std::nullopt;
  for (int later = instruction + 1; later < task.instructions_size(); ++later)
    if (task.instructions(later).has_kernel() &&
        groupsRowsBy(readers, task.instructions(later).kernel(), *value))
      return RowIndices{*value, rows, type.shape.back()};
  return std::nullopt;
}

} // namespace dtc::runtime
