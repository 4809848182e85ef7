//===- BuildTrainStep.cpp - Turn a loss into a train step -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/Passes.h"
#include "compiler/passes/train/Gradients.h"

#include "mlir/IR/Builders.h"

#define DEBUG_TYPE "dtc-build-train-step"

namespace dtc {
#define GEN_PASS_DEF_BUILDTRAINSTEPPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

class TrainStepBuilder {
public:
  TrainStepBuilder(func::FuncOp function, const BuildTrainStepPassOptions &options)
      : function(function), options(options), builder(function.getContext()) {}
  LogicalResult run();

private:
  LogicalResult check();
  Value scalar(double value) {
    return ConstantOp::create(builder, function.getLoc(), RankedTensorType::get({}, elementType), value);
  }
  Value gradientNorm(ArrayRef<Value> gradients);
  BlockArgument addSlot(BlockArgument param, StringRef slot);
  BlockArgument addScalar(StringRef role);
  void addResult(Value value, StringRef key, Attribute attr) {
    results.push_back(value);
    resultAttrs.push_back(builder.getDictionaryAttr(builder.getNamedAttr(key, attr)));
  }
  void update(BlockArgument state, Value value) {
    addResult(value, "dtc.updates", builder.getI64IntegerAttr(state.getArgNumber()));
  }

  func::FuncOp function;
  const BuildTrainStepPassOptions &options;
  OpBuilder builder;
  Type elementType;
  Value loss;
  SmallVector<BlockArgument> params;
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> resultAttrs;
};

} // namespace

LogicalResult TrainStepBuilder::check() {
  if (options.optimizer != "adamw" && options.optimizer != "sgd" && options.optimizer != "none")
    return function.emitError() << "unknown optimizer '" << options.optimizer
                                << "'; known are adamw, sgd and none";
  if (!llvm::hasSingleElement(function.getBody()))
    return function.emitOpError() << "has branches; a loss is straight-line code";
  auto ret = cast<func::ReturnOp>(function.front().getTerminator());
  auto type = ret.getNumOperands() == 1 ? dyn_cast<RankedTensorType>(ret.getOperand(0).getType())
                                        : RankedTensorType();
  if (!type || type.getRank() != 0 || !isa<FloatType>(type.getElementType()))
    return function.emitOpError() << "has results (" << function.getResultTypes()
                                  << "), expected one scalar, the loss";
  elementType = type.getElementType();
  loss = ret.getOperand(0);
  for (BlockArgument arg : function.getArguments()) {
    if (!function.getArgAttr(arg.getArgNumber(), "dtc.param"))
      continue;
    if (cast<RankedTensorType>(arg.getType()).getElementType() != elementType)
      return function.emitOpError() << "has a parameter of type " << arg.getType()
                                    << " and a loss of type " << type
                                    << "; expected one element type";
    params.push_back(arg);
  }
  if (params.empty())
    return function.emitOpError() << "has no parameter; mark arguments with dtc.param";
  return success();
}

Value TrainStepBuilder::gradientNorm(ArrayRef<Value> gradients) {
  Location loc = NameLoc::get(builder.getStringAttr("grad_norm"));
  Value total;
  for (Value gradient : gradients) {
    std::string letters;
    for (int64_t dim = 0; dim < cast<RankedTensorType>(gradient.getType()).getRank(); ++dim)
      letters += char('a' + dim);
    Value squares = EinsumOp::create(builder, loc, gradient, gradient,
                                     StringRef(letters + "," + letters + "->"));
    total = total ? AddOp::create(builder, loc, total, squares).getResult() : squares;
  }
  return SqrtOp::create(builder, loc, total);
}

BlockArgument TrainStepBuilder::addSlot(BlockArgument param, StringRef slot) {
  unsigned from = param.getArgNumber(), index = function.getNumArguments();
  NamedAttrList attrs;
  attrs.set("dtc.slot", builder.getStringAttr(slot));
  attrs.set("dtc.slot_of", function.getArgAttr(from, "dtc.param"));
  for (StringRef inherited :
       {StringRef("dtc.axes"), StringRef("dtc.file_shape"), StringRef(dist::kShardingAttrName)})
    if (Attribute attr = function.getArgAttr(from, inherited))
      attrs.set(inherited, attr);
  (void)function.insertArgument(index, param.getType(), attrs.getDictionary(builder.getContext()),
                                param.getLoc());
  return function.getArgument(index);
}

BlockArgument TrainStepBuilder::addScalar(StringRef role) {
  unsigned index = function.getNumArguments();
  (void)function.insertArgument(
      index, RankedTensorType::get({}, elementType),
      builder.getDictionaryAttr(builder.getNamedAttr("dtc.scalar", builder.getStringAttr(role))),
      NameLoc::get(builder.getStringAttr(role)));
  return function.getArgument(index);
}

LogicalResult TrainStepBuilder::run() {
  if (failed(check()))
    return failure();
  Block &block = function.front();
  Operation *ret = block.getTerminator();
  builder.setInsertionPoint(ret);
  SmallVector<Value> wrt(params.begin(), params.end());
  FailureOr<SmallVector<Value>> gradients = buildGradients(builder, block, loss, wrt);
  if (failed(gradients))
    return failure();

  addResult(loss, "dtc.output", builder.getStringAttr("loss"));
  auto nameOf = [&](BlockArgument param) {
    return function.getArgAttrOfType<StringAttr>(param.getArgNumber(), "dtc.param");
  };
  if (options.optimizer == "none") {
    for (auto [param, gradient] : llvm::zip_equal(params, *gradients))
      addResult(gradient, "dtc.output", builder.getStringAttr("grad:" + nameOf(param).getValue()));
    function.setSymName("gradients");
  } else {
    Value norm = gradientNorm(*gradients);
    addResult(norm, "dtc.output", builder.getStringAttr("grad_norm"));
    Value scale = scalar(1.0);
    if (options.clip > 0) {
      Location loc = norm.getLoc();
      Value bounded = AddOp::create(builder, loc, norm, scalar(1e-6));
      scale = MinimumOp::create(builder, loc, scale, DivOp::create(builder, loc, scalar(options.clip), bounded));
    }
    BlockArgument rate = addScalar("learning_rate");
    BlockArgument step = options.optimizer == "adamw" ? addScalar("step") : BlockArgument();
    for (auto [param, gradient] : llvm::zip_equal(params, *gradients)) {
      auto fileShape = function.getArgAttrOfType<DenseI64ArrayAttr>(param.getArgNumber(), "dtc.file_shape");
      int64_t rank = fileShape ? fileShape.size() : cast<RankedTensorType>(param.getType()).getRank();
      double decay = rank >= 2 ? options.weightDecay : 0.0;
      Location loc = NameLoc::get(nameOf(param));
      if (options.optimizer == "adamw") {
        BlockArgument m = addSlot(param, "exp_avg"), v = addSlot(param, "exp_avg_sq");
        auto op = AdamwOp::create(builder, loc, param, gradient, m, v, rate, step, scale, options.beta1,
                                  options.beta2, options.eps, decay);
        update(param, op.getNewP());
        update(m, op.getNewM());
        update(v, op.getNewV());
      } else {
        BlockArgument m = addSlot(param, "momentum_buffer");
        auto op = SgdOp::create(builder, loc, param, gradient, m, rate, scale, options.momentum, decay);
        update(param, op.getNewP());
        update(m, op.getNewM());
      }
    }
    function.setSymName("train_step");
  }

  func::ReturnOp::create(builder, ret->getLoc(), results);
  ret->erase();
  function.setType(FunctionType::get(builder.getContext(), block.getArgumentTypes(),
                                     TypeRange(ValueRange(results))));
  for (auto [index, attrs] : llvm::enumerate(resultAttrs))
    function.setResultAttrs(index, attrs);
  return success();
}

namespace {
struct BuildTrainStepPass : dtc::impl::BuildTrainStepPassBase<BuildTrainStepPass> {
  using Base::Base;

  void runOnOperation() override {
    BuildTrainStepPassOptions options{optimizer, clip, beta1, beta2, eps, weightDecay, momentum};
    auto functions = llvm::to_vector(getOperation().getOps<func::FuncOp>());
    if (functions.size() != 1) {
      getOperation().emitError() << "the module has " << functions.size()
                                 << " functions, expected one that computes the loss";
      return signalPassFailure();
    }
    if (functions.front().isExternal() ||
        failed(TrainStepBuilder(functions.front(), options).run()))
      return signalPassFailure();
  }
};
} // namespace
