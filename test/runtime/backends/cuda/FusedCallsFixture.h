//===- FusedCallsFixture.h - Calls that are computed together -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Runs calls by the kernel that the CUDA backend has for all of them, and one by one.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RUNTIME_BACKENDS_CUDA_FUSEDCALLSFIXTURE_H
#define DTC_TEST_RUNTIME_BACKENDS_CUDA_FUSEDCALLSFIXTURE_H

#include "calls/fusion/FusedCalls.h"
#include "runtime/backends/cuda/CudaBackend.h"
#include "support/Float16.h"
#include "support/Float8.h"
#include "test/lib/plans/Expect.h"
#include "test/standin/cuda/Standin.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <vector>

namespace dtc::runtime::testing {

/// Calls, and the memory that their values have.
class Calls {
public:
  explicit Calls(std::vector<AxisCoordinate> mesh) : mesh(std::move(mesh)) {}

  /// A value of its own memory, or in that of another one.
  size_t value(const TensorType &type) {
    types.push_back(type);
    places.push_back(places.size());
    return types.size() - 1;
  }
  size_t valueAt(size_t other, const TensorType &type) {
    size_t added = value(type);
    places[added] = places[other];
    return added;
  }
  void call(const std::string &kernel, const std::vector<size_t> &inputs,
            const std::vector<size_t> &outputs, AttributeMap attributes = {}) {
    FusedCalls::Call made{{kernel, {}, {}, std::move(attributes), mesh}, {}, {}};
    for (size_t input : inputs) {
      made.signature.inputs.push_back(types[input]);
      made.inputs.push_back(numberOf(input));
    }
    for (size_t output : outputs) {
      made.signature.outputs.push_back(types[output]);
      made.outputs.push_back(numberOf(output));
      fused.values[made.outputs.back()].maker = fused.calls.size();
    }
    fused.calls.push_back(std::move(made));
  }
  void keep(size_t value) { fused.values[numbers.at(value)].isKept = true; }

  /// With the overlaps that follow from the places.
  FusedCalls get() const {
    FusedCalls result = fused;
    for (auto [made, number] : numbers)
      for (auto [before, other] : numbers)
        if (result.values[number].maker && !result.values[other].maker &&
            places[made] == places[before])
          result.overlaps.push_back(
              {other, number, types[made].numBytes() == types[before].numBytes()});
    return result;
  }

  size_t placeBytes = 4096;
  std::vector<AxisCoordinate> mesh;
  std::vector<TensorType> types;
  std::vector<size_t> places;
  std::map<size_t, size_t> numbers; // of FusedCalls, by value

private:
  size_t numberOf(size_t value) {
    auto [number, isNew] = numbers.try_emplace(value, fused.values.size());
    if (isNew)
      fused.values.emplace_back();
    return number->second;
  }

  FusedCalls fused;
};

class FusedCallsTest : public ::testing::TestWithParam<DType> {
protected:
  FusedCallsTest() { standin::reset(); }
  ~FusedCallsTest() override { standin::reset(); }

  /// Random elements for what was there before: floats in [-1, 1), integers below 5, and true.
  std::vector<std::byte> memoryOf(const Calls &calls) const {
    std::vector<std::byte> memory(calls.types.size() * calls.placeBytes);
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (size_t value = 0; value < calls.types.size(); ++value)
      for (int64_t i = 0; i < calls.types[value].numElements(); ++i) {
        float drawn = uniform(random);
        if (value == 0 && infiniteAt == static_cast<size_t>(i))
          drawn = std::numeric_limits<float>::infinity();
        auto number = static_cast<int32_t>(5 * std::abs(drawn));
        BFloat16 narrow(drawn);
        Float8E4M3 e4m3(drawn);
        Float8E5M2 e5m2(drawn);
        bool truth = true;
        DType dtype = calls.types[value].dtype;
        const void *from = &drawn;
        if (dtype == DType::BF16)
          from = &narrow;
        else if (dtype == DType::F8E4M3)
          from = &e4m3;
        else if (dtype == DType::F8E5M2)
          from = &e5m2;
        else if (dtype == DType::I32)
          from = &number;
        else if (dtype == DType::Bool)
          from = &truth;
        size_t width = byteWidth(dtype);
        std::memcpy(memory.data() + calls.places[value] * calls.placeBytes +
                        static_cast<size_t>(i) * width,
                    from, width);
      }
    return memory;
  }

  /// The contents of the memory after the kernels with their operands; counts their launches.
  using Work = std::pair<const Kernel *, std::pair<std::vector<size_t>, std::vector<size_t>>>;
  std::vector<std::byte> run(const Calls &calls, const std::vector<Work> &work,
                             int64_t microbatch) {
    std::unique_ptr<Device> device = take(backend->openDevice(0));
    std::vector<std::byte> bytes = memoryOf(calls);
    size_t workspace = 256;
    for (const Work &each : work)
      workspace = std::max(workspace, each.first->workspaceBytes());
    auto staging = take(device->allocateStaging(bytes.size()));
    auto memory = take(device->allocate(bytes.size())), scratch = take(device->allocate(workspace));
    auto queue = take(device->openQueue(QueueKind::Compute));
    std::memcpy(staging->data(), bytes.data(), bytes.size());
    check(queue->copy(memory->data(), staging->data(), bytes.size()));
    uint64_t before = standin::counts().launches;
    std::vector<AxisCoordinate> position = calls.mesh;
    position[1].coordinate = microbatch;
    for (const auto &[kernel, operands] : work) {
      auto addresses = [&](const std::vector<size_t> &values) {
        std::vector<void *> result;
        for (size_t value : values)
          result.push_back(memory->data() + calls.places[value] * calls.placeBytes);
        return result;
      };
      std::vector<void *> inputs = addresses(operands.first), outputs = addresses(operands.second);
      check(queue->enqueue(*kernel, {inputs, outputs, position, scratch->data()}));
    }
    check(queue->copy(staging->data(), memory->data(), bytes.size()));
    check(queue->finish());
    launches = standin::counts().launches - before;
    std::memcpy(bytes.data(), staging->data(), bytes.size());
    return bytes;
  }

  /// The values by their numbers, those before and those that are made.
  static std::pair<std::vector<size_t>, std::vector<size_t>> operandsOf(const Calls &calls) {
    FusedCalls fused = calls.get();
    std::vector<size_t> byNumber(fused.values.size());
    for (auto [value, number] : calls.numbers)
      byNumber[number] = value;
    std::pair<std::vector<size_t>, std::vector<size_t>> operands;
    for (size_t i = 0; i < byNumber.size(); ++i)
      (fused.values[i].maker ? operands.second : operands.first).push_back(byNumber[i]);
    return operands;
  }

  std::vector<std::byte> runFused(const Calls &calls, int64_t microbatch = 0) {
    std::unique_ptr<Kernel> kernel = backend->prepareFused(calls.get());
    if (!kernel) {
      ADD_FAILURE() << "there is no kernel for the calls";
      return {};
    }
    return run(calls, {{kernel.get(), operandsOf(calls)}}, microbatch);
  }

  std::vector<std::byte> runOneByOne(const Calls &calls, int64_t microbatch = 0) {
    FusedCalls fused = calls.get();
    std::vector<size_t> byNumber(fused.values.size());
    for (auto [value, number] : calls.numbers)
      byNumber[number] = value;
    std::vector<std::unique_ptr<Kernel>> kernels;
    std::vector<Work> work;
    for (const FusedCalls::Call &call : fused.calls) {
      kernels.push_back(take(backend->prepare(call.signature)));
      Work each{kernels.back().get(), {}};
      for (size_t number : call.inputs)
        each.second.first.push_back(byNumber[number]);
      for (size_t number : call.outputs)
        each.second.second.push_back(byNumber[number]);
      work.push_back(std::move(each));
    }
    return run(calls, work, microbatch);
  }

  static double elementOf(const Calls &calls, const std::vector<std::byte> &memory, size_t value,
                          int64_t i) {
    const std::byte *from = memory.data() + calls.places[value] * calls.placeBytes;
    if (calls.types[value].dtype == DType::BF16) {
      BFloat16 element;
      std::memcpy(&element, from + 2 * i, 2);
      return static_cast<float>(element);
    }
    float element;
    std::memcpy(&element, from + 4 * i, 4);
    return element;
  }

  /// One launch gives the bits of the calls one by one, of all values that are kept.
  void expectBits(const Calls &calls, const std::vector<size_t> &kept) {
    std::vector<std::byte> single = runOneByOne(calls), fused = runFused(calls);
    EXPECT_EQ(launches, 1u);
    expectSameBits(calls, single, fused, kept);
  }
  static void expectSameBits(const Calls &calls, const std::vector<std::byte> &single,
                             const std::vector<std::byte> &fused, const std::vector<size_t> &kept) {
    ASSERT_EQ(fused.size(), single.size());
    for (size_t value : kept)
      EXPECT_EQ(std::memcmp(fused.data() + calls.places[value] * calls.placeBytes,
                            single.data() + calls.places[value] * calls.placeBytes,
                            calls.types[value].numBytes()),
                0)
          << value;
  }

  bool hasKernel(const Calls &calls) const { return backend->prepareFused(calls.get()) != nullptr; }

  TensorType type(std::vector<int64_t> shape) const { return {GetParam(), std::move(shape)}; }
  static TensorType wide(std::vector<int64_t> shape) { return {DType::F32, std::move(shape)}; }

  const std::vector<AxisCoordinate> mesh = {{"dp", 2, 1}, {"micro", 3, 0, true}};
  std::unique_ptr<Backend> backend = createCudaBackend();
  uint64_t launches = 0;
  std::optional<size_t> infiniteAt; // an element of value 0
};

} // namespace dtc::runtime::testing

#endif // DTC_TEST_RUNTIME_BACKENDS_CUDA_FUSEDCALLSFIXTURE_H
