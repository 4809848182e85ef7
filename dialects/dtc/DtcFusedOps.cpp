//===- DtcFusedOps.cpp - Ops with fused kernels ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/OpHelpers.h"
#include "dialects/dtc/ShardsAttribute.h"

#include <cmath>

using namespace mlir;
using namespace dtc;

/// Checks where in a sequence the elements of a dimension of `size` elements lie.
template <typename OpT>
static LogicalResult expectOrder(std::optional<Location> location, StringRef zigzagLabel,
                                 StringRef sequenceLabel, typename OpT::Adaptor adaptor,
                                 int64_t size) {
  std::optional<int64_t> sequence, parts;
  if (adaptor.getSequence())
    sequence = static_cast<int64_t>(*adaptor.getSequence());
  if (adaptor.getZigzag())
    parts = static_cast<int64_t>(*adaptor.getZigzag());
  if (sequence.has_value() != bool(adaptor.getSequenceAxes()))
    return inferenceError<OpT>(location, sequenceLabel,
                               "has only one of sequence and sequence_axes, expected both or none "
                               "of them");
  if (sequence && *sequence < 1)
    return inferenceError<OpT>(location, sequenceLabel, "sequence is ", *sequence,
                               ", expected at least 1 element");
  int64_t whole = sequence.value_or(size);
  if (parts && (*parts < 1 || *parts > whole / 2 || whole % (2 * *parts) != 0))
    return inferenceError<OpT>(location, zigzagLabel, "zigzag is ", *parts, " for a sequence of ",
                               whole, ", expected at least 1 part, of two chunks of equal size");
  return success();
}

//===----------------------------------------------------------------------===//
// RotaryOp
//===----------------------------------------------------------------------===//

/// Checks that there are no more frequencies than pairs of elements.
static LogicalResult expectFrequencies(std::optional<Location> location,
                                       ArrayRef<double> frequencies, RankedTensorType x) {
  int64_t count = frequencies.size(), pairs = x.getDimSize(3) / 2;
  if (count < 1 || count > pairs)
    return inferenceError<RotaryOp>(location, "rotary-c5", "has ", count,
                                    " frequencies, expected from 1 to ", pairs,
                                    ", one for each pair of elements that is rotated");
  for (double frequency : frequencies)
    if (!std::isfinite(frequency) || frequency < 0)
      return inferenceError<RotaryOp>(location, "rotary-c6", "has the frequency ", frequency,
                                      ", expected finite numbers that are not negative");
  return success();
}

LogicalResult RotaryOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  RankedTensorType x = getTensorType(adaptor.getOperand());
  if (x.getRank() != 4 || x.getDimSize(3) % 2 != 0)
    return inferenceError<RotaryOp>(location, "rotary-c1", "operand has type ", x,
                                    ", expected rank 4 and an even last dimension");
  // The parser infers the type before there are attributes; the verifier does it again.
  if (std::optional<double> theta = adaptor.getTheta();
      theta && (!std::isfinite(*theta) || *theta <= 0))
    return inferenceError<RotaryOp>(location, "rotary-c2", "theta is ", *theta,
                                    ", expected a finite positive number");
  if (std::optional<double> factor = adaptor.getFactor();
      factor && (!std::isfinite(*factor) || *factor <= 0))
    return inferenceError<RotaryOp>(location, "rotary-c7", "factor is ", *factor,
                                    ", expected a finite positive number");
  if (std::optional<ArrayRef<double>> frequencies = adaptor.getFrequencies())
    if (failed(expectFrequencies(location, *frequencies, x)))
      return failure();
  if (failed(expectOrder<RotaryOp>(location, "rotary-c8", "rotary-c9", adaptor, x.getDimSize(1))))
    return failure();
  types.push_back(x);
  Value positions = adaptor.getPositions();
  if (!positions)
    return success();
  Type index = IntegerType::get(context, 32);
  auto first = RankedTensorType::get({x.getDimSize(0)}, index),
       each = RankedTensorType::get({x.getDimSize(0), x.getDimSize(1)}, index);
  if (positions.getType() != first && positions.getType() != each)
    return inferenceError<RotaryOp>(location, "rotary-c3", "positions has type ",
                                    positions.getType(), ", expected ", first, " or ", each);
  return success();
}

void RotaryOp::build(OpBuilder &builder, OperationState &state, Value operand, double theta,
                     bool inverse) {
  build(builder, state, operand, /*positions=*/Value(), builder.getF64FloatAttr(theta),
        /*frequencies=*/DenseF64ArrayAttr(), /*factor=*/FloatAttr(), builder.getBoolAttr(inverse),
        /*zigzag=*/IntegerAttr(), /*sequence=*/IntegerAttr(), /*sequence_axes=*/ArrayAttr());
}

LogicalResult RotaryOp::verify() {
  if (getTheta().has_value() == getFrequencies().has_value())
    return violates(*this, "rotary-c4") << "has "
                                        << (getTheta() ? "theta and frequencies"
                                                       : "no theta and no "
                                                         "frequencies")
                                        << ", expected one of them: where the angles come from";
  return success();
}

ShardingRule RotaryOp::getShardingRule() {
  StringRef equation = "bshD->bshD";
  bool ofRows = getPositions() && getPositions().getType().getRank() == 2;
  if (getPositions())
    equation = ofRows ? "bshD,bs->bshD" : "bshD,b->bshD";
  ShardingRule rule = makeEquationRule(*this, equation);
  if (!ofRows)
    rule.sequenceFactor = rule.operands[0][1].front();
  rule.linearOperands = {{0}};
  return rule;
}

/// A rotation's transpose is its inverse.
LogicalResult RotaryOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                 MutableArrayRef<Value> gradients) {
  gradients[0] =
      RotaryOp::create(builder, getLoc(), cotangents[0], getPositions(), getThetaAttr(),
                       getFrequenciesAttr(), getFactorAttr(), builder.getBoolAttr(!getInverse()),
                       getZigzagAttr(), getSequenceAttr(), getSequenceAxesAttr());
  return success();
}

//===----------------------------------------------------------------------===//
// AttentionOp, AttentionGradOp
//===----------------------------------------------------------------------===//

/// The labels of the constraints that attention and its gradient share.
struct AttentionLabels {
  HeadLabels heads;
  StringRef causal, scale, dropout, both, key;
  ScoreLabels scores;
  StringRef segments, queries;
  StringRef zigzag, sequence, order, shift;
};

/// Checks the segments of the keys. The segments of the queries are the last ones.
template <typename OpT>
static LogicalResult expectSegments(std::optional<Location> location, const AttentionLabels &labels,
                                    typename OpT::Adaptor adaptor) {
  Value segments = adaptor.getSegments();
  if (!segments)
    return success();
  int64_t queries = getTensorType(adaptor.getQ()).getDimSize(1);
  RankedTensorType k = getTensorType(adaptor.getK());
  SmallVector<int64_t> shape(k.getShape().take_front(2));
  if (adaptor.getKeyShift() && adaptor.getSequence())
    shape[1] = static_cast<int64_t>(*adaptor.getSequence());
  auto expected = RankedTensorType::get(shape, IntegerType::get(segments.getContext(), 32));
  if (segments.getType() != expected)
    return inferenceError<OpT>(location, labels.segments, "segments has type ", segments.getType(),
                               ", expected ", expected);
  if (k.getDimSize(1) < queries)
    return inferenceError<OpT>(location, labels.queries, "segments of ", queries, " queries and ",
                               k.getDimSize(1),
                               " keys, expected no more queries than keys: each has the segment "
                               "of its own key");
  return success();
}

/// Checks the operands that attention and its gradient share.
template <typename OpT>
static LogicalResult expectAttention(std::optional<Location> location,
                                     const AttentionLabels &labels, typename OpT::Adaptor adaptor) {
  RankedTensorType q = getTensorType(adaptor.getQ()), k = getTensorType(adaptor.getK());
  if (failed(expectHeads<OpT>(location, labels.heads, q, k, adaptor.getV())))
    return failure();
  if (adaptor.getCausal() && k.getDimSize(1) < q.getDimSize(1))
    return inferenceError<OpT>(location, labels.causal, "causal with ", q.getDimSize(1),
                               " queries and ", k.getDimSize(1),
                               " keys, expected no more queries than keys");
  if (!std::isfinite(adaptor.getScale()))
    return inferenceError<OpT>(location, labels.scale, "scale is ", adaptor.getScale(),
                               ", expected a finite number");
  if (failed(expectScores<OpT>(location, labels.scores, adaptor, adaptor.getCausal())) ||
      failed(expectSegments<OpT>(location, labels, adaptor)) ||
      failed(expectOrder<OpT>(location, labels.zigzag, labels.sequence, adaptor, q.getDimSize(1))))
    return failure();
  double dropout = adaptor.getDropout();
  if (dropout != 0 && (adaptor.getZigzag() || adaptor.getKeyShift()))
    return inferenceError<OpT>(location, labels.order, "has dropout and ",
                               adaptor.getZigzag() ? "zigzag" : "key_shift",
                               ", expected one of them: a mask is over queries and keys in the "
                               "order of the sequence");
  if (std::optional<uint64_t> shift = adaptor.getKeyShift())
    if (static_cast<int64_t>(*shift) < 0 || k.getDimSize(1) != q.getDimSize(1))
      return inferenceError<OpT>(location, labels.shift, "key_shift is ",
                                 static_cast<int64_t>(*shift), " with ", q.getDimSize(1),
                                 " queries and ", k.getDimSize(1),
                                 " keys, expected at least 0 and as many keys as queries");
  if (!(dropout >= 0 && dropout < 1))
    return inferenceError<OpT>(location, labels.dropout, "dropout is ", dropout,
                               ", expected at least 0 and less than 1");
  if ((dropout > 0) != bool(adaptor.getKey()))
    return inferenceError<OpT>(location, labels.both, "dropout is ", dropout, " and there is ",
                               adaptor.getKey() ? "a" : "no",
                               " key, expected both dropout and a key or none of them");
  return adaptor.getKey() ? expectRandomKey<OpT>(location, labels.key, adaptor.getKey())
                          : success();
}

/// The attributes of the kernel of attention or its gradient.
template <typename OpT> static DictionaryAttr getAttentionKernelAttributes(OpT op) {
  NamedAttrList attributes(inherentAttributes(op));
  // How many operands there are says which of the optional ones are there.
  for (StringRef name : {"dropout", "number", "shape", "sharding", "operandSegmentSizes"})
    attributes.erase(name);
  if (op.getKey()) {
    attributes.set("dropout", op.getDropoutAttr());
    RankedTensorType q = op.getQ().getType(), k = op.getK().getType();
    addRandomKernelAttributes(
        op, {q.getDimSize(0), q.getDimSize(2), q.getDimSize(1), k.getDimSize(1)}, attributes);
  }
  return attributes.getDictionary(op.getContext());
}

/// The rule of attention or its gradient, whose operands before the optional ones the equation
/// names. `last` are the terms of those after the key.
template <typename OpT>
static ShardingRule getAttentionRule(OpT op, StringRef equation, StringRef last = "") {
  auto [operands, results] = equation.split("->");
  StringRef segments = op.getSegments() ? ",bT" : "", key = op.getKey() ? ",K" : "";
  ShardingRule rule =
      makeEquationRule(op, (operands + segments + key + last + "->" + results).str());
  rule.sequenceFactor = rule.operands[0][1].front();
  if (op.getKey())
    rule.randomDims = {{0, 0}, {0, 2}, {0, 1}, {1, 1}};
  return rule;
}

/// The type of lse, [b,h,s], for q of [b,s,h,d] and elements as those of lse.
static RankedTensorType getLseType(RankedTensorType q) {
  return withShape(q, {q.getDimSize(0), q.getDimSize(2), q.getDimSize(1)});
}

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  AttentionLabels labels = {
      .heads = {"attention-c1", "attention-c2", "attention-c3", "attention-c4"},
      .causal = "attention-c5",
      .scale = "attention-c6",
      .dropout = "attention-c7",
      .both = "attention-c8",
      .key = "attention-c9",
      .scores = {"attention-c10", "attention-c11", "attention-c12"},
      .segments = "attention-c13",
      .queries = "attention-c14",
      .zigzag = "attention-c15",
      .sequence = "attention-c16",
      .order = "attention-c17",
      .shift = "attention-c18"};
  if (failed(expectAttention<AttentionOp>(location, labels, adaptor)))
    return failure();
  RankedTensorType q = getTensorType(adaptor.getQ());
  if (adaptor.getSinks() &&
      failed(expectType<AttentionOp>(location, "attention-c19", "sinks", adaptor.getSinks(),
                                     withShape(q, {q.getDimSize(2)}))))
    return failure();
  types.append({q, getLseType(getWideTensor(q))});
  return success();
}

ShardingRule AttentionOp::getShardingRule() {
  return getAttentionRule(*this,
                          getKeyShift() ? "bs(gr)D,bsgD,bsgD->bs(gr)D,b(gr)s"
                                        : "bs(gr)D,bTgD,bTgD->bs(gr)D,b(gr)s",
                          getSinks() ? ",(gr)" : "");
}

DictionaryAttr AttentionOp::getKernelAttributes() { return getAttentionKernelAttributes(*this); }

void AttentionOp::build(OpBuilder &builder, OperationState &state, Value q, Value k, Value v,
                        bool causal, double scale) {
  build(builder, state, q, k, v, /*segments=*/Value(), /*key=*/Value(), /*sinks=*/Value(), causal,
        scale, /*window=*/IntegerAttr(), /*softcap=*/FloatAttr(), /*key_shift=*/IntegerAttr(),
        /*zigzag=*/IntegerAttr(),
        /*sequence=*/IntegerAttr(), /*sequence_axes=*/ArrayAttr(), /*dropout=*/0.0, /*number=*/0,
        /*shape=*/DenseI64ArrayAttr(),
        /*sharding=*/ArrayAttr());
}

/// The FLOPs of attention on the device that has most of them. In zigzag order all have the same;
/// in the order of the sequence the last queries see most keys.
template <typename OpT> static double getFlopsOfBusiest(OpT op) {
  RankedTensorType q = op.getQ().getType(), k = op.getK().getType();
  bool causal = op.getCausal();
  if (!op.getSequence())
    return getAttentionFlops(q, k, causal, op.getWindow());
  double queries = q.getDimSize(1), keys = k.getDimSize(1);
  if (std::optional<uint64_t> shift = op.getKeyShift()) {
    // Of the pairs of chunks of queries and keys in zigzag order half are seen. In order, all or
    // none of a shard of earlier keys is, and half of the own one.
    bool isHalf = causal && (op.getZigzag() || *shift == 0);
    return getAttentionFlops(q, k, isHalf, std::nullopt);
  }
  if (causal && !op.getZigzag()) {
    double ofLast = getAttentionFlops(q, k, /*causal=*/false, std::nullopt);
    ofLast *= 1 - queries / (2 * keys);
    return op.getWindow() ? std::min(ofLast, getAttentionFlops(q, k, causal, op.getWindow()))
                          : ofLast;
  }
  SmallVector<int64_t> whole(q.getShape());
  whole[1] = static_cast<int64_t>(*op.getSequence());
  return queries / static_cast<double>(whole[1]) *
         getAttentionFlops(withShape(q, whole), k, causal, op.getWindow());
}

double AttentionOp::getFlops() { return getFlopsOfBusiest(*this); }

double AttentionOp::getUnmaskedFlops() {
  return getAttentionFlops(getQ().getType(), getK().getType(), /*causal=*/false,
                           /*window=*/std::nullopt);
}

LogicalResult AttentionOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                    MutableArrayRef<Value> gradients) {
  if (cotangents[1])
    // No constraint: the op is valid, but has no such gradient.
    return emitOpError() << "a gradient by lse was asked for, expected one by out alone";
  auto grad = AttentionGradOp::create(
      builder, getLoc(), getQ(), getK(), getV(), getOut(), getLse(), cotangents[0], getSegments(),
      getKey(), getCausal(), getScale(), getWindowAttr(), getSoftcapAttr(), getKeyShiftAttr(),
      getZigzagAttr(), getSequenceAttr(), getSequenceAxesAttr(), getDropout(), getNumber(),
      getShapeAttr(), getShardingAttr());
  llvm::copy(grad.getResults(), gradients.begin());
  if (!getSinks())
    return success();
  // The share of a sink is p = exp(sink - lse), and its value 0: its gradient is -p sum(dout out).
  Location loc = getLoc();
  auto lseType = cast<RankedTensorType>(getLse().getType());
  Value products = MulOp::create(builder, loc, cotangents[0], getOut());
  Value sums = ReduceOp::create(builder, loc, products, ReductionKind::Sum, ArrayRef<int64_t>{3});
  Value ofRows = TransposeOp::create(builder, loc, sums, ArrayRef<int64_t>{0, 2, 1});
  Value sinks = getSinks();
  if (getTensorType(sinks).getElementType() != lseType.getElementType())
    sinks = ConvertOp::create(builder, loc, getTensorType(sinks).clone(lseType.getElementType()),
                              sinks);
  Value logits = BroadcastOp::create(builder, loc, lseType, sinks, ArrayRef<int64_t>{1});
  Value shares = ExpOp::create(builder, loc, SubOp::create(builder, loc, logits, getLse()));
  Value gradient = ReduceOp::create(
      builder, loc, NegOp::create(builder, loc, MulOp::create(builder, loc, shares, ofRows)),
      ReductionKind::Sum, ArrayRef<int64_t>{0, 2});
  if (gradient.getType() != getSinks().getType())
    gradient = ConvertOp::create(builder, loc, getSinks().getType(), gradient);
  gradients[getSinksMutable().begin()->getOperandNumber()] = gradient;
  return success();
}

LogicalResult AttentionGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                Adaptor adaptor, SmallVectorImpl<Type> &types) {
  using Op = AttentionGradOp;
  AttentionLabels labels = {
      .heads = {"attention_grad-c1", "attention_grad-c2", "attention_grad-c3", "attention_grad-c4"},
      .causal = "attention_grad-c5",
      .scale = "attention_grad-c6",
      .dropout = "attention_grad-c7",
      .both = "attention_grad-c8",
      .key = "attention_grad-c9",
      .scores = {"attention_grad-c13", "attention_grad-c14", "attention_grad-c15"},
      .segments = "attention_grad-c16",
      .queries = "attention_grad-c17",
      .zigzag = "attention_grad-c18",
      .sequence = "attention_grad-c19",
      .order = "attention_grad-c20",
      .shift = "attention_grad-c21"};
  if (failed(expectAttention<Op>(location, labels, adaptor)))
    return failure();
  RankedTensorType q = getTensorType(adaptor.getQ()), k = getTensorType(adaptor.getK());
  if (failed(expectType<Op>(location, "attention_grad-c10", "out", adaptor.getOut(), q)) ||
      failed(expectType<Op>(location, "attention_grad-c11", "lse", adaptor.getLse(),
                            getLseType(getWideTensor(q)))) ||
      failed(expectType<Op>(location, "attention_grad-c12", "dout", adaptor.getDout(), q)))
    return failure();
  types.append({q, k, k});
  return success();
}

ShardingRule AttentionGradOp::getShardingRule() {
  ShardingRule rule = getAttentionRule(
      *this, getKeyShift() ? "bs(gr)D,bsgD,bsgD,bs(gr)D,b(gr)s,bs(gr)D->bs(gr)D,bsgD,bsgD"
                           : "bs(gr)D,bTgD,bTgD,bs(gr)D,b(gr)s,bs(gr)D->bs(gr)D,bTgD,bTgD");
  rule.linearOperands = {{5}};
  return rule;
}

DictionaryAttr AttentionGradOp::getKernelAttributes() {
  return getAttentionKernelAttributes(*this);
}

double AttentionGradOp::getFlops() {
  // Five products. One of them recomputes the scores.
  return 2.5 * getFlopsOfBusiest(*this);
}

//===----------------------------------------------------------------------===//
// MergeAttentionOp
//===----------------------------------------------------------------------===//

LogicalResult MergeAttentionOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                 Adaptor adaptor, SmallVectorImpl<Type> &types) {
  using Op = MergeAttentionOp;
  RankedTensorType part = getTensorType(adaptor.getPart());
  if (part.getRank() != 4)
    return inferenceError<Op>(location, "merge_attention-c1", "part has type ", part,
                              ", expected rank 4");
  RankedTensorType wide = getWideTensor(part), lse = getLseType(wide);
  if (failed(expectType<Op>(location, "merge_attention-c2", "out", adaptor.getOut(), wide)) ||
      failed(expectType<Op>(location, "merge_attention-c3", "lse", adaptor.getLse(), lse)) ||
      failed(expectType<Op>(location, "merge_attention-c3", "part_lse", adaptor.getPartLse(), lse)))
    return failure();
  types.append({wide, lse});
  return success();
}

ShardingRule MergeAttentionOp::getShardingRule() {
  return makeEquationRule(*this, "bshD,bhs,bshD,bhs->bshD,bhs");
}

//===----------------------------------------------------------------------===//
// CrossEntropyOp
//===----------------------------------------------------------------------===//

/// The labels of the constraints that cross-entropy and its gradient share.
struct CrossEntropyLabels {
  StringRef smoothing, logits;
};

/// Checks that the class labels have the shape of the logits without its last dimension, and the
/// amount of smoothing.
template <typename OpT>
static LogicalResult expectClasses(std::optional<Location> location,
                                   const CrossEntropyLabels &labels,
                                   typename OpT::Adaptor adaptor) {
  double smoothing = adaptor.getLabelSmoothing();
  if (!(smoothing >= 0 && smoothing < 1))
    return inferenceError<OpT>(location, labels.smoothing, "label_smoothing is ", smoothing,
                               ", expected at least 0 and less than 1");
  RankedTensorType type = getTensorType(adaptor.getLogits());
  Value classes = adaptor.getLabels();
  if (type.getRank() > 0 && dropLastDim(type).getShape() == getTensorType(classes).getShape())
    return success();
  return inferenceError<OpT>(location, labels.logits, "logits have type ", type,
                             ", expected the dimensions of the labels, ", classes.getType(),
                             ", and one more");
}

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                               Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (failed(expectClasses<CrossEntropyOp>(location, {"cross_entropy-c1", "cross_entropy-c2"},
                                           adaptor)))
    return failure();
  types.append(2, dropLastDim(getWideTensor(getTensorType(adaptor.getLogits()))));
  return success();
}

ShardingRule CrossEntropyOp::getShardingRule() {
  return makeEquationRule(*this, "...V,...->...,...");
}

/// The loss without a label and the lse of each shard of the classes, both [..., shards]: logits
/// are reshaped to [..., shards, v / shards]. None where the op is not to be split into equal
/// shards.
static CrossEntropyOp splitClasses(CrossEntropyOp op, OpBuilder &builder) {
  auto shards = op->getAttrOfType<IntegerAttr>(kShardsAttrName);
  RankedTensorType logits = getTensorType(op.getLogits());
  int64_t classes = logits.getShape().back();
  if (!shards || classes % shards.getInt() != 0)
    return nullptr;
  SmallVector<int64_t> shape(logits.getShape());
  shape.back() = shards.getInt();
  auto labels = RankedTensorType::get(shape, builder.getI32Type());
  shape.push_back(classes / shards.getInt());
  Value split = ReshapeOp::create(builder, op.getLoc(), withShape(logits, shape), op.getLogits());
  Value none = ConstantOp::create(builder, op.getLoc(), labels, -1.0);
  return CrossEntropyOp::create(builder, op.getLoc(), split, none, op.getLabelSmoothingAttr());
}

/// Classes in equal shards: lse = log(sum over shards of exp(lse of the shard)), so that the logits
/// are read by the fused kernel alone and numbers of each row are combined. After Shoeybi et al.,
/// "Megatron-LM" (arXiv:1909.08053), section 3.
FailureOr<SmallVector<Value>> CrossEntropyOp::decompose(OpBuilder &builder) {
  ValueBuilder b(builder, getLoc());
  CrossEntropyOp parts = splitClasses(*this, builder);
  Value x = parts ? parts.getLse() : b.widen(getLogits());
  Value max = b.reduceLast(ReductionKind::Max, x);
  Value exp = b.create<ExpOp>(b.sub(x, b.broadcastLeading(max, x)));
  Value lse = b.add(b.create<LogOp>(b.reduceLast(ReductionKind::Sum, exp)), max);
  Value label = parts ? b.widen(b.create<PickOp>(getLogits(), getLabels()))
                      : b.create<PickOp>(x, getLabels());
  double smoothing = getLabelSmoothing();
  if (smoothing == 0)
    return SmallVector<Value>{b.sub(lse, label), lse};
  Value loss = b.sub(lse, b.scale(label, 1 - smoothing));
  // Without a label, the loss of a shard is its lse - label_smoothing mean(its logits).
  Value mean = parts ? b.meanLast(b.sub(x, parts.getLoss())) : b.scale(b.meanLast(x), smoothing);
  return SmallVector<Value>{b.sub(loss, mean), lse};
}

LogicalResult CrossEntropyOp::buildVjp(OpBuilder &builder, ValueRange cotangents, ArrayRef<bool>,
                                       MutableArrayRef<Value> gradients) {
  ValueBuilder b(builder, getLoc());
  Value x = getLogits();
  auto gradient = [&](Value labels, Value cotangent, double smoothing) {
    IntegerAttr classes;
    if (smoothing > 0)
      classes = builder.getI64IntegerAttr(getTensorType(x).getShape().back());
    return b.create<CrossEntropyGradOp>(x, labels, getLse(), cotangent,
                                        builder.getF64FloatAttr(smoothing), classes);
  };
  if (cotangents[0])
    gradients[0] = gradient(getLabels(), cotangents[0], getLabelSmoothing());
  if (cotangents[1]) {
    // The gradient of lse is the softmax: the gradient of the loss without a label.
    Value byLse = gradient(b.splat(getLabels(), -1), cotangents[1], 0);
    gradients[0] = gradients[0] ? b.add(gradients[0], byLse) : byLse;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// CrossEntropyGradOp
//===----------------------------------------------------------------------===//

LogicalResult CrossEntropyGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                   Adaptor adaptor, SmallVectorImpl<Type> &types) {
  using Op = CrossEntropyGradOp;
  if (failed(
          expectClasses<Op>(location, {"cross_entropy_grad-c1", "cross_entropy_grad-c2"}, adaptor)))
    return failure();
  RankedTensorType logits = getTensorType(adaptor.getLogits());
  RankedTensorType row = dropLastDim(getWideTensor(logits));
  if (failed(expectType<Op>(location, "cross_entropy_grad-c3", "lse", adaptor.getLse(), row)) ||
      failed(expectType<Op>(location, "cross_entropy_grad-c3", "dloss", adaptor.getDloss(), row)))
    return failure();
  types.push_back(logits);
  return success();
}

ShardingRule CrossEntropyGradOp::getShardingRule() {
  ShardingRule rule = makeEquationRule(*this, "...v,...,...,...->...v");
  rule.linearOperands = {{3}};
  rule.indexedFactors = {{/*operand=*/1, /*factor=*/rule.operands[0].back().front()}};
  return rule;
}
