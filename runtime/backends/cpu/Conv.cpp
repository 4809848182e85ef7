//===- Conv.cpp - Convolutions and their gradients ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// f32 goes to oneDNN, and so does what has 16 bits, widened: sums are those of f32, and an element
// of the result is rounded once. oneDNN has no f64: its convolutions are plain loops over planes of
// the result, as are those of f32 that the library does not take.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Accumulate.h"
#include "runtime/backends/cpu/LibraryConv.h"
#include "runtime/backends/cpu/WideBlocks.h"
#include "runtime/backends/cpu/WindowKernels.h"

#include <map>
#include <mutex>

namespace dtc::runtime::cpu {

namespace {

/// Calls body(k, i) for each element of a window: its index along each spatial dimension, and its
/// place in the memory of the window.
template <typename Body> inline void forWindow(const SpatialDims &dims, const Body &body) {
  int64_t i = 0;
  for (int64_t k0 = 0; k0 < dims[0].windows.size; ++k0)
    for (int64_t k1 = 0; k1 < dims[1].windows.size; ++k1)
      for (int64_t k2 = 0; k2 < dims[2].windows.size; ++k2)
        body(std::array{k0, k1, k2}, i++);
}

/// Calls row(x, y, count) for rows of a plane: element k of the windows y, y + 1, ... lies at the
/// places x, x + stride, ..., where the stride is that of the last dimension.
template <typename Row>
inline void forRows(const SpatialDims &dims, const std::array<int64_t, 3> &k, const Row &row) {
  const SpatialDim &outer = dims[0], &middle = dims[1], &inner = dims[2];
  int64_t begin = inner.beginOf(k[2]), count = inner.endOf(k[2]) - begin;
  int64_t first = begin * inner.windows.stride + inner.firstPlace(k[2]);
  for (int64_t t0 = outer.beginOf(k[0]); t0 < outer.endOf(k[0]); ++t0)
    for (int64_t t1 = middle.beginOf(k[1]); t1 < middle.endOf(k[1]); ++t1) {
      int64_t p0 = t0 * outer.windows.stride + outer.firstPlace(k[0]);
      int64_t p1 = t1 * middle.windows.stride + middle.firstPlace(k[1]);
      row((p0 * middle.in + p1) * inner.in + first, (t0 * middle.out + t1) * inner.out + begin,
          count);
    }
}

// Each computes planes [begin, end) of its result. They run in simd().

template <typename F>
inline void convPlanes(const ConvCall &c, const F *x, const F *w, F *y, int64_t begin,
                       int64_t end) {
  int64_t in = inElements(c.dims), out = outElements(c.dims), window = windowElements(c.dims);
  int64_t stride = c.dims[2].windows.stride;
  for (int64_t plane = begin; plane < end; ++plane) {
    int64_t o = plane % c.outChannels, sampleGroup = plane / c.outChannels;
    F *to = y + plane * out;
    std::fill_n(to, out, F(0));
    for (int64_t channel = 0; channel < c.inChannels; ++channel) {
      const F *from = x + (sampleGroup * c.inChannels + channel) * in;
      int64_t row = sampleGroup % c.groups * c.outChannels + o;
      const F *weights = w + (row * c.inChannels + channel) * window;
      forWindow(c.dims, [&](const auto &k, int64_t place) {
        F factor = weights[place];
        forRows(c.dims, k, [&](int64_t at, int64_t result, int64_t count) {
          const F *source = from + at;
          F *target = to + result;
#pragma omp simd
          for (int64_t i = 0; i < count; ++i)
            target[i] += factor * source[i * stride];
        });
      });
    }
  }
}

template <typename F>
inline void inputGradPlanes(const ConvCall &c, const F *dy, const F *w, F *dx, int64_t begin,
                            int64_t end) {
  int64_t in = inElements(c.dims), out = outElements(c.dims), window = windowElements(c.dims);
  int64_t stride = c.dims[2].windows.stride;
  for (int64_t plane = begin; plane < end; ++plane) {
    int64_t channel = plane % c.inChannels, sampleGroup = plane / c.inChannels;
    F *to = dx + plane * in;
    std::fill_n(to, in, F(0));
    for (int64_t o = 0; o < c.outChannels; ++o) {
      const F *from = dy + (sampleGroup * c.outChannels + o) * out;
      int64_t row = sampleGroup % c.groups * c.outChannels + o;
      const F *weights = w + (row * c.inChannels + channel) * window;
      forWindow(c.dims, [&](const auto &k, int64_t place) {
        F factor = weights[place];
        forRows(c.dims, k, [&](int64_t at, int64_t result, int64_t count) {
          F *target = to + at;
          const F *source = from + result;
#pragma omp simd
          for (int64_t i = 0; i < count; ++i)
            target[i * stride] += factor * source[i];
        });
      });
    }
  }
}

/// The sum of x[i * stride] y[i].
template <typename F> inline F stridedDot(const F *x, int64_t stride, const F *y, int64_t count) {
  if (stride == 1)
    return dotOf(x, y, count);
  F sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += x[i * stride] * y[i];
  return sum;
}

template <typename F>
inline void weightGradPlanes(const ConvCall &c, const F *x, const F *dy, F *dw, int64_t begin,
                             int64_t end) {
  int64_t in = inElements(c.dims), out = outElements(c.dims), window = windowElements(c.dims);
  int64_t stride = c.dims[2].windows.stride;
  for (int64_t plane = begin; plane < end; ++plane) {
    int64_t channel = plane % c.inChannels, row = plane / c.inChannels;
    int64_t group = row / c.outChannels;
    forWindow(c.dims, [&](const auto &k, int64_t place) {
      double sum = 0;
      for (int64_t sample = 0; sample < c.batch; ++sample) {
        const F *from = x + ((sample * c.groups + group) * c.inChannels + channel) * in;
        const F *with = dy + (sample * c.groups * c.outChannels + row) * out;
        forRows(c.dims, k, [&](int64_t at, int64_t result, int64_t count) {
          sum += static_cast<double>(stridedDot(from + at, stride, with + result, count));
        });
      }
      dw[plane * window + place] = static_cast<F>(sum);
    });
  }
}

template <typename F>
void convByLoops(const ConvCall &call, const F *first, const F *second, F *result, int threads) {
  const ConvCall *c = &call;
  int64_t planes = 0, terms = 0; // of a plane
  switch (call.kind) {
  case ConvKind::Forward:
    planes = call.batch * call.groups * call.outChannels;
    terms = outElements(call.dims) * call.inChannels * windowElements(call.dims);
    break;
  case ConvKind::InputGrad:
    planes = call.batch * call.groups * call.inChannels;
    terms = outElements(call.dims) * call.outChannels * windowElements(call.dims);
    break;
  case ConvKind::WeightGrad:
    planes = call.groups * call.outChannels * call.inChannels;
    terms = outElements(call.dims) * call.batch * windowElements(call.dims);
    break;
  }
  parallelFor(threads, planes, grainFor(terms), [=](int64_t begin, int64_t end, int) {
    simd([=] {
      if (c->kind == ConvKind::Forward)
        convPlanes(*c, first, second, result, begin, end);
      else if (c->kind == ConvKind::InputGrad)
        inputGradPlanes(*c, first, second, result, begin, end);
      else
        weightGradPlanes(*c, first, second, result, begin, end);
    });
  });
}

/// The elements of the operands of a kernel, in its order.
std::array<int64_t, 3> elementsOf(const ConvCall &call) {
  int64_t x = call.xElements(), w = call.wElements(), y = call.yElements();
  if (call.kind == ConvKind::InputGrad)
    return {y, w, x};
  if (call.kind == ConvKind::WeightGrad)
    return {x, y, w};
  return {x, w, y};
}

template <typename F> class ConvKernel final : public CpuKernel {
public:
  explicit ConvKernel(const ConvCall &call) : call(call), elements(elementsOf(call)) {}

  size_t workspaceBytesFor(int threads) const override {
    size_t bytes = 0;
    if constexpr (!kIsWide<F>)
      for (int64_t each : elements)
        bytes += arrayBytes<float>(each);
    if constexpr (!std::is_same_v<F, double>)
      if (const LibraryConv *library = prepared(threads))
        bytes += library->workspaceBytes();
    return bytes;
  }

  void run(const CpuArguments &args) const override {
    WorkspaceCursor workspace(args.workspace);
    if constexpr (kIsWide<F>) {
      compute(input<F>(args, 0), input<F>(args, 1), output<F>(args, 0), workspace, args.threads);
    } else {
      const float *first = widened(args, 0, workspace), *second = widened(args, 1, workspace);
      bool isRounded = call.out == call.dtype;
      float *result = isRounded ? workspace.take<float>(elements[2]) : output<float>(args, 0);
      compute(first, second, result, workspace, args.threads);
      if (isRounded)
        parallelFor(args.threads, elements[2], kElementGrain, [&](int64_t begin, int64_t end, int) {
          narrow(result + begin, output<F>(args, 0) + begin, end - begin);
        });
    }
  }

private:
  const float *widened(const CpuArguments &args, size_t index, WorkspaceCursor &workspace) const {
    float *wide = workspace.take<float>(elements[index]);
    parallelFor(args.threads, elements[index], kElementGrain, [&](int64_t begin, int64_t end, int) {
      widen(input<F>(args, index) + begin, wide + begin, end - begin);
    });
    return wide;
  }

  void compute(const Wide<F> *first, const Wide<F> *second, Wide<F> *result,
               WorkspaceCursor &workspace, int threads) const {
    if constexpr (!std::is_same_v<F, double>)
      if (const LibraryConv *library = prepared(threads))
        if (library->run(first, second, result, workspace.take<std::byte>(0)))
          return;
    convByLoops(call, first, second, result, threads);
  }

  /// The library's convolution for a number of threads, made when it is first asked for; null if it
  /// has none.
  const LibraryConv *prepared(int threads) const {
    std::lock_guard lock(mutex);
    auto [entry, isNew] = byThreads.try_emplace(threads);
    if (isNew)
      entry->second = LibraryConv::create(call, threads);
    return entry->second.get();
  }

  ConvCall call;
  std::array<int64_t, 3> elements;
  mutable std::mutex mutex;
  mutable std::map<int, std::unique_ptr<const LibraryConv>> byThreads;
};

template <Expected<ConvCall> (*check)(const KernelSignature &)>
PrepareResult prepareConv(const KernelSignature &signature) {
  Expected<ConvCall> call = check(signature);
  if (!call)
    return call.error();
  return withFloatType(call->dtype, [&](auto zero) -> std::unique_ptr<CpuKernel> {
    return std::make_unique<ConvKernel<decltype(zero)>>(*call);
  });
}

} // namespace

std::span<const KernelEntry> convKernels() {
  static constexpr KernelEntry entries[] = {{"conv", prepareConv<checkConv>},
                                            {"conv_input_grad", prepareConv<checkConvInputGrad>},
                                            {"conv_weight_grad", prepareConv<checkConvWeightGrad>}};
  return entries;
}

} // namespace dtc::runtime::cpu
