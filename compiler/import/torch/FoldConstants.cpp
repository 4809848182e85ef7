//===- FoldConstants.cpp - Values that do not depend on inputs ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/Recognize.h"

#include "mlir/IR/Builders.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

/// Larger ones would make the model's text larger than most models are.
static constexpr int64_t kMaxWrittenElements = int64_t{1} << 22;

/// Constants of up to this many elements are written whole. In larger ones, elements that repeat
/// along a dimension are written once and expanded.
static constexpr int64_t kMaxRepeatedElements = int64_t{1} << 12;

/// Removes ops without uses. All of them are pure.
static void eraseUnused(Block &block) {
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty())
      op->erase();
}

/// One of the elements along each dimension in which they are repeated.
static ConstantTensor withoutRepeats(const ConstantTensor &constant) {
  ConstantTensor narrow = constant;
  for (int64_t dim = 0; dim < int64_t(constant.shape.size()); ++dim)
    if (ConstantTensor part = narrow.sliced(dim, 0, 1); part.distinct() == narrow.distinct())
      narrow = part;
  return narrow;
}

/// The constant as an op before all others; integers are i32 from here on.
static Value materialize(OpBuilder &builder, Value value, const ConstantTensor &constant,
                         Conversion &conversion) {
  Location loc = value.getLoc();
  if (constant.distinct() > kMaxWrittenElements) {
    conversion.error(loc,
                     "a tensor of " + Twine(constant.distinct()) +
                         " elements that are known would become a part of the model, which are "
                         "at most " +
                         Twine(kMaxWrittenElements) +
                         "; give it to the loss as an input, or make it a parameter");
    return {};
  }
  Type element = constant.element;
  if (isa<IntegerType>(element) && !element.isInteger(1))
    element = builder.getI32Type();
  // Repeated elements are written once, and expanded by an op.
  ConstantTensor narrow = withoutRepeats(constant);
  if (element.isInteger(32))
    for (double each : narrow.flat())
      if (!(each >= -0x1p31 && each < 0x1p31)) {
        conversion.error(loc, "a tensor that is known has an integer that 32 bits do not have");
        return {};
      }
  if (constant.distinct() == 1 || constant.size() <= kMaxRepeatedElements)
    narrow = constant;
  narrow.element = element;
  OperationState state(loc, "torch.constant");
  state.addAttribute("value", narrow.attribute());
  state.addTypes(RankedTensorType::get(narrow.shape, element));
  Value written = builder.create(state)->getResult(0);
  if (narrow.shape == constant.shape)
    return written;
  OperationState expand(loc, "aten.expand");
  expand.addOperands(written);
  expand.addAttribute("operands", builder.getStrArrayAttr({"self"}));
  expand.addTypes(RankedTensorType::get(constant.shape, element));
  return builder.create(expand)->getResult(0);
}

void dtc::torch::foldConstants(func::FuncOp function, Conversion &conversion) {
  Block &block = function.getBody().front();
  ConstantMap constants;
  for (Operation &op : block.without_terminator())
    if (std::optional<ConstantTensor> value = evaluate(&op, constants))
      constants.try_emplace(op.getResult(0), std::move(*value));
  // Only what follows sets these; a captured file may have them.
  for (Operation &op : block.without_terminator())
    for (StringRef name : {"recognized", "window", "softcap"})
      op.removeAttr(name);
  recognizeActivations(block, constants, conversion);
  recognizeAttention(block, constants, conversion);
  recognizeMasks(block, constants, conversion);
  recognizeRotary(block, constants, conversion);
  eraseUnused(block);

  OpBuilder builder = OpBuilder::atBlockBegin(&block);
  llvm::DenseMap<Value, Value> written;
  SmallVector<OpOperand *> uses;
  for (Operation &op : block)
    for (OpOperand &operand : op.getOpOperands())
      if (constants.contains(operand.get()) &&
          (op.getNumResults() == 0 || !constants.contains(op.getResult(0))))
        uses.push_back(&operand);
  for (OpOperand *use : uses) {
    Value value = use->get();
    auto [place, isNew] = written.try_emplace(value);
    if (isNew)
      place->second = materialize(builder, value, constants.at(value), conversion);
    if (!place->second)
      return;
    use->set(place->second);
  }
  eraseUnused(block);
}
