//===- TestGradients.cpp - Exercises the ops' gradients -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/passes/TestPasses.h"

#include "dialects/dtc/DtcOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace {

/// The gradients of values, summed over their uses.
class Gradients {
public:
  explicit Gradients(OpBuilder &builder) : builder(builder) {}

  Value get(Value value) const { return gradients.lookup(value); }
  void add(Value value, Value gradient) {
    Value &sum = gradients[value];
    sum = sum ? dtc::AddOp::create(builder, value.getLoc(), sum, gradient).getResult() : gradient;
  }

private:
  OpBuilder &builder;
  DenseMap<Value, Value> gradients;
};

LogicalResult addGradients(Operation *op, OpBuilder &builder, Gradients &all) {
  SmallVector<Value> cotangents;
  for (Value result : op->getResults())
    cotangents.push_back(all.get(result));
  if (llvm::none_of(cotangents, [](Value value) { return !!value; }))
    return success();
  auto differentiable = dyn_cast<dtc::DifferentiableOpInterface>(op);
  if (!differentiable)
    return op->emitOpError() << "has no gradient";
  SmallVector<Value> gradients(op->getNumOperands());
  SmallVector<bool> needed;
  for (Value operand : op->getOperands())
    needed.push_back(dtc::isFloatTensor(operand.getType()));
  if (failed(differentiable.buildVjp(builder, cotangents, needed, gradients)))
    return failure();
  for (auto [operand, gradient] : llvm::zip_equal(op->getOperands(), gradients)) {
    if (!gradient)
      continue;
    if (gradient.getType() != operand.getType())
      return op->emitOpError() << "has a gradient of type " << gradient.getType()
                               << " for an operand of type " << operand.getType();
    all.add(operand, gradient);
  }
  return success();
}

LogicalResult addVjpFunction(func::FuncOp function) {
  auto vjp = cast<func::FuncOp>(function->clone());
  vjp.setName((function.getName() + "_vjp").str());
  function->getBlock()->getOperations().insertAfter(function->getIterator(), vjp);

  Block &body = vjp.getBody().front();
  Operation *terminator = body.getTerminator();
  OpBuilder builder(terminator);
  Gradients gradients(builder);
  SmallVector<BlockArgument> arguments(body.getArguments());
  for (Value result : terminator->getOperands())
    if (dtc::isFloatTensor(result.getType()))
      gradients.add(result, body.addArgument(result.getType(), result.getLoc()));

  SmallVector<Operation *> forward;
  for (Operation &op : body.without_terminator())
    forward.push_back(&op);
  for (Operation *op : llvm::reverse(forward))
    if (failed(addGradients(op, builder, gradients)))
      return failure();

  SmallVector<Value> results;
  for (BlockArgument argument : arguments) {
    if (!dtc::isFloatTensor(argument.getType()))
      continue;
    Value gradient = gradients.get(argument);
    if (!gradient)
      gradient = dtc::ConstantOp::create(builder, argument.getLoc(),
                                         cast<RankedTensorType>(argument.getType()), 0.0);
    results.push_back(gradient);
  }
  terminator->setOperands(results);
  vjp.setFunctionType(
      builder.getFunctionType(body.getArgumentTypes(), TypeRange(ValueRange(results))));
  vjp.removeArgAttrsAttr();
  vjp.removeResAttrsAttr();
  return success();
}

struct TestBuildVjpsPass : PassWrapper<TestBuildVjpsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestBuildVjpsPass)

  StringRef getArgument() const final { return "test-build-vjps"; }
  StringRef getDescription() const final { return "Adds functions that compute gradients"; }

  void runOnOperation() override {
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions)
      if (!function.isExternal() && failed(addVjpFunction(function)))
        return signalPassFailure();
  }
};

} // namespace

void dtc::test::registerTestGradients() { PassRegistration<TestBuildVjpsPass>(); }
