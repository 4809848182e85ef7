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
#include "runtime/calibrate/KernelRun.h"

#include <benchmark/benchmark.h>
#include <functional>

using namespace dtc;
using namespace dtc::runtime;

namespace {

constexpr int64_t kWidth = 1024;

using SignatureOf = std::function<KernelSignature(const TensorType &x)>;

void runKernel(benchmark::State &state, const SignatureOf &signatureOf) {
  TensorType x{static_cast<DType>(state.range(1)), {state.range(0), kWidth}};
  Expected<KernelRun> kernel = KernelRun::create(*createCpuBackend(), signatureOf(x));
  if (!kernel) {
    state.SkipWithError(kernel.error().message.c_str());
    return;
  }
  for (auto _ : state)
    kernel->run();
  state.SetItemsProcessed(state.iterations() * x.numElements());
  state.SetBytesProcessed(state.iterations() * kernel->bytes());
  state.SetLabel(name(x.dtype));
}

TensorType rowsOf(const TensorType &x) { return {wideType(x.dtype), {x.shape[0]}}; }
TensorType parameterOf(const TensorType &x) { return {x.dtype, {kWidth}}; }

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
          {{wideType(x.dtype), {kWidth}}},
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
