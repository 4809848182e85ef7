//===- OuterClients.cpp - Outer steps of clients -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/outer/OuterStepBuilder.h"
#include "compiler/passes/train/ProximalTerm.h"
#include "support/OuterEntries.h"
#include "support/OuterStates.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace dtc;

/// Adds an input of `size` elements, and returns the one element that the layout gives a device, as
/// a scalar.
Value OuterStepBuilder::addScalarInput(StringRef name, int64_t size, const Layout &layout) {
  Type element = builder.getF32Type();
  for (const TrainedWeights &trained : weights)
    if (cast<RankedTensorType>(trained.weights.getType()).getElementType().isF64())
      element = builder.getF64Type();
  const unsigned index = function.getNumArguments();
  NamedAttrList attrs;
  attrs.set("dtc.input", builder.getStringAttr(name));
  attrs.set("dtc.global_shape", builder.getDenseI64ArrayAttr({size}));
  attrs.set(dist::kShardingAttrName, toAttr(builder.getContext(), mesh, layout));
  Location loc = NameLoc::get(builder.getStringAttr(name));
  (void)function.insertArgument(index, RankedTensorType::get({1}, element),
                                attrs.getDictionary(builder.getContext()), loc);
  return ReshapeOp::create(builder, loc, RankedTensorType::get({}, element),
                           function.getArgument(index));
}

/// Adds the inputs that the run gives: a weight for the client of each replica, and the scale of
/// the noise.
void OuterStepBuilder::addClientInputs() {
  const unsigned axis = *mesh.find(options.axis);
  Layout layout = Layout::replicated(1);
  builder.setInsertionPointToStart(&function.front());
  if (options.noise)
    noiseScale = addScalarInput(kNoiseScaleInput, 1, layout);
  layout.dims[0].push_back(axis);
  clientWeight = addScalarInput(kClientWeightsInput, mesh.axes[axis].size, layout);
  Value all = reducedOver(builder, clientWeight, ReductionKind::Sum, mesh.name, options.axis,
                          kClientWeightsInput);
  anyClient =
      CompareOp::create(builder, all.getLoc(), all, splat(all, 0), ComparePredicate::Greater);
}

/// Converts a scalar that the run gives to the element type of `like`.
Value OuterStepBuilder::givenFor(Value like, Value given) {
  Type element = cast<RankedTensorType>(like.getType()).getElementType();
  if (cast<RankedTensorType>(given.getType()).getElementType() == element)
    return given;
  return ConvertOp::create(builder, like.getLoc(), given, element);
}

/// The updated value, or the old one in an outer step that takes no client.
Value OuterStepBuilder::unlessNone(Value updated, Value old) {
  if (!options.clients)
    return updated;
  return SelectOp::create(builder, updated.getLoc(), everywhere(anyClient, old), updated, old);
}

/// Independent values of a normal distribution, times the scale.
Value OuterStepBuilder::noiseOf(const TrainedWeights &trained) {
  BlockArgument noise = addState(trained, kOuterNoiseState);
  return MulOp::create(builder, noise.getLoc(), noise,
                       everywhere(givenFor(noise, noiseScale), noise));
}

/// The sum of the squares of the changes of all elements of the replica's weights.
Value OuterStepBuilder::squaresOf(const TrainedWeights &trained) {
  Location loc = trained.weights.getLoc();
  unsigned index = trained.weights.getArgNumber();
  BlockArgument outer = outerParameters.lookup(trained.name);
  if (!outer)
    outer = addState(trained, kOuterParametersState);
  Value change = SubOp::create(builder, loc, trained.weights, outer);
  Layout layout = getLayout(
      mesh, function.getArgAttrOfType<dist::ShardingAttr>(index, dist::kShardingAttrName));
  auto shape = function.getArgAttrOfType<DenseI64ArrayAttr>(index, "dtc.global_shape");
  SmallVector<StringRef> over;
  std::string letters;
  for (auto [dim, axes] : llvm::enumerate(layout.dims)) {
    letters += char('a' + dim);
    SmallVector<StringRef> names;
    for (unsigned axis : axes)
      names.push_back(mesh.axes[axis].name);
    if (!mesh.divides(shape[dim], axes))
      change =
          dist::MaskPaddingOp::create(builder, loc, change.getType(), PaddingValue::Zero, change,
                                      dim, shape[dim], mesh.name, builder.getStrArrayAttr(names));
    llvm::append_range(over, names);
  }
  Value squares = EinsumOp::create(builder, loc, change, change,
                                   StringRef(llvm::formatv("{0},{0}->", letters).str()));
  for (StringRef axis : over)
    squares = reducedOver(builder, squares, ReductionKind::Sum, mesh.name, axis,
                          trained.name.getValue(), "shard");
  return squares;
}

/// Returns a scalar of each replica.
void OuterStepBuilder::addCheck(StringRef name, Value value) {
  auto type = RankedTensorType::get({1}, cast<RankedTensorType>(value.getType()).getElementType());
  const unsigned axis = *mesh.find(options.axis);
  Layout layout = Layout::replicated(1);
  layout.dims[0].push_back(axis);
  NamedAttrList attrs;
  attrs.set("dtc.output", builder.getStringAttr(name + Twine(number)));
  attrs.set("dtc.global_shape", builder.getDenseI64ArrayAttr({mesh.axes[axis].size}));
  attrs.set(dist::kShardingAttrName, toAttr(builder.getContext(), mesh, layout));
  results.push_back(ReshapeOp::create(builder, value.getLoc(), type, value));
  resultAttrs.push_back(attrs.getDictionary(builder.getContext()));
}

void OuterStepBuilder::buildCheck() {
  builder.setInsertionPoint(ret);
  Value total;
  for (const TrainedWeights &trained : weights) {
    if (!measured.insert(trained.name).second)
      continue;
    Value squares = squaresOf(trained);
    total = total ? Value(AddOp::create(builder, total.getLoc(), total, squares)) : squares;
  }
  if (!total)
    return;
  addCheck(kUpdateSquaresOutput, total);
  for (const TrainedWeights &trained : weights)
    for (BlockArgument state : trained.optimizerStates)
      if (function.getArgAttrOfType<StringAttr>(state.getArgNumber(), "dtc.state").getValue() ==
          kInnerStepsState)
        return addCheck(kInnerStepsOutput, state);
}
