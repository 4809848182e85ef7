//===- ModelBuilder.cpp - Building blocks of imported models --------------===//
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
#include "llvm/Support/SaveAndRestore.h"

#include <cmath>

using namespace mlir;
using namespace dtc;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// The letters of einsums for the dimensions of `x` before its `last` ones: those of the batch and,
/// if there is one, the sequence.
static std::string firstLetters(Value x, size_t last) {
  return StringRef("bs").take_front(shapeOf(x).size() - last).str();
}

/// The options with what others of them ask for.
static ImportOptions complete(ImportOptions options) {
  if (options.packed && !options.ignoreIndex)
    options.ignoreIndex = -100; // transformers' own
  return options;
}

ModelBuilder::ModelBuilder(MLIRContext &context, const ImportOptions &options,
                           StringRef parameterPrefix, StringRef outputLayer)
    : builder(&context), modelPrefix(parameterPrefix.str() + "."),
      loc(NameLoc::get(builder.getStringAttr("model"))),
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

RankedTensorType ModelBuilder::getType(ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, elementType);
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

static int64_t numElements(const std::vector<Dim> &dims) {
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

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

Value ModelBuilder::einsum(StringRef equation, Value lhs, Value rhs) {
  return EinsumOp::create(builder, loc, lhs, rhs, equation);
}

Value ModelBuilder::add(Value lhs, Value rhs) { return AddOp::create(builder, loc, lhs, rhs); }

Value ModelBuilder::residual(Value x) {
  // Between the blocks a value may be split along the sequence where inside them it cannot.
  x.getDefiningOp()->setDiscardableAttr(DtcDialect::kAxesAttrName,
                                        builder.getStrArrayAttr({"", "residual_seq", ""}));
  return x;
}

Value ModelBuilder::mul(Value lhs, Value rhs) { return MulOp::create(builder, loc, lhs, rhs); }

Value ModelBuilder::scale(Value x, double factor) { return mul(x, constant(shapeOf(x), factor)); }

Value ModelBuilder::mulRows(Value x, Value factors) {
  SmallVector<int64_t> rows(shapeOf(x).drop_back());
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, rows.size()));
  return mul(x, BroadcastOp::create(builder, loc, x.getType(), reshape(factors, rows), dims));
}

Value ModelBuilder::clip(Value x, double limit) {
  Value low = MaximumOp::create(builder, loc, x, constant(shapeOf(x), -limit));
  return MinimumOp::create(builder, loc, low, constant(shapeOf(x), limit));
}

Value ModelBuilder::clipAbove(Value x, double limit) {
  return MinimumOp::create(builder, loc, x, constant(shapeOf(x), limit));
}

Value ModelBuilder::shift(Value x, double number) { return add(x, constant(shapeOf(x), number)); }

Value ModelBuilder::softcap(Value x, double cap) {
  return scale(TanhOp::create(builder, loc, scale(x, 1 / cap)), cap);
}

Value ModelBuilder::reshape(Value x, ArrayRef<int64_t> shape, ArrayRef<StringRef> axes) {
  auto op = ReshapeOp::create(builder, loc, getType(shape), x);
  if (!axes.empty())
    op->setDiscardableAttr(DtcDialect::kAxesAttrName, builder.getStrArrayAttr(axes));
  return op;
}

Value ModelBuilder::activation(Activation kind, Value x) {
  switch (kind) {
  case Activation::GeluTanh:
    return GeluOp::create(builder, loc, x, GeluApproximation::Tanh);
  case Activation::Gelu:
    return GeluOp::create(builder, loc, x, GeluApproximation::None);
  case Activation::Relu:
    return ReluOp::create(builder, loc, x);
  case Activation::Silu:
    return SiluOp::create(builder, loc, x);
  case Activation::Tanh:
    return TanhOp::create(builder, loc, x);
  case Activation::Sigmoid:
    return SigmoidOp::create(builder, loc, x);
  }
  llvm_unreachable("all kinds are handled");
}

Value ModelBuilder::addBias(Value x, Value bias) {
  int64_t rank = shapeOf(x).size();
  int64_t biasRank = shapeOf(bias).size();
  auto dims = llvm::to_vector(llvm::seq<int64_t>(rank - biasRank, rank));
  return add(x, BroadcastOp::create(builder, loc, x.getType(), bias, dims));
}

Value ModelBuilder::select(Value x, int64_t dim, int64_t index) {
  SmallVector<int64_t> sizes(shapeOf(x));
  sizes.erase(sizes.begin() + dim);
  return reshape(take(x, dim, index, 1), sizes);
}

Value ModelBuilder::take(Value x, int64_t dim, int64_t begin, int64_t size) {
  SmallVector<int64_t> sizes(shapeOf(x));
  if (sizes[dim] == size)
    return x;
  sizes[dim] = size;
  SmallVector<int64_t> offsets(sizes.size(), 0);
  offsets[dim] = begin;
  return SliceOp::create(builder, loc, x, offsets, sizes);
}

Value ModelBuilder::concat(Value first, Value second, int64_t dim) {
  return ConcatOp::create(builder, loc, ValueRange{first, second}, dim);
}

Value ModelBuilder::halvesOfPairs(Value x, int64_t dim) {
  SmallVector<int64_t> shape(shapeOf(x)), pairs(shape);
  pairs[dim] = 2;
  pairs.insert(pairs.begin() + dim, shape[dim] / 2);
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, pairs.size()));
  std::swap(order[dim], order[dim + 1]);
  return reshape(TransposeOp::create(builder, loc, reshape(x, pairs), order), shape);
}

Value ModelBuilder::forEachHead(Value x, Dim heads) {
  ArrayRef<int64_t> shape = shapeOf(x);
  auto op = BroadcastOp::create(builder, loc, getType({shape[0], shape[1], heads.size, shape[2]}),
                                x, ArrayRef<int64_t>{0, 1, 3});
  op->setDiscardableAttr(DtcDialect::kAxesAttrName,
                         builder.getStrArrayAttr({"", "", heads.axis, ""}));
  return op;
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

Value ModelBuilder::adapterInput(StringRef name, Value x, const std::vector<Dim> &in,
                                 llvm::function_ref<void(Dim rank)> addUp) {
  std::string module = layerPrefix + name.str();
  if (name.empty())
    module.pop_back(); // the dot
  if (!loraTargets.match(module))
    return {};
  const LoraOptions &lora = *options.lora;
  Dim rank{lora.rank};
  llvm::SaveAndRestore prefixed(layerPrefix, std::string(kAdapterPrefix) + module + ".");
  // PEFT draws lora_A by torch's kaiming_uniform_ with a = sqrt(5), which comes to this bound.
  Value a = addParameter("lora_A.weight", {{rank}, in},
                         uniform(1 / std::sqrt(static_cast<double>(numElements(in)))));
  addUp(rank);
  // The input's dimensions after batch and sequence, as an einsum names them.
  std::string letters = StringRef("ijk").take_front(in.size()).str();
  std::string first = firstLetters(x, in.size());
  return scaleAdapter(
      einsum(first + letters + ",r" + letters + "->" + first + "r", dropout(x, lora.dropout), a));
}

Value ModelBuilder::scaleAdapter(Value down) {
  // In the model's own type, so that the scale is not rounded where a plan computes in 16 bits: a
  // conversion is not narrowed.
  down = ConvertOp::create(builder, loc, down, elementType);
  Value scale = constant({}, options.lora->alpha / static_cast<double>(options.lora->rank));
  return mul(down, BroadcastOp::create(builder, loc, down.getType(), scale, ArrayRef<int64_t>()));
}

Adapter ModelBuilder::addAdapter(StringRef name, Value x, const std::vector<Dim> &in,
                                 const std::vector<Dim> &out) {
  Adapter adapter;
  adapter.down = adapterInput(name, x, in, [&](Dim rank) {
    adapter.up = addParameter("lora_B.weight", {out, {rank}}, zeros());
  });
  return adapter;
}

std::vector<Adapter> ModelBuilder::addAdapters(StringRef name, Value x, const std::vector<Dim> &in,
                                               ArrayRef<std::vector<Dim>> parts) {
  std::vector<Adapter> adapters(parts.size());
  Value down = adapterInput(name, x, in, [&](Dim rank) {
    std::vector<Value> rows = addRows("lora_B.weight", parts, {rank}, zeros());
    for (auto [adapter, up] : llvm::zip_equal(adapters, rows))
      adapter.up = up;
  });
  for (Adapter &adapter : adapters)
    adapter.down = down;
  return adapters;
}

Value ModelBuilder::adapt(Value y, const Adapter &adapter, std::optional<int64_t> index,
                          int64_t dim) {
  if (!adapter.down)
    return y;
  Value up = index ? select(adapter.up, dim, *index) : adapter.up;
  std::string letters = StringRef("ijk").take_front(shapeOf(up).size() - 1).str();
  std::string first = firstLetters(adapter.down, 1);
  return add(y, einsum(first + "r," + letters + "r->" + first + letters, adapter.down, up));
}

Value ModelBuilder::cutPatches(Value images, int64_t height, int64_t width) {
  ArrayRef<int64_t> shape = shapeOf(images);
  int64_t rows = shape[2] / height, columns = shape[3] / width;
  Value cut = reshape(images, {shape[0], shape[1], rows, height, columns, width});
  Value patches = TransposeOp::create(builder, loc, cut, ArrayRef<int64_t>{0, 2, 4, 1, 3, 5});
  return reshape(patches, {shape[0], rows * columns, shape[1], height, width});
}

Value ModelBuilder::prependRow(Value row, Value x) {
  ArrayRef<int64_t> shape = shapeOf(x);
  Value flat = reshape(row, {1, shape[2]});
  Value rows = BroadcastOp::create(builder, loc, getType({shape[0], 1, shape[2]}), flat,
                                   ArrayRef<int64_t>{1, 2});
  return concat(rows, x, 1);
}

Value ModelBuilder::embed(Value table) { return EmbeddingOp::create(builder, loc, table, tokens); }

Value ModelBuilder::addPositions(Value x, Value table, int64_t first) {
  if (!positions)
    return addBias(x, take(table, 0, first, options.seq));
  if (first != 0)
    table = take(table, 0, first, shapeOf(table)[0] - first);
  return add(x, EmbeddingOp::create(builder, loc, table, positions));
}

Value ModelBuilder::layerNorm(Value x, double eps) {
  Dim width{shapeOf(x).back(), "embed"};
  Value gamma = addParameter("weight", {{width}}, ones());
  Value beta = addParameter("bias", {{width}}, zeros());
  return LayerNormOp::create(builder, loc, x, gamma, beta, eps).getY();
}

Value ModelBuilder::rmsNorm(Value x, double eps, bool plusOne, StringRef name, StringRef axis) {
  Dim width{shapeOf(x).back(), axis};
  Value gamma = addParameter(name, {{width}}, plusOne ? zeros() : ones());
  if (plusOne)
    gamma = add(gamma, constant({width.size}, 1));
  return RmsNormOp::create(builder, loc, x, gamma, eps).getY();
}

Value ModelBuilder::rotary(Value x, const Rotary &kind) {
  bool hasTable = !kind.frequencies.empty();
  return RotaryOp::create(
      builder, loc, x, positions, hasTable ? FloatAttr() : builder.getF64FloatAttr(kind.theta),
      hasTable ? builder.getDenseF64ArrayAttr(kind.frequencies) : DenseF64ArrayAttr(),
      kind.factor == 1 ? FloatAttr() : builder.getF64FloatAttr(kind.factor),
      /*inverse=*/false, /*zigzag=*/IntegerAttr(), /*sequence=*/IntegerAttr(),
      /*sequence_axes=*/ArrayAttr());
}

/// The argument that says, together with an op's number, which elements drop out.
Value ModelBuilder::randomKey() {
  if (key)
    return key;
  auto type = RankedTensorType::get({2}, builder.getI32Type());
  argumentAttrs.push_back(builder.getDictionaryAttr(
      builder.getNamedAttr("dtc.scalar", builder.getStringAttr("random_key"))));
  key = block->addArgument(type, NameLoc::get(builder.getStringAttr("random_key")));
  return key;
}

Value ModelBuilder::dropout(Value x, double rate) {
  if (rate == 0 || !options.dropout)
    return x;
  Value random = randomKey();
  return DropoutOp::create(builder, loc, x, random, rate, numRandomOps++, DenseI64ArrayAttr(),
                           ArrayAttr());
}

Value ModelBuilder::maskScores(Value scores) {
  SmallVector<int64_t> shape(shapeOf(scores));
  int64_t rank = shape.size();
  auto type = RankedTensorType::get(shape, builder.getI32Type());
  Value ofQuery = BroadcastOp::create(builder, loc, type, segments, ArrayRef<int64_t>{0, rank - 2});
  Value ofKey = BroadcastOp::create(builder, loc, type, segments, ArrayRef<int64_t>{0, rank - 1});
  Value isOne = CompareOp::create(builder, loc, ofQuery, ofKey, ComparePredicate::Equal);
  Value hidden = constant(shape, -1e30);
  return SelectOp::create(builder, loc, isOne, scores, hidden);
}

/// Attention as it was written before it was fused, and is in Megatron-LM: with scores, and what
/// the softmax makes of them, [B, H, S, S].
Value ModelBuilder::decomposedAttention(Value q, Value k, Value v, const AttentionScores &kind,
                                        double dropout) {
  SmallVector<int64_t> shape(shapeOf(q));
  int64_t heads = shape[2], kvHeads = shapeOf(k)[2];
  bool grouped = heads != kvHeads;
  // Query head i belongs to key-value head i / (H / G): [B, S, H, E] is [B, S, G, H / G, E].
  if (grouped)
    q = ReshapeOp::create(builder, loc,
                          getType({shape[0], shape[1], kvHeads, heads / kvHeads, shape[3]}), q);
  Value scores = einsum(grouped ? "bsgre,btge->bgrst" : "bshe,bthe->bhst", q, k);
  double scale = kind.scale;
  if (kind.softcap != 0 || segments) {
    scores = this->scale(scores, scale);
    scale = 1;
  }
  if (kind.softcap != 0)
    scores = softcap(scores, kind.softcap);
  if (segments)
    scores = maskScores(scores);
  Value weights = SoftmaxOp::create(builder, loc, scores, kind.causal, scale);
  weights = this->dropout(weights, dropout);
  Value out = einsum(grouped ? "bgrst,btge->bsgre" : "bhst,bthe->bshe", weights, v);
  return grouped ? Value(ReshapeOp::create(builder, loc, getType(shape), out)) : out;
}

Value ModelBuilder::attention(Value q, Value k, Value v, const AttentionScores &scores,
                              double dropout, Value sinks) {
  if (options.attention == AttentionKind::Decomposed)
    return decomposedAttention(q, k, v, scores, dropout);
  // dtc.attention has one size for queries, keys and values. Zeros add nothing to its products.
  int64_t size = shapeOf(q).back(), valueSize = shapeOf(v).back();
  auto widen = [&](Value x) -> Value {
    int64_t missing = std::max(size, valueSize) - shapeOf(x).back();
    if (missing == 0)
      return x;
    return PadOp::create(builder, loc, x, ArrayRef<int64_t>{0, 0, 0, 0},
                         ArrayRef<int64_t>{0, 0, 0, missing}, 0.0);
  };
  q = widen(q);
  k = widen(k);
  v = widen(v);
  bool drops = dropout != 0 && options.dropout;
  Value random = drops ? randomKey() : Value();
  IntegerAttr window = scores.window ? builder.getI64IntegerAttr(*scores.window) : IntegerAttr();
  FloatAttr softcap = scores.softcap != 0 ? builder.getF64FloatAttr(scores.softcap) : FloatAttr();
  Value out = AttentionOp::create(builder, loc, q, k, v, segments, random, sinks, scores.causal,
                                  scores.scale, window, softcap, /*key_shift=*/IntegerAttr(),
                                  /*zigzag=*/IntegerAttr(),
                                  /*sequence=*/IntegerAttr(),
                                  /*sequence_axes=*/ArrayAttr(), drops ? dropout : 0,
                                  drops ? numRandomOps++ : 0, /*shape=*/DenseI64ArrayAttr(),
                                  /*sharding=*/ArrayAttr())
                  .getOut();
  return take(out, 3, 0, valueSize);
}

Value ModelBuilder::constant(ArrayRef<int64_t> shape, double value) {
  return ConstantOp::create(builder, loc, getType(shape), value);
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
