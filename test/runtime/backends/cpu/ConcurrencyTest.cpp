//===- ConcurrencyTest.cpp - One kernel on many devices at once -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/backends/cpu/CpuKernel.h"
#include "test/runtime/backends/conformance/KernelTest.h"

#include <memory>
#include <thread>

namespace dtc::runtime::test::concurrencyTest {
namespace {

/// Runs a prepared kernel into tensors and a workspace of its own.
std::vector<HostTensor> runPrepared(const Kernel &prepared, const KernelCall &call, int threads) {
  const auto &kernel = static_cast<const cpu::CpuKernel &>(prepared);
  std::vector<HostTensor> inputs = call.inputs, outputs;
  std::vector<void *> inputPointers, outputPointers;
  for (HostTensor &tensor : inputs)
    inputPointers.push_back(tensor.bytes.data());
  for (const TensorType &type : call.outputs)
    outputs.emplace_back(type);
  for (HostTensor &tensor : outputs)
    outputPointers.push_back(tensor.bytes.data());
  std::vector<std::byte> workspace(kernel.workspaceBytesFor(threads) + 64);
  auto address = reinterpret_cast<uintptr_t>(workspace.data());
  void *aligned = workspace.data() + (64 - address % 64) % 64;
  kernel.run({{inputPointers, outputPointers, {}, aligned}, threads});
  return outputs;
}

TEST(Concurrency, OneKernelOnManyDevices) {
  Random random(120);
  HostTensor a = random.floats(DType::F32, {150, 160}), b = random.floats(DType::F32, {160, 170});
  HostTensor q = random.floats(DType::F32, {2, 70, 3, 16});
  HostTensor row = random.floats(DType::F32, {160});
  TensorType rows{DType::F32, {150}};
  std::vector<KernelCall> calls = {
      {"einsum", {a, b}, {TensorType{DType::F32, {150, 170}}}, {{"equation", "mk,kn->mn"}}},
      {"einsum", {a, a}, {TensorType{DType::F32, {}}}, {{"equation", "mk,mk->"}}},
      {"attention",
       {q, q, q},
       {q.type, TensorType{DType::F32, {2, 3, 70}}},
       {{"causal", true}, {"scale", 0.3}}},
      {"layer_norm_grad",
       {a, row, makeTensor(DType::F32, {150}, Values(150, 0.0)),
        makeTensor(DType::F32, {150}, Values(150, 1.0)), a},
       {a.type, row.type, row.type}}};
  for (DType dtype : kHalfTypes) {
    HostTensor x = random.floats(dtype, {150, 160}), y = random.floats(dtype, {160, 170});
    HostTensor z = random.floats(dtype, {12, 40, 50});
    calls.push_back(
        {"einsum", {x, y}, {TensorType{dtype, {150, 170}}}, {{"equation", "mk,kn->mn"}}});
    calls.push_back(
        {"einsum", {z, z}, {TensorType{DType::F32, {12, 50, 50}}}, {{"equation", "bkm,bkn->bmn"}}});
  }
  std::unique_ptr<Backend> backend = createCpuBackend();
  for (const KernelCall &call : calls) {
    auto kernel = backend->prepare(call.signature());
    ASSERT_TRUE(kernel) << kernel.error().message;
    std::vector<std::vector<HostTensor>> expected;
    for (int threads = 1; threads <= 3; ++threads)
      expected.push_back(runPrepared(**kernel, call, threads));

    // A fresh one: what a kernel makes when it first runs, many make at once.
    kernel = backend->prepare(call.signature());
    ASSERT_TRUE(kernel) << kernel.error().message;
    std::vector<std::thread> devices;
    std::vector<int> differences(9, 0); // one a device; threads share nothing else
    for (size_t device = 0; device < differences.size(); ++device)
      devices.emplace_back([&, device] {
        for (int round = 0; round < 20; ++round) {
          std::vector<HostTensor> found =
              runPrepared(**kernel, call, 1 + static_cast<int>(device % 3));
          for (size_t i = 0; i < found.size(); ++i)
            differences[device] += found[i].bytes != expected[device % 3][i].bytes;
        }
      });
    for (std::thread &device : devices)
      device.join();
    EXPECT_EQ(differences, std::vector<int>(9, 0)) << call.kernel;
  }
}

} // namespace
} // namespace dtc::runtime::test::concurrencyTest
