//===- KernelTest.h - Runs kernels for tests ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A test states a kernel call with its inputs and gives the expected elements, computed by other
// means in double. The call is then run with several numbers of threads, twice each, and in every
// in-place form. All operands and the workspace are between guard bytes and start with garbage.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RUNTIME_BACKENDS_CONFORMANCE_KERNELTEST_H
#define DTC_TEST_RUNTIME_BACKENDS_CONFORMANCE_KERNELTEST_H

#include "runtime/backends/Kernel.h"

#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace dtc::runtime::test {

/// The backend that the tests of this program run, with `threads` threads for each kernel where it
/// has threads. Each program links one definition.
std::unique_ptr<Backend> createBackendUnderTest(int threads);
/// Whether it multiplies matrices of 16 bits by a unit of the hardware, for which Exceptions.h has
/// exceptions.
bool backendUnderTestHasUnitOf16Bits();
/// The backend under test with no kernels but its own.
std::unique_ptr<Backend> createBackendOfOwnKernels();

using Values = std::vector<double>;
using Shape = std::vector<int64_t>;

inline constexpr DType kFloatTypes[] = {DType::F32, DType::F64};
inline constexpr DType kHalfTypes[] = {DType::BF16, DType::F16};
inline bool is16Bits(DType dtype) { return isFloat(dtype) && byteWidth(dtype) == 2; }

/// Expects equal types and elements; any two NaN are equal. `how` begins messages.
void expectSame(const HostTensor &found, const HostTensor &expected, const std::string &how);

/// A tensor with these elements, converted to its type.
HostTensor makeTensor(DType dtype, Shape shape, const Values &values);
/// The elements as doubles.
Values valuesOf(const HostTensor &tensor);

/// Random elements; the seed is in the message of a failing test.
class Random {
public:
  explicit Random(uint64_t seed);
  /// Uniform on [low, high).
  HostTensor floats(DType dtype, Shape shape, double low = -1, double high = 1);
  /// Uniform on [low, high], for i32 and bool.
  HostTensor integers(DType dtype, Shape shape, int64_t low, int64_t high);

private:
  std::mt19937_64 engine;
  testing::ScopedTrace trace;
};

/// A kernel call with its inputs.
struct KernelCall {
  std::string kernel;
  std::vector<HostTensor> inputs;
  std::vector<TensorType> outputs;
  AttributeMap attributes = {};
  /// The mesh, with the coordinates at which the call runs.
  std::vector<AxisCoordinate> mesh = {};
  /// Pairs of an input and an output that are tried as the same buffer.
  std::vector<std::pair<size_t, size_t>> inPlace = {};
  /// The earlier contents of the outputs, for kernels that read them.
  std::vector<HostTensor> before = {};

  KernelSignature signature() const;
  /// Runs once; `shared` pairs lie in one buffer.
  std::vector<HostTensor> run(int threads,
                              const std::vector<std::pair<size_t, size_t>> &shared = {}) const;
};

/// Runs in all ways and compares with `expected`, one entry an output: each element may be off by
/// `tolerance` times max(1, the largest expected magnitude of its output) for f64, and 2^29 times
/// that for f32.
void expectKernel(const KernelCall &call, const std::vector<Values> &expected,
                  double tolerance = 1e-14);

/// Runs in all ways and checks that the results agree; gives them.
std::vector<HostTensor> runInAllWays(const KernelCall &call);

/// Runs a call on elements of 16 bits in all its ways, and expects exactly the results of the same
/// call on f32, given the widened operands, rounded; or, of a kernel in the list of Exceptions.h,
/// results that are off by at most 2^-5 (bf16) or 2^-8 (f16) of each output's largest magnitude,
/// and 2^-20 of the largest of all outputs.
void expectRounded(const KernelCall &call);

/// Expects that prepare refuses the call with a message that contains `message`.
void expectRefused(const KernelSignature &signature, const std::string &message);

/// The number of elements of a shape.
int64_t count(const Shape &shape);

/// The gradient of sum(dy * f(x)) for x by central differences. f maps the elements of x to a
/// vector.
Values numericGradient(const std::function<Values(const Values &)> &function, const Values &x,
                       const Values &dy);

} // namespace dtc::runtime::test

#endif // DTC_TEST_RUNTIME_BACKENDS_CONFORMANCE_KERNELTEST_H
