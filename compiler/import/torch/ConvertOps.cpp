//===- ConvertOps.cpp - Applying the rules of ATen ops --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"

#include "mlir/Transforms/WalkPatternRewriteDriver.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

namespace {

/// Replaces the ops of one name by what their rule gives.
class RulePattern : public RewritePattern {
public:
  RulePattern(MLIRContext *context, const Rule &rule, Conversion &conversion)
      : RewritePattern(rule.name, /*benefit=*/1, context), rule(rule), conversion(conversion) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    // An operand that is an ATen op's has no rule, or its rule reported an error.
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp();
          producer && !isa_and_nonnull<DtcDialect>(producer->getDialect()))
        return failure();
    AtenOp aten(op, rewriter, conversion);
    Results results = rule.convert(aten);
    if (results.size() != op->getNumResults() || llvm::is_contained(results, Value()))
      return failure();
    for (auto [result, wanted] : llvm::zip(results, op->getResultTypes()))
      if (result.getType() != wanted) {
        std::string given, expected;
        llvm::raw_string_ostream(given) << result.getType();
        llvm::raw_string_ostream(expected) << wanted;
        aten.fail("gives a " + Twine(given) + " by its operands, but the capture says " + expected);
        return failure();
      }
    rewriter.replaceOp(op, results);
    return success();
  }

private:
  const Rule &rule;
  Conversion &conversion;
};

} // namespace

/// torch.constant is what foldConstants() leaves of values that do not depend on arguments.
static Results convertConstant(AtenOp &op) {
  auto elements = op.op->getAttrOfType<DenseElementsAttr>("value");
  if (!elements || elements.getType() != op.resultType() || !isAnyTensor(op.resultType()))
    return {op.fail("has no elements of the type of its result")};
  return {ConstantOp::create(op.rewriter, op.loc, elements)};
}

static ArrayRef<Rule> constantRules() {
  static const Rule rules[] = {{"torch.constant", convertConstant}};
  return rules;
}

void dtc::torch::convertOps(func::FuncOp function, Conversion &conversion) {
  RewritePatternSet patterns(function.getContext());
  llvm::StringSet<> known;
  for (ArrayRef<Rule> family :
       {constantRules(), elementwiseRules(), comparisonRules(), shapeRules(), sliceRules(),
        productRules(), reductionRules(), normRules(), lookupRules(), attentionRules(),
        windowRules(), expertRules()})
    for (const Rule &rule : family) {
      patterns.add<RulePattern>(function.getContext(), rule, conversion);
      known.insert(rule.name);
    }
  size_t errors = conversion.log.errors.size();
  for (Operation &op : function.getBody().front().without_terminator())
    if (StringRef name = op.getName().getStringRef(); !known.contains(name))
      conversion.error(op.getLoc(), "'" + name +
                                        "' has no rule; write this part of the model with other "
                                        "operators (docs/python.md lists them)");
  if (conversion.log.errors.size() != errors)
    return;
  walkAndApplyPatterns(function, std::move(patterns));
  if (conversion.log.errors.size() != errors)
    return;
  for (Operation &op : function.getBody().front().without_terminator())
    if (!isa_and_nonnull<DtcDialect>(op.getDialect()))
      return conversion.error(op.getLoc(), "'" + op.getName().getStringRef() +
                                               "' was not converted; this is a bug of dtc-import");
}
