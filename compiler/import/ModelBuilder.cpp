//===- ModelBuilder.cpp - Parameters of imported models -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ModelBuilder.h"

#include "dialects/dtc/DtcOps.h"
#include "dialects/dtc/LoraAttribute.h"
#include "plan/AdapterNames.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;
using namespace dtc;

/// The options with what others of them ask for.
static ImportOptions complete(ImportOptions options) {
  if (options.packed && !options.ignoreIndex)
    options.ignoreIndex = -100; // transformers' own
  return options;
}

ModelBuilder::ModelBuilder(MLIRContext &context, const ImportOptions &options,
                           StringRef parameterPrefix, StringRef outputLayer)
    : ModelOps(context), modelPrefix(parameterPrefix.str() + "."),
      loraTargets(options.lora ? options.lora->targets : std::vector<std::string>(), outputLayer),
      options(complete(options)) {
  context.loadDialect<DtcDialect, func::FuncDialect>();
  elementType = options.doublePrecision ? Type(builder.getF64Type()) : builder.getF32Type();
  module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  auto func = func::FuncOp::create(builder, loc, "loss", builder.getFunctionType({}, {}));
  block = func.addEntryBlock();
  builder.setInsertionPointToEnd(block);
}

/// Adds an input after the arguments so far.
Value ModelBuilder::addInput(StringRef name, RankedTensorType type, ArrayRef<StringRef> axes) {
  return addArgument(argumentAttrs.size(), type, DtcDialect::kInputAttrName, name, axes, {});
}

Value ModelBuilder::addLabels(ArrayRef<int64_t> shape, ArrayRef<StringRef> axes) {
  Value value = addInput("labels", RankedTensorType::get(shape, builder.getI32Type()), axes);
  if (options.ignoreIndex) {
    NamedAttrList attrs(argumentAttrs.back());
    attrs.set(DtcDialect::kIgnoredIndexAttrName, builder.getI64IntegerAttr(*options.ignoreIndex));
    argumentAttrs.back() = attrs.getDictionary(builder.getContext());
  }
  return value;
}

void ModelBuilder::addTextInputs() {
  SmallVector<int64_t> shape{options.batch, options.seq};
  SmallVector<StringRef> axes{"batch", "seq"};
  auto type = RankedTensorType::get(shape, builder.getI32Type());
  tokens = addInput("tokens", type, axes);
  labels = addLabels(shape, axes);
  if (!options.packed)
    return;
  segments = addInput("segments", type, axes);
  positions = addInput("positions", type, axes);
}

Value ModelBuilder::addImageInputs(int64_t channels, int64_t height, int64_t width) {
  Value images =
      addInput("images", getType({options.batch, channels, height, width}), {"batch", "", "", ""});
  labels = addLabels({options.batch}, {"batch"});
  return images;
}

void ModelBuilder::beginLayer(const Twine &name) {
  loc = NameLoc::get(builder.getStringAttr(name));
  layerPrefix = modelPrefix + name.str() + ".";
}

void ModelBuilder::beginTopLevelLayer(const Twine &name) {
  loc = NameLoc::get(builder.getStringAttr(name));
  layerPrefix = name.str() + ".";
}

Attribute ModelBuilder::zeros() { return ZerosAttr::get(builder.getContext()); }
Attribute ModelBuilder::ones() { return OnesAttr::get(builder.getContext()); }
Attribute ModelBuilder::normal(double stddev) {
  return NormalAttr::get(builder.getContext(), stddev);
}
Attribute ModelBuilder::uniform(double bound) {
  return UniformAttr::get(builder.getContext(), bound);
}

/// Adds an argument that is `kind` (a parameter or an input) called `name`.
Value ModelBuilder::addArgument(unsigned index, Type type, StringRef kind, StringRef name,
                                ArrayRef<StringRef> axes, Attribute init) {
  SmallVector<NamedAttribute> attrs{
      builder.getNamedAttr(kind, builder.getStringAttr(name)),
      builder.getNamedAttr(DtcDialect::kAxesAttrName, builder.getStrArrayAttr(axes))};
  if (init)
    attrs.push_back(builder.getNamedAttr(DtcDialect::kInitAttrName, init));
  // Beside adapters nothing else trains.
  if (kind == DtcDialect::kParamAttrName && options.lora && !isAdapterName(name))
    attrs.push_back(builder.getNamedAttr(DtcDialect::kFrozenAttrName, builder.getUnitAttr()));
  argumentAttrs.insert(argumentAttrs.begin() + index, builder.getDictionaryAttr(attrs));
  return block->insertArgument(index, type, NameLoc::get(builder.getStringAttr(name)));
}

Value ModelBuilder::addParameter(const Twine &name, const std::vector<std::vector<Dim>> &shape,
                                 Attribute init) {
  SmallVector<int64_t> sizes, viewSizes;
  SmallVector<StringRef> axes, viewAxes;
  for (const std::vector<Dim> &dims : shape) {
    int64_t size = 1;
    for (const Dim &dim : dims) {
      size *= dim.size;
      viewSizes.push_back(dim.size);
      viewAxes.push_back(dim.axis);
    }
    sizes.push_back(size);
    // A product has no axis of its own: its parts have, in the view.
    axes.push_back(dims.size() == 1 ? dims.front().axis : StringRef());
  }
  Value parameter = addArgument(numParameters++, getType(sizes), DtcDialect::kParamAttrName,
                                layerPrefix + name.str(), axes, init);
  if (viewSizes.size() == sizes.size())
    return parameter;
  auto view = ReshapeOp::create(builder, loc, getType(viewSizes), parameter);
  view->setDiscardableAttr(DtcDialect::kAxesAttrName, builder.getStrArrayAttr(viewAxes));
  return view;
}

int64_t ModelBuilder::numElements(const std::vector<Dim> &dims) {
  int64_t product = 1;
  for (const Dim &dim : dims)
    product *= dim.size;
  return product;
}

std::vector<Value> ModelBuilder::addRows(const Twine &name, ArrayRef<std::vector<Dim>> parts,
                                         const std::vector<Dim> &in, Attribute init) {
  std::string tensor = name.str();
  int64_t begin = 0;
  std::vector<Value> values;
  for (const std::vector<Dim> &part : parts) {
    int64_t end = begin + numElements(part);
    std::vector<std::vector<Dim>> shape{part};
    if (!in.empty())
      shape.push_back(in);
    values.push_back(addParameter(FileRows{tensor, begin, end}.name(), shape, init));
    begin = end;
  }
  return values;
}

Value ModelBuilder::addFrozenParameter(const Twine &name, Dim size, Attribute init) {
  Value value = addParameter(name, {{size}}, init);
  NamedAttrList attrs(argumentAttrs[numParameters - 1]);
  attrs.set(DtcDialect::kFrozenAttrName, builder.getUnitAttr());
  argumentAttrs[numParameters - 1] = attrs.getDictionary(builder.getContext());
  return value;
}

void ModelBuilder::addMetric(StringRef name, Value value, StringRef flag, bool ofModel) {
  NamedAttrList attrs;
  std::string full = ofModel ? name.str() : (name + ":" + StringRef(layerPrefix).rtrim('.')).str();
  attrs.set(DtcDialect::kMetricAttrName, builder.getStringAttr(full));
  if (!flag.empty())
    attrs.set(flag, builder.getUnitAttr());
  metrics.push_back(value);
  metricAttrs.push_back(attrs.getDictionary(builder.getContext()));
}

OwningOpRef<ModuleOp> ModelBuilder::finish(Value loss, ConfigReader &reader) {
  for (const Error &error : loraTargets.errors())
    reader.error(error.message);
  if (reader.hasErrors())
    return nullptr;
  SmallVector<Value> results{loss};
  SmallVector<DictionaryAttr> resultAttrs{builder.getDictionaryAttr({})};
  llvm::append_range(results, metrics);
  llvm::append_range(resultAttrs, metricAttrs);
  func::ReturnOp::create(builder, loc, results);
  auto func = cast<func::FuncOp>(block->getParentOp());
  func.setFunctionType(
      builder.getFunctionType(block->getArgumentTypes(), TypeRange(ValueRange(results))));
  func.setAllArgAttrs(ArrayRef(argumentAttrs));
  func.setAllResultAttrs(resultAttrs);
  if (options.lora) {
    std::vector<std::string> names = loraTargets.resolved();
    SmallVector<StringRef> targets(names.begin(), names.end());
    module->getOperation()->setAttr(
        kLoraAttrName,
        builder.getDictionaryAttr(
            {builder.getNamedAttr("rank", builder.getI64IntegerAttr(options.lora->rank)),
             builder.getNamedAttr("alpha", builder.getF64FloatAttr(options.lora->alpha)),
             builder.getNamedAttr("dropout", builder.getF64FloatAttr(options.lora->dropout)),
             builder.getNamedAttr("targets", builder.getStrArrayAttr(targets))}));
  }
  return std::move(module);
}

Value ModelBuilder::meanLoss(Value logits) {
  auto entropy = CrossEntropyOp::create(builder, loc, logits, labels,
                                        builder.getF64FloatAttr(options.labelSmoothing));
  Value perLabel = entropy.getLoss();
  ArrayRef<int64_t> shape = shapeOf(perLabel);
  if (options.zLoss > 0) {
    Value square = mul(entropy.getLse(), entropy.getLse());
    Value weight = constant(shape, options.zLoss);
    perLabel = add(perLabel, mul(square, weight));
  }
  Value counts; // which labels count, if not all of them do
  if (options.ignoreIndex) {
    auto type = cast<RankedTensorType>(labels.getType());
    Value ignored = ConstantOp::create(builder, loc, type, double(*options.ignoreIndex));
    counts = CompareOp::create(builder, loc, labels, ignored, ComparePredicate::NotEqual);
    Value zero = constant(shape, 0);
    perLabel = SelectOp::create(builder, loc, counts, perLabel, zero);
  }
  // A sum over all labels, divided by their number.
  double part = 1 / double(cast<RankedTensorType>(labels.getType()).getNumElements());
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
  auto mean = [&](Value value) {
    Value sum = ReduceOp::create(builder, loc, value, ReductionKind::Sum, dims);
    Value factor = constant({}, part);
    return mul(sum, factor);
  };
  Value loss = mean(perLabel);
  if (!counts)
    return loss;
  // If no label counts the loss is 0.
  Value ones = ConvertOp::create(builder, loc, counts, elementType);
  Value counted = mean(ones);
  Value least = constant({}, part);
  counted = MaximumOp::create(builder, loc, counted, least);
  return DivOp::create(builder, loc, loss, counted);
}
