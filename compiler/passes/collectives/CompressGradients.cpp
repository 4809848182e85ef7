//===- CompressGradients.cpp - Sums of gradients in a compressed form -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Replaces each sum of a gradient over an axis by one in a compressed form (CompressedSum.h). With
// feedback, each device adds what the others did not get of its gradient to its next one (Seide et
// al., 2014; Karimireddy et al., arXiv:1901.09847, algorithm 2).
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DescribeLocation.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/collectives/CompressedSum.h"
#include "compiler/passes/precision/GradientSums.h"
#include "dialects/dtc/WeightsAttributes.h"
#include "support/QuantizedBlocks.h"

#include <fmt/format.h>

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
                     const CompressionSettings &settings)
      : build(function, mesh, settings) {}
  LogicalResult run();

private:
  LogicalResult check(const GradientSum &sum);
  SmallVector<GradientSum> findSums();
  std::unique_ptr<CompressedSum> makeSum(const GradientSum &sum);
  LogicalResult checkAny(ArrayRef<GradientSum> found);
  LogicalResult begin(CompressedSum &compressed);
  void finish(MutableArrayRef<std::unique_ptr<CompressedSum>> sums, Operation *place);
  FailureOr<BlockArgument> addResidual(const GradientSum &sum);
  void updateResidual(CompressedSum &compressed);
  Value completeAddend(const GradientSum &sum, Value addend);

  /// The addend and the state for the feedback of a sum that has begun.
  struct Feedback {
    Value addend;
    BlockArgument residual;
  };

  SumBuilder build;
  llvm::DenseMap<Operation *, Feedback> feedbackOf; ///< by the op of a sum, until it is used
};

} // namespace

static SmallVector<int64_t> globalShapeOf(func::FuncOp function, BlockArgument argument) {
  if (auto shape =
          function.getArgAttrOfType<DenseI64ArrayAttr>(argument.getArgNumber(), "dtc.global_shape"))
    return SmallVector<int64_t>(shape.asArrayRef());
  return SmallVector<int64_t>(cast<RankedTensorType>(argument.getType()).getShape());
}

LogicalResult GradientCompressor::check(const GradientSum &sum) {
  const CompressionSettings &settings = build.settings;
  auto error = [&] {
    return sum.op->emitError() << "the gradient of " << describeLocation(sum.op->getLoc())
                               << " cannot be summed over \"" << settings.axis << "\" as "
                               << name(settings.method) << ": it ";
  };
  if (!isWideTensor(sum.type()))
    return error() << "has type " << sum.type()
                   << ", expected f32 or f64; reduce gradients in f32 (--grad-reduce-dtype)";
  if (sum.scatters() && cast<dist::CollectiveOpInterface>(sum.op).getAxes().size() > 1)
    return error() << "is scattered over several axes, "
                   << cast<dist::CollectiveOpInterface>(sum.op).getAxes()
                   << "; have ZeRO split over \"" << settings.axis << "\" alone (--zero-axes)";
  auto loop = sum.op->getParentOfType<dist::MicrobatchLoopOp>();
  if (loop && build.mesh.axes[*build.mesh.find(loop.getAxis())].size > 1)
    return error() << "is summed once for each microbatch, and would be compressed each time; "
                      "choose a ZeRO stage of at most 1 (--zero), or one microbatch";
  if (loop && settings.method == CompressionMethod::PowerSgd)
    return error() << "is summed inside of the loop over microbatches, from which no factor comes "
                      "for the next step; choose several microbatches and a ZeRO stage of at most "
                      "1 (--zero)";
  if (loop && settings.feedback)
    return error()
           << "is summed inside of the loop over microbatches, from which no residual "
              "comes; choose several microbatches and a ZeRO stage of at most 1 (--zero), or no "
              "feedback";
  return success();
}

/// The addend summed over all axes but the one that is compressed: the others of the op, and those
/// of sums that come after it, as where ZeRO scatters over one axis and the gradient is partial
/// over another one too. These are taken away.
Value GradientCompressor::completeAddend(const GradientSum &sum, Value addend) {
  auto others = [&](Operation *op) {
    AxisList axes;
    for (StringRef name : axesOf(op))
      if (name != build.settings.axis)
        axes.push_back(*build.mesh.find(name));
    return axes;
  };
  addend = build.sumOver(sum, addend, others(sum.op));
  for (Operation *op : chainFrom(sum.op)) {
    auto later = dyn_cast<dist::AllReduceOp>(op);
    if (!later || later.getReduction().getValue() != ReductionKind::Sum ||
        llvm::is_contained(axesOf(op), build.settings.axis))
      continue;
    addend = build.sumOver(sum, addend, others(op));
    later.getResult().replaceAllUsesWith(later.getOperand());
    later.erase();
  }
  return addend;
}

/// Adds a state of the function for each device with an addend of its own: the part of its last
/// addend that the other devices did not get.
FailureOr<BlockArgument> GradientCompressor::addResidual(const GradientSum &sum) {
  const LinkedMesh &mesh = build.mesh;
  StringAttr parameter = build.parameterName(sum);
  auto sharding = parameter ? build.function.getArgAttrOfType<dist::ShardingAttr>(
                                  sum.state.getArgNumber(), dist::kShardingAttrName)
                            : dist::ShardingAttr();
  if (!sharding || sharding.getDims().size() != sum.shape.size())
    return sum.op->emitError() << "the gradient of " << describeLocation(sum.op->getLoc())
                               << " has no state beside it that lies as it does, so that nothing "
                                  "says how its residual would; choose no feedback";
  Layout layout = getLayout(mesh, sharding);
  SmallVector<int64_t> shape = {0};
  // Where a later collective joins what devices have, their addends differ along its axes too.
  Layout ofResidual{.dims = {AxisList{build.axis()}}};
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
  return build.addState(sum, "residual", shape, ofResidual);
}

/// Keeps what the others did not get of the addend, once it is known what they have.
void GradientCompressor::updateResidual(CompressedSum &compressed) {
  auto found = feedbackOf.find(compressed.sum.op);
  if (found == feedbackOf.end() || !compressed.kept)
    return;
  auto [addend, residual] = found->second;
  feedbackOf.erase(found);
  Value lost = build.create<SubOp>(compressed.sum, addend, compressed.kept);
  build.updateState(compressed.sum, residual, lost);
}

/// Begins a sum where its operand is made.
LogicalResult GradientCompressor::begin(CompressedSum &compressed) {
  const GradientSum &sum = compressed.sum;
  Value addend = sum.op->getOperand(0);
  build.builder.setInsertionPoint(sum.op);
  if (Operation *definer = addend.getDefiningOp();
      definer && definer->getBlock() == sum.op->getBlock())
    build.builder.setInsertionPointAfter(definer);
  addend = completeAddend(sum, addend);
  if (build.settings.feedback) {
    FailureOr<BlockArgument> residual = addResidual(sum);
    if (failed(residual))
      return failure();
    Value lost = build.reshape(sum, *residual, sum.type().getShape());
    addend = build.create<AddOp>(sum, addend, lost);
    feedbackOf[sum.op] = {addend, *residual};
  }
  if (failed(compressed.begin(addend)))
    return failure();
  updateResidual(compressed);
  return success();
}

/// Ends sums before `place`, which is the first op that needs one of them. The steps of one sum are
/// not next to each other, so that collectives of several sums can share buckets.
void GradientCompressor::finish(MutableArrayRef<std::unique_ptr<CompressedSum>> sums,
                                Operation *place) {
  build.builder.setInsertionPoint(place);
  for (auto &compressed : sums)
    compressed->combine();
  for (auto &compressed : sums) {
    updateResidual(*compressed);
    compressed->sum.op->getResult(0).replaceAllUsesWith(compressed->result());
    compressed->sum.op->erase();
  }
}

/// The sums over the axis of gradients that optimizers read and of outer gradients, in the order of
/// the function.
SmallVector<GradientSum> GradientCompressor::findSums() {
  func::FuncOp function = build.function;
  llvm::DenseMap<Operation *, OptimizerOpInterface> found;
  function.walk([&](OptimizerOpInterface optimizer) {
    for (Operation *op : findGradientSums(optimizer))
      if (llvm::is_contained(axesOf(op), build.settings.axis))
        found.try_emplace(op, optimizer);
  });
  SmallVector<GradientSum> sums;
  function.walk([&](Operation *op) {
    GradientSum sum{.op = op, .group = build.mesh.axes[build.axis()].size};
    if (OptimizerOpInterface optimizer = found.lookup(op)) {
      sum.state = argumentOf(optimizer->getOperand(2));
      sum.apply = optimizer->getOperands().back();
      if (BlockArgument parameter = argumentOf(optimizer.getParameterMutable().get()))
        sum.shape = globalShapeOf(function, parameter);
    } else if (op->hasAttr(kOuterGradientAttrName)) {
      // Its addend is the outer parameters less those of the replica.
      sum.state = argumentOf(op->getOperand(0));
      sum.shape = globalShapeOf(function, sum.state);
    } else {
      return;
    }
    if (ArrayRef<int64_t> operand = sum.type().getShape(); sum.shape.size() != operand.size())
      sum.shape.assign(operand.begin(), operand.end()); // it is reshaped after the sum
    sums.push_back(std::move(sum));
  });
  return sums;
}

std::unique_ptr<CompressedSum> GradientCompressor::makeSum(const GradientSum &sum) {
  switch (build.settings.method) {
  case CompressionMethod::TopK:
    return makeSparseSum(build, sum);
  case CompressionMethod::PowerSgd:
    return makeFactoredSum(build, sum);
  case CompressionMethod::Int8:
  case CompressionMethod::Int4:
    break;
  }
  return makeQuantizedSum(build, sum);
}

/// Refuses a rank with which no gradient gets smaller.
LogicalResult GradientCompressor::checkAny(ArrayRef<GradientSum> found) {
  if (found.empty() || build.settings.method != CompressionMethod::PowerSgd)
    return success();
  return build.function.emitError()
         << "no gradient is smaller as factors of rank " << build.settings.rank
         << "; choose a smaller rank, or leave the compression out (remarks say why for each)";
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
  SmallVector<std::unique_ptr<CompressedSum>> begun;
  SmallVector<GradientSum> found = findSums();
  if (!found.empty() && build.settings.rounding == Rounding::Stochastic && !build.randomKey())
    return build.function.emitError()
           << "the step has no random key, from which stochastic rounding draws; run "
              "dtc-advance-random-key with always";
  for (const GradientSum &sum : found) {
    if (failed(check(sum)))
      return failure();
    std::unique_ptr<CompressedSum> compressed = makeSum(sum);
    if (!compressed->choose())
      continue;
    if (failed(begin(*compressed)))
      return failure();
    begun.push_back(std::move(compressed));
  }
  if (begun.empty())
    return checkAny(found);
  // Sums end together where the first of their results is needed.
  for (MutableArrayRef<std::unique_ptr<CompressedSum>> rest = begun; !rest.empty();) {
    Operation *place = firstUserOf(rest[0]->sum.op);
    size_t count = 1;
    for (; count < rest.size(); ++count) {
      Operation *sent = rest[count]->sent;
      if (sent->getBlock() != place->getBlock() || !sent->isBeforeInBlock(place))
        break;
      if (Operation *user = firstUserOf(rest[count]->sum.op); user->isBeforeInBlock(place))
        place = user;
    }
    finish(rest.take_front(count), place);
    rest = rest.drop_front(count);
  }
  return success();
}

/// The settings that the options of the pass give. Fails with a diagnostic.
static FailureOr<CompressionSettings> settingsOf(ModuleOp module,
                                                 const CompressGradientsPassOptions &options) {
  auto method = findByName<CompressionMethod>(options.method);
  auto rounding = findByName<Rounding>(options.rounding);
  if (!method)
    return module.emitError() << "the option method is \"" << options.method
                              << "\", expected one of int8, int4, topk, powersgd";
  if (!rounding)
    return module.emitError() << "the option rounding is \"" << options.rounding
                              << "\", expected nearest or stochastic";
  if (!(options.share > 0 && options.share < 1))
    return module.emitError() << "the option share is " << fmt::format("{}", options.share)
                              << ", expected a number above 0 and below 1";
  if (failed(checkOption(module, "block", options.block, 0, kMaxQuantizedBlock)) ||
      failed(checkOption(module, "rank", options.rank, 1, kMaxCompressionRank)))
    return failure();
  return CompressionSettings{.axis = options.axis,
                             .method = *method,
                             .rounding = quantizes(*method) ? *rounding : Rounding::Nearest,
                             .block = options.block > 0 ? options.block : defaultBlock(*method),
                             .share = options.share,
                             .rank = options.rank,
                             .feedback = options.feedback};
}

namespace {
struct CompressGradientsPass : dtc::impl::CompressGradientsPassBase<CompressGradientsPass> {
  using Base::Base;

  void runOnOperation() override {
    CompressGradientsPassOptions options{.axis = axis,
                                         .method = method,
                                         .rounding = rounding,
                                         .block = block,
                                         .share = share,
                                         .rank = rank,
                                         .feedback = feedback};
    FailureOr<CompressionSettings> settings = settingsOf(getOperation(), options);
    if (failed(settings))
      return signalPassFailure();
    if (failed(forEachFunction(getOperation(), [&](func::FuncOp function, const LinkedMesh &mesh) {
          if (failed(checkDataAxis(getOperation(), mesh, axis,
                                   "sums of gradients cannot be compressed over")))
            return failure();
          return GradientCompressor(function, mesh, *settings).run();
        })))
      signalPassFailure();
  }
};
} // namespace
