//===- GpuKernelBenchmark.cpp - Speed of kernels on a GPU -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Kernels of a step of GPT-2 on GPU 0. The counter of kernels that wait for memory is the bytes of
// all operands a second, and that of products FLOPs a second.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/runtime/GpuTiming.h"
#include "runtime/backends/cuda/CudaBackend.h"

#include <benchmark/benchmark.h>
#include <functional>
#include <memory>
#include <vector>

using namespace dtc;
using namespace dtc::runtime;

namespace {

struct Case {
  KernelSignature signature;
  double flops = 0; // 0: of no interest
};
using CaseOf = std::function<Case(DType)>;

struct KernelOperands {
  std::vector<void *> inputs, outputs;
  void *workspace = nullptr;
};

/// The operands of a call in memory of the device.
MaybeError placeOperands(KernelOperands &operands, GpuTiming &timing,
                         const KernelSignature &signature, size_t workspaceBytes) {
  for (bool isInput : {true, false})
    for (const TensorType &type : isInput ? signature.inputs : signature.outputs) {
      Expected<void *> data = timing.place(type, GpuTiming::Contents::Zeros);
      if (!data)
        return data.error();
      (isInput ? operands.inputs : operands.outputs).push_back(*data);
    }
  Expected<void *> workspace = timing.placeBytes(workspaceBytes);
  if (!workspace)
    return workspace.error();
  operands.workspace = *workspace;
  return std::nullopt;
}

void runOnGpu(benchmark::State &state, const CaseOf &caseOf, DType dtype) {
  Case kernelCase = caseOf(dtype);
  std::unique_ptr<Backend> backend = createCudaBackend();
  auto timing = GpuTiming::create(*backend);
  if (!timing)
    return state.SkipWithError(timing.error().message.c_str());
  auto kernel = backend->prepare(kernelCase.signature);
  if (!kernel)
    return state.SkipWithError(kernel.error().message.c_str());
  KernelOperands operands;
  if (MaybeError error =
          placeOperands(operands, **timing, kernelCase.signature, (*kernel)->workspaceBytes()))
    return state.SkipWithError(error->message.c_str());
  (*timing)->run(state, [&](Queue &queue) {
    return queue.enqueue(**kernel, {operands.inputs, operands.outputs, {}, operands.workspace});
  });
  double bytes = 0;
  for (const auto *types : {&kernelCase.signature.inputs, &kernelCase.signature.outputs})
    for (const TensorType &type : *types)
      bytes += static_cast<double>(type.numBytes());
  auto perSecond = [&](double amount) {
    return benchmark::Counter(amount, benchmark::Counter::kIsIterationInvariantRate);
  };
  state.counters["bytes/s"] = perSecond(bytes);
  if (kernelCase.flops > 0)
    state.counters["FLOP/s"] = perSecond(kernelCase.flops);
}

// GPT-2 124M: 64 sequences of 1024 tokens, so that no operand of rows fits the L2 cache of 50 MB.
constexpr int64_t kTokens = 64 * 1024, kWidth = 768, kVocabulary = 50257;

Case add(DType dtype) {
  TensorType x{dtype, {kTokens, kWidth}};
  return {{"add", {x, x}, {x}, {}, {}}};
}
Case addRow(DType dtype) {
  TensorType x{dtype, {kTokens, 4 * kWidth}}, row{dtype, {4 * kWidth}};
  return {{"add", {x, row}, {x}, {{"rhs_dims", std::vector<int64_t>{1}}}, {}}};
}
Case gelu(DType dtype) {
  TensorType x{dtype, {kTokens, 4 * kWidth}};
  return {{"gelu", {x}, {x}, {{"approximate", std::string("tanh")}}, {}}};
}
Case layerNorm(DType dtype) {
  TensorType x{dtype, {kTokens, kWidth}}, row{dtype, {kWidth}}, statistic{DType::F32, {kTokens}};
  return {{"layer_norm", {x, row, row}, {x, statistic, statistic}, {{"eps", 1e-5}}, {}}};
}
Case layerNormGrad(DType dtype) {
  TensorType x{dtype, {kTokens, kWidth}}, row{dtype, {kWidth}}, statistic{DType::F32, {kTokens}};
  TensorType sum{DType::F32, {kWidth}};
  return {{"layer_norm_grad", {x, row, statistic, statistic, x}, {x, sum, sum}, {}, {}}};
}
Case crossEntropy(DType dtype) {
  TensorType logits{dtype, {kTokens / 16, kVocabulary}}, row{DType::F32, {kTokens / 16}};
  return {{"cross_entropy", {logits, {DType::I32, {kTokens / 16}}}, {row, row}, {}, {}}};
}
Case embeddingGrad(DType dtype) {
  TensorType rows{dtype, {kTokens, kWidth}}, table{DType::F32, {kVocabulary, kWidth}};
  return {{"embedding_grad", {{DType::I32, {kTokens}}, rows}, {table}, {}, {}}};
}
Case sumRows(DType dtype) {
  TensorType x{dtype, {kTokens, kWidth}};
  return {{"reduce",
           {x},
           {{DType::F32, {kWidth}}},
           {{"kind", std::string("sum")}, {"dims", std::vector<int64_t>{0}}},
           {}}};
}
Case adamW(DType) {
  TensorType p{DType::F32, {kVocabulary, kWidth}}, scalar{DType::F32, {}}, flag{DType::Bool, {}};
  return {{"adamw",
           {p, p, p, p, scalar, scalar, scalar, flag},
           {p, p, p},
           {{"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", 0.1}},
           {}}};
}
Case linear(DType dtype) {
  TensorType x{dtype, {kTokens, kWidth}}, w{dtype, {kWidth, 4 * kWidth}},
      y{dtype, {kTokens, 4 * kWidth}};
  return {{"einsum", {x, w}, {y}, {{"equation", std::string("td,df->tf")}}, {}},
          2.0 * kTokens * kWidth * 4 * kWidth};
}

} // namespace

#define DTC_GPU_BENCHMARK(name)                                                                    \
  BENCHMARK_CAPTURE(runOnGpu, name##_f32, name, DType::F32)->UseManualTime()->MinTime(0.2);        \
  BENCHMARK_CAPTURE(runOnGpu, name##_bf16, name, DType::BF16)->UseManualTime()->MinTime(0.2)

DTC_GPU_BENCHMARK(add);
DTC_GPU_BENCHMARK(addRow);
DTC_GPU_BENCHMARK(gelu);
DTC_GPU_BENCHMARK(layerNorm);
DTC_GPU_BENCHMARK(layerNormGrad);
DTC_GPU_BENCHMARK(crossEntropy);
DTC_GPU_BENCHMARK(embeddingGrad);
DTC_GPU_BENCHMARK(sumRows);
DTC_GPU_BENCHMARK(linear);
BENCHMARK_CAPTURE(runOnGpu, adamW_f32, adamW, DType::F32)->UseManualTime()->MinTime(0.2);
