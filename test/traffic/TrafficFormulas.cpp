//===- TrafficFormulas.cpp - Published formulas of traffic ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/traffic/TrafficFormulas.h"

#include <gtest/gtest.h>

#include <numeric>
#include <sstream>

using namespace dtc;
using namespace dtc::test;

static constexpr int64_t kBytes = 4; // of an f32

void Traffic::add(const std::string &name, int64_t elements, int64_t n) {
  if (elements != 0 && n > 1)
    terms.push_back({name, elements * kBytes * (n - 1), n});
}

void Traffic::addAllReduce(const std::string &name, int64_t elements, int64_t n, int64_t tensors) {
  int64_t numerator = 2 * elements * kBytes * (n - 1);
  if (numerator != 0)
    terms.push_back({name, tensors * ((numerator + n - 1) / n), 1});
}

void Traffic::addRounding(int64_t parts, int64_t n) {
  if (parts != 0)
    terms.push_back({"all-reduces send whole bytes", parts, n});
}

Traffic &Traffic::operator+=(const Traffic &other) {
  terms.insert(terms.end(), other.terms.begin(), other.terms.end());
  return *this;
}

uint64_t Traffic::bytes() const {
  int64_t denominator = 1, numerator = 0;
  for (const Term &term : terms)
    denominator = std::lcm(denominator, term.denominator);
  for (const Term &term : terms)
    numerator += term.numerator * (denominator / term.denominator);
  EXPECT_EQ(numerator % denominator, 0) << "part of a byte is left\n" << describe();
  return uint64_t(numerator / denominator);
}

std::string Traffic::describe() const {
  std::ostringstream os;
  for (const Term &term : terms)
    os << "  " << double(term.numerator) / double(term.denominator) << " B  " << term.name << "\n";
  return os.str();
}

/// The addition of rounding to whole bytes to an all-reduce over n ranks, in n-ths of a byte.
static int64_t rounding(int64_t elements, int64_t n) {
  int64_t rest = 2 * elements * kBytes * (n - 1) % n;
  return rest == 0 ? 0 : n - rest;
}

/// Plain data parallelism: one all-reduce of every gradient.
static Traffic plainDataParallel(const ModelSizes &model, int64_t n, int64_t psi, int64_t t) {
  Traffic traffic;
  traffic.add("2 Psi (N-1)/N: gradients, all-reduced once a step", 2 * psi, n);
  traffic.add("less: positions beyond the sequence have no gradient", -2 * model.unusedPositions(),
              n);
  int64_t rounded = 0;
  for (const ParameterSize &parameter : model.parameters) {
    int64_t elements = parameter.elements() / (parameter.splitByTp ? t : 1);
    if (parameter.positionTable)
      elements -= model.unusedPositions();
    rounded += rounding(elements, n);
  }
  traffic.addRounding(rounded, n);
  return traffic;
}

/// ZeRO: gradients are scattered, parameters gathered.
static Traffic zero(const ModelSizes &model, int64_t n, int stage, int64_t m, int64_t psi,
                    int64_t t) {
  Traffic traffic;
  // Stages 1 and 2 gather updated parameters, once. Stage 3 gathers for each use of a layer.
  int64_t scatters = stage == 1 ? 1 : m, gathers = stage == 3 ? 2 * m : 1;
  traffic.add("Psi (N-1)/N for each reduce-scatter of gradients", scatters * psi, n);
  traffic.add("Psi (N-1)/N for each all-gather of parameters", gathers * psi, n);

  int64_t padScattered = 0, padGathered = 0, forwardOnly = 0, adjacent = 0;
  for (const ParameterSize &parameter : model.parameters) {
    int64_t share = parameter.splitByTp ? t : 1;
    int64_t elements = parameter.elements() / share;
    // Padding over two axes at once is not modelled.
    int64_t padding = t == 1 ? parameter.paddedElements(n) - elements : 0;
    bool twice = parameter.gathers == ParameterSize::Twice;
    padScattered += scatters * padding;
    padGathered += (stage == 3 ? (twice ? 2 : 1) * m : 1) * padding;
    if (parameter.gathers == ParameterSize::ForwardOnly)
      forwardOnly += elements;
    if (parameter.gathers == ParameterSize::Adjacent)
      adjacent += elements;
    if (!parameter.positionTable)
      continue;
    int64_t used = elements - model.unusedPositions();
    // The width is what is split if it divides. Else it is the rows: then the gradient of the used
    // rows, which are not all devices', is all-reduced, and the table is gathered with all rows.
    bool byWidth = model.embed % n == 0;
    // The gradient is padded with zeros for the unused rows when all microbatches are summed, and
    // only then is it as large as the parameter: it moves once a step in all stages.
    traffic.add("less: the position table's gradient moves once, without unused rows",
                (byWidth ? used : 2 * used) - scatters * elements, n);
    traffic.addRounding(byWidth ? 0 : rounding(used, n), n);
    if (stage == 3 && byWidth)
      traffic.add("less: unused positions are not gathered", -m * model.unusedPositions(), n);
  }
  traffic.add("padding of gradients", padScattered, n);
  traffic.add("padding of parameters", padGathered, n);
  if (stage == 3) {
    traffic.add("less: biases and tables that no gradient is computed from are gathered once",
                -m * forwardOnly, n);
    traffic.add("less: the output projection is gathered once for forward and backward",
                -m * adjacent, n);
  }
  return traffic;
}

Traffic dtc::test::dataParallelTraffic(const ModelSizes &model, int64_t n, int stage,
                                       int64_t microbatches, int64_t t) {
  int64_t psi = 0;
  for (const ParameterSize &parameter : model.parameters)
    psi += parameter.elements() / (parameter.splitByTp ? t : 1);
  Traffic traffic = stage == 0 ? plainDataParallel(model, n, psi, t)
                               : zero(model, n, stage, microbatches, psi, t);
  traffic.addAllReduce("the loss, a scalar", 1, n);
  if (stage > 0)
    traffic.addAllReduce("the gradient norm, a scalar", 1, n);
  return traffic;
}

Traffic dtc::test::tensorParallelTraffic(const ModelSizes &model, int64_t t, bool sequenceParallel,
                                         int64_t n) {
  Traffic traffic;
  int64_t residual = model.residual() / n, tokens = model.batch / n * model.seq;
  // Forward and backward, attention and MLP: four all-reduces, or with sequence parallelism four
  // reduce-scatters and four all-gathers, which is the same.
  traffic.add("8 b s h (t-1)/t for each layer", 8 * residual * model.layers, t);
  traffic.add("the vocabulary-parallel embedding's output", 2 * residual, t);
  traffic.add("the gradient of the vocabulary-parallel projection's input", 2 * residual, t);
  traffic.addAllReduce("the cross entropy's maximum, sum and logit of the label", tokens, t, 3);
  int64_t split = 0, whole = 0;
  for (const ParameterSize &parameter : model.parameters) {
    split += parameter.splitByTp;
    whole += !parameter.splitByTp && !parameter.positionTable;
  }
  traffic.addAllReduce("the gradient norm, a scalar for each split parameter", 1, t, split);
  if (sequenceParallel) {
    traffic.addAllReduce("gradients of norms and biases, from a part of the sequence each",
                         model.embed, t, whole);
    if (model.positions > 0)
      traffic.add("the gradient of the position table's used rows", model.seq * model.embed, t);
  }
  return traffic;
}

Traffic dtc::test::contextParallelTraffic(const ModelSizes &model, int64_t n,
                                          const std::string &exchange, int64_t g) {
  Traffic traffic = dataParallelTraffic(model, n, /*stage=*/0, /*microbatches=*/1);
  int64_t queries = model.residual() * model.layers, keys = queries / model.heads * model.kvHeads;
  if (exchange == "all-to-all")
    g = n;
  if (g > 1)
    traffic.add("(2 q + 2 kv)/N (g-1)/g: queries, keys, values and results, and their gradients",
                2 * (2 * queries + 2 * keys) / n, g);
  if (exchange == "all-to-all")
    return traffic;
  // A group has all heads, and each of its ranks 1/g of them.
  int64_t ofHeads = 2 * keys / g, groups = n / g;
  traffic.add("2 kv/g (N/g-1)/(N/g): keys and values", ofHeads, groups);
  traffic.add(exchange == "ring" ? "2 kv/g (N/g-1)/(N/g): keys and values again, backward"
                                 : "2 kv/g (N/g-1)/(N/g): their gradients, scattered",
              ofHeads, groups);
  if (exchange == "ring")
    // As many hops of a shard as there are groups: all but one with work between, and one home.
    traffic.addRounding(ofHeads * int64_t(sizeof(float)) * groups, groups);
  return traffic;
}
