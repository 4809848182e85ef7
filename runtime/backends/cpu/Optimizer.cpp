//===- Optimizer.cpp - Updates of parameters ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/OptimizerCalls.h"
#include "runtime/backends/cpu/KernelSupport.h"

#include <cmath>
#include <cstring>

namespace dtc::runtime::cpu {

namespace {

/// The values that a call gives for the step.
struct StepScalars {
  double learningRate, step;
};

// A rule is the update of one element: it returns the new parameter and changes the moments; `cost`
// is what an element costs, compared with one of an elementwise kernel. The constructor computes in
// double what depends on the step alone: 1 - beta^step cancels.

/// The moments of Adam and how far they move a parameter.
template <typename F> struct AdamMoments {
  F beta1, rest1, beta2, rest2, stepSize, correction, eps;

  AdamMoments(const OptimizerConstants &c, const StepScalars &s)
      : beta1(static_cast<F>(c.beta1)), rest1(static_cast<F>(1 - c.beta1)),
        beta2(static_cast<F>(c.beta2)), rest2(static_cast<F>(1 - c.beta2)),
        stepSize(static_cast<F>(s.learningRate / (1 - std::pow(c.beta1, s.step)))),
        correction(static_cast<F>(1 / std::sqrt(1 - std::pow(c.beta2, s.step)))),
        eps(static_cast<F>(c.eps)) {}

  F move(F p, F gradient, F &first, F &second) const {
    first = beta1 * first + rest1 * gradient;
    second = beta2 * second + rest2 * (gradient * gradient);
    return p - stepSize * first / (std::sqrt(second) * correction + eps);
  }
};

template <typename F> struct AdamW : AdamMoments<F> {
  static constexpr OptimizerRule rule = OptimizerRule::AdamW;
  static constexpr int64_t cost = 4;
  F decay;

  AdamW(const OptimizerConstants &c, const StepScalars &s)
      : AdamMoments<F>(c, s), decay(static_cast<F>(1 - s.learningRate * c.weightDecay)) {}
  F update(F p, F gradient, F &first, F &second) const {
    return this->move(p * decay, gradient, first, second);
  }
};

template <typename F> struct Adam : AdamMoments<F> {
  static constexpr OptimizerRule rule = OptimizerRule::Adam;
  static constexpr int64_t cost = 4;
  F decay;

  Adam(const OptimizerConstants &c, const StepScalars &s)
      : AdamMoments<F>(c, s), decay(static_cast<F>(c.weightDecay)) {}
  F update(F p, F gradient, F &first, F &second) const {
    return this->move(p, gradient + decay * p, first, second);
  }
};

template <typename F> struct Sgd {
  static constexpr OptimizerRule rule = OptimizerRule::Sgd;
  static constexpr int64_t cost = 2;
  F learningRate, keep, decay;

  Sgd(const OptimizerConstants &c, const StepScalars &s)
      : learningRate(static_cast<F>(s.learningRate)), keep(static_cast<F>(c.momentum)),
        decay(static_cast<F>(c.weightDecay)) {}
  F update(F p, F gradient, F &moment, F &) const {
    moment = keep * moment + (gradient + decay * p);
    return p - learningRate * moment;
  }
};

template <typename F> struct Lion {
  static constexpr OptimizerRule rule = OptimizerRule::Lion;
  static constexpr int64_t cost = 2;
  F learningRate, beta1, rest1, beta2, rest2, decay;

  Lion(const OptimizerConstants &c, const StepScalars &s)
      : learningRate(static_cast<F>(s.learningRate)), beta1(static_cast<F>(c.beta1)),
        rest1(static_cast<F>(1 - c.beta1)), beta2(static_cast<F>(c.beta2)),
        rest2(static_cast<F>(1 - c.beta2)), decay(static_cast<F>(c.weightDecay)) {}
  F update(F p, F gradient, F &moment, F &) const {
    F direction = beta1 * moment + rest1 * gradient;
    // Zeros and NaNs are their own signs.
    F sign = direction > F(0) ? F(1) : direction < F(0) ? F(-1) : direction;
    moment = beta2 * moment + rest2 * gradient;
    return p - learningRate * (sign + decay * p);
  }
};

/// The results of a step that is not applied: the operands as they are.
template <typename Rule, typename F> void keepAll(const CpuArguments &args, int64_t count) {
  for (size_t i = 0; i < operandsOf(Rule::rule).numOutputs(); ++i) {
    const F *from = input<F>(args, i == 0 ? 0 : i + 1);
    if (F *to = output<F>(args, i); to != from && count > 0)
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(F));
  }
}

template <template <typename> typename RuleOf, typename F>
std::unique_ptr<CpuKernel> makeOptimizer(const OptimizerConstants &constants, int64_t count) {
  using Rule = RuleOf<F>;
  constexpr OptimizerOperands index = operandsOf(Rule::rule);
  return makeKernel([=](const CpuArguments &args) {
    if (*input<uint8_t>(args, index.apply()) == 0)
      return keepAll<Rule, F>(args, count);
    StepScalars scalars{*input<F>(args, index.learningRate()), 0};
    if (index.hasStep)
      scalars.step = *input<F>(args, index.step());
    Rule rule(constants, scalars);
    F scale = *input<F>(args, index.gradScale());
    const F *p = input<F>(args, 0), *g = input<F>(args, 1);
    F *pOut = output<F>(args, 0);
    // With one moment, the second is the first, and nothing comes of it.
    constexpr size_t last = index.numMoments - 1;
    const F *m = input<F>(args, index.firstMoment), *v = input<F>(args, index.firstMoment + last);
    F *mOut = output<F>(args, 1), *vOut = output<F>(args, 1 + last);
    parallelFor(args.threads, count, kElementGrain / Rule::cost,
                [=](int64_t begin, int64_t end, int) {
                  simd([=] {
#pragma omp simd
                    for (int64_t i = begin; i < end; ++i) {
                      F first = m[i], second = v[i];
                      F updated = rule.update(p[i], g[i] * scale, first, second);
                      mOut[i] = first;
                      if constexpr (index.numMoments == 2)
                        vOut[i] = second;
                      pOut[i] = updated;
                    }
                  });
                });
  });
}

template <template <typename> typename RuleOf>
PrepareResult prepareOptimizer(const KernelSignature &signature) {
  Expected<OptimizerCall> call = checkOptimizer(signature, RuleOf<float>::rule);
  if (!call)
    return call.error();
  return withWideType(call->dtype, [&](auto zero) {
    return makeOptimizer<RuleOf, decltype(zero)>(call->constants, call->count);
  });
}

} // namespace

std::span<const KernelEntry> optimizerKernels() {
  static constexpr KernelEntry entries[] = {
      {"adamw", prepareOptimizer<AdamW>},
      {"adam", prepareOptimizer<Adam>},
      {"sgd", prepareOptimizer<Sgd>},
      {"lion", prepareOptimizer<Lion>},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
