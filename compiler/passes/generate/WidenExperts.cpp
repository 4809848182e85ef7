//===- WidenExperts.cpp - Rows of experts for all tokens ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/generate/WidenExperts.h"

#include "dialects/dtc/DtcOps.h"

using namespace mlir;
using namespace dtc;

static RankedTensorType resized(Type type, unsigned dim, int64_t size) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] = size;
  return tensor.clone(shape);
}

static int64_t sizeOf(Value value, unsigned dim) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim);
}

Value dtc::resizeUniform(OpBuilder &builder, Value value, unsigned dim, int64_t size) {
  Operation *definer = value.getDefiningOp();
  RankedTensorType type = resized(value.getType(), dim, size);
  if (auto constant = dyn_cast_or_null<ConstantOp>(definer);
      constant && constant.getValue().isSplat())
    return constant.buildLocal(builder, {}, TypeRange(type))->getResult(0);
  auto broadcast = dyn_cast_or_null<BroadcastOp>(definer);
  if (!broadcast || llvm::is_contained(broadcast.getDims(), int64_t(dim)))
    return {};
  auto result = BroadcastOp::create(builder, broadcast.getLoc(), type, broadcast.getOperand(),
                                    broadcast.getDims());
  result->setDiscardableAttrs(broadcast->getDiscardableAttrDictionary());
  return result;
}

namespace {

/// An operand that does not depend on the tokens and has the rows of an expert in `dim`.
struct RowsOperand {
  OpOperand *operand;
  unsigned dim;
};

class ExpertWidener {
public:
  ExpertWidener(const SequenceDims &positions, int64_t size) : positions(positions), size(size) {}

  /// Finds the results that have fewer rows, while all types are still those of the model.
  void find(ShardingRuleOpInterface op) {
    size_t before = results.size();
    for (Value result : op->getResults())
      if (std::optional<unsigned> dim = positions.of(result); dim && sizeOf(result, *dim) != size)
        results.push_back(result);
    if (results.size() == before || positions.exchangesPlaces(op))
      return;
    ShardingRule rule = op.getShardingRule();
    unsigned factor = positions.factorOf(rule, op);
    for (auto [operand, factors] : llvm::zip_equal(op->getOpOperands(), rule.operands))
      for (auto [dim, list] : llvm::enumerate(factors))
        if (!positions.of(operand.get()) && llvm::is_contained(list, factor))
          operands.push_back({&operand, static_cast<unsigned>(dim)});
  }

  LogicalResult widen() {
    for (auto [operand, dim] : operands) {
      Operation *op = operand->getOwner();
      OpBuilder builder(op);
      Value wide = resizeUniform(builder, operand->get(), dim, size);
      if (!wide)
        return op->emitError() << "reads a value of type " << operand->get().getType()
                               << " with a row for each token of an expert in dimension " << dim
                               << ", and generation drops no token; import the model without "
                                  "--expert-capacity and --expert-bound";
      operand->set(wide);
    }
    for (Value result : results) {
      unsigned dim = *positions.of(result);
      if (auto product = result.getDefiningOp<GroupedProductOp>()) {
        // As many rows have a token as before.
        double share = static_cast<double>(sizeOf(result, dim)) / static_cast<double>(size);
        product.setOccupancy(APFloat(product.getOccupancy().convertToDouble() * share));
      }
      result.setType(resized(result.getType(), dim, size));
    }
    return success();
  }

private:
  const SequenceDims &positions;
  int64_t size; ///< of a sequence
  SmallVector<Value> results;
  SmallVector<RowsOperand> operands;
};

} // namespace

LogicalResult dtc::widenExperts(func::FuncOp function, const SequenceDims &positions,
                                Value tokens) {
  ExpertWidener widener(positions, sizeOf(tokens, 1));
  for (auto op : function.front().getOps<ShardingRuleOpInterface>())
    widener.find(op);
  return widener.widen();
}
