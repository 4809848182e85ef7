//===- DistOps.cpp - Verifiers of the dist dialect ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::dist;

//===----------------------------------------------------------------------===//
// dist.mesh
//===----------------------------------------------------------------------===//

ParseResult MeshOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<Attribute> axes;
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(), result.attributes) ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, [&]() -> ParseResult {
        FailureOr<AxisAttr> attr = AxisAttr::parseBody(parser);
        if (failed(attr))
          return failure();
        axes.push_back(*attr);
        return success();
      }))
    return failure();
  result.addAttribute("axes", parser.getBuilder().getArrayAttr(axes));
  return parser.parseOptionalAttrDict(result.attributes);
}

void MeshOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  printer << " <";
  llvm::interleaveComma(getAxes(), printer, [&](Attribute attr) {
    cast<AxisAttr>(attr).printBody(printer.getStream());
  });
  printer << ">";
  printer.printOptionalAttrDict((*this)->getAttrs(), {"sym_name", "axes"});
}

LogicalResult MeshOp::verify() {
  llvm::StringSet<> names;
  int temporal = 0, pipelines = 0;
  int64_t devices = 1;
  for (Attribute attr : getAxes()) {
    auto axis = cast<AxisAttr>(attr);
    if (!names.insert(axis.getName().getValue()).second)
      return emitOpError() << "has two axes named " << axis.getName();
    pipelines += axis.getPipeline();
    if (axis.getTemporal())
      ++temporal;
    else
      devices *= axis.getSize();
    if (devices > kMaxMeshSize)
      return emitOpError() << "has more than " << kMaxMeshSize << " devices";
  }
  for (auto speed : {getDeviceFlopsAttr(), getDeviceBandwidthAttr()})
    if (speed && !(speed.getValueAsDouble() > 0))
      return emitOpError() << "has devices of " << speed.getValueAsDouble()
                           << " operations or bytes a second, expected more than 0";
  if (pipelines > 1)
    return emitOpError() << "has " << pipelines << " pipeline axes, expected at most one";
  if (temporal > 1)
    return emitOpError() << "has " << temporal << " temporal axes, expected at most one";
  return success();
}

//===----------------------------------------------------------------------===//
// Global view
//===----------------------------------------------------------------------===//

ShardingRule ConstrainOp::getShardingRule() {
  ShardingRule rule = makeElementwiseRule(*this);
  rule.linearOperands.push_back({0});
  return rule;
}

LogicalResult ConstrainOp::buildVjp(OpBuilder &, ValueRange cotangents, ArrayRef<bool>,
                                    MutableArrayRef<Value> gradients) {
  // The gradient finds its own sharding: it need not have the value's.
  gradients[0] = cotangents[0];
  return success();
}

LogicalResult ConstrainOp::verifySymbolUses(SymbolTableCollection &) {
  if (getSharding().isPartial())
    return emitOpError() << "asks for the partial sharding " << getSharding()
                         << "; a value can be constrained only to a complete one";
  return verifySharding(*this, getSharding(), getType(), "result");
}

ShardingRule SumBatchesOp::getShardingRule() {
  ShardingRule rule = makeElementwiseRule(*this);
  rule.linearOperands.push_back({0});
  return rule;
}

LogicalResult ReshardOp::verifySymbolUses(SymbolTableCollection &) {
  if (getFrom().getMesh() != getTo().getMesh())
    return emitOpError() << "goes from " << getFrom().getMesh() << " to " << getTo().getMesh()
                         << "; both shardings must be on one mesh";
  if (failed(verifySharding(*this, getFrom(), getType(), "operand")))
    return failure();
  for (Attribute axis : getTo().getPartialAxes())
    if (!llvm::is_contained(getFrom().getPartialAxes(), axis))
      return emitOpError() << "makes the value partial over " << axis
                           << ", which its operand is not; a reshard can only complete a sum";
  if (getTo().isPartial() && getFrom().getPartialKind() != getTo().getPartialKind())
    return emitOpError() << "turns a value that is partial as a "
                         << stringifyReductionKind(getFrom().getPartialKind())
                         << " into one that is partial as a "
                         << stringifyReductionKind(getTo().getPartialKind());
  return verifySharding(*this, getTo(), getType(), "result");
}

//===----------------------------------------------------------------------===//
// Local view
//===----------------------------------------------------------------------===//

/// The number of members of a group over `axes`, or failure with a diagnostic.
static FailureOr<int64_t> groupSize(Operation *op, FlatSymbolRefAttr meshName, ArrayAttr axes,
                                    bool temporalAllowed) {
  auto mesh = lookupMesh(op, meshName);
  if (!mesh)
    return op->emitOpError() << "is over " << meshName << ", which is not a dist.mesh";
  llvm::StringSet<> seen;
  int64_t size = 1;
  for (StringAttr name : axes.getAsRange<StringAttr>()) {
    auto it = llvm::find_if(mesh.getAxes(),
                            [&](Attribute a) { return cast<AxisAttr>(a).getName() == name; });
    if (it == mesh.getAxes().end())
      return op->emitOpError() << "is over axis " << name << ", which " << meshName << " lacks";
    auto axis = cast<AxisAttr>(*it);
    if (axis.getTemporal() && !temporalAllowed)
      return op->emitOpError() << "is over axis " << name
                               << ", which is temporal; nothing moves between microbatches";
    if (!seen.insert(name.getValue()).second)
      return op->emitOpError() << "names axis " << name << " twice";
    size *= axis.getSize();
  }
  return size;
}

/// Checks that `result` has the shape of `input` with the dimensions multiplied by numerator /
/// denominator.
static LogicalResult verifyDims(Operation *op, RankedTensorType input, RankedTensorType result,
                                ArrayRef<std::pair<int64_t, bool>> dims, int64_t group) {
  SmallVector<int64_t> expected(input.getShape());
  for (auto [dim, grows] : dims) {
    if (dim < 0 || dim >= input.getRank())
      return op->emitOpError() << "names dimension " << dim << " of " << input;
    if (!grows && expected[dim] % group != 0)
      return op->emitOpError() << "splits dimension " << dim << " of " << input << " in " << group
                               << " blocks, which do not divide it";
    expected[dim] = grows ? expected[dim] * group : expected[dim] / group;
  }
  auto type = RankedTensorType::get(expected, input.getElementType());
  if (type != result)
    return op->emitOpError() << "has a result of type " << result << ", expected " << type
                             << " for a group of " << group;
  return success();
}

template <typename OpT>
static LogicalResult verifyCollective(OpT op, ArrayRef<std::pair<int64_t, bool>> dims,
                                      bool temporalAllowed = false) {
  FailureOr<int64_t> group = groupSize(op, op.getMeshAttr(), op.getAxes(), temporalAllowed);
  if (failed(group))
    return failure();
  return verifyDims(op, op.getInput().getType(), op.getResult().getType(), dims, *group);
}

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyCollective(*this, {});
}
LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyCollective(*this, {{getDim(), true}});
}
LogicalResult ReduceScatterOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyCollective(*this, {{getDim(), false}});
}
LogicalResult AllToAllOp::verifySymbolUses(SymbolTableCollection &) {
  if (getDim() == getSplitDim())
    return emitOpError() << "splits and concatenates the same dimension " << getDim();
  return verifyCollective(*this, {{getSplitDim(), false}, {getDim(), true}});
}
LogicalResult PermuteOp::verifySymbolUses(SymbolTableCollection &) {
  SmallVector<Attribute> axes(getAxes().getValue()), source(getSourceAxes().getValue());
  auto byName = [](Attribute a, Attribute b) {
    return cast<StringAttr>(a).getValue() < cast<StringAttr>(b).getValue();
  };
  llvm::sort(axes, byName);
  llvm::sort(source, byName);
  if (axes != source)
    return emitOpError() << "is over " << getAxes() << " from " << getSourceAxes()
                         << ", expected the same axes in another order";
  return verifyCollective(*this, {});
}

/// Checks that a dimension of size `local` is one block of `size` elements over the axes, each of
/// which splits the block that the ones before it leave.
static LogicalResult verifyBlock(Operation *op, FlatSymbolRefAttr mesh, ArrayAttr axes,
                                 RankedTensorType type, int64_t dim, int64_t size) {
  FailureOr<int64_t> group = groupSize(op, mesh, axes, /*temporalAllowed=*/true);
  if (failed(group))
    return failure();
  if (dim < 0 || dim >= type.getRank())
    return op->emitOpError() << "names dimension " << dim << " of " << type;
  if (int64_t block = llvm::divideCeil(size, *group); type.getDimSize(dim) != block)
    return op->emitOpError() << "has " << type.getDimSize(dim) << " elements in dimension " << dim
                             << ", expected " << block << " for a block of " << size << " over "
                             << axes;
  return success();
}

LogicalResult MaskPaddingOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyBlock(*this, getMeshAttr(), getAxes(), getType(), getDim(), getSize());
}

LogicalResult ShardSliceOp::verifySymbolUses(SymbolTableCollection &) {
  RankedTensorType input = getInput().getType(), result = getType();
  if (getDim() >= uint64_t(input.getRank()))
    return emitOpError() << "names dimension " << getDim() << " of " << input;
  SmallVector<int64_t> shape(input.getShape());
  shape[getDim()] = result.getRank() == input.getRank() ? result.getDimSize(getDim()) : -1;
  if (shape != result.getShape() || input.getElementType() != result.getElementType())
    return emitOpError() << "has a result of type " << result << " from " << input
                         << ", expected another size of dimension " << getDim() << " only";
  return verifyBlock(*this, getMeshAttr(), getAxes(), result, getDim(), input.getDimSize(getDim()));
}
LogicalResult ShardOffsetOp::verifySymbolUses(SymbolTableCollection &) {
  if (int64_t size = getSize(); size < 1)
    return emitOpError() << "has size " << size << ", expected at least 1";
  return success(succeeded(groupSize(*this, getMeshAttr(), getAxes(), /*temporalAllowed=*/true)));
}

DictionaryAttr ShardSliceOp::getKernelAttributes() {
  Builder b(getContext());
  return b.getDictionaryAttr(
      {b.getNamedAttr("dim", getDimAttr()), b.getNamedAttr("axes", getAxes())});
}
DictionaryAttr MaskPaddingOp::getKernelAttributes() {
  Builder b(getContext());
  return b.getDictionaryAttr(
      {b.getNamedAttr("dim", getDimAttr()), b.getNamedAttr("axes", getAxes()),
       b.getNamedAttr("size", getSizeAttr()),
       b.getNamedAttr("value", b.getStringAttr(stringifyPaddingValue(getPadding())))});
}
DictionaryAttr ShardOffsetOp::getKernelAttributes() {
  Builder b(getContext());
  return b.getDictionaryAttr(
      {b.getNamedAttr("size", getSizeAttr()), b.getNamedAttr("axes", getAxes())});
}

/// Pairs of an op of the body and a microbatch.
static LogicalResult verifySchedule(MicrobatchLoopOp loop, int64_t microbatches) {
  auto schedule = loop.getSchedule();
  if (!schedule)
    return success();
  int64_t ops = llvm::range_size(loop.getBody().front().without_terminator());
  if (schedule->size() % 2)
    return loop.emitOpError() << "has a schedule of " << schedule->size()
                              << " numbers, expected pairs";
  for (auto [index, number] : llvm::enumerate(*schedule))
    if (number < 0 || number >= (index % 2 ? microbatches : ops))
      return loop.emitOpError() << "has " << number << " at place " << index
                                << " of its schedule, expected pairs of one of its " << ops
                                << " ops and one of " << microbatches << " microbatches";
  return success();
}

LogicalResult MicrobatchLoopOp::verifySymbolUses(SymbolTableCollection &) {
  auto mesh = lookupMesh(*this, getMeshAttr());
  if (!mesh)
    return emitOpError() << "is over " << getMeshAttr() << ", which is not a dist.mesh";
  for (auto axis : mesh.getAxes().getAsRange<AxisAttr>()) {
    if (axis.getName() != getAxisAttr())
      continue;
    if (!axis.getTemporal())
      return emitOpError() << "is over axis " << getAxisAttr() << ", which is not temporal";
    for (Value result : getResults())
      if (axis.getSize() > 1 && !isWideTensor(result.getType()))
        return emitOpError() << "adds up values of type " << result.getType()
                             << ", expected f32 or f64";
    return verifySchedule(*this, axis.getSize());
  }
  return emitOpError() << "is over axis " << getAxisAttr() << ", which " << getMeshAttr()
                       << " lacks";
}

LogicalResult BucketOp::verifyRegions() {
  Block &block = getBody().front();
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield)
    return emitOpError() << "ends with " << block.getTerminator()->getName()
                         << ", expected dist.yield";
  Operation *first = nullptr;
  llvm::SmallVector<Value> results;
  for (Operation &op : block.without_terminator()) {
    if (!isa<CollectiveOpInterface>(op))
      return op.emitOpError() << "cannot stand in a dist.bucket, which holds collectives";
    if (!first)
      first = &op;
    if (!canShareBucket(first, &op))
      return op.emitOpError() << "is of another kind or over other axes than the first collective "
                                 "of its dist.bucket";
    if (op.getOperand(0).getParentBlock() == &block)
      return op.emitOpError() << "reads a result of its own dist.bucket";
    results.push_back(op.getResult(0));
  }
  if (SmallVector<Value>(yield.getValues()) != results ||
      yield.getOperandTypes() != getResultTypes())
    return emitOpError() << "yields other values than those of its collectives, in their order";
  return success();
}

Value dtc::dist::getYieldedValue(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() != 1)
    return {};
  auto yield = dyn_cast<YieldOp>(op->getRegion(0).front().getTerminator());
  return yield ? yield.getValues()[cast<OpResult>(value).getResultNumber()] : Value();
}

bool dtc::dist::canShareBucket(Operation *a, Operation *b) {
  auto elementType = [](Operation *op) { return getElementTypeOrSelf(op->getOperand(0)); };
  // What decides which devices form a group and how values combine; dimensions may differ.
  return a->getName() == b->getName() && elementType(a) == elementType(b) &&
         llvm::all_of(ArrayRef<StringRef>{"mesh", "axes", "source_axes", "kind", kStageAttrName},
                      [&](StringRef name) { return a->getAttr(name) == b->getAttr(name); });
}

LogicalResult MicrobatchLoopOp::verifyRegions() {
  Block &body = getBody().front();
  for (Operation &op : body.without_terminator())
    if (getSchedule() && !isa<FragmentOp, SendOp, ReceiveOp>(op))
      return op.emitOpError() << "cannot stand in a loop with a schedule, which holds fragments, "
                                 "sends and receives";
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getOperandTypes() != getResultTypes())
    return emitOpError() << "yields values of types (" << yield.getOperandTypes()
                         << "), expected those of its results (" << getResultTypes() << ")";
  return success();
}

LogicalResult FragmentOp::verify() {
  if (int64_t stage = getStage(); stage < 0)
    return emitOpError() << "is in stage " << stage
                         << ", which does not exist; stages count from 0";
  return success();
}

LogicalResult FragmentOp::verifyRegions() {
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getOperandTypes() != getResultTypes())
    return emitOpError() << "yields values of types (" << yield.getOperandTypes()
                         << "), expected those of its results (" << getResultTypes() << ")";
  return success();
}

static LogicalResult verifyTransfer(Operation *op, size_t values, int64_t peer, int64_t channel) {
  if (values == 0)
    return op->emitOpError() << "moves no value";
  if (peer < 0 || channel < 0)
    return op->emitOpError() << "has the peer " << peer << " and the channel " << channel
                             << ", expected at least 0 of each";
  return success();
}

LogicalResult SendOp::verify() {
  return verifyTransfer(*this, getValues().size(), getPeer(), getChannel());
}
LogicalResult ReceiveOp::verify() {
  return verifyTransfer(*this, getResults().size(), getPeer(), getChannel());
}

#include "dialects/dist/DistInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/dist/DistOps.cpp.inc"
