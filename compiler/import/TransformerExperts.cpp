//===- TransformerExperts.cpp - The experts of a layer --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/TransformerBuilder.h"
#include "dialects/dtc/DtcDialect.h"

using namespace dtc;
using mlir::Value;

/// A MLP of its own inner size for all tokens, x [B, S, D] -> [B, S, D], times the sigmoid of a
/// gate if the family has one.
Value TransformerBuilder::sharedExpert(Value x) {
  const Side shared{{config.experts->sharedMlp}, "f"};
  std::string prefix = names.sharedExpert.str() + ".";
  Value gate = linear(prefix + names.expertGate.str(), x, stream, shared, config.mlpBias, normal);
  Value up = linear(prefix + names.expertUp.str(), x, stream, shared, config.mlpBias, normal);
  Value h = model.mul(model.activation(config.activation, gate), up);
  Value y = linear(prefix + names.expertDown.str(), h, shared, stream, config.mlpBias, residual);
  if (names.sharedGate.empty())
    return y;
  Value factor = linear(names.sharedGate, x, stream, {{Dim{1}}, "f"}, false, normal);
  return model.mulRows(y, model.activation(Activation::Sigmoid, factor));
}

/// The linear layer `name` of each expert: rows [X, B, C, in] -> [X, B, C, out].
Value TransformerBuilder::expertLinear(llvm::StringRef name, Value rows, const Side &in,
                                       const Side &out, mlir::Attribute init,
                                       const Routing &routing) {
  const Dim &number = config.experts->number, &from = in.dims.front(), &to = out.dims.front();
  FileStack layers{names.experts.str(), 0, number.size, name.str()}, weights = layers;
  weights.after += ".weight";
  Value weight = model.addParameter(weights.name(), {{number}, {to}, {from}}, init);
  std::string equation =
      ("xbc" + in.letters + ",x" + out.letters + in.letters + "->xbc" + out.letters).str();
  Value y = model.expertProduct(equation, rows, weight, routing);
  return model.adaptExperts(y, layers, rows, number, from, to, routing);
}

/// The rows of experts [X, B, C, D] -> [X, B, C, D], times their weights.
Value TransformerBuilder::gatedExperts(Value rows, const Routing &routing) {
  const Side ofExpert{{config.experts->mlp}, "f"};
  Value gated = model.activation(
      config.activation, expertLinear(names.expertGate, rows, stream, ofExpert, normal, routing));
  Value up = expertLinear(names.expertUp, rows, stream, ofExpert, normal, routing);
  Value h = model.mul(gated, up);
  // Before the last product, which is linear: there the rows are narrower than after it.
  h = model.weightRows(h, routing);
  return expertLinear(names.expertDown, h, ofExpert, stream, residual, routing);
}

/// Experts in the form Clamped. Rows without a token have a weight of 0, and so do their biases.
Value TransformerBuilder::clampedExperts(Value rows, const Routing &routing) {
  const ExpertsConfig &experts = *config.experts;
  std::string prefix = names.experts.str() + ".";
  Dim both{2};
  Value weights = model.addParameter(
      prefix + "gate_up_proj", {{experts.number}, {config.embed}, {experts.mlp, both}}, normal);
  Value biases = model.addParameter(prefix + "gate_up_proj_bias",
                                    {{experts.number}, {experts.mlp, both}}, model.zeros());
  Value down = model.addParameter(prefix + "down_proj",
                                  {{experts.number}, {experts.mlp}, {config.embed}}, residual);
  Value downBias = model.addParameter(prefix + "down_proj_bias", {{experts.number}, {config.embed}},
                                      model.zeros());
  // PEFT wraps the module once for each of its tensors that has an adapter, and names the adapter
  // of the first one as that of the base layer of the other wrapper.
  const bool adaptsSides = model.adaptsTensor(prefix + "gate_up_proj"),
             adaptsDown = model.adaptsTensor(prefix + "down_proj");
  Adapter ofSides;
  if (adaptsSides)
    ofSides = model.addTensorAdapter(names.experts.str() + (adaptsDown ? ".base_layer" : ""), rows,
                                     experts.number, config.embed, {experts.mlp, both}, routing);
  auto project = [&](int64_t which) {
    Value y = model.expertProduct("xbcd,xdf->xbcf", rows, model.select(weights, 3, which), routing);
    if (ofSides.down)
      y = model.addTensorAdapterTo(y, ofSides.down, model.select(ofSides.up, 1, which), routing);
    return model.addExpertBias(y, model.select(biases, 2, which));
  };
  Value gate = model.clipAbove(project(0), experts.clampLimit);
  Value up = model.clip(project(1), experts.clampLimit);
  Value gated =
      model.mul(gate, model.activation(Activation::Sigmoid, model.scale(gate, experts.clampAlpha)));
  Value h = model.weightRows(model.mul(model.shift(up, 1), gated), routing);
  Value y = model.expertProduct("xbcf,xfd->xbcd", h, down, routing);
  if (adaptsDown) {
    Adapter ofDown = model.addTensorAdapter(names.experts, h, experts.number, experts.mlp,
                                            {config.embed}, routing);
    y = model.addTensorAdapterTo(y, ofDown.down, ofDown.up, routing);
  }
  return model.addWeightedBias(y, downBias, routing);
}

/// Begins the sums of the balance loss with zeros, so that the first layer adds to them as the
/// others do.
void TransformerBuilder::beginBalance() {
  if (!config.experts || config.experts->balanceLoss == BalanceLoss::None)
    return;
  model.beginTopLevelLayer("balance_loss");
  loads = model.noLoads(config.experts->number.size,
                        config.experts->balanceLoss == BalanceLoss::Sequence);
  if (config.experts->balancesEachLayer)
    balance = model.zero();
}

/// Each layer adds its part to the results of the layers before it, so that a layer has values of
/// the one before it alone.
void TransformerBuilder::addToBalance(const Routing &routing) {
  if (!loads)
    return;
  if (balance)
    balance = model.add(balance, model.balanceLoss(model.addLoads(*loads, routing)));
  else
    loads = model.addLoads(*loads, routing);
}

/// x [B, S, D] -> [B, S, D]
Value TransformerBuilder::experts(const std::string &layer, Value x) {
  const ExpertsConfig &experts = *config.experts;
  model.beginLayer(layer);
  const Side choices{{Dim{experts.number.size}}, "f"};
  Value logits = model.einsum(equation(x, stream, choices), x,
                              weightOf(names.router, stream, choices, normal));
  if (experts.form == ExpertForm::Clamped)
    logits =
        model.addBias(logits, model.addParameter(names.router + ".bias", {choices.dims}, normal));
  // PEFT adapts linear layers, and some routers of transformers are of other classes.
  if (experts.hasLinearRouter)
    logits = model.adapt(logits, model.addAdapter(names.router, x, stream.dims, choices.dims));
  RoutingKind kind = experts.routing;
  kind.capacity = options.expertCapacity(experts.number.size, kind.selected);
  Value bias;
  if (experts.hasBias)
    bias = model.addFrozenParameter(names.router + ".e_score_correction_bias",
                                    {experts.number.size}, model.zeros());
  Routing routing = model.route(logits, kind, bias);
  addToBalance(routing);
  bool mayDrop = routing.capacity < options.seq;
  if (options.expertMetrics)
    model.addMetric("expert_tokens", model.tokensOfExperts(routing));
  if (options.mustFit && mayDrop)
    model.addMetric("tokens_without_rows", model.droppedTokens(routing),
                    DtcDialect::kMustBeZeroAttrName);
  else if (options.expertMetrics && mayDrop)
    model.addMetric("dropped_tokens", model.droppedTokens(routing));
  Value rows = model.dispatch(x, routing);
  rows = experts.form == ExpertForm::Clamped ? clampedExperts(rows, routing)
                                             : gatedExperts(rows, routing);
  Value y = model.combine(rows, routing, x);
  if (experts.sharedMlp.size != 0)
    y = model.add(y, sharedExpert(x));
  return model.dropout(y, config.residualDropout);
}
