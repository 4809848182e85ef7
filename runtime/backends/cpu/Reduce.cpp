//===- Reduce.cpp - Sums and extremes over dimensions ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/LoopNest.h"
#include "calls/ReduceCall.h"
#include "runtime/backends/cpu/Accumulate.h"
#include "runtime/backends/cpu/WideBlocks.h"

#include <algorithm>
#include <cmath>

namespace dtc::runtime::cpu {

namespace {

// The kinds. `span` reduces contiguous elements, `combine` two results.

struct Sum {
  static constexpr double identity = 0;
  template <typename T> static T combine(T a, T b) { return a + b; }
  template <typename F> static double span(const F *x, int64_t count) {
    return sumInBlocks(0, count, [=](int64_t i, int64_t n) { return sumOf(x + i, n); });
  }
};
struct Max {
  static constexpr double identity = -std::numeric_limits<double>::infinity();
  template <typename T> static T combine(T a, T b) { return a > b || a != a ? a : b; }
  template <typename F> static double span(const F *x, int64_t count) { return maxOf(x, count); }
};
struct Min {
  static constexpr double identity = std::numeric_limits<double>::infinity();
  template <typename T> static T combine(T a, T b) { return a < b || a != a ? a : b; }
  template <typename F> static double span(const F *x, int64_t count) { return minOf(x, count); }
};

/// Reduces contiguous elements. Those of 16 bits are widened a block at a time, and blocks are
/// those of a sum.
template <typename Op, typename F> double reduceSpan(const F *x, int64_t count) {
  if constexpr (kIsWide<F>) {
    return Op::span(x, count);
  } else {
    static_assert(kWideBlock == kSumBlock);
    Wide<F> block[kWideBlock];
    double result = Op::identity;
    for (int64_t first = 0; first < count; first += kWideBlock) {
      int64_t length = std::min(kWideBlock, count - first);
#pragma omp simd
      for (int64_t i = 0; i < length; ++i)
        block[i] = static_cast<Wide<F>>(x[first + i]);
      result = Op::combine(result, Op::span(block, length));
    }
    return result;
  }
}

/// The output, whose elements are of type F or of Wide<F>.
template <typename F> struct Results {
  void *elements;
  bool wide;

  void set(int64_t index, Wide<F> value) const {
    if (kIsWide<F> || wide)
      static_cast<Wide<F> *>(elements)[index] = value;
    else
      static_cast<F *>(elements)[index] = static_cast<F>(value);
  }
};

/// The loops over the result (dense in the output) and, for each of its elements, over the input.
struct Loops {
  LoopNest<1> kept, reduced;
  /// Whether the innermost dimension of the input is reduced.
  bool reducesInner;
};

/// Each output element is made of contiguous stretches of the input.
template <typename Op, typename F>
void reduceRows(const Loops &loops, const F *in, Results<F> out, int threads) {
  const Loops *l = &loops;
  parallelFor(threads, loops.kept.elements(), grainFor(loops.reduced.elements()),
              [=](int64_t begin, int64_t end, int) {
                simd([=] {
                  int64_t stride = l->kept.inner().strides[0];
                  int64_t next = begin;
                  l->kept.forSegments(begin, end, [&](const auto &offsets, int64_t length) {
                    for (int64_t i = 0; i < length; ++i) {
                      const F *row = in + offsets[0] + i * stride;
                      double result = Op::identity;
                      l->reduced.forSegments(
                          0, l->reduced.elements(), [&](const auto &offset, int64_t count) {
                            result = Op::combine(result, reduceSpan<Op>(row + offset[0], count));
                          });
                      out.set(next++, static_cast<Wide<F>>(result));
                    }
                  });
                });
              });
}

/// Few output elements, each a contiguous stretch: the stretch itself is shared by the threads.
template <typename Op, typename F>
void reduceWhole(const Loops &loops, const F *in, Results<F> out, double *partials, int threads) {
  int64_t count = loops.reduced.elements();
  for (int64_t i = 0; i < loops.kept.elements(); ++i) {
    const F *row = in + loops.kept.offsetsAt(i)[0];
    double result = reduceInTiles(
        threads, count, Op::identity, partials,
        [=](int64_t begin, int64_t end) {
          double chunk;
          double *slot = &chunk;
          simd([=] { *slot = reduceSpan<Op>(row + begin, end - begin); });
          return chunk;
        },
        Op::template combine<double>);
    out.set(i, static_cast<Wide<F>>(result));
  }
}

/// The innermost dimension is kept: rows of the input are combined element by element. A strip of
/// the output at a time, so that its accumulators stay in the first cache.
template <typename Op, typename F>
void reduceColumns(const Loops &loops, const F *in, Results<F> out, int threads) {
  constexpr int64_t strip = 512, rowsPerBlock = 64;
  const Loops *l = &loops;
  using W = Wide<F>;
  auto reduceStrip = [=](const F *base, int64_t to, int64_t width) {
    W total[strip], block[strip];
    std::fill_n(total, width, static_cast<W>(Op::identity));
    std::fill_n(block, width, static_cast<W>(Op::identity));
    auto flush = [&] {
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) {
        total[c] = Op::combine(total[c], block[c]);
        block[c] = static_cast<W>(Op::identity);
      }
    };
    int64_t rows = 0, stride = l->reduced.inner().strides[0];
    l->reduced.forSegments(0, l->reduced.elements(), [&](const auto &offsets, int64_t length) {
      for (int64_t r = 0; r < length; ++r) {
        const F *row = base + offsets[0] + r * stride;
#pragma omp simd
        for (int64_t c = 0; c < width; ++c)
          block[c] = Op::combine(block[c], static_cast<W>(row[c]));
        if (++rows % rowsPerBlock == 0)
          flush();
      }
    });
    flush();
    for (int64_t c = 0; c < width; ++c)
      out.set(to + c, total[c]);
  };
  parallelFor(threads, loops.kept.elements(), grainFor(loops.reduced.elements()),
              [=](int64_t begin, int64_t end, int) {
                simd([=] {
                  int64_t next = begin;
                  l->kept.forSegments(begin, end, [&](const auto &offsets, int64_t length) {
                    for (int64_t i = 0; i < length; i += strip)
                      reduceStrip(in + offsets[0] + i, next + i, std::min(strip, length - i));
                    next += length;
                  });
                });
              });
}

template <typename Op, typename F> std::unique_ptr<CpuKernel> makeReduce(Loops loops, bool wide) {
  // A stretch that is shared must be one loop. Which outputs are few depends on the threads.
  int64_t outputs = loops.kept.elements();
  bool canShare = outputs > 0 && loops.reducesInner && loops.reduced.dims().size() == 1;
  int64_t chunks = canShare ? numReduceTiles(loops.reduced.elements()) : 0;
  auto run = [=, loops = std::move(loops)](const CpuArguments &args) {
    const F *in = input<F>(args, 0);
    Results<F> out{args.outputs[0], wide};
    if (!loops.reducesInner)
      reduceColumns<Op>(loops, in, out, args.threads);
    else if (chunks > 1 && (outputs == 1 || outputs < args.threads))
      reduceWhole<Op>(loops, in, out, static_cast<double *>(args.workspace), args.threads);
    else
      reduceRows<Op>(loops, in, out, args.threads);
  };
  return makeKernel(std::move(run), [=](int threads) {
    return outputs == 1 || outputs < threads ? arrayBytes<double>(chunks) : 0;
  });
}

template <typename F>
std::unique_ptr<CpuKernel> makeReduce(ReductionKind kind, Loops loops, bool wide) {
  switch (kind) {
  case ReductionKind::Sum:
    return makeReduce<Sum, F>(std::move(loops), wide);
  case ReductionKind::Max:
    return makeReduce<Max, F>(std::move(loops), wide);
  default:
    return makeReduce<Min, F>(std::move(loops), wide);
  }
}

PrepareResult prepareReduce(ReduceCall call) {
  bool wide = call.out == wideType(call.in);
  Loops loops{std::move(call.kept), std::move(call.reduced), call.reducesInner};
  return withFloatType(call.in, [&](auto zero) {
    return makeReduce<decltype(zero)>(call.kind, std::move(loops), wide);
  });
}

} // namespace

std::span<const KernelEntry> reduceKernels() {
  static constexpr KernelEntry entries[] = {{"reduce", prepareBy<checkReduce, prepareReduce>}};
  return entries;
}

} // namespace dtc::runtime::cpu
