//===- Optimizer.cu - Updates of parameters -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/OptimizerCalls.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/MultiTensor.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

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

/// The operands that all calls of a launch share. `step` is null for rules that have none.
template <typename W> struct SharedOperands {
  CallConstants constants;
  const W *learningRate, *step, *gradScale;
  const uint8_t *apply;
};

/// The arrays of each tensor of a group. With one moment, the second is the first, and nothing is
/// written to it. `Converted` is the new parameter in 16 bits, of type H; null if H is void.
enum Array { P, G, First, Second, POut, FirstOut, SecondOut, Converted, NumArrays };

template <OptimizerRule rule, int Capacity, typename W, typename H>
__global__ void __launch_bounds__(256)
    optimizerKernel(const GroupTable<NumArrays, Capacity> __grid_constant__ table,
                    const SharedOperands<W> __grid_constant__ shared) {
  constexpr bool hasSecond = operands<rule>.numMoments == 2;
  // Elements of f64 one at a time: with two, registers spill.
  constexpr int V = std::is_same_v<W, float> ? 4 : 1;
  __shared__ StepConstants<W> c;
  bool applies = *shared.apply != 0;
  if (threadIdx.x == 0 && applies)
    computeConstants<W, rule>(c, shared.constants, shared.learningRate, shared.step,
                              shared.gradScale);
  __syncthreads();
  forEachChunk(table, [&](const auto &group, int64_t begin, int64_t end) {
    auto updateAt = [&](auto number, int64_t i) {
      constexpr int count = decltype(number)::value;
      using Elements = Vector<W, count>;
      auto load = [&](Array array) {
        return loadVector<count>(static_cast<const W *>(group.arrays[array]) + i);
      };
      auto store = [&](Array array, const Elements &value) {
        storeVector(static_cast<W *>(group.arrays[array]) + i, value);
      };
      Elements p = load(P), first = load(First), second = first;
      if constexpr (hasSecond)
        second = load(Second);
      if (applies) {
        Elements g = load(G);
#pragma unroll
        for (int j = 0; j < count; ++j)
          p.at[j] = update<rule>(c, p.at[j], g.at[j] * c.gradScale, first.at[j], second.at[j]);
      }
      store(POut, p);
      if constexpr (!std::is_void_v<H>) {
        Vector<H, count> converted;
#pragma unroll
        for (int j = 0; j < count; ++j)
          converted.at[j] = narrow<H>(p.at[j]);
        storeVector(static_cast<H *>(group.arrays[Converted]) + i, converted);
      }
      store(FirstOut, first);
      if constexpr (hasSecond)
        store(SecondOut, second);
    };
    bool isVector = true;
    for (const void *array : group.arrays)
      isVector &= isAligned(array, V * sizeof(W));
    int64_t vectorEnd = isVector ? begin + (end - begin) / V * V : begin;
    for (int64_t i = begin + threadIdx.x * V; i < vectorEnd; i += blockDim.x * V)
      updateAt(std::integral_constant<int, V>(), i);
    for (int64_t i = vectorEnd + threadIdx.x; i < end; i += blockDim.x)
      updateAt(std::integral_constant<int, 1>(), i);
  });
}

template <OptimizerRule rule, typename W, typename H>
MaybeError launchOptimizer(CudaQueue &queue, const void *shared,
                           std::span<const TensorGroup> groups) {
  return launchGroups(queue, groups, optimizerKernel<rule, 8, W, H>,
                      optimizerKernel<rule, HeldLaunches::kMaxGroups, W, H>,
                      *static_cast<const SharedOperands<W> *>(shared));
}

/// The operands are those of the call alone; `converted` is null if H is void.
template <OptimizerRule rule, typename W, typename H>
HeldCall holdOptimizer(const KernelArguments &args, const OptimizerCall &call, void *converted) {
  constexpr OptimizerOperands index = operands<rule>;
  constexpr size_t last = index.numMoments - 1;
  HeldCall held;
  held.launch = launchOptimizer<rule, W, H>;
  held.setShared(
      SharedOperands<W>{CallConstants(call.constants), input<W>(args, index.learningRate()),
                        index.hasStep ? input<W>(args, index.step()) : nullptr,
                        input<W>(args, index.gradScale()), input<uint8_t>(args, index.apply())});
  held.tensors = {{args.inputs[0], args.inputs[1], args.inputs[index.firstMoment],
                   args.inputs[index.firstMoment + last], args.outputs[0], args.outputs[1],
                   args.outputs[1 + last], converted},
                  call.count};
  size_t bytes = static_cast<size_t>(call.count) * sizeof(W);
  for (size_t i = 0; i < args.inputs.size(); ++i)
    held.reads.push_back({args.inputs[i], i < index.learningRate() ? bytes : sizeof(W)});
  for (void *output : args.outputs)
    held.writes.push_back({output, bytes});
  if constexpr (!std::is_void_v<H>)
    held.writes.push_back({converted, static_cast<size_t>(call.count) * sizeof(H)});
  return held;
}

template <OptimizerRule rule> PrepareResult prepareOptimizer(const KernelSignature &signature) {
  Expected<OptimizerCall> checked = checkOptimizer(signature, rule);
  if (!checked)
    return checked.error();
  return withWideType(checked->dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using W = typename decltype(identity)::type;
    return makeMultiTensorKernel([call = *checked](const KernelArguments &args) {
      return holdOptimizer<rule, W, void>(args, call, nullptr);
    });
  });
}

/// The calls' operands are brought into the order of the single call's.
template <OptimizerRule rule, typename H>
PrepareResult prepareConvertingTo(const FusedCalls &calls, const ConvertedUpdate &match) {
  const FusedCalls::Call &update = *match.update;
  Expected<OptimizerCall> checked = checkOptimizer(update.signature, rule);
  if (!checked)
    return checked.error();
  std::vector<size_t> index = calls.operandIndices(), in, out;
  for (size_t value : update.inputs)
    in.push_back(index[value]);
  for (size_t value : update.outputs)
    out.push_back(index[value]);
  size_t converted = index[match.converted];
  return makeMultiTensorKernel([=, call = *checked](const KernelArguments &args) {
    std::vector<void *> inputs, outputs;
    for (size_t i : in)
      inputs.push_back(args.inputs[i]);
    for (size_t i : out)
      outputs.push_back(args.outputs[i]);
    return holdOptimizer<rule, float, H>({inputs, outputs, args.position, args.workspace}, call,
                                         args.outputs[converted]);
  });
}

template <OptimizerRule rule>
PrepareResult prepareConverting(const FusedCalls &calls, const ConvertedUpdate &match) {
  return match.to == DType::BF16 ? prepareConvertingTo<rule, __nv_bfloat16>(calls, match)
                                 : prepareConvertingTo<rule, __half>(calls, match);
}

} // namespace

PrepareResult prepareConvertedUpdate(const FusedCalls &calls, const ConvertedUpdate &match) {
  const std::string &kernel = match.update->signature.kernel;
  if (kernel == "adamw")
    return prepareConverting<OptimizerRule::AdamW>(calls, match);
  if (kernel == "adam")
    return prepareConverting<OptimizerRule::Adam>(calls, match);
  if (kernel == "sgd")
    return prepareConverting<OptimizerRule::Sgd>(calls, match);
  return prepareConverting<OptimizerRule::Lion>(calls, match);
}

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
