//===- CompressGradients.cpp - Sums of gradients as integers --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A gradient G = sum of g_r over the devices r of an axis becomes Q(sum of Q(g_r)), where Q makes
// integers of blocks of elements (dist.quantize_blocks). A block is whole on a device in each
// layout that cuts the gradient at multiples of the block, so the result does not depend on the
// layout.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DescribeLocation.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/precision/GradientSums.h"
#include "dialects/dist/DistCompressionOps.h"
#include "support/QuantizedBlocks.h"

#include <numeric>

namespace dtc {
#define GEN_PASS_DEF_COMPRESSGRADIENTSPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

/// Compresses the sums of one function.
class GradientCompressor {
public:
  GradientCompressor(func::FuncOp function, const LinkedMesh &mesh,
                     const CompressGradientsPassOptions &options)
      : function(function), mesh(mesh), options(options), builder(function.getContext()) {}
  LogicalResult run();

private:
  /// A sum, and how it is compressed.
  struct Sum {
    Operation *op;
    OptimizerOpInterface optimizer;
    SmallVector<int64_t> shape; ///< the parameter's, on all devices together
    int64_t group = 1;          ///< the devices of the axis
    int64_t block = 1;          ///< elements with one scale
    bool scatters() const { return isa<dist::ReduceScatterOp>(op); }
    RankedTensorType type() const { return cast<RankedTensorType>(op->getOperand(0).getType()); }
  };
  /// What the first half of a sum leaves for the second one.
  struct Sent {
    Sum sum;
    Value received;       ///< i32[blocks of this device, devices * words]
    int64_t elements = 0; ///< of the gradient, with what makes parts equal
    Value rounded;        ///< the integers of the sum, of this device or gathered
  };

  LogicalResult check(const Sum &sum);
  bool chooseBlock(Sum &sum);
  SmallVector<Sum> findSums();
  FailureOr<Sent> begin(const Sum &sum);
  Sent send(const Sum &sum, Value addend);
  void finish(MutableArrayRef<Sent> sums, Operation *place);
  void add(Sent &sent);
  Value result(const Sent &sent);
  FailureOr<BlockArgument> addResidual(const Sum &sum);
  void updateResidual(const Sum &sum, BlockArgument residual, Value lost);
  Value sumOver(const Sum &sum, Value addend, ArrayRef<StringRef> axes);
  Value completeAddend(const Sum &sum, Value addend);
  Value quantize(const Sum &sum, Value floats, int64_t dim, int64_t parts);
  Value dequantize(const Sum &sum, Value words, ArrayRef<int64_t> shape, int64_t dim,
                   int64_t parts);
  Value reshape(const Sum &sum, Value value, ArrayRef<int64_t> shape);
  Value resize(const Sum &sum, Value value, int64_t elements);
  Value gradientOf(const Sum &sum, Value words, int64_t elements, int64_t parts,
                   RankedTensorType type);

  /// Builds an op that stands for a part of the sum: in its stage.
  template <typename OpT, typename... Args> OpT create(const Sum &sum, Args &&...args) {
    auto op = OpT::create(builder, sum.op->getLoc(), std::forward<Args>(args)...);
    for (StringRef name : {StringRef(dist::kStageAttrName), StringRef(dist::kReasonAttrName)})
      if (Attribute attr = sum.op->getAttr(name);
          attr &&
          (name == dist::kStageAttrName || isa<dist::CollectiveOpInterface>(op.getOperation())))
        op->setAttr(name, attr);
    return op;
  }
  ArrayAttr axes() { return builder.getStrArrayAttr({StringRef(options.axis)}); }

  func::FuncOp function;
  const LinkedMesh &mesh;
  const CompressGradientsPassOptions &options;
  OpBuilder builder;
  llvm::DenseMap<Attribute, unsigned> residualsOf; ///< by the name of the parameter
};

} // namespace

/// The argument of the function that a value is, or a part or a conversion of.
static BlockArgument argumentOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (op->getNumOperands() == 0)
      return {};
    value = op->getOperand(0);
  }
  return cast<BlockArgument>(value);
}

static SmallVector<int64_t> globalShapeOf(func::FuncOp function, BlockArgument argument) {
  if (auto shape =
          function.getArgAttrOfType<DenseI64ArrayAttr>(argument.getArgNumber(), "dtc.global_shape"))
    return SmallVector<int64_t>(shape.asArrayRef());
  return SmallVector<int64_t>(cast<RankedTensorType>(argument.getType()).getShape());
}

/// The product of the sizes of dimensions `first` and after.
static int64_t elementsFrom(ArrayRef<int64_t> shape, size_t first = 0) {
  int64_t count = 1;
  for (int64_t size : shape.drop_front(first))
    count *= size;
  return count;
}

/// The largest divisor of `number` that is at most `most`.
static int64_t largestDivisor(int64_t number, int64_t most) {
  for (int64_t divisor = std::min(number, most);; --divisor)
    if (number % divisor == 0)
      return divisor;
}

LogicalResult GradientCompressor::check(const Sum &sum) {
  auto collective = cast<dist::CollectiveOpInterface>(sum.op);
  auto error = [&] {
    return sum.op->emitError() << "the gradient of " << describeLocation(sum.op->getLoc())
                               << " cannot be summed over \"" << options.axis
                               << "\" as integers: it ";
  };
  if (!isWideTensor(sum.type()))
    return error() << "has type " << sum.type()
                   << ", expected f32 or f64; reduce gradients in f32 (--grad-reduce-dtype)";
  if (sum.scatters() && collective.getAxes().size() > 1)
    return error() << "is scattered over several axes, " << collective.getAxes()
                   << "; have ZeRO split over \"" << options.axis << "\" alone (--zero-axes)";
  auto loop = sum.op->getParentOfType<dist::MicrobatchLoopOp>();
  if (loop && mesh.axes[*mesh.find(loop.getAxis())].size > 1)
    return error() << "is summed once for each microbatch, and would be rounded each time; choose "
                      "a ZeRO stage of at most 1 (--zero), or one microbatch";
  if (loop && options.feedback)
    return error()
           << "is summed inside of the loop over microbatches, from which no residual "
              "comes; choose several microbatches and a ZeRO stage of at most 1 (--zero), or no "
              "feedback";
  return success();
}

/// Chooses the block of a sum. Returns whether it gets smaller, else says why not in a remark.
bool GradientCompressor::chooseBlock(Sum &sum) {
  ArrayRef<int64_t> operand = sum.type().getShape();
  ArrayRef<int64_t> part = cast<RankedTensorType>(sum.op->getResult(0).getType()).getShape();
  auto remark = [&] {
    return sum.op->emitRemark() << "the gradient of " << describeLocation(sum.op->getLoc()) << " ";
  };
  if (sum.shape.size() != operand.size())
    sum.shape.assign(operand.begin(), operand.end()); // it is reshaped after the sum
  int64_t wanted = std::min(options.block, elementsFrom(sum.shape));
  // Consecutive elements of the parameter are consecutive on a device up to the last dimension that
  // is cut: blocks divide these stretches, and the rows of that dimension if it is padded.
  int64_t stretch = 0;
  for (size_t dim = 0; dim < operand.size(); ++dim) {
    if (operand[dim] < sum.shape[dim] && sum.shape[dim] % operand[dim] != 0) {
      remark() << "is summed over \"" << options.axis << "\" in full, as dimension " << dim
               << " of " << sum.shape[dim] << " elements is padded to shards of " << operand[dim];
      return false;
    }
    if (part[dim] == sum.shape[dim])
      continue;
    bool hasRows = elementsFrom(sum.shape) > elementsFrom(sum.shape, dim);
    stretch = elementsFrom(part, dim);
    if (operand[dim] > sum.shape[dim] && hasRows)
      stretch = std::gcd(stretch, elementsFrom(sum.shape, dim));
  }
  sum.block = stretch == 0 ? wanted : largestDivisor(stretch, wanted);
  QuantizedBlocks blocks{.bits = options.bits, .block = sum.block};
  auto bytes = int64_t(sum.type().getElementTypeBitWidth() / 8);
  if (blocks.words() * 4 >= sum.block * bytes) {
    remark() << "is summed over \"" << options.axis << "\" in full, as blocks of length "
             << sum.block << " with their scales are no smaller";
    return false;
  }
  if (sum.block != wanted)
    remark() << "has blocks of " << sum.block << " elements and not of " << wanted
             << ", since a device has parts of " << stretch
             << " consecutive elements; the result is not that of other layouts";
  return true;
}

Value GradientCompressor::reshape(const Sum &sum, Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  return create<ReshapeOp>(sum, RankedTensorType::get(shape, type.getElementType()), value);
}

/// A vector with zeros after its elements, or without its last ones.
Value GradientCompressor::resize(const Sum &sum, Value value, int64_t elements) {
  int64_t has = cast<RankedTensorType>(value.getType()).getDimSize(0);
  if (has > elements)
    return create<SliceOp>(sum, value, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{elements});
  if (has < elements)
    return create<PadOp>(sum, value, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{elements - has}, 0.0);
  return value;
}

Value GradientCompressor::quantize(const Sum &sum, Value floats, int64_t dim, int64_t parts) {
  QuantizedBlocks blocks{.bits = options.bits,
                         .block = sum.block,
                         .parts = parts,
                         .elements = cast<RankedTensorType>(floats.getType()).getNumElements()};
  auto type = RankedTensorType::get({blocks.rows(), blocks.words()}, builder.getI32Type());
  return create<dist::QuantizeBlocksOp>(sum, type, floats, options.bits, sum.block, dim, parts);
}

Value GradientCompressor::dequantize(const Sum &sum, Value words, ArrayRef<int64_t> shape,
                                     int64_t dim, int64_t parts) {
  auto type = RankedTensorType::get(shape, sum.type().getElementType());
  return create<dist::DequantizeBlocksOp>(sum, type, words, options.bits, sum.block, dim, parts);
}

Value GradientCompressor::sumOver(const Sum &sum, Value addend, ArrayRef<StringRef> axes) {
  if (axes.empty())
    return addend;
  return create<dist::AllReduceOp>(sum, addend.getType(), ReductionKind::Sum, addend, mesh.name,
                                   builder.getStrArrayAttr(axes));
}

/// The ops that read a gradient alone, one after the other, from a sum to its optimizer.
static SmallVector<Operation *> chainFrom(Operation *sum) {
  SmallVector<Operation *> chain;
  for (Operation *op = sum; op->getNumResults() == 1 && op->getResult(0).hasOneUse();) {
    op = *op->getUsers().begin();
    if (!isa<dist::CollectiveOpInterface, ReshapeOp, ConvertOp, PadOp, SliceOp>(op))
      break;
    chain.push_back(op);
  }
  return chain;
}

static auto axesOf(Operation *collective) {
  return cast<dist::CollectiveOpInterface>(collective).getAxes().getAsValueRange<StringAttr>();
}

/// The addend summed over all axes but the one that is compressed: the others of the op, and those
/// of sums that come after it, as where ZeRO scatters over one axis and the gradient is partial
/// over another one too. These are taken away.
Value GradientCompressor::completeAddend(const Sum &sum, Value addend) {
  SmallVector<StringRef> others;
  for (StringRef name : axesOf(sum.op))
    if (name != options.axis)
      others.push_back(name);
  addend = sumOver(sum, addend, others);
  for (Operation *op : chainFrom(sum.op)) {
    auto later = dyn_cast<dist::AllReduceOp>(op);
    if (!later || later.getReduction().getValue() != ReductionKind::Sum ||
        llvm::is_contained(axesOf(op), options.axis))
      continue;
    addend = sumOver(sum, addend, llvm::to_vector(axesOf(op)));
    later.getResult().replaceAllUsesWith(later.getOperand());
    later.erase();
  }
  return addend;
}

/// Makes integers of this device's addend and sends each device those of its part.
GradientCompressor::Sent GradientCompressor::send(const Sum &sum, Value addend) {
  Sent sent{.sum = sum};
  Value words;
  if (auto scatter = dyn_cast<dist::ReduceScatterOp>(sum.op)) {
    sent.elements = sum.type().getNumElements();
    words = quantize(sum, addend, int64_t(scatter.getDim()), sum.group);
  } else {
    int64_t elements = sum.type().getNumElements(), whole = sum.group * sum.block;
    sent.elements = (elements + whole - 1) / whole * whole;
    Value vector = resize(sum, reshape(sum, addend, {elements}), sent.elements);
    words = quantize(sum, vector, 0, sum.group);
  }
  ArrayRef<int64_t> shape = cast<RankedTensorType>(words.getType()).getShape();
  auto type =
      RankedTensorType::get({shape[0] / sum.group, shape[1] * sum.group}, builder.getI32Type());
  sent.received = create<dist::AllToAllOp>(sum, type, words, 0, 1, mesh.name, axes());
  return sent;
}

/// Adds the addends of the devices in the order of the axis, and makes integers of the sum. These
/// stay on this device, or are gathered on all.
void GradientCompressor::add(Sent &sent) {
  const Sum &sum = sent.sum;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(sent.received.getType()).getShape();
  int64_t blocks = shape[0], words = shape[1] / sum.group;
  Value rows = reshape(sum, sent.received, {blocks * sum.group, words});
  Value addends = dequantize(sum, rows, {blocks, sum.group, sum.block}, 0, 1);
  Value total = create<ReduceOp>(sum, addends, ReductionKind::Sum, ArrayRef<int64_t>{1});
  sent.rounded = quantize(sum, total, 0, 1);
  if (sum.scatters())
    return;
  auto type = RankedTensorType::get({blocks * sum.group, words}, builder.getI32Type());
  sent.rounded = create<dist::AllGatherOp>(sum, type, sent.rounded, 0, mesh.name, axes());
}

/// The tensor whose elements, with zeros after them, are in the words.
Value GradientCompressor::gradientOf(const Sum &sum, Value words, int64_t elements, int64_t parts,
                                     RankedTensorType type) {
  Value vector = dequantize(sum, words, {elements}, 0, parts);
  return reshape(sum, resize(sum, vector, type.getNumElements()), type.getShape());
}

/// The sum as floats.
Value GradientCompressor::result(const Sent &sent) {
  const Sum &sum = sent.sum;
  auto type = cast<RankedTensorType>(sum.op->getResult(0).getType());
  if (sum.scatters())
    return dequantize(sum, sent.rounded, type.getShape(), 0, 1);
  return gradientOf(sum, sent.rounded, sent.elements, 1, type);
}

/// Ends sums before `place`, which is the first op that needs one of them. The steps of one sum are
/// not next to each other, so that collectives of several sums can share buckets.
void GradientCompressor::finish(MutableArrayRef<Sent> sums, Operation *place) {
  builder.setInsertionPoint(place);
  for (Sent &sent : sums)
    add(sent);
  for (const Sent &sent : sums) {
    sent.sum.op->getResult(0).replaceAllUsesWith(result(sent));
    sent.sum.op->erase();
  }
}

/// Begins a sum where its operand is made.
FailureOr<GradientCompressor::Sent> GradientCompressor::begin(const Sum &sum) {
  Value addend = sum.op->getOperand(0);
  builder.setInsertionPoint(sum.op);
  if (Operation *definer = addend.getDefiningOp();
      definer && definer->getBlock() == sum.op->getBlock())
    builder.setInsertionPointAfter(definer);
  addend = completeAddend(sum, addend);
  BlockArgument residual;
  if (options.feedback) {
    FailureOr<BlockArgument> added = addResidual(sum);
    if (failed(added))
      return failure();
    residual = *added;
    Value lost = reshape(sum, residual, sum.type().getShape());
    addend = create<AddOp>(sum, addend, lost);
  }
  Sent sent = send(sum, addend);
  if (residual) {
    Value words = sent.received.getDefiningOp()->getOperand(0), kept;
    if (auto scatter = dyn_cast<dist::ReduceScatterOp>(sum.op))
      kept = dequantize(sum, words, sum.type().getShape(), int64_t(scatter.getDim()), sum.group);
    else
      kept = gradientOf(sum, words, sent.elements, sum.group, sum.type());
    updateResidual(sum, residual, create<SubOp>(sum, addend, kept));
  }
  return sent;
}

/// Adds a state of the function for each device with an addend of its own: the part of its last
/// addend that rounding has lost.
FailureOr<BlockArgument> GradientCompressor::addResidual(const Sum &sum) {
  // The first moment lies as the gradient does that its optimizer reads.
  BlockArgument moment = argumentOf(sum.optimizer->getOperand(2));
  unsigned number = moment.getArgNumber();
  auto name = function.getArgAttrOfType<StringAttr>(number, "dtc.state_of");
  auto sharding = function.getArgAttrOfType<dist::ShardingAttr>(number, dist::kShardingAttrName);
  if (!name || !sharding || sharding.getDims().size() != sum.shape.size())
    return sum.op->emitError() << "the gradient of " << describeLocation(sum.op->getLoc())
                               << " has no state beside it that lies as it does, so that nothing "
                                  "says how its residual would; choose no feedback";
  Layout layout = getLayout(mesh, sharding);
  SmallVector<int64_t> shape = {0};
  // Where a later collective joins what devices have, their addends differ along its axes too.
  Layout ofResidual{.dims = {AxisList{*mesh.find(options.axis)}}};
  for (Operation *op : chainFrom(sum.op))
    if (isa<dist::CollectiveOpInterface>(op))
      for (StringRef name : axesOf(op))
        if (unsigned axis = *mesh.find(name); !llvm::is_contained(ofResidual.dims[0], axis))
          ofResidual.dims[0].push_back(axis);
  shape[0] = mesh.product(ofResidual.dims[0]);
  for (auto [dim, local] : llvm::enumerate(sum.type().getShape())) {
    AxisList list = layout.dims[dim];
    llvm::erase_if(list,
                   [&](unsigned axis) { return llvm::is_contained(ofResidual.dims[0], axis); });
    // A dimension that is scattered after this sum is whole before it.
    while (!list.empty() && mesh.localSize(sum.shape[dim], list) < local)
      list.pop_back();
    shape.push_back(local * mesh.product(list));
    ofResidual.dims.push_back(list);
  }
  unsigned count = residualsOf[name]++;
  std::string state = count == 0 ? "residual" : "residual" + std::to_string(count);
  NamedAttrList attributes;
  attributes.set("dtc.state", builder.getStringAttr(state));
  attributes.set("dtc.state_of", name);
  attributes.set("dtc.global_shape", builder.getDenseI64ArrayAttr(shape));
  attributes.set(dist::kShardingAttrName, toAttr(builder.getContext(), mesh, ofResidual));
  SmallVector<int64_t> local = {1};
  llvm::append_range(local, sum.type().getShape());
  auto type = RankedTensorType::get(local, sum.type().getElementType());
  unsigned index = function.getNumArguments();
  if (failed(function.insertArgument(index, type, attributes.getDictionary(builder.getContext()),
                                     moment.getLoc())))
    return failure();
  return function.getArgument(index);
}

/// Returns the new residual, or the old one of a step that is skipped.
void GradientCompressor::updateResidual(const Sum &sum, BlockArgument residual, Value lost) {
  OpBuilder::InsertionGuard guard(builder);
  Operation *ret = function.front().getTerminator();
  builder.setInsertionPoint(ret);
  auto type = cast<RankedTensorType>(residual.getType());
  Value apply = sum.optimizer->getOperands().back();
  auto mask = RankedTensorType::get(type.getShape(), builder.getI1Type());
  Value applies = create<BroadcastOp>(sum, mask, apply, ArrayRef<int64_t>());
  Value next = create<SelectOp>(sum, applies, reshape(sum, lost, type.getShape()), residual);
  ret->insertOperands(ret->getNumOperands(), next);
  auto argument = int64_t(residual.getArgNumber());
  NamedAttrList attributes;
  attributes.set("dtc.updates", builder.getI64IntegerAttr(argument));
  auto arguments = function.getArgAttrDict(unsigned(argument));
  attributes.set("dtc.global_shape", arguments.get("dtc.global_shape"));
  (void)function.insertResult(function.getNumResults(), type,
                              attributes.getDictionary(builder.getContext()));
}

/// The sums over the axis of gradients that optimizers read, in the order of the function.
SmallVector<GradientCompressor::Sum> GradientCompressor::findSums() {
  llvm::DenseMap<Operation *, OptimizerOpInterface> found;
  function.walk([&](OptimizerOpInterface optimizer) {
    for (Operation *op : findGradientSums(optimizer))
      if (llvm::is_contained(cast<dist::CollectiveOpInterface>(op).getAxes(),
                             builder.getStringAttr(options.axis)))
        found.try_emplace(op, optimizer);
  });
  SmallVector<Sum> sums;
  function.walk([&](Operation *op) {
    auto it = found.find(op);
    if (it == found.end())
      return;
    BlockArgument parameter = argumentOf(it->second.getParameterMutable().get());
    sums.push_back(
        {.op = op,
         .optimizer = it->second,
         .shape = parameter ? globalShapeOf(function, parameter) : SmallVector<int64_t>(),
         .group = mesh.axes[*mesh.find(options.axis)].size});
  });
  return sums;
}

/// The first op of the block of `op` that needs its result, or the end of the block.
static Operation *firstUserOf(Operation *op) {
  Block *block = op->getBlock();
  Operation *first = block->getTerminator();
  for (Operation *user : op->getUsers())
    if (Operation *inBlock = block->findAncestorOpInBlock(*user);
        inBlock && inBlock->isBeforeInBlock(first))
      first = inBlock;
  return first;
}

LogicalResult GradientCompressor::run() {
  SmallVector<Sent> begun;
  for (Sum &sum : findSums()) {
    if (failed(check(sum)))
      return failure();
    if (!chooseBlock(sum))
      continue;
    FailureOr<Sent> sent = begin(sum);
    if (failed(sent))
      return failure();
    begun.push_back(*sent);
  }
  // Sums end together where the first of their results is needed.
  for (MutableArrayRef<Sent> rest = begun; !rest.empty();) {
    Operation *place = firstUserOf(rest[0].sum.op);
    size_t count = 1;
    for (; count < rest.size(); ++count) {
      Operation *sent = rest[count].received.getDefiningOp();
      if (sent->getBlock() != place->getBlock() || !sent->isBeforeInBlock(place))
        break;
      if (Operation *user = firstUserOf(rest[count].sum.op); user->isBeforeInBlock(place))
        place = user;
    }
    finish(rest.take_front(count), place);
    rest = rest.drop_front(count);
  }
  return success();
}

namespace {
struct CompressGradientsPass : dtc::impl::CompressGradientsPassBase<CompressGradientsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (bits != 4 && bits != 8) {
      getOperation().emitError() << "the option bits is " << int64_t(bits) << ", expected 4 or 8";
      return signalPassFailure();
    }
    if (failed(checkOption(getOperation(), "block", block, 1, kMaxQuantizedBlock)))
      return signalPassFailure();
    CompressGradientsPassOptions options{
        .axis = axis, .bits = bits, .block = block, .feedback = feedback};
    if (failed(forEachFunction(getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) {
          if (failed(checkDataAxis(getOperation(), mesh, axis,
                                   "sums of gradients cannot be compressed over")))
            return failure();
          return GradientCompressor(function, mesh, options).run();
        })))
      signalPassFailure();
  }
};
} // namespace
