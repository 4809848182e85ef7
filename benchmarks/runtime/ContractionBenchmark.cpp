//===- ContractionBenchmark.cpp - Speed of kernels that compute -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Matrix products and attention, on one thread, for f32, bf16 and f16. `flops` counts a
// multiplication and an addition as two; a product that causal attention leaves out is not counted.
// Random masks are compared with a copy of as many floats, within the second cache and beyond all.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/backends/cpu/MaskStretches.h"
#include "runtime/backends/cpu/Simd.h"
#include "runtime/calibrate/KernelRun.h"

#include <benchmark/benchmark.h>
#include <string_view>

using namespace dtc;
using namespace dtc::runtime;

namespace {

void runFor(benchmark::State &state, const KernelSignature &signature, double flops) {
  Expected<KernelRun> kernel = KernelRun::create(*createCpuBackend(), signature);
  if (!kernel) {
    state.SkipWithError(kernel.error().message.c_str());
    return;
  }
  kernel->run();
  for (auto _ : state)
    kernel->run();
  state.counters["flops"] = benchmark::Counter(flops * static_cast<double>(state.iterations()),
                                               benchmark::Counter::kIsRate);
  state.SetLabel(name(signature.inputs[0].dtype));
}

/// range: m, n, k, the element type.
void product(benchmark::State &state, const char *equation) {
  int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  auto type = static_cast<DType>(state.range(3));
  auto shapeOf = [&](char row, char column) {
    auto size = [&](char letter) { return letter == 'm' ? m : letter == 'n' ? n : k; };
    return TensorType{type, {size(row), size(column)}};
  };
  runFor(state,
         {"einsum",
          {shapeOf(equation[0], equation[1]), shapeOf(equation[3], equation[4])},
          {shapeOf('m', 'n')},
          {{"equation", std::string(equation)}},
          {}},
         2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
}

/// range: groups of a matrix, rows of a group, the element type. 8 matrices of 512 x 1024; all rows
/// have an index.
void groupedProduct(benchmark::State &state, const char *equation) {
  int64_t matrices = 8, groups = state.range(0), rows = state.range(1), k = 512, n = 1024;
  auto type = static_cast<DType>(state.range(2));
  TensorType matrix{type, {matrices, k, n}}, result{type, {matrices, groups, rows, n}};
  bool keepsRows = std::string_view(equation).ends_with("bcn");
  runFor(state,
         {"grouped_product",
          {{type, {matrices, groups, rows, k}},
           keepsRows ? matrix : result,
           {DType::I32, {matrices, groups, rows}}},
          {keepsRows ? result : matrix},
          {{"equation", std::string(equation)}},
          {}},
         2.0 * static_cast<double>(matrices * groups * rows * k * n));
}

/// range: positions, the element type. 4 sequences of 12 heads of 64.
void attention(benchmark::State &state, bool grad, double dropout) {
  int64_t positions = state.range(0), batch = 4, heads = 12, size = 64;
  TensorType x{static_cast<DType>(state.range(1)), {batch, positions, heads, size}};
  TensorType lse{wideType(x.dtype), {batch, heads, positions}};
  KernelSignature signature{grad ? "attention_grad" : "attention",
                            {x, x, x},
                            {x, lse},
                            {{"causal", true}, {"scale", 0.125}},
                            {}};
  if (grad) {
    signature.inputs.insert(signature.inputs.end(), {x, lse, x});
    signature.outputs = {x, x, x};
  }
  if (dropout > 0) {
    signature.inputs.push_back({DType::I32, {2}});
    signature.attributes["dropout"] = dropout;
    signature.attributes["op"] = int64_t{1};
    signature.attributes["shape"] = std::vector<int64_t>{batch, heads, positions, positions};
    signature.attributes["sharding"] = std::vector<std::string>(4);
  }
  int64_t pairs = positions * (positions + 1) / 2;
  auto scores = static_cast<double>(batch * heads * pairs);
  runFor(state, signature, (grad ? 10.0 : 4.0) * scores * static_cast<double>(size));
}

/// range: elements.
void randomMask(benchmark::State &state) {
  MaskWords words(0.1, 1);
  int64_t elements = state.range(0), kept = 0;
  for (auto _ : state) {
    int64_t *sum = &kept;
    cpu::simd([=] {
      cpu::KeepBuffer buffer;
      for (int64_t first = 0; first < elements; first += cpu::KeepBuffer::capacity)
        *sum += cpu::keepsOf(words, first, cpu::KeepBuffer::capacity, buffer)[0];
    });
  }
  benchmark::DoNotOptimize(kept);
  state.SetItemsProcessed(state.iterations() * elements);
}

void copyFloats(benchmark::State &state) {
  std::vector<float> from(static_cast<size_t>(state.range(0)), 1.0f), to(from.size());
  for (auto _ : state) {
    std::copy(from.begin(), from.end(), to.begin());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

constexpr DType kTypes[] = {DType::F32, DType::BF16, DType::F16};

void productSizes(benchmark::internal::Benchmark *b) {
  const std::vector<int64_t> shapes[] = {
      {32, 32, 32}, {128, 128, 64}, {512, 512, 512}, {1024, 1024, 1024}, {4096, 1024, 1024}};
  for (const std::vector<int64_t> &shape : shapes)
    for (DType type : kTypes) {
      std::vector<int64_t> arguments = shape;
      arguments.push_back(static_cast<int64_t>(type));
      b->Args(arguments);
    }
  b->ArgNames({"m", "n", "k", "type"})->Unit(benchmark::kMicrosecond);
}

void groupSizes(benchmark::internal::Benchmark *b) {
  for (DType type : kTypes)
    for (int64_t groups : {1, 4, 16})
      b->Args({groups, 512 / groups, static_cast<int64_t>(type)});
  b->ArgNames({"groups", "rows", "type"})->Unit(benchmark::kMillisecond);
}

void attentionSizes(benchmark::internal::Benchmark *b) {
  for (DType type : kTypes)
    for (int64_t positions : {512, 2048})
      b->Args({positions, static_cast<int64_t>(type)});
  b->ArgNames({"positions", "type"})->Unit(benchmark::kMillisecond);
}

} // namespace

BENCHMARK_CAPTURE(product, plain, "mk,kn->mn")->Apply(productSizes);
BENCHMARK_CAPTURE(product, rhsTransposed, "mk,nk->mn")->Apply(productSizes);
BENCHMARK_CAPTURE(product, lhsTransposed, "km,kn->mn")->Apply(productSizes);
BENCHMARK_CAPTURE(groupedProduct, rows, "xbck,xkn->xbcn")->Apply(groupSizes);
BENCHMARK_CAPTURE(groupedProduct, sums, "xbck,xbcn->xkn")->Apply(groupSizes);
BENCHMARK_CAPTURE(attention, forward, false, 0.0)->Apply(attentionSizes);
BENCHMARK_CAPTURE(attention, forwardDropout, false, 0.1)->Apply(attentionSizes);
BENCHMARK_CAPTURE(attention, backward, true, 0.0)->Apply(attentionSizes);
BENCHMARK_CAPTURE(attention, backwardDropout, true, 0.1)->Apply(attentionSizes);
BENCHMARK(randomMask)->Arg(64 << 10)->Arg(64 << 20);
BENCHMARK(copyFloats)->Arg(64 << 10)->Arg(64 << 20);
