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
      return violates(*this, "mesh-c1") << "has two axes named " << axis.getName();
    pipelines += axis.getPipeline();
    if (axis.getTemporal())
      ++temporal;
    else
      devices *= axis.getSize();
    if (devices > kMaxMeshSize)
      return violates(*this, "mesh-c2") << "has more than " << kMaxMeshSize << " devices";
  }
  for (auto speed : {getDeviceFlopsAttr(), getDeviceBandwidthAttr()})
    if (speed && !(speed.getValueAsDouble() > 0))
      return violates(*this, "mesh-c3") << "has devices of " << speed.getValueAsDouble()
                                        << " operations or bytes a second, expected more than 0";
  if (pipelines > 1)
    return violates(*this, "mesh-c4")
           << "has " << pipelines << " pipeline axes, expected at most one";
  if (temporal > 1)
    return violates(*this, "mesh-c5")
           << "has " << temporal << " temporal axes, expected at most one";
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
    return violates(*this, "constrain-c1") << "asks for the partial sharding " << getSharding()
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
    return violates(*this, "reshard-c1")
           << "goes from " << getFrom().getMesh() << " to " << getTo().getMesh()
           << "; both shardings must be on one mesh";
  if (failed(verifySharding(*this, getFrom(), getType(), "operand")))
    return failure();
  for (Attribute axis : getTo().getPartialAxes())
    if (!llvm::is_contained(getFrom().getPartialAxes(), axis))
      return violates(*this, "reshard-c2")
             << "makes the value partial over " << axis
             << ", which its operand is not; a reshard can only complete a sum";
  if (getTo().isPartial() && getFrom().getPartialKind() != getTo().getPartialKind())
    return violates(*this, "reshard-c3")
           << "turns a value that is partial as a " << name(getFrom().getPartialKind())
           << " into one that is partial as a " << name(getTo().getPartialKind());
  return verifySharding(*this, getTo(), getType(), "result");
}

//===----------------------------------------------------------------------===//
// Local view
//===----------------------------------------------------------------------===//

/// The labels of the constraints of groupSize.
struct GroupLabels {
  StringRef mesh, axes;
};

/// The number of members of a group over `axes`, or failure with a diagnostic.
static FailureOr<int64_t> groupSize(Operation *op, const GroupLabels &labels,
                                    FlatSymbolRefAttr meshName, ArrayAttr axes,
                                    bool temporalAllowed) {
  auto mesh = lookupMesh(op, meshName);
  if (!mesh)
    return violates(op, labels.mesh) << "is over " << meshName << ", which is not a dist.mesh";
  llvm::StringSet<> seen;
  int64_t size = 1;
  for (StringAttr name : axes.getAsRange<StringAttr>()) {
    auto it = llvm::find_if(mesh.getAxes(),
                            [&](Attribute a) { return cast<AxisAttr>(a).getName() == name; });
    if (it == mesh.getAxes().end())
      return violates(op, labels.axes)
             << "is over axis " << name << ", which " << meshName << " lacks";
    auto axis = cast<AxisAttr>(*it);
    if (axis.getTemporal() && !temporalAllowed)
      return violates(op, labels.axes) << "is over axis " << name
                                       << ", which is temporal; nothing moves between microbatches";
    if (!seen.insert(name.getValue()).second)
      return violates(op, labels.axes) << "names axis " << name << " twice";
    size *= axis.getSize();
  }
  return size;
}

/// The labels of the constraints of verifyDims; `divides` is used where a dimension is split.
struct DimLabels {
  StringRef dim, result, divides;
};

/// Checks that `result` has the shape of `input` with the dimensions multiplied by the size of the
/// group, or divided by it.
static LogicalResult verifyDims(Operation *op, const DimLabels &labels, RankedTensorType input,
                                RankedTensorType result, ArrayRef<std::pair<int64_t, bool>> dims,
                                int64_t group) {
  SmallVector<int64_t> expected(input.getShape());
  for (auto [dim, grows] : dims) {
    if (dim < 0 || dim >= input.getRank())
      return violates(op, labels.dim) << "names dimension " << dim << " of " << input;
    if (!grows && expected[dim] % group != 0)
      return violates(op, labels.divides) << "splits dimension " << dim << " of " << input << " in "
                                          << group << " blocks, which do not divide it";
    expected[dim] = grows ? expected[dim] * group : expected[dim] / group;
  }
  auto type = RankedTensorType::get(expected, input.getElementType());
  if (type != result)
    return violates(op, labels.result) << "has a result of type " << result << ", expected " << type
                                       << " for a group of " << group;
  return success();
}

template <typename OpT> static FailureOr<int64_t> verifyGroup(OpT op, const GroupLabels &labels) {
  return groupSize(op, labels, op.getMeshAttr(), op.getAxes(), /*temporalAllowed=*/false);
}

template <typename OpT>
static LogicalResult verifyCollective(OpT op, const GroupLabels &groupLabels,
                                      const DimLabels &dimLabels,
                                      ArrayRef<std::pair<int64_t, bool>> dims) {
  FailureOr<int64_t> group = verifyGroup(op, groupLabels);
  if (failed(group))
    return failure();
  return verifyDims(op, dimLabels, op.getInput().getType(), op.getResult().getType(), dims, *group);
}

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &) {
  return success(succeeded(verifyGroup(*this, {"all_reduce-c1", "all_reduce-c2"})));
}
LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyCollective(*this, {"all_gather-c1", "all_gather-c2"},
                          {.dim = "all_gather-c3", .result = "all_gather-c4", .divides = ""},
                          {{getDim(), true}});
}
LogicalResult ReduceScatterOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyCollective(
      *this, {"reduce_scatter-c1", "reduce_scatter-c2"},
      {.dim = "reduce_scatter-c3", .result = "reduce_scatter-c5", .divides = "reduce_scatter-c4"},
      {{getDim(), false}});
}
LogicalResult AllToAllOp::verifySymbolUses(SymbolTableCollection &) {
  if (getDim() == getSplitDim())
    return violates(*this, "all_to_all-c6")
           << "splits and concatenates the same dimension " << getDim();
  return verifyCollective(
      *this, {"all_to_all-c1", "all_to_all-c2"},
      {.dim = "all_to_all-c3", .result = "all_to_all-c5", .divides = "all_to_all-c4"},
      {{getSplitDim(), false}, {getDim(), true}});
}
LogicalResult PermuteOp::verifySymbolUses(SymbolTableCollection &) {
  SmallVector<Attribute> axes(getAxes().getValue()), source(getSourceAxes().getValue());
  auto byName = [](Attribute a, Attribute b) {
    return cast<StringAttr>(a).getValue() < cast<StringAttr>(b).getValue();
  };
  llvm::sort(axes, byName);
  llvm::sort(source, byName);
  if (axes != source)
    return violates(*this, "permute-c3") << "is over " << getAxes() << " from " << getSourceAxes()
                                         << ", expected the same axes in another order";
  if (static_cast<int64_t>(getShift()) < 0)
    return violates(*this, "permute-c4")
           << "has a shift of " << static_cast<int64_t>(getShift()) << ", expected at least 0";
  return success(succeeded(verifyGroup(*this, {"permute-c1", "permute-c2"})));
}

/// The labels of the constraints of verifyBlock.
struct BlockLabels {
  GroupLabels group;
  StringRef dim, size;
};

/// Checks that a dimension of size `local` is one block of `size` elements over the axes. Each axis
/// splits the block that the ones before it leave.
static LogicalResult verifyBlock(Operation *op, const BlockLabels &labels, FlatSymbolRefAttr mesh,
                                 ArrayAttr axes, RankedTensorType type, int64_t dim, int64_t size) {
  FailureOr<int64_t> group = groupSize(op, labels.group, mesh, axes, /*temporalAllowed=*/true);
  if (failed(group))
    return failure();
  if (dim < 0 || dim >= type.getRank())
    return violates(op, labels.dim) << "names dimension " << dim << " of " << type;
  if (int64_t block = llvm::divideCeil(size, *group); type.getDimSize(dim) != block)
    return violates(op, labels.size)
           << "has " << type.getDimSize(dim) << " elements in dimension " << dim << ", expected "
           << block << " for a block of " << size << " over " << axes;
  return success();
}

LogicalResult MaskPaddingOp::verifySymbolUses(SymbolTableCollection &) {
  BlockLabels labels = {
      {"mask_padding-c1", "mask_padding-c2"}, "mask_padding-c3", "mask_padding-c4"};
  return verifyBlock(*this, labels, getMeshAttr(), getAxes(), getType(), getDim(), getSize());
}

LogicalResult ShardSliceOp::verifySymbolUses(SymbolTableCollection &) {
  RankedTensorType input = getInput().getType(), result = getType();
  if (getDim() >= uint64_t(input.getRank()))
    return violates(*this, "shard_slice-c3") << "names dimension " << getDim() << " of " << input;
  SmallVector<int64_t> shape(input.getShape());
  shape[getDim()] = result.getRank() == input.getRank() ? result.getDimSize(getDim()) : -1;
  if (shape != result.getShape() || input.getElementType() != result.getElementType())
    return violates(*this, "shard_slice-c4")
           << "has a result of type " << result << " from " << input
           << ", expected another size of dimension " << getDim() << " only";
  BlockLabels labels = {{"shard_slice-c1", "shard_slice-c2"}, "shard_slice-c3", "shard_slice-c5"};
  return verifyBlock(*this, labels, getMeshAttr(), getAxes(), result, getDim(),
                     input.getDimSize(getDim()));
}
LogicalResult ShardOffsetOp::verifySymbolUses(SymbolTableCollection &) {
  if (int64_t size = getSize(); size < 1)
    return violates(*this, "shard_offset-c3") << "has size " << size << ", expected at least 1";
  return success(succeeded(groupSize(*this, {"shard_offset-c1", "shard_offset-c2"}, getMeshAttr(),
                                     getAxes(), /*temporalAllowed=*/true)));
}

LogicalResult CopyOp::verify() {
  if (getTo() != "host" && getTo() != "device")
    return violates(*this, "copy-c1")
           << "is to '" << getTo() << "', expected \"host\" or \"device\"";
  return success();
}
DictionaryAttr CopyOp::getKernelAttributes() { return DictionaryAttr::get(getContext()); }

DictionaryAttr ShardSliceOp::getKernelAttributes() {
  Builder b(getContext());
  return b.getDictionaryAttr(
      {b.getNamedAttr("dim", getDimAttr()), b.getNamedAttr("axes", getAxes())});
}
DictionaryAttr MaskPaddingOp::getKernelAttributes() {
  Builder b(getContext());
  return b.getDictionaryAttr({b.getNamedAttr("dim", getDimAttr()),
                              b.getNamedAttr("axes", getAxes()),
                              b.getNamedAttr("size", getSizeAttr()),
                              b.getNamedAttr("value", b.getStringAttr(name(getPadding())))});
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
    return violates(loop, "microbatch_loop-c4")
           << "has a schedule of " << schedule->size() << " numbers, expected pairs";
  for (auto [index, number] : llvm::enumerate(*schedule))
    if (number < 0 || number >= (index % 2 ? microbatches : ops))
      return violates(loop, "microbatch_loop-c5")
             << "has " << number << " at place " << index
             << " of its schedule, expected pairs of one of its " << ops << " ops and one of "
             << microbatches << " microbatches";
  return success();
}

LogicalResult MicrobatchLoopOp::verifySymbolUses(SymbolTableCollection &) {
  auto mesh = lookupMesh(*this, getMeshAttr());
  if (!mesh)
    return violates(*this, "microbatch_loop-c1")
           << "is over " << getMeshAttr() << ", which is not a dist.mesh";
  for (auto axis : mesh.getAxes().getAsRange<AxisAttr>()) {
    if (axis.getName() != getAxisAttr())
      continue;
    if (!axis.getTemporal())
      return violates(*this, "microbatch_loop-c2")
             << "is over axis " << getAxisAttr() << ", which is not temporal";
    for (Value result : getResults())
      if (axis.getSize() > 1 && !isWideTensor(result.getType()))
        return violates(*this, "microbatch_loop-c3")
               << "adds up values of type " << result.getType() << ", expected f32 or f64";
    return verifySchedule(*this, axis.getSize());
  }
  return violates(*this, "microbatch_loop-c2")
         << "is over axis " << getAxisAttr() << ", which " << getMeshAttr() << " lacks";
}

LogicalResult BucketOp::verifyRegions() {
  Block &block = getBody().front();
  auto yield = cast<YieldOp>(block.getTerminator());
  Operation *first = nullptr;
  llvm::SmallVector<Value> results;
  for (Operation &op : block.without_terminator()) {
    if (!isa<CollectiveOpInterface>(op))
      return violates(&op, "bucket-c1") << "cannot stand in a dist.bucket, which holds collectives";
    if (!first)
      first = &op;
    if (!canShareBucket(first, &op))
      return violates(&op, "bucket-c2")
             << "is of another kind or over other axes than the first collective "
                "of its dist.bucket";
    if (op.getOperand(0).getParentBlock() == &block)
      return violates(&op, "bucket-c3") << "reads a result of its own dist.bucket";
    results.push_back(op.getResult(0));
  }
  if (SmallVector<Value>(yield.getValues()) != results ||
      yield.getOperandTypes() != getResultTypes())
    return violates(*this, "bucket-c4")
           << "yields other values than those of its collectives, in their order";
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
  // Whether two collectives have the same groups and combine values alike; dimensions may differ.
  return a->getName() == b->getName() && elementType(a) == elementType(b) &&
         llvm::all_of(
             ArrayRef<StringRef>{"mesh", "axes", "source_axes", "shift", "kind", kStageAttrName},
             [&](StringRef name) { return a->getAttr(name) == b->getAttr(name); });
}

LogicalResult MicrobatchLoopOp::verifyRegions() {
  Block &body = getBody().front();
  for (Operation &op : body.without_terminator())
    if (getSchedule() && !isa<FragmentOp, SendOp, ReceiveOp>(op))
      return violates(&op, "microbatch_loop-c6")
             << "cannot stand in a loop with a schedule, which holds fragments, "
                "sends and receives";
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getOperandTypes() != getResultTypes())
    return violates(*this, "microbatch_loop-c7")
           << "yields values of types (" << yield.getOperandTypes()
           << "), expected those of its results (" << getResultTypes() << ")";
  return success();
}

LogicalResult FragmentOp::verify() {
  if (int64_t stage = getStage(); stage < 0)
    return violates(*this, "fragment-c1")
           << "is in stage " << stage << ", which does not exist; stages count from 0";
  return success();
}

LogicalResult FragmentOp::verifyRegions() {
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getOperandTypes() != getResultTypes())
    return violates(*this, "fragment-c2")
           << "yields values of types (" << yield.getOperandTypes()
           << "), expected those of its results (" << getResultTypes() << ")";
  return success();
}

/// The labels of the constraints of verifyTransfer.
struct TransferLabels {
  StringRef values, ends, numbers;
};

static LogicalResult verifyTransfer(Operation *op, const TransferLabels &labels, size_t values,
                                    int64_t peer, int64_t channel,
                                    std::optional<ArrayRef<int64_t>> numbers) {
  if (values == 0)
    return violates(op, labels.values) << "moves no value";
  if (peer < 0 || channel < 0)
    return violates(op, labels.ends) << "has the peer " << peer << " and the channel " << channel
                                     << ", expected at least 0 of each";
  if (numbers && (numbers->size() != values ||
                  llvm::any_of(*numbers, [](int64_t number) { return number < 0; })))
    return violates(op, labels.numbers) << "has the numbers [" << *numbers << "] for " << values
                                        << " values, expected one of at least 0 for each";
  return success();
}

LogicalResult SendOp::verify() {
  return verifyTransfer(*this, {"send-c1", "send-c2", "send-c3"}, getValues().size(), getPeer(),
                        getChannel(), getNumbers());
}
LogicalResult ReceiveOp::verify() {
  return verifyTransfer(*this, {"receive-c1", "receive-c2", "receive-c3"}, getResults().size(),
                        getPeer(), getChannel(), getNumbers());
}

#include "dialects/dist/DistInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/dist/DistOps.cpp.inc"
