//===- TrainedLoss.cpp - A loss that is to be trained ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/train/TrainedLoss.h"

#include "compiler/passes/CheckProgram.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>
#include <utility>

using namespace mlir;
using namespace dtc;

/// Emits an error for a number that the optimizer cannot work with. NaN fits no range.
static LogicalResult checkNumbers(func::FuncOp function, const BuildTrainStepPassOptions &options) {
  auto check = [&](StringRef name, double value, bool isDecay) -> LogicalResult {
    if (isDecay ? value >= 0 && value < 1 : value >= 0 && std::isfinite(value))
      return success();
    return function.emitError() << "the option " << name << " is " << value << ", expected "
                                << (isDecay ? "at least 0 and less than 1"
                                            : "a finite number that is not negative");
  };
  return success(succeeded(check("clip", options.clip, false)) &&
                 succeeded(check("beta1", options.beta1, true)) &&
                 succeeded(check("beta2", options.beta2, true)) &&
                 succeeded(check("eps", options.eps, false)) &&
                 succeeded(check("weight-decay", options.weightDecay, false)) &&
                 succeeded(check("momentum", options.momentum, true)));
}

/// The results of the function but the first and those that update its arguments.
static FailureOr<SmallVector<ModelMetric>> readMetrics(func::FuncOp function, Type elementType) {
  SmallVector<ModelMetric> metrics;
  llvm::StringSet<> seen;
  llvm::StringMap<bool> hasParts; // by the name before ':'
  auto results = function.front().getTerminator()->getOperands();
  for (auto [index, value] : llvm::enumerate(results.drop_front())) {
    unsigned number = index + 1;
    auto error = [&]() -> InFlightDiagnostic {
      return function.emitOpError()
             << "has the result #" << number << " of type " << value.getType();
    };
    if (function.getResultAttr(number, "dtc.updates"))
      continue;
    auto name = function.getResultAttrOfType<StringAttr>(number, DtcDialect::kMetricAttrName);
    if (!name)
      return error() << ", expected the loss alone, or metrics and new values of arguments after "
                        "it: mark them with '"
                     << DtcDialect::kMetricAttrName << "' or 'dtc.updates'";
    auto [word, of] = name.getValue().split(':');
    bool isPart = name.getValue().contains(':');
    if (word.empty() || !llvm::isLower(word.front()) || (isPart && of.empty()) ||
        !llvm::all_of(word, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
      return error() << ", a metric named " << name
                     << ", expected a name of letters, digits and '_' that begins with a small "
                        "letter, and after it ':' and what it is of, or nothing";
    if (hasParts.try_emplace(word, isPart).first->second != isPart)
      return error() << ", a metric named " << name << ", and there are metrics named '" << word
                     << "' with and without ':'; choose another name for one of them";
    if (word == "loss" || word == "grad_norm" || word == "grad")
      return error() << ", a metric named " << name
                     << ", which is a name that steps have themselves"
                     << "; choose another one";
    if (!seen.insert(name).second)
      return error() << ", a second metric named " << name << "; expected different names";
    if (cast<RankedTensorType>(value.getType()).getElementType() != elementType)
      return error() << ", a metric, expected elements of type " << elementType
                     << " as the loss has";
    auto has = [&](StringRef attribute) { return bool(function.getResultAttr(number, attribute)); };
    metrics.push_back(
        {value, name, has(DtcDialect::kMeanAttrName), has(DtcDialect::kMustBeZeroAttrName)});
  }
  return metrics;
}

/// The results that update arguments, which are parameters that do not train.
static FailureOr<SmallVector<ModelUpdate>> readUpdates(func::FuncOp function,
                                                       ParameterSettings &settings) {
  SmallVector<ModelUpdate> updates;
  auto results = function.front().getTerminator()->getOperands();
  for (auto [index, value] : llvm::enumerate(results)) {
    auto number = function.getResultAttrOfType<IntegerAttr>(index, "dtc.updates");
    if (!number)
      continue;
    BlockArgument state = function.getArgument(number.getInt());
    if (!function.getArgAttr(state.getArgNumber(), DtcDialect::kParamAttrName) ||
        !settings.isFrozen(state))
      return function.emitOpError()
             << "has the result #" << index << ", which updates argument " << number.getInt()
             << ", expected a parameter that does not train: mark it with '"
             << DtcDialect::kFrozenAttrName << "'";
    updates.push_back({state, value});
  }
  return updates;
}

FailureOr<TrainedLoss> TrainedLoss::read(func::FuncOp function,
                                         const BuildTrainStepPassOptions &options) {
  if (failed(checkNumbers(function, options)))
    return failure();
  TrainedLoss read{function};
  read.optimizer = findOptimizer(options.optimizer);
  if (!read.optimizer && options.optimizer != "none")
    return function.emitError() << "unknown optimizer '" << options.optimizer << "'; known are "
                                << optimizerNames() << " and none";
  if (failed(checkProgram(function)))
    return failure();
  auto ret = cast<func::ReturnOp>(function.front().getTerminator());
  auto type = ret.getNumOperands() > 0 ? dyn_cast<RankedTensorType>(ret.getOperand(0).getType())
                                       : RankedTensorType();
  if (!type || type.getRank() != 0 || !isa<FloatType>(type.getElementType()) ||
      function.getResultAttr(0, DtcDialect::kMetricAttrName) ||
      function.getResultAttr(0, "dtc.updates"))
    return function.emitOpError() << "has results (" << function.getResultTypes()
                                  << "), expected a scalar, the loss, and then metrics alone";
  auto metrics = readMetrics(function, type.getElementType());
  if (failed(metrics))
    return failure();
  read.metrics = std::move(*metrics);
  read.elementType = type.getElementType();
  read.loss = ret.getOperand(0);
  if (read.optimizer && !isWideTensor(type))
    return function.emitOpError() << "has a loss of type " << type
                                  << ", expected f32 or f64: optimizers need it; a model in f32 "
                                     "can be compiled to compute in 16 bits (--dtype)";
  auto isParameter = [&](BlockArgument arg) {
    return bool(function.getArgAttr(arg.getArgNumber(), "dtc.param"));
  };
  if (llvm::none_of(function.getArguments(), isParameter))
    return function.emitOpError() << "has no parameter; mark arguments with dtc.param";
  auto settings = ParameterSettings::read(function, options.freeze, options.paramGroup);
  if (failed(settings))
    return failure();
  read.settings = std::move(*settings);
  auto updates = readUpdates(function, read.settings);
  if (failed(updates))
    return failure();
  read.updates = std::move(*updates);
  for (BlockArgument arg : function.getArguments()) {
    if (!isParameter(arg))
      continue;
    if (cast<RankedTensorType>(arg.getType()).getElementType() != read.elementType)
      return function.emitOpError()
             << "has a parameter of type " << arg.getType() << " and a loss of type " << type
             << "; expected one element type";
    if (!read.settings.isFrozen(arg))
      read.params.push_back(arg);
  }
  if (read.params.empty())
    return function.emitOpError() << "has no parameter that trains: all of them are frozen";
  return read;
}

/// Whether the value is computed from such an argument.
static bool dependsOn(Value value, llvm::function_ref<bool(BlockArgument)> isOne) {
  SmallVector<Value> worklist{value};
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(next); argument && isOne(argument))
      return true;
    if (Operation *op = next.getDefiningOp())
      llvm::append_range(worklist, op->getOperands());
  }
  return false;
}

bool TrainedLoss::dependsOnParameters(Value value) const {
  return dependsOn(value, [&](BlockArgument arg) { return llvm::is_contained(params, arg); });
}

bool TrainedLoss::dependsOnData(Value value) const {
  return dependsOn(value, [&](BlockArgument arg) {
    return !func::FuncOp(function).getArgAttr(arg.getArgNumber(), DtcDialect::kParamAttrName);
  });
}

LogicalResult TrainedLoss::checkTrains() {
  if (dependsOnParameters(loss))
    return success();
  bool freezes = llvm::any_of(function.getArguments(), [&](BlockArgument arg) {
    return function.getArgAttr(arg.getArgNumber(), "dtc.param") && settings.isFrozen(arg);
  });
  auto name = function.getArgAttrOfType<StringAttr>(params.front().getArgNumber(), "dtc.param");
  return emitError(loss.getLoc())
         << "the loss depends on no parameter that trains, so that there is nothing to train"
         << (freezes ? "; freeze fewer parameters, or" : ";") << " compute the loss from "
         << (params.size() == 1 ? "'" : "parameters such as '") << name.getValue() << "'";
}
