//===- KernelBenchmark.cpp - Speed of kernels by element type -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Kernels that wait for memory, on one thread, for each float type of their operands: in 16 bits
// they move half of the bytes of f32. range(0) is the number of rows of 1024 elements, range(1) the
// element type. Items are elements; bytes are those of the operands.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/CpuBackend.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <cmath>
#include <functional>

using namespace dtc::runtime;

namespace {

constexpr int64_t width = 1024;

using SignatureOf = std::function<KernelSignature(const TensorType &x)>;

void runKernel(benchmark::State &state, const SignatureOf &signatureOf) {
  TensorType x{static_cast<DType>(state.range(1)), {state.range(0), width}};
  KernelSignature signature = signatureOf(x);
  auto kernel = createCpuBackend()->prepare(signature);
  if (!kernel) {
    state.SkipWithError(kernel.error().message.c_str());
    return;
  }
  std::vector<HostTensor> tensors;
  for (const auto *types : {&signature.inputs, &signature.outputs})
    for (const TensorType &type : *types) {
      HostTensor &tensor = tensors.emplace_back(type);
      int64_t first = std::min(width, type.numElements());
      for (int64_t i = 0; i < first; ++i)
        setElement(tensor, i, std::sin(static_cast<double>(i)));
      size_t period = static_cast<size_t>(first) * byteWidth(type.dtype);
      for (size_t i = period; i < tensor.bytes.size(); ++i)
        tensor.bytes[i] = tensor.bytes[i - period];
    }
  std::vector<void *> operands;
  int64_t bytes = 0;
  for (HostTensor &tensor : tensors) {
    operands.push_back(tensor.bytes.data());
    bytes += static_cast<int64_t>(tensor.bytes.size());
  }
  std::span<void *const> all(operands);
  std::vector<std::byte> workspace((*kernel)->workspaceBytes(1) + 64);
  void *aligned = workspace.data() + (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64) % 64;
  size_t inputs = signature.inputs.size();
  for (auto _ : state)
    (*kernel)->run({all.first(inputs), all.subspan(inputs), {}, aligned, 1});
  state.SetItemsProcessed(state.iterations() * x.numElements());
  state.SetBytesProcessed(state.iterations() * bytes);
  state.SetLabel(name(x.dtype));
}

TensorType rowsOf(const TensorType &x) { return {wideType(x.dtype), {x.shape[0]}}; }
TensorType parameterOf(const TensorType &x) { return {x.dtype, {width}}; }

KernelSignature add(const TensorType &x) { return {"add", {x, x}, {x}, {}, {}}; }
KernelSignature addRow(const TensorType &x) {
  return {"add", {x, parameterOf(x)}, {x}, {{"rhs_dims", std::vector<int64_t>{1}}}, {}};
}
KernelSignature gelu(const TensorType &x) {
  return {"gelu", {x}, {x}, {{"approximate", "tanh"}}, {}};
}
KernelSignature layerNorm(const TensorType &x) {
  return {"layer_norm",
          {x, parameterOf(x), parameterOf(x)},
          {x, rowsOf(x), rowsOf(x)},
          {{"eps", 1e-5}},
          {}};
}
KernelSignature softmax(const TensorType &x) { return {"softmax", {x}, {x}, {}, {}}; }
KernelSignature sumRows(const TensorType &x) {
  return {"reduce",
          {x},
          {{wideType(x.dtype), {width}}},
          {{"kind", "sum"}, {"dims", std::vector<int64_t>{0}}},
          {}};
}
KernelSignature toF32(const TensorType &x) {
  return {"convert", {x}, {{DType::F32, x.shape}}, {}, {}};
}
KernelSignature fromF32(const TensorType &x) {
  return {"convert", {{DType::F32, x.shape}}, {x}, {}, {}};
}

/// Operands in the second cache, and in none.
void sizesAndTypes(benchmark::internal::Benchmark *b) {
  std::vector<int64_t> types;
  for (DType dtype : {DType::F32, DType::BF16, DType::F16})
    types.push_back(static_cast<int64_t>(dtype));
  b->ArgsProduct({{64, 8 << 10}, types})->ArgNames({"rows", "type"});
}

} // namespace

BENCHMARK_CAPTURE(runKernel, add, add)->Apply(sizesAndTypes);
BENCHMARK_CAPTURE(runKernel, addRow, addRow)->Apply(sizesAndTypes);
BENCHMARK_CAPTURE(runKernel, gelu, gelu)->Apply(sizesAndTypes);
BENCHMARK_CAPTURE(runKernel, layerNorm, layerNorm)->Apply(sizesAndTypes);
BENCHMARK_CAPTURE(runKernel, softmax, softmax)->Apply(sizesAndTypes);
BENCHMARK_CAPTURE(runKernel, sumRows, sumRows)->Apply(sizesAndTypes);
BENCHMARK_CAPTURE(runKernel, toF32, toF32)->Apply(sizesAndTypes);
BENCHMARK_CAPTURE(runKernel, fromF32, fromF32)->Apply(sizesAndTypes);
