//===- GemmRate.h - What the machine's matrix library reaches -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_GEMMRATE_H
#define DTC_BENCHMARKS_GEMMRATE_H

#include <cstdint>
#include <string>
#include <vector>

namespace dtc::benchmarks {

/// Takes the time of oneDNN's f32 products of two square matrices. The operands are kept between
/// calls, and the first product of each kind, which generates code, is not counted.
class GemmRate {
public:
  GemmRate(int64_t size, int threads);

  /// Adds `count` samples of dnnl_sgemm and of the matmul primitive.
  void measure(int count);

  /// The median rates of all samples, in floating point operations a second.
  double sgemm() const { return rate(sgemmSeconds); }
  double matmul() const { return rate(matmulSeconds); }

private:
  double rate(std::vector<double> seconds) const;

  int64_t size;
  int threads;
  std::vector<float> a, b, c;
  std::vector<double> sgemmSeconds, matmulSeconds;
};

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_GEMMRATE_H
