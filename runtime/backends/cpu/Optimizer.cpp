//===- Optimizer.cpp - Updates of parameters ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/KernelSupport.h"

#include <cmath>
#include <cstring>

namespace dtc::runtime::cpu {

namespace {

/// The constants of the rules; a rule leaves those at 0 that it does not have.
struct Constants {
  double beta1 = 0, beta2 = 0, eps = 0, momentum = 0, weightDecay = 0;
};

/// The values that a call gives for the step.
struct StepScalars {
  double learningRate, step;
};

// A rule is the update of one element: it returns the new parameter and changes the moments, of
// which there are `numMoments`, 1 or 2; `hasStep` says whether the number of the step is an
// operand, `cost` what an element costs, compared with one of an elementwise kernel. The
// constructor computes in double what depends on the step alone: 1 - beta^step cancels.

/// The moments of Adam and how far they move a parameter.
template <typename F> struct AdamMoments {
  F beta1, rest1, beta2, rest2, stepSize, correction, eps;

  AdamMoments(const Constants &c, const StepScalars &s)
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
  static constexpr size_t numMoments = 2;
  static constexpr bool hasStep = true;
  static constexpr int64_t cost = 4;
  F decay;

  AdamW(const Constants &c, const StepScalars &s)
      : AdamMoments<F>(c, s), decay(static_cast<F>(1 - s.learningRate * c.weightDecay)) {}
  F update(F p, F gradient, F &first, F &second) const {
    return this->move(p * decay, gradient, first, second);
  }
};

template <typename F> struct Adam : AdamMoments<F> {
  static constexpr size_t numMoments = 2;
  static constexpr bool hasStep = true;
  static constexpr int64_t cost = 4;
  F decay;

  Adam(const Constants &c, const StepScalars &s)
      : AdamMoments<F>(c, s), decay(static_cast<F>(c.weightDecay)) {}
  F update(F p, F gradient, F &first, F &second) const {
    return this->move(p, gradient + decay * p, first, second);
  }
};

template <typename F> struct Sgd {
  static constexpr size_t numMoments = 1;
  static constexpr bool hasStep = false;
  static constexpr int64_t cost = 2;
  F learningRate, keep, decay;

  Sgd(const Constants &c, const StepScalars &s)
      : learningRate(static_cast<F>(s.learningRate)), keep(static_cast<F>(c.momentum)),
        decay(static_cast<F>(c.weightDecay)) {}
  F update(F p, F gradient, F &moment, F &) const {
    moment = keep * moment + (gradient + decay * p);
    return p - learningRate * moment;
  }
};

template <typename F> struct Lion {
  static constexpr size_t numMoments = 1;
  static constexpr bool hasStep = false;
  static constexpr int64_t cost = 2;
  F learningRate, beta1, rest1, beta2, rest2, decay;

  Lion(const Constants &c, const StepScalars &s)
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

/// The operands of a call: p, g, the moments, then the scalars lr, step (if the rule has it),
/// grad_scale and apply. The results: p and the moments.
template <typename Rule> struct Operands {
  static constexpr size_t firstMoment = 2;
  static constexpr size_t learningRate = firstMoment + Rule::numMoments;
  static constexpr size_t step = learningRate + 1;
  static constexpr size_t gradScale = learningRate + (Rule::hasStep ? 2 : 1);
  static constexpr size_t apply = gradScale + 1;
  static constexpr size_t numInputs = apply + 1;
  static constexpr size_t numOutputs = 1 + Rule::numMoments;
};

/// The results of a step that is not applied: the operands as they are.
template <typename Rule, typename F> void keepAll(const CpuArguments &args, int64_t count) {
  for (size_t i = 0; i < Operands<Rule>::numOutputs; ++i) {
    const F *from = input<F>(args, i == 0 ? 0 : i + 1);
    if (F *to = output<F>(args, i); to != from && count > 0)
      std::memcpy(to, from, static_cast<size_t>(count) * sizeof(F));
  }
}

template <template <typename> typename RuleOf, typename F>
std::unique_ptr<CpuKernel> makeOptimizer(const Constants &constants, int64_t count) {
  using Rule = RuleOf<F>;
  using Index = Operands<Rule>;
  return makeKernel([=](const CpuArguments &args) {
    if (*input<uint8_t>(args, Index::apply) == 0)
      return keepAll<Rule, F>(args, count);
    StepScalars scalars{*input<F>(args, Index::learningRate), 0};
    if (Rule::hasStep)
      scalars.step = *input<F>(args, Index::step);
    Rule rule(constants, scalars);
    F scale = *input<F>(args, Index::gradScale);
    const F *p = input<F>(args, 0), *g = input<F>(args, 1);
    F *pOut = output<F>(args, 0);
    // With one moment, the second is the first, and nothing comes of it.
    constexpr size_t last = Rule::numMoments - 1;
    const F *m = input<F>(args, Index::firstMoment), *v = input<F>(args, Index::firstMoment + last);
    F *mOut = output<F>(args, 1), *vOut = output<F>(args, 1 + last);
    parallelFor(args.threads, count, elementGrain / Rule::cost,
                [=](int64_t begin, int64_t end, int) {
                  simd([=] {
#pragma omp simd
                    for (int64_t i = begin; i < end; ++i) {
                      F first = m[i], second = v[i];
                      F updated = rule.update(p[i], g[i] * scale, first, second);
                      mOut[i] = first;
                      if constexpr (Rule::numMoments == 2)
                        vOut[i] = second;
                      pOut[i] = updated;
                    }
                  });
                });
  });
}

/// `readConstants(check)` asks for the attributes.
template <template <typename> typename RuleOf, typename ReadConstants>
PrepareResult prepareOptimizer(const KernelSignature &signature,
                               const ReadConstants &readConstants) {
  using Index = Operands<RuleOf<float>>;
  SignatureChecker check(signature, Index::numInputs, Index::numOutputs);
  const TensorType &p = check.wideInput(0);
  for (size_t i = 1; i < Index::learningRate; ++i)
    check.expectInput(i, p);
  for (size_t i = Index::learningRate; i < Index::apply; ++i)
    check.expectInput(i, TensorType{p.dtype, {}});
  check.expectInput(Index::apply, TensorType{DType::Bool, {}});
  for (size_t i = 0; i < Index::numOutputs; ++i)
    check.expectOutput(i, p);
  Constants constants = readConstants(check);
  if (MaybeError error = check.finish())
    return *error;
  return withWideType(p.dtype, [&](auto zero) {
    return makeOptimizer<RuleOf, decltype(zero)>(constants, p.numElements());
  });
}

Constants readBetas(SignatureChecker &check) {
  Constants constants;
  constants.beta1 = check.floatAttributeInRange("beta1", 0, 1);
  constants.beta2 = check.floatAttributeInRange("beta2", 0, 1);
  constants.weightDecay = check.floatAttribute("weight_decay");
  return constants;
}

Constants readAdam(SignatureChecker &check) {
  Constants constants = readBetas(check);
  constants.eps = check.floatAttribute("eps");
  return constants;
}

Constants readSgd(SignatureChecker &check) {
  Constants constants;
  constants.momentum = check.floatAttribute("momentum");
  constants.weightDecay = check.floatAttribute("weight_decay");
  return constants;
}

PrepareResult prepareAdamW(const KernelSignature &signature) {
  return prepareOptimizer<AdamW>(signature, readAdam);
}
PrepareResult prepareAdam(const KernelSignature &signature) {
  return prepareOptimizer<Adam>(signature, readAdam);
}
PrepareResult prepareSgd(const KernelSignature &signature) {
  return prepareOptimizer<Sgd>(signature, readSgd);
}
PrepareResult prepareLion(const KernelSignature &signature) {
  return prepareOptimizer<Lion>(signature, readBetas);
}

} // namespace

std::span<const KernelEntry> optimizerKernels() {
  static constexpr KernelEntry entries[] = {
      {"adamw", prepareAdamW},
      {"adam", prepareAdam},
      {"sgd", prepareSgd},
      {"lion", prepareLion},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
