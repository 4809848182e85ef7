//===- PanelProducts.cpp - Products with an operand in panels -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/PanelProducts.h"

#include "runtime/backends/cpu/Simd.h"

#include <algorithm>
#include <cstring>

namespace dtc::runtime::cpu {

template <typename W>
void packRows(const W *from, int64_t stride, int64_t depth, int64_t columns, W *panels) {
  for (int64_t j = 0; j < columns; j += kPanel<W>) {
    int64_t count = std::min(kPanel<W>, columns - j);
    for (int64_t l = 0; l < depth; ++l, panels += kPanel<W>) {
      std::copy_n(from + l * stride + j, count, panels);
      std::fill(panels + count, panels + kPanel<W>, W(0));
    }
  }
}

template <typename W>
void packTransposed(const W *from, int64_t stride, int64_t depth, int64_t columns, W *panels) {
  for (int64_t j = 0; j < columns; j += kPanel<W>) {
    int64_t count = std::min(kPanel<W>, columns - j);
    const W *rows = from + j * stride;
    for (int64_t l = 0; l < depth; ++l, panels += kPanel<W>) {
      for (int64_t e = 0; e < count; ++e)
        panels[e] = rows[e * stride + l];
      std::fill(panels + count, panels + kPanel<W>, W(0));
    }
  }
}

namespace {

/// A register of `Bytes` bytes.
template <typename W, int Bytes> struct RegisterOf { using type [[gnu::vector_size(Bytes)]] = W; };

/// The arguments of multiplyPanels for some of its rows and panels.
template <typename W> struct Operands {
  int64_t k;
  const W *a;
  MatrixStrides aStrides;
  const W *b;
  int64_t panelStride;
  bool accumulate;
  W *c;
  int64_t cStride;
  int64_t columns; // of c that are there; in the last panel maybe not all
};

/// Results in registers of `Bytes` bytes: Rows times Panels lines.
template <typename W, int Bytes, int Rows, int Panels>
[[gnu::always_inline]] inline void multiplyTile(const Operands<W> &p) {
  using Register = typename RegisterOf<W, Bytes>::type;
  constexpr int perLine = 64 / Bytes, width = Panels * perLine;
  constexpr int64_t elements = Bytes / static_cast<int64_t>(sizeof(W));
  Register sums[Rows][width];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < width; ++j)
      sums[i][j] = Register{};
  const W *a = p.a, *b = p.b;
  for (int64_t l = 0; l < p.k; ++l, a += p.aStrides.column, b += kPanel<W>) {
    Register line[width];
#pragma GCC unroll 16
    for (int j = 0; j < width; ++j)
      std::memcpy(&line[j], b + j / perLine * p.panelStride + j % perLine * elements, Bytes);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      W factor = a[i * p.aStrides.row];
#pragma GCC unroll 16
      for (int j = 0; j < width; ++j)
        sums[i][j] += factor * line[j];
    }
  }
  if (p.columns == Panels * kPanel<W>) {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 16
      for (int j = 0; j < width; ++j) {
        W *to = p.c + i * p.cStride + j * elements;
        if (p.accumulate) {
          Register before;
          std::memcpy(&before, to, Bytes);
          sums[i][j] += before;
        }
        std::memcpy(to, &sums[i][j], Bytes);
      }
    return;
  }
  W results[Rows][Panels * kPanel<W>];
  std::memcpy(results, sums, sizeof(results));
  for (int i = 0; i < Rows; ++i)
    for (int64_t j = 0; j < p.columns; ++j) {
      W &to = p.c[i * p.cStride + j];
      to = p.accumulate ? to + results[i][j] : results[i][j];
    }
}

/// The rows that are left, fewer than Rows.
template <typename W, int Bytes, int Rows, int Panels>
[[gnu::always_inline]] inline void multiplyRest(const Operands<W> &p, int64_t rows) {
  if constexpr (Rows > 1) {
    if (rows == Rows - 1)
      return multiplyTile<W, Bytes, Rows - 1, Panels>(p);
    multiplyRest<W, Bytes, Rows - 1, Panels>(p, rows);
  }
}

template <typename W, int Bytes, int Rows, int Panels>
[[gnu::always_inline]] inline void multiplyColumns(Operands<W> p, int64_t m) {
  for (; m >= Rows; m -= Rows) {
    multiplyTile<W, Bytes, Rows, Panels>(p);
    p.a += Rows * p.aStrides.row;
    p.c += Rows * p.cStride;
  }
  multiplyRest<W, Bytes, Rows, Panels>(p, m);
}

/// Rows and Panels are chosen so that the sums fill the registers.
template <typename W, int Bytes, int Rows, int Panels>
[[gnu::always_inline]] inline void multiplyAll(Operands<W> p, int64_t m) {
  int64_t n = p.columns;
  for (; n >= Panels * kPanel<W>; n -= Panels * kPanel<W>) {
    p.columns = Panels * kPanel<W>;
    multiplyColumns<W, Bytes, Rows, Panels>(p, m);
    p.b += Panels * p.panelStride;
    p.c += Panels * kPanel<W>;
  }
  for (; n > 0; n -= kPanel<W>) {
    p.columns = std::min(n, kPanel<W>);
    multiplyColumns<W, Bytes, Rows, 1>(p, m);
    p.b += p.panelStride;
    p.c += kPanel<W>;
  }
}

#if DTC_SIMD_VERSIONS
template <typename W>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512"), gnu::noinline]] void
multiplyV4(const Operands<W> &p, int64_t m) {
  multiplyAll<W, 64, 12, 2>(p, m);
}
template <typename W>
[[gnu::target("arch=x86-64-v3"), gnu::noinline]] void multiplyV3(const Operands<W> &p, int64_t m) {
  multiplyAll<W, 32, 6, 1>(p, m);
}
#endif
template <typename W> [[gnu::noinline]] void multiplyBaseline(const Operands<W> &p, int64_t m) {
  multiplyAll<W, 16, 2, 1>(p, m);
}

} // namespace

template <typename W>
void multiplyPanels(int64_t m, int64_t n, int64_t k, const W *a, MatrixStrides aStrides,
                    PanelBlock<W> b, bool accumulate, W *c, int64_t cStride) {
  Operands<W> p{k, a, aStrides, b.panels, b.panelStride, accumulate, c, cStride, n};
#if DTC_SIMD_VERSIONS
  switch (detail::instructionSet()) {
  case detail::InstructionSet::V4:
    return multiplyV4(p, m);
  case detail::InstructionSet::V3:
    return multiplyV3(p, m);
  case detail::InstructionSet::Baseline:
    break;
  }
#endif
  multiplyBaseline(p, m);
}

template void packRows(const float *, int64_t, int64_t, int64_t, float *);
template void packRows(const double *, int64_t, int64_t, int64_t, double *);
template void packTransposed(const float *, int64_t, int64_t, int64_t, float *);
template void packTransposed(const double *, int64_t, int64_t, int64_t, double *);
template void multiplyPanels(int64_t, int64_t, int64_t, const float *, MatrixStrides,
                             PanelBlock<float>, bool, float *, int64_t);
template void multiplyPanels(int64_t, int64_t, int64_t, const double *, MatrixStrides,
                             PanelBlock<double>, bool, double *, int64_t);

} // namespace dtc::runtime::cpu
