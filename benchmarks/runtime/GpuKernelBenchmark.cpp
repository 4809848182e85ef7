//===- GpuKernelBenchmark.cpp - Speed of kernels on a GPU -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Kernels of a step of GPT-2 on GPU 0, timed by events of its queue. The counter of kernels that
// wait for memory is the bytes of all operands a second, and that of products FLOPs a second.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/Device.h"
#include "runtime/backends/cuda/CudaBackend.h"

#include <benchmark/benchmark.h>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <vector>

using namespace dtc;
using namespace dtc::runtime;

namespace {

struct Case {
  KernelSignature signature;
  double flops = 0; // 0: of no interest
};
using CaseOf = std::function<Case(DType)>;

template <typename T> T take(Expected<T> value, benchmark::State &state) {
  if (value)
    return std::move(*value);
  state.SkipWithError(value.error().message.c_str());
  return T();
}

/// The operands of a call in memory of the device: indices as those of a text, all else zeros.
struct Operands {
  std::vector<std::unique_ptr<DeviceMemory>> memory;
  std::vector<void *> inputs, outputs;
  void *workspace = nullptr;
};

/// Indices below the size of GPT-2's vocabulary. The larger an index is, the less frequent it is: 6
/// in 100 are 0.
MaybeError placeIndices(Operands &operands, Device &device, Queue &queue, std::byte *to,
                        size_t bytes) {
  auto staging = device.allocateStaging(bytes);
  if (!staging)
    return staging.error();
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(0, std::log(50257.0));
  auto *indices = reinterpret_cast<int32_t *>((*staging)->data());
  for (size_t i = 0; i < bytes / sizeof(int32_t); ++i)
    indices[i] = static_cast<int32_t>(std::exp(uniform(random))) - 1;
  operands.memory.push_back(std::move(*staging));
  return queue.copy(to, operands.memory.back()->data(), bytes);
}

MaybeError placeOperands(Operands &operands, Device &device, Queue &queue,
                         const KernelSignature &signature, size_t workspaceBytes) {
  auto place = [&](size_t bytes) -> Expected<void *> {
    Expected<std::unique_ptr<DeviceMemory>> memory = device.allocate(bytes);
    if (!memory)
      return memory.error();
    operands.memory.push_back(std::move(*memory));
    if (MaybeError error = queue.clear(operands.memory.back()->data(), bytes))
      return *error;
    return static_cast<void *>(operands.memory.back()->data());
  };
  for (bool isInput : {true, false})
    for (const TensorType &type : isInput ? signature.inputs : signature.outputs) {
      Expected<void *> data = place(type.numBytes());
      if (!data)
        return data.error();
      if (type.dtype == DType::I32)
        if (MaybeError error = placeIndices(operands, device, queue,
                                            static_cast<std::byte *>(*data), type.numBytes()))
          return error;
      (isInput ? operands.inputs : operands.outputs).push_back(*data);
    }
  Expected<void *> scratch = place(workspaceBytes);
  if (!scratch)
    return scratch.error();
  operands.workspace = *scratch;
  return std::nullopt;
}

void runOnGpu(benchmark::State &state, const CaseOf &caseOf, DType dtype) {
  Case kernelCase = caseOf(dtype);
  std::unique_ptr<Backend> backend = createCudaBackend();
  auto device = take(backend->openDevice(0), state);
  auto kernel = take(backend->prepare(kernelCase.signature), state);
  if (!device || !kernel)
    return;
  auto queue = take(device->openQueue(QueueKind::Compute), state);
  auto begin = take(device->createEvent(true), state), end = take(device->createEvent(true), state);
  Operands operands;
  if (MaybeError error =
          placeOperands(operands, *device, *queue, kernelCase.signature, kernel->workspaceBytes()))
    return state.SkipWithError(error->message.c_str());
  KernelArguments arguments{operands.inputs, operands.outputs, {}, operands.workspace};
  // The first call does work that others do not, such as the choice of an algorithm.
  MaybeError error = queue->enqueue(*kernel, arguments);
  constexpr int callsPerIteration = 20;
  for (auto _ : state) {
    if (!error)
      error = queue->record(*begin);
    for (int i = 0; i < callsPerIteration && !error; ++i)
      error = queue->enqueue(*kernel, arguments);
    if (!error)
      error = queue->record(*end);
    if (!error)
      error = queue->finish();
    if (error)
      return state.SkipWithError(error->message.c_str());
    auto from = take(begin->time(), state), to = take(end->time(), state);
    state.SetIterationTime(std::chrono::duration<double>(to - from).count() / callsPerIteration);
  }
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
