//===- ModelFingerprint.cpp - Fingerprint of a model for checkpoints ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/ModelFingerprint.h"

#include "compiler/driver/GradientCompression.h"
#include "compiler/driver/SampleClipping.h"
#include "dialects/dist/Dist.h"
#include "dialects/dtc/DtcOps.h"

#include "llvm/Support/MD5.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace mlir;
using namespace dtc;

namespace {

/// Writes a model down, a line for each operation, as far as the fingerprint goes.
class ModelText {
public:
  explicit ModelText(func::FuncOp function);

  std::string text;

private:
  void add(Operation &op);
  std::string nameOf(BlockArgument argument);

  func::FuncOp function;
  llvm::DenseMap<Value, std::string> names;
};

} // namespace

/// The operand for which the result of an operation stands; null of others. Models have such
/// operations or not for reasons that the fingerprint does not know: dist.constrain says how a
/// value lies, and a table of positions has a slice where the sequence is shorter.
static Value passedOn(Operation &op) {
  if (isa<dist::ConstrainOp>(op))
    return op.getOperand(0);
  if (auto slice = dyn_cast<SliceOp>(op);
      slice && isa<BlockArgument>(slice.getOperand()) &&
      llvm::all_of(slice.getOffsets(), [](int64_t offset) { return offset == 0; }))
    return slice.getOperand();
  return {};
}

/// How many elements each element of a sum is the sum of; 0 of other values.
static int64_t numSummands(Value value) {
  auto reduce = value.getDefiningOp<ReduceOp>();
  if (!reduce || reduce.getKind() != ReductionKind::Sum)
    return 0;
  return cast<RankedTensorType>(reduce.getOperand().getType()).getNumElements() /
         cast<RankedTensorType>(reduce.getResult().getType()).getNumElements();
}

/// The factor by which a number that belongs to a sum counts: such a number is the factor of a
/// mean, its divisor, or its least value.
static double sumFactorOf(Value number) {
  for (Operation *user : number.getUsers())
    for (Value other : user->getOperands()) {
      double summands = double(numSummands(other));
      if (auto mean = other.getDefiningOp<MulOp>(); mean && isa<MaximumOp, MinimumOp>(user))
        summands = double(std::max(numSummands(mean.getLhs()), numSummands(mean.getRhs())));
      if (summands > 0)
        return isa<DivOp>(user) ? 1 / summands : summands;
    }
  return 1;
}

/// A number that all elements of a constant are; empty of other constants, and of integers.
static std::string numberOf(ConstantOp constant) {
  auto elements = dyn_cast<DenseFPElementsAttr>(constant.getValue());
  if (!elements || !elements.isSplat())
    return "";
  // Rounded to f32, so that a model in f64 has the same number.
  APFloat value = elements.getSplatValue<APFloat>();
  bool losesDigits = false;
  value.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &losesDigits);
  return fmt::format("{:.6g}", value.convertToFloat() * sumFactorOf(constant.getResult()));
}

/// The text of an attribute that is a number or a name; empty for others.
static std::string describe(Attribute attribute) {
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return fmt::format("{:.17g}", number.getValueAsDouble());
  if (auto name = dyn_cast<StringAttr>(attribute))
    return name.str();
  if (auto flag = dyn_cast<BoolAttr>(attribute))
    return flag.getValue() ? "true" : "false";
  if (isa<UnitAttr>(attribute))
    return "true";
  if (auto numbers = dyn_cast<DenseF64ArrayAttr>(attribute))
    return fmt::format("{:.17g}", fmt::join(numbers.asArrayRef(), " "));
  if (attribute.getDialect().getNamespace() != DtcDialect::getDialectNamespace())
    return "";
  std::string word;
  llvm::raw_string_ostream stream(word);
  attribute.print(stream);
  return word;
}

std::string ModelText::nameOf(BlockArgument argument) {
  unsigned index = argument.getArgNumber();
  for (StringRef kind : {DtcDialect::kParamAttrName, DtcDialect::kInputAttrName})
    if (auto name = function.getArgAttrOfType<StringAttr>(index, kind))
      return fmt::format("{} {}", kind.str(), name.str());
  return fmt::format("argument {}", index);
}

/// Whether the function returns the operand as a metric.
static bool isMetric(OpOperand &operand) {
  auto ret = dyn_cast<func::ReturnOp>(operand.getOwner());
  return ret && ret->getParentOfType<func::FuncOp>().getResultAttr(operand.getOperandNumber(),
                                                                   DtcDialect::kMetricAttrName);
}

void ModelText::add(Operation &op) {
  text += op.getName().getStringRef();
  for (OpOperand &operand : op.getOpOperands())
    if (!isMetric(operand))
      text += fmt::format(" ({})", names.lookup(operand.get()));
  for (StringAttr name : op.getName().getAttributeNames()) {
    Attribute attribute = op.getInherentAttr(name).value_or(Attribute());
    if (std::string described = attribute ? describe(attribute) : ""; !described.empty())
      text += fmt::format(" {}={}", name.str(), described);
  }
  if (auto constant = dyn_cast<ConstantOp>(op))
    text += " " + numberOf(constant);
  // The shape that a parameter is used in has no batch.
  auto reshape = dyn_cast<ReshapeOp>(op);
  if (auto argument = dyn_cast_or_null<BlockArgument>(reshape ? reshape.getOperand() : Value());
      argument && function.getArgAttr(argument.getArgNumber(), DtcDialect::kParamAttrName))
    text += fmt::format(
        " {}", fmt::join(cast<RankedTensorType>(reshape.getResult().getType()).getShape(), "x"));
  text += '\n';
}

/// The operations that something else than a metric needs: metrics do not affect training.
static llvm::DenseSet<Operation *> findTrained(func::FuncOp function) {
  llvm::DenseSet<Operation *> needed;
  for (Operation &op : llvm::reverse(function.front())) {
    if (!isa<func::ReturnOp>(op) && !needed.contains(&op))
      continue;
    needed.insert(&op);
    for (OpOperand &operand : op.getOpOperands())
      if (Operation *definer = operand.get().getDefiningOp(); definer && !isMetric(operand))
        needed.insert(definer);
  }
  return needed;
}

ModelText::ModelText(func::FuncOp function) : function(function) {
  llvm::DenseSet<Operation *> trained = findTrained(function);
  for (BlockArgument argument : function.getArguments())
    names[argument] = nameOf(argument);
  int64_t count = 0;
  for (Operation &op : function.getBody().getOps()) {
    if (Value same = passedOn(op)) {
      std::string name = names.lookup(same);
      names[op.getResult(0)] = std::move(name);
      continue;
    }
    // Models without metrics keep their fingerprints, which have operations that nothing needs.
    if (function.getNumResults() > 1 && !trained.contains(&op))
      continue;
    add(op);
    for (OpResult result : op.getResults())
      names[result] = fmt::format("{}#{}", count, result.getResultNumber());
    ++count;
  }
}

std::string dtc::fingerprintOf(func::FuncOp function) {
  llvm::MD5 hash;
  hash.update(ModelText(function).text);
  llvm::MD5::MD5Result result;
  hash.final(result);
  return result.digest().str().str();
}

std::string dtc::describeUpdates(const CompileOptions &options) {
  const std::optional<SampleClipping> clipping = sampleClippingOf(options);
  std::vector<std::string> settings = {fmt::format("clip={}", clipping ? 0 : options.clip)};
  for (StringRef group : options.paramGroups) {
    auto [pattern, list] = group.rsplit(':');
    SmallVector<StringRef> parts;
    list.split(parts, ',');
    for (StringRef part : parts)
      if (double scale = 1; part.consume_front("lr_scale=") && !part.getAsDouble(scale))
        settings.push_back(fmt::format("{}:lr_scale={}", pattern.str(), scale));
  }
  if (auto compression = parseGradientCompression(options.compress))
    settings.push_back("compress=" + str(*compression));
  if (clipping)
    settings.push_back(fmt::format("dp_sgd=clip={},noise={}", clipping->clip, clipping->noise));
  if (options.proximal > 0)
    settings.push_back(fmt::format("proximal={}", options.proximal));
  if (!options.outer.empty())
    settings.push_back(fmt::format("outer={}, outer_step={}", options.outer, options.outerStep));
  if (!options.outer.empty() && options.outerStep != "mean")
    settings.push_back(fmt::format("outer_lr={}, outer_momentum={}", outerLearningRateOf(options),
                                   options.outerMomentum));
  if (hasSecondMoment(options))
    settings.push_back(
        fmt::format("outer_beta2={}, outer_tau={}", options.outerBeta2, options.outerTau));
  if (streamsOuterSteps(options))
    settings.push_back(fmt::format("outer_fragments={}, outer_delay={}, outer_blend={}",
                                   options.outerFragments, options.outerDelay, options.outerBlend));
  if (options.clients)
    settings.push_back(options.clientNoise ? "clients with noise" : "clients");
  return fmt::format("{}", fmt::join(settings, ", "));
}
