//===- Optimizer.cu - Updates of parameters -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/Launch.h"
#include "runtime/backends/shared/OptimizerCalls.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace dtc::runtime::cuda {

namespace {

template <OptimizerRule rule> inline constexpr OptimizerOperands operands = operandsOf(rule);

/// The constants of a call, with the logarithms of the betas.
struct CallConstants : OptimizerConstants {
  double logBeta1, logBeta2;

  explicit CallConstants(const OptimizerConstants &constants)
      : OptimizerConstants(constants), logBeta1(std::log(beta1)), logBeta2(std::log(beta2)) {}
};

/// The constants of a rule for one step, computed in double: 1 - beta^step cancels.
template <typename W> struct StepConstants {
  W learningRate, beta1, rest1, beta2, rest2, stepSize, correction, eps, momentum, decay, gradScale;
};

/// `step` is null for rules that have none.
template <typename W, OptimizerRule rule>
__device__ void computeConstants(StepConstants<W> &c, const CallConstants &given,
                                 const W *learningRate, const W *step, const W *gradScale) {
  double lr = *learningRate;
  c.learningRate = *learningRate;
  c.gradScale = *gradScale;
  c.beta1 = static_cast<W>(given.beta1);
  c.rest1 = static_cast<W>(1 - given.beta1);
  c.beta2 = static_cast<W>(given.beta2);
  c.rest2 = static_cast<W>(1 - given.beta2);
  c.eps = static_cast<W>(given.eps);
  c.momentum = static_cast<W>(given.momentum);
  c.decay =
      static_cast<W>(rule == OptimizerRule::AdamW ? 1 - lr * given.weightDecay : given.weightDecay);
  if constexpr (operands<rule>.hasStep) {
    double number = *step;
    c.stepSize = static_cast<W>(lr / -expm1(number * given.logBeta1));
    c.correction = static_cast<W>(1 / sqrt(-expm1(number * given.logBeta2)));
  }
}

/// The update of one element: returns the new parameter and changes the moments.
template <OptimizerRule rule, typename W>
__device__ __forceinline__ W update(const StepConstants<W> &c, W p, W g, W &first, W &second) {
  if constexpr (rule == OptimizerRule::AdamW || rule == OptimizerRule::Adam) {
    if constexpr (rule == OptimizerRule::AdamW)
      p *= c.decay;
    else
      g += c.decay * p;
    first = c.beta1 * first + c.rest1 * g;
    second = c.beta2 * second + c.rest2 * (g * g);
    return p - c.stepSize * first / (sqrt(second) * c.correction + c.eps);
  } else if constexpr (rule == OptimizerRule::Sgd) {
    first = c.momentum * first + (g + c.decay * p);
    return p - c.learningRate * first;
  } else {
    W direction = c.beta1 * first + c.rest1 * g;
    // Zeros and NaNs are their own signs.
    W sign = direction > W(0) ? W(1) : direction < W(0) ? W(-1) : direction;
    first = c.beta2 * first + c.rest2 * g;
    return p - c.learningRate * (sign + c.decay * p);
  }
}

/// Arrays of the parameters and moments. With one moment, the second is the first, and nothing is
/// written to it.
template <typename W> struct OptimizerArrays {
  const W *p, *g, *first, *second;
  W *pOut, *firstOut, *secondOut;
  const W *learningRate, *step, *gradScale;
  const uint8_t *apply;
};

template <OptimizerRule rule, int V, typename W>
__global__ void __launch_bounds__(256)
    optimizerKernel(const __grid_constant__ OptimizerArrays<W> arrays,
                    const __grid_constant__ CallConstants constants, int64_t vectors) {
  constexpr bool hasSecond = operands<rule>.numMoments == 2;
  __shared__ StepConstants<W> c;
  bool applies = *arrays.apply != 0;
  if (threadIdx.x == 0 && applies)
    computeConstants<W, rule>(c, constants, arrays.learningRate, arrays.step, arrays.gradScale);
  __syncthreads();
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < vectors; i += step) {
    using Elements = Vector<W, V>;
    auto load = [=](const W *from) { return reinterpret_cast<const Elements *>(from)[i]; };
    auto store = [=](W *to, const Elements &value) { reinterpret_cast<Elements *>(to)[i] = value; };
    Elements p = load(arrays.p), first = load(arrays.first), second = first;
    if constexpr (hasSecond)
      second = load(arrays.second);
    if (applies) {
      Elements g = load(arrays.g);
#pragma unroll
      for (int j = 0; j < V; ++j)
        p.at[j] = update<rule>(c, p.at[j], g.at[j] * c.gradScale, first.at[j], second.at[j]);
    }
    store(arrays.pOut, p);
    store(arrays.firstOut, first);
    if constexpr (hasSecond)
      store(arrays.secondOut, second);
  }
}

template <typename W> bool allowsVectors(const OptimizerArrays<W> &arrays) {
  const W *pointers[] = {arrays.p,    arrays.g,        arrays.first,    arrays.second,
                         arrays.pOut, arrays.firstOut, arrays.secondOut};
  return std::all_of(std::begin(pointers), std::end(pointers), [](const W *pointer) {
    return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
  });
}

template <OptimizerRule rule, typename W>
MaybeError enqueueOptimizer(CudaQueue &queue, const KernelArguments &args,
                            const OptimizerCall &call) {
  constexpr OptimizerOperands index = operands<rule>;
  constexpr int V = static_cast<int>(16 / sizeof(W));
  constexpr size_t last = index.numMoments - 1;
  OptimizerArrays<W> arrays{input<W>(args, 0),
                            input<W>(args, 1),
                            input<W>(args, index.firstMoment),
                            input<W>(args, index.firstMoment + last),
                            output<W>(args, 0),
                            output<W>(args, 1),
                            output<W>(args, 1 + last),
                            input<W>(args, index.learningRate()),
                            index.hasStep ? input<W>(args, index.step()) : nullptr,
                            input<W>(args, index.gradScale()),
                            input<uint8_t>(args, index.apply())};
  CallConstants constants(call.constants);
  if (call.count % V == 0 && allowsVectors(arrays))
    return launch(queue, gridStride(queue, call.count / V), optimizerKernel<rule, V, W>, arrays,
                  constants, call.count / V);
  return launch(queue, gridStride(queue, call.count), optimizerKernel<rule, 1, W>, arrays,
                constants, call.count);
}

template <OptimizerRule rule> PrepareResult prepareOptimizer(const KernelSignature &signature) {
  Expected<OptimizerCall> checked = checkOptimizer(signature, rule);
  if (!checked)
    return checked.error();
  return withWideType(checked->dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using W = typename decltype(identity)::type;
    return makeKernel([call = *checked](CudaQueue &queue, const KernelArguments &args) {
      return enqueueOptimizer<rule, W>(queue, args, call);
    });
  });
}

} // namespace

std::span<const KernelEntry> optimizerKernels() {
  static constexpr KernelEntry entries[] = {
      {"adamw", prepareOptimizer<OptimizerRule::AdamW>},
      {"adam", prepareOptimizer<OptimizerRule::Adam>},
      {"sgd", prepareOptimizer<OptimizerRule::Sgd>},
      {"lion", prepareOptimizer<OptimizerRule::Lion>},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
