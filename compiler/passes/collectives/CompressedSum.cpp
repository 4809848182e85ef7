//===- CompressedSum.cpp - Ops and states of compressed sums --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/collectives/CompressedSum.h"

#include "compiler/analysis/DescribeLocation.h"

#include <numeric>

using namespace mlir;
using namespace dtc;

int64_t dtc::elementsFrom(ArrayRef<int64_t> shape, size_t first) {
  int64_t count = 1;
  for (int64_t size : shape.drop_front(first))
    count *= size;
  return count;
}

BlockArgument dtc::argumentOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (op->getNumOperands() == 0)
      return {};
    value = op->getOperand(0);
  }
  return cast<BlockArgument>(value);
}

SmallVector<Operation *> dtc::chainFrom(Operation *sum) {
  SmallVector<Operation *> chain;
  for (Operation *op = sum; op->getNumResults() == 1 && op->getResult(0).hasOneUse();) {
    op = *op->getUsers().begin();
    if (!isa<dist::CollectiveOpInterface, ReshapeOp, ConvertOp, PadOp, SliceOp>(op))
      break;
    chain.push_back(op);
  }
  return chain;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

ArrayAttr SumBuilder::names(ArrayRef<unsigned> axes) {
  SmallVector<StringRef> names;
  for (unsigned axis : axes)
    names.push_back(mesh.axes[axis].name);
  return builder.getStrArrayAttr(names);
}

Value SumBuilder::reshape(const GradientSum &sum, Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  return create<ReshapeOp>(sum, RankedTensorType::get(shape, type.getElementType()), value);
}

Value SumBuilder::resize(const GradientSum &sum, Value value, ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> has = cast<RankedTensorType>(value.getType()).getShape();
  SmallVector<int64_t> zeros(shape.size(), 0), kept, added;
  for (auto [before, after] : llvm::zip_equal(has, shape)) {
    kept.push_back(std::min(before, after));
    added.push_back(after - kept.back());
  }
  if (ArrayRef<int64_t>(kept) != has)
    value = create<SliceOp>(sum, value, zeros, kept);
  if (ArrayRef<int64_t>(kept) != shape)
    value = create<PadOp>(sum, value, zeros, added, 0.0);
  return value;
}

Value SumBuilder::sumOver(const GradientSum &sum, Value value, ArrayRef<unsigned> axes) {
  if (axes.empty())
    return value;
  return create<dist::AllReduceOp>(sum, value.getType(), ReductionKind::Sum, value, mesh.name,
                                   names(axes));
}

Value SumBuilder::allGather(const GradientSum &sum, Value value, int64_t dim,
                            ArrayRef<unsigned> axes) {
  if (axes.empty())
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[size_t(dim)] *= mesh.product(axes);
  return create<dist::AllGatherOp>(sum, RankedTensorType::get(shape, type.getElementType()), value,
                                   dim, mesh.name, names(axes));
}

Value SumBuilder::allToAll(const GradientSum &sum, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[0] /= sum.group;
  shape[1] *= sum.group;
  return create<dist::AllToAllOp>(sum, RankedTensorType::get(shape, type.getElementType()), value,
                                  0, 1, mesh.name, names(axis()));
}

Value SumBuilder::shardSlice(const GradientSum &sum, Value value, int64_t dim,
                             ArrayRef<unsigned> axes) {
  if (axes.empty())
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[size_t(dim)] = mesh.localSize(shape[size_t(dim)], axes);
  return create<dist::ShardSliceOp>(sum, RankedTensorType::get(shape, type.getElementType()), value,
                                    dim, mesh.name, names(axes));
}

InFlightDiagnostic SumBuilder::remark(const GradientSum &sum) {
  InFlightDiagnostic diagnostic = sum.op->emitRemark();
  diagnostic << "the gradient of " << describeLocation(sum.op->getLoc()) << " ";
  return diagnostic;
}

//===----------------------------------------------------------------------===//
// Layouts and states
//===----------------------------------------------------------------------===//

StringAttr SumBuilder::parameterName(const GradientSum &sum) {
  return sum.state ? function.getArgAttrOfType<StringAttr>(sum.state.getArgNumber(), "dtc.state_of")
                   : StringAttr();
}

BlockArgument SumBuilder::randomKey() {
  for (BlockArgument argument : function.getArguments())
    if (auto state = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                           DtcDialect::kStepStateAttrName);
        state && state.getValue() == "random_key")
      return argument;
  return {};
}

std::optional<Layout> SumBuilder::addendLayout(const GradientSum &sum) {
  if (!parameterName(sum))
    return std::nullopt;
  auto sharding = function.getArgAttrOfType<dist::ShardingAttr>(sum.state.getArgNumber(),
                                                                dist::kShardingAttrName);
  if (!sharding || sharding.getDims().size() != sum.shape.size() ||
      sum.type().getRank() != int64_t(sum.shape.size()))
    return std::nullopt;
  Layout layout = getLayout(mesh, sharding).complete();
  // Before a collective gathers it, a dimension is split over the axes of that collective as well.
  for (Operation *op : llvm::reverse(chainFrom(sum.op)))
    if (auto gather = dyn_cast<dist::AllGatherOp>(op))
      for (StringRef name : axesOf(op))
        layout.dims[gather.getDim()].push_back(*mesh.find(name));
  auto scatter = dyn_cast<dist::ReduceScatterOp>(sum.op);
  for (auto [dim, local] : llvm::enumerate(sum.type().getShape())) {
    AxisList &list = layout.dims[dim];
    llvm::erase(list, axis());
    // A dimension that is scattered after this sum is whole before it.
    while (!list.empty() && mesh.localSize(sum.shape[dim], list) < local)
      list.pop_back();
    bool isPaddedByZero = scatter && scatter.getDim() == dim && list.empty();
    if (!mesh.divides(sum.shape[dim], list) ||
        (mesh.localSize(sum.shape[dim], list) != local && !isPaddedByZero))
      return std::nullopt;
  }
  return layout;
}

FailureOr<BlockArgument> SumBuilder::addState(const GradientSum &sum, StringRef name,
                                              ArrayRef<int64_t> shape, const Layout &layout) {
  StringAttr parameter = parameterName(sum);
  unsigned count = statesOf[(parameter.getValue() + "." + name).str()]++;
  std::string state = count == 0 ? name.str() : name.str() + std::to_string(count);
  NamedAttrList attributes;
  attributes.set("dtc.state", builder.getStringAttr(state));
  attributes.set("dtc.state_of", parameter);
  attributes.set("dtc.global_shape", builder.getDenseI64ArrayAttr(shape));
  attributes.set(dist::kShardingAttrName, toAttr(builder.getContext(), mesh, layout));
  auto type = RankedTensorType::get(layout.localShape(mesh, shape), sum.type().getElementType());
  unsigned index = function.getNumArguments();
  if (failed(function.insertArgument(index, type, attributes.getDictionary(builder.getContext()),
                                     sum.state.getLoc())))
    return failure();
  return function.getArgument(index);
}

void SumBuilder::updateState(const GradientSum &sum, BlockArgument state, Value next) {
  OpBuilder::InsertionGuard guard(builder);
  Operation *ret = function.front().getTerminator();
  builder.setInsertionPoint(ret);
  auto type = cast<RankedTensorType>(state.getType());
  Value applies;
  if (sum.apply)
    applies = create<BroadcastOp>(sum, RankedTensorType::get(type.getShape(), builder.getI1Type()),
                                  sum.apply, ArrayRef<int64_t>());
  Value chosen = reshape(sum, next, type.getShape());
  if (applies)
    chosen = create<SelectOp>(sum, applies, chosen, state);
  ret->insertOperands(ret->getNumOperands(), chosen);
  auto argument = int64_t(state.getArgNumber());
  NamedAttrList attributes;
  attributes.set("dtc.updates", builder.getI64IntegerAttr(argument));
  attributes.set("dtc.global_shape",
                 function.getArgAttrDict(unsigned(argument)).get("dtc.global_shape"));
  (void)function.insertResult(function.getNumResults(), type,
                              attributes.getDictionary(builder.getContext()));
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

/// The largest divisor of `number` that is at most `most`.
static int64_t largestDivisor(int64_t number, int64_t most) {
  for (int64_t divisor = std::min(number, most);; --divisor)
    if (number % divisor == 0)
      return divisor;
}

/// The consecutive elements of the parameter that blocks divide; 0 where all are consecutive on a
/// device, and none where a dimension is padded, which is returned in `padded`.
static std::optional<int64_t> stretchOf(const GradientSum &sum, size_t &padded) {
  ArrayRef<int64_t> operand = sum.type().getShape(), part = sum.resultType().getShape();
  // Consecutive elements of the parameter are consecutive on a device up to the last dimension that
  // is cut: blocks divide these stretches, and the rows of that dimension if it is padded.
  int64_t stretch = 0;
  for (size_t dim = 0; dim < operand.size(); ++dim) {
    if (operand[dim] < sum.shape[dim] && sum.shape[dim] % operand[dim] != 0) {
      padded = dim;
      return std::nullopt;
    }
    if (part[dim] == sum.shape[dim])
      continue;
    bool hasRows = elementsFrom(sum.shape) > elementsFrom(sum.shape, dim);
    stretch = elementsFrom(part, dim);
    if (operand[dim] > sum.shape[dim] && hasRows)
      stretch = std::gcd(stretch, elementsFrom(sum.shape, dim));
  }
  return stretch;
}

int64_t dtc::blockOf(SumBuilder &build, const GradientSum &sum) {
  size_t padded = 0;
  std::optional<int64_t> stretch = stretchOf(sum, padded);
  if (!stretch) {
    build.remark(sum) << "is summed over \"" << build.settings.axis << "\" in full, as dimension "
                      << padded << " of " << sum.shape[padded]
                      << " elements is padded to shards of " << sum.type().getDimSize(padded);
    return 0;
  }
  int64_t wanted = std::min(build.settings.block, elementsFrom(sum.shape));
  return *stretch == 0 ? wanted : largestDivisor(*stretch, wanted);
}

void dtc::remarkOnBlock(SumBuilder &build, const GradientSum &sum, int64_t block) {
  size_t padded = 0;
  int64_t wanted = std::min(build.settings.block, elementsFrom(sum.shape));
  if (block != wanted)
    build.remark(sum) << "has blocks of " << block << " elements and not of " << wanted
                      << ", since a device has parts of " << *stretchOf(sum, padded)
                      << " consecutive elements; the result is not that of other layouts";
}
