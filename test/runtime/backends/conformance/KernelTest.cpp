//===- KernelTest.cpp - Runs kernels for tests ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

#include "test/runtime/backends/conformance/Exceptions.h"

#include "runtime/backends/Device.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace dtc::runtime::test {

namespace {

/// The backend under test with a number of threads, one of its devices, and a queue of that.
struct Bench {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Device> device;
  std::unique_ptr<Queue> queue;
};

} // namespace

static const Backend &backend(int threads = 1) {
  static std::map<int, std::unique_ptr<Backend>> instances;
  std::unique_ptr<Backend> &instance = instances[threads];
  if (!instance)
    instance = createBackendUnderTest(threads);
  return *instance;
}

/// An error if the backend has no device here.
static Expected<Bench *> benchWith(int threads) {
  static std::map<int, Bench> benches;
  Bench &bench = benches[threads];
  if (!bench.queue) {
    bench.backend = createBackendUnderTest(threads);
    Expected<std::unique_ptr<Device>> device = bench.backend->openDevice(0);
    if (!device)
      return device.error();
    bench.device = std::move(*device);
    Expected<std::unique_ptr<Queue>> queue = bench.device->openQueue(QueueKind::Compute);
    if (!queue)
      return queue.error();
    bench.queue = std::move(*queue);
  }
  return &bench;
}

/// The numbers of threads that a kernel is run with: threads are a matter of the host.
static std::vector<int> threadCounts() {
  return backend().withThreads(1) ? std::vector{1, 2, 3} : std::vector{1};
}

HostTensor makeTensor(DType dtype, Shape shape, const Values &values) {
  HostTensor tensor(TensorType{dtype, std::move(shape)});
  EXPECT_EQ(static_cast<int64_t>(values.size()), tensor.type.numElements());
  for (size_t i = 0; i < values.size(); ++i)
    setElement(tensor, static_cast<int64_t>(i), values[i]);
  return tensor;
}

Values valuesOf(const HostTensor &tensor) {
  Values values(static_cast<size_t>(tensor.type.numElements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = elementAt(tensor, static_cast<int64_t>(i));
  return values;
}

Random::Random(uint64_t seed)
    : engine(seed), trace(__FILE__, __LINE__, "seed " + std::to_string(seed)) {}

HostTensor Random::floats(DType dtype, Shape shape, double low, double high) {
  std::uniform_real_distribution<double> distribution(low, high);
  Values values(static_cast<size_t>(count(shape)));
  for (double &value : values)
    value = distribution(engine);
  return makeTensor(dtype, std::move(shape), values);
}

HostTensor Random::integers(DType dtype, Shape shape, int64_t low, int64_t high) {
  std::uniform_int_distribution<int64_t> distribution(low, high);
  Values values(static_cast<size_t>(count(shape)));
  for (double &value : values)
    value = static_cast<double>(distribution(engine));
  return makeTensor(dtype, std::move(shape), values);
}

namespace {

/// A buffer of a device that starts with garbage. Around it are guard bytes, except on devices
/// whose accesses are checked otherwise: there an allocation ends where the buffer does.
class TestBuffer {
public:
  static constexpr std::byte garbage{0xFB}; // a large negative number in every type

  TestBuffer(Bench &bench, size_t size, const std::vector<std::byte> &content = {})
      : bench(bench), size(size), guard(bench.device->isHostMemory() ? 256 : 0),
        staging(take(bench.device->allocateStaging(size + 2 * guard))),
        memory(take(bench.device->allocate(size + 2 * guard))) {
    if (!staging || !memory || size + 2 * guard == 0)
      return;
    std::fill_n(staging->data(), size + 2 * guard, garbage);
    std::copy(content.begin(), content.end(), staging->data() + guard);
    check(bench.queue->copy(memory->data(), staging->data(), size + 2 * guard));
  }
  std::byte *data() const { return memory->data() + guard; }

  /// Enqueues what read() and intact() look at after the queue has finished.
  void fetch() { check(bench.queue->copy(staging->data(), memory->data(), size + 2 * guard)); }
  const std::byte *read() const { return staging->data() + guard; }
  bool intact() const {
    auto isGarbage = [](std::byte byte) { return byte == garbage; };
    return std::all_of(staging->data(), staging->data() + guard, isGarbage) &&
           std::all_of(read() + size, read() + size + guard, isGarbage);
  }

private:
  static std::unique_ptr<DeviceMemory> take(Expected<std::unique_ptr<DeviceMemory>> allocated) {
    if (allocated)
      return std::move(*allocated);
    ADD_FAILURE() << allocated.error().message;
    return nullptr;
  }
  static void check(const MaybeError &error) {
    if (error)
      ADD_FAILURE() << error->message;
  }

  Bench &bench;
  size_t size, guard;
  std::unique_ptr<DeviceMemory> staging, memory;
};

} // namespace

KernelSignature KernelCall::signature() const {
  KernelSignature result{kernel, {}, outputs, attributes, mesh};
  for (const HostTensor &tensor : inputs)
    result.inputs.push_back(tensor.type);
  // The coordinates say nothing while preparing.
  for (AxisCoordinate &axis : result.mesh)
    axis.coordinate = 0;
  return result;
}

std::vector<HostTensor>
KernelCall::run(int threads, const std::vector<std::pair<size_t, size_t>> &shared) const {
  std::vector<HostTensor> results;
  for (const TensorType &type : outputs)
    results.emplace_back(type);
  Expected<Bench *> bench = benchWith(threads);
  if (!bench) {
    ADD_FAILURE() << bench.error().message;
    return results;
  }
  Expected<std::unique_ptr<Kernel>> prepared = (*bench)->backend->prepare(signature());
  if (!prepared) {
    ADD_FAILURE() << prepared.error().message;
    return results;
  }

  std::vector<TestBuffer> buffers;
  buffers.reserve(inputs.size() + outputs.size() + 1);
  std::vector<void *> inputPointers, outputPointers;
  std::vector<size_t> outputBuffers;
  for (const HostTensor &tensor : inputs) {
    buffers.emplace_back(**bench, tensor.bytes.size(), tensor.bytes);
    inputPointers.push_back(buffers.back().data());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto pair = std::find_if(shared.begin(), shared.end(),
                             [&](const auto &candidate) { return candidate.second == i; });
    if (pair != shared.end()) {
      outputBuffers.push_back(pair->first);
    } else {
      outputBuffers.push_back(buffers.size());
      buffers.emplace_back(**bench, outputs[i].numBytes(),
                           i < before.size() ? before[i].bytes : std::vector<std::byte>());
    }
    outputPointers.push_back(buffers[outputBuffers[i]].data());
  }
  buffers.emplace_back(**bench, (*prepared)->workspaceBytes());
  Queue &queue = *(*bench)->queue;
  MaybeError error =
      queue.enqueue(**prepared, {inputPointers, outputPointers, mesh, buffers.back().data()});
  for (TestBuffer &buffer : buffers)
    buffer.fetch();
  if (MaybeError late = queue.finish(); late && !error)
    error = late;
  if (error) {
    ADD_FAILURE() << error->message;
    return results;
  }

  for (size_t i = 0; i < outputs.size(); ++i)
    std::copy_n(buffers[outputBuffers[i]].read(), results[i].bytes.size(),
                results[i].bytes.begin());
  for (size_t i = 0; i < buffers.size(); ++i)
    EXPECT_TRUE(buffers[i].intact()) << "bytes around operand " << i << " were overwritten";
  for (size_t i = 0; i < inputs.size(); ++i) {
    bool overwritten = std::any_of(shared.begin(), shared.end(),
                                   [&](const auto &pair) { return pair.first == i; });
    bool same = std::equal(inputs[i].bytes.begin(), inputs[i].bytes.end(), buffers[i].read());
    EXPECT_TRUE(same || overwritten) << "input " << i << " was changed";
  }
  return results;
}

static void expectClose(const std::vector<HostTensor> &results, const std::vector<Values> &expected,
                        double tolerance, const std::string &how) {
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    Values found = valuesOf(results[i]);
    ASSERT_EQ(found.size(), expected[i].size());
    double largest = 1;
    for (double value : expected[i])
      if (std::isfinite(value))
        largest = std::max(largest, std::fabs(value));
    bool single = results[i].type.dtype == DType::F32;
    double bound = tolerance * largest * (single ? std::exp2(29) : 1);
    for (size_t e = 0; e < found.size(); ++e) {
      double want = expected[i][e];
      bool same = found[e] == want || (std::isnan(found[e]) && std::isnan(want)) ||
                  std::fabs(found[e] - want) <= bound;
      ASSERT_TRUE(same) << how << ", output " << i << " (" << results[i].type.str() << ") element "
                        << e << ": " << found[e] << ", expected " << want << " +- " << bound;
    }
  }
}

static std::string describe(const KernelCall &call, int threads) {
  std::string text = call.kernel;
  for (const HostTensor &input : call.inputs)
    text.append(" ").append(input.type.str());
  return text + " with " + std::to_string(threads) + " threads";
}

/// Calls check(results, how) for every way to run the call.
static void
forAllWays(const KernelCall &call,
           const std::function<void(const std::vector<HostTensor> &, const std::string &)> &check) {
  for (int threads : threadCounts()) {
    std::string how = describe(call, threads);
    std::vector<HostTensor> first = call.run(threads);
    check(first, how);
    std::vector<HostTensor> second = call.run(threads);
    for (size_t i = 0; i < first.size(); ++i)
      EXPECT_EQ(first[i].bytes, second[i].bytes) << how << ": a rerun gives another output " << i;
  }
  for (const auto &pair : call.inPlace)
    check(call.run(threadCounts().back(), {pair}), describe(call, threadCounts().back()) +
                                                       ", input " + std::to_string(pair.first) +
                                                       " in place");
}

void expectKernel(const KernelCall &call, const std::vector<Values> &expected, double tolerance) {
  forAllWays(call, [&](const std::vector<HostTensor> &results, const std::string &how) {
    expectClose(results, expected, tolerance, how);
  });
}

std::vector<HostTensor> runInAllWays(const KernelCall &call) {
  std::vector<HostTensor> results = call.run(1);
  std::vector<Values> expected;
  for (const HostTensor &result : results)
    expected.push_back(valuesOf(result));
  expectKernel(call, expected);
  return results;
}

/// The same elements as f32, if they have 16 bits.
static HostTensor widened(const HostTensor &tensor) {
  if (!is16Bits(tensor.type.dtype))
    return tensor;
  return makeTensor(DType::F32, tensor.type.shape, valuesOf(tensor));
}

void expectSame(const HostTensor &found, const HostTensor &expected, const std::string &how) {
  ASSERT_EQ(found.type, expected.type) << how;
  for (int64_t i = 0; i < found.type.numElements(); ++i) {
    double a = elementAt(found, i), b = elementAt(expected, i);
    ASSERT_TRUE((a == b && std::signbit(a) == std::signbit(b)) || (std::isnan(a) && std::isnan(b)))
        << how << ": " << found.type.str() << " element " << i << " is " << a << ", expected " << b;
  }
}

static double largestMagnitude(const HostTensor &tensor) {
  double largest = 0;
  for (double value : valuesOf(tensor))
    if (std::isfinite(value))
      largest = std::max(largest, std::abs(value));
  return largest;
}

/// Each element within 2^-5 or 2^-8 of the largest magnitude, for operands of type `precision`, and
/// 2^-20 of `largestOfAll`, that of all outputs. The latter is for gradients that are zero because
/// two sums are equal, such as those of a query that sees one key: added up in different orders in
/// f32, the sums differ by a few 2^-24 of what they add, which is as large as other outputs; and a
/// gradient of scores that is subnormal in f16 is off by up to 2^-25.
static void expectNear(const HostTensor &found, const HostTensor &expected, DType precision,
                       double largestOfAll, const std::string &how) {
  Values values = valuesOf(found), references = valuesOf(expected);
  double tolerance = largestMagnitude(expected) * (precision == DType::BF16 ? 0x1p-5 : 0x1p-8) +
                     largestOfAll * 0x1p-20;
  for (size_t i = 0; i < references.size(); ++i)
    if (values[i] != references[i] && !(std::abs(values[i] - references[i]) <= tolerance)) {
      ADD_FAILURE() << how << ", element " << i << " of " << found.type.str() << ": " << values[i]
                    << ", expected " << references[i] << " +- " << tolerance;
      return;
    }
}

void expectRounded(const KernelCall &call) {
  KernelCall wide = call;
  for (HostTensor &input : wide.inputs)
    input = widened(input);
  for (TensorType &output : wide.outputs)
    output.dtype = wideType(output.dtype);
  bool once = !backendUnderTestHasUnitOf16Bits() ||
              !roundsBetween(backend().name(), call.kernel, call.inputs[0].type.dtype);
  auto check = [&](int threads, const std::vector<std::pair<size_t, size_t>> &shared) {
    std::vector<HostTensor> results = call.run(threads, shared), expected = wide.run(threads);
    double largest = 0;
    for (const HostTensor &output : expected)
      largest = std::max(largest, largestMagnitude(output));
    for (size_t i = 0; i < results.size(); ++i) {
      std::string how = call.kernel + " with " + std::to_string(threads) + " threads" +
                        (shared.empty() ? "" : ", in place");
      HostTensor rounded =
          makeTensor(call.outputs[i].dtype, call.outputs[i].shape, valuesOf(expected[i]));
      if (once)
        expectSame(results[i], rounded, how);
      else
        expectNear(results[i], rounded, call.inputs[0].type.dtype, largest, how);
    }
  };
  for (int threads : threadCounts())
    check(threads, {});
  for (const auto &pair : call.inPlace)
    check(2, {pair});
}

void expectRefused(const KernelSignature &signature, const std::string &message) {
  Expected<std::unique_ptr<Kernel>> prepared = backend().prepare(signature);
  ASSERT_FALSE(prepared) << "expected the error: " << message;
  EXPECT_NE(prepared.error().message.find(message), std::string::npos)
      << "found:    " << prepared.error().message << "\nexpected: " << message;
}

int64_t count(const Shape &shape) { return TensorType{DType::F32, shape}.numElements(); }

Values numericGradient(const std::function<Values(const Values &)> &function, const Values &x,
                       const Values &dy) {
  constexpr double step = 1e-5;
  Values gradient(x.size()), moved = x;
  for (size_t i = 0; i < x.size(); ++i) {
    moved[i] = x[i] + step;
    Values high = function(moved);
    moved[i] = x[i] - step;
    Values low = function(moved);
    moved[i] = x[i];
    for (size_t j = 0; j < dy.size(); ++j)
      gradient[i] += dy[j] * (high[j] - low[j]) / (2 * step);
  }
  return gradient;
}

} // namespace dtc::runtime::test
