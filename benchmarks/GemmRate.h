//===- GemmRate.h - Measured rate of the matrix library -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_GEMMRATE_H
#define DTC_BENCHMARKS_GEMMRATE_H

#include <cstdint>
#include <vector>

namespace dtc::benchmarks {

/// Floating point operations a second.
struct GemmRates {
  double sgemm = 0;  // of dnnl_sgemm
  double matmul = 0; // of the matmul primitive
};

/// Takes the time of oneDNN's f32 products of two square matrices. The operands are kept between
/// calls, and the first product of each kind, which generates code, is not counted.
class GemmRate {
public:
  GemmRate(int64_t size, int threads);

  /// The medians of `count` products of each kind.
  GemmRates measure(int count);

private:
  int64_t size;
  int threads;
  bool isWarm = false;
  std::vector<float> a, b, c;
};

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_GEMMRATE_H
