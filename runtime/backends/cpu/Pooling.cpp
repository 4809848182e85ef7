//===- Pooling.cpp - Maxima of windows ------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/WindowCalls.h"
#include "runtime/backends/cpu/WideBlocks.h"
#include "runtime/backends/cpu/WindowKernels.h"

#include <limits>

namespace dtc::runtime::cpu {

namespace {

/// The elements of a window along one dimension that are no padding: [begin, end).
struct Inside {
  int64_t begin, end;

  Inside(const SpatialDim &dim, int64_t window) {
    int64_t first = window * dim.windows.stride - dim.windows.padding;
    auto before = [&](int64_t place) { // elements at places before `place`
      int64_t count = (place - first + dim.windows.dilation - 1) / dim.windows.dilation;
      return place <= first ? 0 : std::min(count, dim.windows.size);
    };
    begin = before(0);
    end = before(dim.in);
  }
};

/// The place of the largest element of a window, the first of equal ones; -1 if all is padding. A
/// NaN is larger than all numbers.
template <typename F>
int64_t largestOf(const SpatialDims &dims, const F *x, const std::array<int64_t, 3> &window) {
  using W = Wide<F>;
  std::array<Inside, 3> inside{Inside(dims[0], window[0]), Inside(dims[1], window[1]),
                               Inside(dims[2], window[2])};
  auto placeAt = [&](size_t dim, int64_t k) {
    return window[dim] * dims[dim].windows.stride + dims[dim].firstPlace(k);
  };
  int64_t best = -1;
  W largest = 0;
  for (int64_t k0 = inside[0].begin; k0 < inside[0].end; ++k0)
    for (int64_t k1 = inside[1].begin; k1 < inside[1].end; ++k1) {
      int64_t row = (placeAt(0, k0) * dims[1].in + placeAt(1, k1)) * dims[2].in;
      for (int64_t k2 = inside[2].begin; k2 < inside[2].end; ++k2) {
        int64_t place = row + placeAt(2, k2);
        W value = W(x[place]);
        if (best >= 0 && !(value > largest || (value != value && largest == largest)))
          continue;
        best = place;
        largest = value;
      }
    }
  return best;
}

/// Calls body(place, window) for each window of a plane: the place of its largest element, and the
/// window's own place in the result.
template <typename F, typename Body>
void forMaxima(const SpatialDims &dims, const F *x, const Body &body) {
  int64_t window = 0;
  for (int64_t t0 = 0; t0 < dims[0].out; ++t0)
    for (int64_t t1 = 0; t1 < dims[1].out; ++t1)
      for (int64_t t2 = 0; t2 < dims[2].out; ++t2)
        body(largestOf(dims, x, {t0, t1, t2}), window++);
}

int64_t grainOfPlanes(const PoolCall &call) {
  return grainFor(outElements(call.dims) * windowElements(call.dims));
}

template <typename F> std::unique_ptr<CpuKernel> makeMaxPool(const PoolCall &call) {
  return makeKernel([call](const CpuArguments &args) {
    int64_t in = inElements(call.dims), out = outElements(call.dims);
    parallelFor(
        args.threads, call.planes, grainOfPlanes(call), [&](int64_t begin, int64_t end, int) {
          for (int64_t plane = begin; plane < end; ++plane) {
            const F *x = input<F>(args, 0) + plane * in;
            F *y = output<F>(args, 0) + plane * out;
            forMaxima(call.dims, x, [&](int64_t place, int64_t window) {
              y[window] = place < 0 ? F(-std::numeric_limits<Wide<F>>::infinity()) : x[place];
            });
          }
        });
  });
}

template <typename F> std::unique_ptr<CpuKernel> makeMaxPoolGrad(const PoolCall &call) {
  using W = Wide<F>;
  int64_t in = inElements(call.dims), out = outElements(call.dims);
  int64_t grain = grainOfPlanes(call);
  // Sums of 16-bit elements are kept in f32 until their plane is complete.
  auto bytes = [=](int threads) {
    return kIsWide<F>
               ? size_t{0}
               : static_cast<size_t>(numParts(threads, call.planes, grain)) * arrayBytes<W>(in);
  };
  auto run = [=](const CpuArguments &args) {
    parallelFor(args.threads, call.planes, grain, [&](int64_t begin, int64_t end, int part) {
      auto *own = static_cast<std::byte *>(args.workspace) +
                  (kIsWide<F> ? 0 : static_cast<size_t>(part) * arrayBytes<W>(in));
      for (int64_t plane = begin; plane < end; ++plane) {
        const F *dy = input<F>(args, 1) + plane * out;
        F *dx = output<F>(args, 0) + plane * in;
        W *sums = wideOutput(dx, reinterpret_cast<W *>(own));
        std::fill_n(sums, in, W(0));
        forMaxima(call.dims, input<F>(args, 0) + plane * in, [&](int64_t place, int64_t window) {
          if (place >= 0)
            sums[place] += W(dy[window]);
        });
        storeWide(sums, dx, in);
      }
    });
  };
  return makeKernel(run, bytes);
}

PrepareResult prepareMaxPool(const PoolCall &call) {
  return withFloatType(call.dtype, [&](auto zero) { return makeMaxPool<decltype(zero)>(call); });
}

PrepareResult prepareMaxPoolGrad(const PoolCall &call) {
  return withFloatType(call.dtype,
                       [&](auto zero) { return makeMaxPoolGrad<decltype(zero)>(call); });
}

} // namespace

std::span<const KernelEntry> poolingKernels() {
  static constexpr KernelEntry entries[] = {
      {"max_pool", prepareBy<checkMaxPool, prepareMaxPool>},
      {"max_pool_grad", prepareBy<checkMaxPoolGrad, prepareMaxPoolGrad>}};
  return entries;
}

} // namespace dtc::runtime::cpu
