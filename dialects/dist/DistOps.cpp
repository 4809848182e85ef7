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
        std::string axis;
        int64_t size = 0;
        if (parser.parseString(&axis) || parser.parseEqual() || parser.parseInteger(size))
          return failure();
        bool temporal = succeeded(parser.parseOptionalKeyword("temporal"));
        SMLoc loc = parser.getCurrentLocation();
        auto attr = AxisAttr::getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                                         parser.getBuilder().getStringAttr(axis), size, temporal);
        if (!attr)
          return failure();
        axes.push_back(attr);
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
    auto axis = cast<AxisAttr>(attr);
    printer << axis.getName() << "=" << axis.getSize() << (axis.getTemporal() ? " temporal" : "");
  });
  printer << ">";
  printer.printOptionalAttrDict((*this)->getAttrs(), {"sym_name", "axes"});
}

LogicalResult MeshOp::verify() {
  llvm::StringSet<> names;
  int temporal = 0;
  int64_t devices = 1;
  for (Attribute attr : getAxes()) {
    auto axis = cast<AxisAttr>(attr);
    if (!names.insert(axis.getName().getValue()).second)
      return emitOpError() << "has two axes named " << axis.getName();
    if (axis.getTemporal())
      ++temporal;
    else
      devices *= axis.getSize();
    if (devices > kMaxMeshSize)
      return emitOpError() << "has more than " << kMaxMeshSize << " devices";
  }
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
LogicalResult ShardSliceOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyCollective(*this, {{getDim(), false}}, /*temporalAllowed=*/true);
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
DictionaryAttr ShardOffsetOp::getKernelAttributes() {
  Builder b(getContext());
  return b.getDictionaryAttr(
      {b.getNamedAttr("size", getSizeAttr()), b.getNamedAttr("axes", getAxes())});
}

LogicalResult MicrobatchLoopOp::verifySymbolUses(SymbolTableCollection &) {
  auto mesh = lookupMesh(*this, getMeshAttr());
  if (!mesh)
    return emitOpError() << "is over " << getMeshAttr() << ", which is not a dist.mesh";
  for (Attribute attr : mesh.getAxes())
    if (cast<AxisAttr>(attr).getName() == getAxisAttr())
      return cast<AxisAttr>(attr).getTemporal()
                 ? success()
                 : LogicalResult(emitOpError()
                                 << "is over axis " << getAxisAttr() << ", which is not temporal");
  return emitOpError() << "is over axis " << getAxisAttr() << ", which " << getMeshAttr()
                       << " lacks";
}

LogicalResult MicrobatchLoopOp::verifyRegions() {
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getOperandTypes() != getResultTypes())
    return emitOpError() << "yields values of types (" << yield.getOperandTypes()
                         << "), expected those of its results (" << getResultTypes() << ")";
  return success();
}

#define GET_OP_CLASSES
#include "dialects/dist/DistOps.cpp.inc"
