//===- Optimizers.cpp - The optimizers that a train step may have ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/train/Optimizers.h"

#include "dialects/dtc/DtcOps.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dtc;

template <typename OpT>
static ValueRange buildAdamFamily(OpBuilder &builder, Location loc, Value p, Value g,
                                  ValueRange states, const OptimizerScalars &scalars,
                                  const OptimizerSettings &settings) {
  return OpT::create(builder, loc, p, g, states[0], states[1], scalars.learningRate, scalars.step,
                     scalars.gradScale, scalars.apply, settings.beta1, settings.beta2, settings.eps,
                     settings.weightDecay)
      ->getResults();
}

static ValueRange buildSgd(OpBuilder &builder, Location loc, Value p, Value g, ValueRange states,
                           const OptimizerScalars &scalars, const OptimizerSettings &settings) {
  return SgdOp::create(builder, loc, p, g, states[0], scalars.learningRate, scalars.gradScale,
                       scalars.apply, settings.momentum, settings.weightDecay)
      ->getResults();
}

static ValueRange buildLion(OpBuilder &builder, Location loc, Value p, Value g, ValueRange states,
                            const OptimizerScalars &scalars, const OptimizerSettings &settings) {
  return LionOp::create(builder, loc, p, g, states[0], scalars.learningRate, scalars.gradScale,
                        scalars.apply, settings.beta1, settings.beta2, settings.weightDecay)
      ->getResults();
}

static constexpr StringRef kMoments[] = {"exp_avg", "exp_avg_sq"};
static constexpr StringRef kMomentum[] = {"momentum_buffer"};
static constexpr StringRef kFirstMoment[] = {"exp_avg"};

static ArrayRef<OptimizerKind> optimizers() {
  static const OptimizerKind kinds[] = {
      {"adamw", kMoments, /*countsSteps=*/true, buildAdamFamily<AdamwOp>},
      {"adam", kMoments, /*countsSteps=*/true, buildAdamFamily<AdamOp>},
      {"sgd", kMomentum, /*countsSteps=*/false, buildSgd},
      {"lion", kFirstMoment, /*countsSteps=*/false, buildLion},
  };
  return kinds;
}

const OptimizerKind *dtc::findOptimizer(StringRef name) {
  auto *found = llvm::find_if(optimizers(), [&](const auto &kind) { return kind.name == name; });
  return found == optimizers().end() ? nullptr : found;
}

std::string dtc::optimizerNames() {
  return llvm::join(llvm::map_range(optimizers(), [](const auto &kind) { return kind.name; }),
                    ", ");
}
