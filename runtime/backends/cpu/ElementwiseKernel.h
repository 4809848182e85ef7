//===- ElementwiseKernel.h - Kernels of elements, and of rows in use ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_ELEMENTWISEKERNEL_H
#define DTC_RUNTIME_BACKENDS_CPU_ELEMENTWISEKERNEL_H

#include "runtime/backends/cpu/KernelSupport.h"

#include <cstdint>
#include <memory>
#include <utility>

namespace dtc::runtime::cpu {

/// A kernel that can compute any part of its result by itself, whose elements lie one after the
/// other.
class ElementwiseKernel : public CpuKernel {
public:
  /// Of `elements` elements of the result; `grain` of them are worth a thread.
  ElementwiseKernel(int64_t elements, int64_t grain) : elements(elements), grain(grain) {}
  void run(const CpuArguments &args) const final {
    parallelFor(args.threads, elements, grain,
                [&](int64_t begin, int64_t end, int) { runRange(args, begin, end); });
  }
  virtual void runRange(const CpuArguments &args, int64_t begin, int64_t end) const = 0;

  const int64_t elements, grain;
};

/// An elementwise kernel from a function of the arguments and of the begin and the end of a range.
template <typename Range>
std::unique_ptr<CpuKernel> makeElementwise(int64_t elements, int64_t grain, Range range) {
  class FunctionOfRange final : public ElementwiseKernel {
  public:
    FunctionOfRange(int64_t elements, int64_t grain, Range range)
        : ElementwiseKernel(elements, grain), function(std::move(range)) {}
    void runRange(const CpuArguments &args, int64_t begin, int64_t end) const override {
      function(args, begin, end);
    }

  private:
    Range function;
  };
  return std::make_unique<FunctionOfRange>(elements, grain, std::move(range));
}

/// The kernel that computes only the rows in use (Backend::prepareOfRows), and writes zeros to the
/// others. `elementBytes` is the size of an element of the result. Null if `kernel` is not
/// elementwise.
std::unique_ptr<CpuKernel> makeOfRows(std::unique_ptr<CpuKernel> kernel, size_t numInputs,
                                      size_t elementBytes, int64_t rows, int64_t rowsOfGroup);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_ELEMENTWISEKERNEL_H
