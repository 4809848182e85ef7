//===- ModelSizes.h - Model sizes for published formulas ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The sizes of a model, written down here from its definition and not from what the compiler makes
// of it, so that a test can say what a strategy must cost.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_TRAFFIC_MODELSIZES_H
#define DTC_TEST_TRAFFIC_MODELSIZES_H

#include "plan/PlanSummary.h"
#include "runtime/executor/Session.h"
#include "test/lib/compile/CompileAndRun.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dtc::test {

/// One parameter, with what decides how often it moves.
struct ParameterSize {
  /// How often ZeRO stage 3 gathers it for a microbatch. The formula has twice for all.
  enum Gathers {
    Twice,       ///< once forward and once backward
    ForwardOnly, ///< no gradient is computed from it: a bias, a table that is only read
    Adjacent,    ///< the forward and the backward use follow each other, with no layer between
  };
  std::vector<int64_t> shape; ///< as the program uses it
  Gathers gathers = Twice;
  bool splitByTp = false;     ///< by heads, the MLP's inner dimension or the vocabulary
  bool positionTable = false; ///< only the first `seq` rows are used and have a gradient
  bool keyOrValue = false;    ///< split by key-value heads, which may be few

  int64_t elements() const;
  /// Elements of all shards over `n` devices. ZeRO splits the first dimension that divides, and
  /// where there is none the largest one, whose blocks are then rounded up.
  int64_t paddedElements(int64_t n) const;
};

struct ModelSizes {
  std::string config; ///< of Hugging Face
  int64_t vocab = 0, positions = 0, embed = 0, layers = 0, heads = 0, kvHeads = 0, mlp = 0;
  int64_t batch = 0, seq = 0;
  std::vector<ParameterSize> parameters;

  /// Psi of the literature.
  int64_t psi() const;
  /// Rows of the position table that no token of a sequence reaches, in elements.
  int64_t unusedPositions() const { return positions > seq ? (positions - seq) * embed : 0; }
  /// Elements of one residual: batch x sequence x hidden, "bsh".
  int64_t residual() const { return batch * seq * embed; }
  /// Parameters of one layer.
  int64_t layerPsi() const;

  int64_t parametersOfLayer = 0; ///< how many tensors
  int64_t firstOfLayers = 0;     ///< the index of the first layer's first
};

/// GPT-2: the output projection is the embedding table, everything has a bias.
ModelSizes gpt2Sizes();
/// Llama: grouped key-value heads, an output projection of its own, no biases.
ModelSizes llamaSizes(int64_t kvHeads = 4);
/// A Llama whose states outweigh everything else: wide and deep, with a tiny batch.
ModelSizes wideLlamaSizes();

/// Compiles the model and opens a session; null, with a test failure, if that is impossible.
std::unique_ptr<runtime::Session> openSession(const ModelSizes &model,
                                              const CompileOptions &options);

/// Runs one step on random data; false, with a test failure, if that is impossible.
bool runStep(runtime::Session &session);

} // namespace dtc::test

#endif // DTC_TEST_TRAFFIC_MODELSIZES_H
