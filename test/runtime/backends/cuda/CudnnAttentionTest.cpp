//===- CudnnAttentionTest.cpp - Calls of attention for cuDNN --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The choice of calls that cuDNN computes. Their results are tested with all other kernels
// (dtc-cuda-standin-kernel-test).
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CudaBackend.h"
#include "support/Float16.h"
#include "test/lib/plans/Expect.h"
#include "test/standin/cuda/Standin.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <span>
#include <thread>
#include <vector>

namespace dtc::runtime {

namespace {

using testing::check;
using testing::take;

constexpr int64_t kBatch = 2, kPositions = 24, kHeads = 4, kKvHeads = 2, kHeadSize = 16;
constexpr size_t kPlaceBytes = 32768;

KernelSignature makeSignature(const std::string &kernel, DType dtype,
                              int64_t headSize = kHeadSize) {
  TensorType q{dtype, {kBatch, kPositions, kHeads, headSize}},
      k{dtype, {kBatch, kPositions, kKvHeads, headSize}},
      lse{wideType(dtype), {kBatch, kHeads, kPositions}};
  AttributeMap attributes{{"causal", true}, {"scale", 0.25}};
  if (kernel == "attention")
    return {kernel, {q, k, k}, {q, lse}, attributes, {}};
  return {kernel, {q, k, k, q, lse, q}, {q, k, k}, attributes, {}};
}

class CudnnAttention : public ::testing::Test {
protected:
  CudnnAttention() { standin::reset(); }
  ~CudnnAttention() override { standin::reset(); }

  struct Result {
    std::vector<std::byte> outputs;
    bool byOwnKernels = false;
  };

  /// Runs a call on random operands, once for each queue. The first operand lies `shift` bytes
  /// after its place. With `captures`, all but the first run it as a graph.
  static Result run(const KernelSignature &signature, bool usesCudnn = true, size_t shift = 0,
                    int queues = 1, bool captures = false, bool demandsCudnn = false) {
    std::unique_ptr<Backend> backend =
        createCudaBackend({.usesCudnn = usesCudnn, .demandsCudnn = demandsCudnn});
    std::unique_ptr<Device> device = take(backend->openDevice(0));
    std::unique_ptr<Kernel> kernel = take(backend->prepare(signature));
    size_t count = signature.inputs.size() + signature.outputs.size();
    std::vector<std::byte> bytes(count * kPlaceBytes);
    std::mt19937 random(11);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (size_t i = 0; i < signature.inputs.size(); ++i)
      fill(signature.inputs[i], bytes.data() + i * kPlaceBytes + (i == 0 ? shift : 0),
           [&] { return uniform(random); });
    auto staging = take(device->allocateStaging(bytes.size()));
    auto memory = take(device->allocate(bytes.size())),
         workspace = take(device->allocate(std::max<size_t>(kernel->workspaceBytes(), 256)));
    std::vector<void *> inputs;
    std::vector<void *> outputs;
    std::vector<AxisCoordinate> mesh;
    for (size_t i = 0; i < count; ++i) {
      std::byte *place = memory->data() + i * kPlaceBytes;
      if (i < signature.inputs.size())
        inputs.push_back(place + (i == 0 ? shift : 0));
      else
        outputs.push_back(place);
    }
    std::map<std::string, uint64_t> before = standin::launchesByKernel();
    std::vector<std::unique_ptr<Queue>> opened;
    for (int i = 0; i < queues; ++i) {
      auto queue = take(device->openQueue(QueueKind::Compute));
      std::memcpy(staging->data(), bytes.data(), bytes.size());
      check(queue->copy(memory->data(), staging->data(), bytes.size()));
      bool isGraph = captures && i > 0;
      if (isGraph)
        check(queue->beginCapture());
      check(queue->enqueue(*kernel, {inputs, outputs, mesh, workspace->data()}));
      std::unique_ptr<Graph> graph;
      if (isGraph) {
        graph = take(queue->endCapture());
        check(queue->enqueue(*graph));
      }
      check(queue->copy(staging->data(), memory->data(), bytes.size()));
      check(queue->finish());
      if (captures) // the queues are open together
        opened.push_back(std::move(queue));
    }
    Result result;
    for (const auto &[name, launches] : standin::launchesByKernel())
      if (name.find("ttentionKernel") != std::string::npos ||
          name.find("GradKernel") != std::string::npos)
        result.byOwnKernels |= launches > before[name];
    result.outputs.assign(staging->data() + signature.inputs.size() * kPlaceBytes,
                          staging->data() + count * kPlaceBytes);
    return result;
  }

  /// The elements of all outputs.
  static std::vector<float> values(const KernelSignature &signature, const Result &result) {
    std::vector<float> all;
    for (size_t i = 0; i < signature.outputs.size(); ++i) {
      const TensorType &type = signature.outputs[i];
      const std::byte *place = result.outputs.data() + i * kPlaceBytes;
      for (int64_t e = 0; e < type.numElements(); ++e)
        all.push_back(read(type.dtype, place, static_cast<size_t>(e)));
    }
    return all;
  }

private:
  template <typename Draw>
  static void fill(const TensorType &type, std::byte *place, const Draw &draw) {
    for (int64_t i = 0; i < type.numElements(); ++i) {
      auto at = static_cast<size_t>(i);
      float drawn = draw();
      BFloat16 bf16(drawn);
      Float16 f16(drawn);
      if (type.dtype == DType::F32)
        std::memcpy(place + at * 4, &drawn, 4);
      else
        std::memcpy(place + at * 2,
                    type.dtype == DType::BF16 ? static_cast<const void *>(&bf16) : &f16, 2);
    }
  }
  static float read(DType dtype, const std::byte *place, size_t at) {
    if (dtype == DType::F32) {
      float value;
      std::memcpy(&value, place + 4 * at, 4);
      return value;
    }
    BFloat16 bf16;
    Float16 f16;
    std::memcpy(dtype == DType::BF16 ? static_cast<void *>(&bf16) : &f16, place + 2 * at, 2);
    return dtype == DType::BF16 ? static_cast<float>(bf16) : static_cast<float>(f16);
  }
};

TEST_F(CudnnAttention, ComputesElementsOf16Bits) {
  for (const char *kernel : {"attention", "attention_grad"}) {
    EXPECT_FALSE(run(makeSignature(kernel, DType::BF16)).byOwnKernels);
    EXPECT_FALSE(run(makeSignature(kernel, DType::F16)).byOwnKernels);
    EXPECT_TRUE(run(makeSignature(kernel, DType::F32)).byOwnKernels);
  }
}

TEST_F(CudnnAttention, IsNotUsedWhereItIsSwitchedOff) {
  EXPECT_TRUE(run(makeSignature("attention", DType::BF16), /*usesCudnn=*/false).byOwnKernels);
  EXPECT_TRUE(run(makeSignature("attention_grad", DType::BF16), /*usesCudnn=*/false).byOwnKernels);
}

/// On a GPU of compute capability 9.0, unless cuDNN is demanded.
TEST_F(CudnnAttention, GradientsOfHeadsOf64AreComputedByWarpgroups) {
  KernelSignature gradient = makeSignature("attention_grad", DType::BF16, 64);
  EXPECT_TRUE(run(gradient).byOwnKernels);
  EXPECT_FALSE(run(makeSignature("attention", DType::BF16, 64)).byOwnKernels);
  EXPECT_FALSE(run(gradient, true, 0, 1, false, /*demandsCudnn=*/true).byOwnKernels);
  standin::Settings ampere;
  ampere.computeCapability = 8;
  standin::reset(ampere);
  EXPECT_FALSE(run(gradient).byOwnKernels);
}

TEST_F(CudnnAttention, OwnKernelsTakeScalesThatAreNotPositive) {
  KernelSignature signature = makeSignature("attention", DType::BF16);
  signature.attributes["scale"] = -0.25;
  EXPECT_TRUE(run(signature).byOwnKernels);
}

TEST_F(CudnnAttention, OwnKernelsTakeOperandsThatAreNotAligned) {
  for (const char *kernel : {"attention", "attention_grad"}) {
    EXPECT_FALSE(run(makeSignature(kernel, DType::BF16), true, 16).byOwnKernels);
    EXPECT_TRUE(run(makeSignature(kernel, DType::BF16), true, 8).byOwnKernels);
  }
}

TEST_F(CudnnAttention, ResultsAreNearThoseOfOwnKernels) {
  for (const char *kernel : {"attention", "attention_grad"}) {
    KernelSignature signature = makeSignature(kernel, DType::BF16);
    std::vector<float> cudnn = values(signature, run(signature)),
                       own = values(signature, run(signature, /*usesCudnn=*/false));
    ASSERT_EQ(cudnn.size(), own.size());
    float largest = 0, difference = 0;
    for (size_t i = 0; i < own.size(); ++i) {
      ASSERT_TRUE(std::isfinite(cudnn[i]));
      largest = std::max(largest, std::abs(own[i]));
      difference = std::max(difference, std::abs(own[i] - cudnn[i]));
    }
    EXPECT_GT(largest, 0.1f);
    EXPECT_LE(difference, largest * 0x1p-6f) << kernel;
  }
}

TEST_F(CudnnAttention, IsComputedInOneQueueAfterAnother) {
  KernelSignature signature = makeSignature("attention_grad", DType::BF16);
  Result once = run(signature), twice = run(signature, true, 0, 2);
  EXPECT_FALSE(twice.byOwnKernels);
  EXPECT_EQ(once.outputs, twice.outputs);
}

/// No handle can be made while a queue captures.
TEST_F(CudnnAttention, IsCapturedByAQueueThatHasComputedNothing) {
  for (const char *kernel : {"attention", "attention_grad"}) {
    KernelSignature signature = makeSignature(kernel, DType::BF16);
    Result once = run(signature), captured = run(signature, true, 0, 3, /*captures=*/true);
    EXPECT_FALSE(captured.byOwnKernels);
    EXPECT_EQ(once.outputs, captured.outputs);
  }
}

TEST_F(CudnnAttention, CallsThatItDoesNotCompileAreNotedOrRefused) {
  standin::Settings settings;
  settings.cudnnCompiles = false;
  standin::reset(settings);
  std::vector<std::string> notes;
  CudaOptions options{.note = [&](const std::string &note) { notes.push_back(note); }};
  KernelSignature signature = makeSignature("attention_grad", DType::BF16);
  std::unique_ptr<Backend> backend = createCudaBackend(options);
  for (int i = 0; i < 2; ++i) // the second is known
    EXPECT_OK(backend->prepare(signature));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(testing::contains(notes[0], "attention is computed by kernels of dtc, not by cuDNN: "
                                          "attention_grad of bf16 with 4 heads of 16 elements"));
  EXPECT_TRUE(testing::contains(notes[0], "compile the call"));

  options.demandsCudnn = true;
  EXPECT_ERROR(createCudaBackend(options)->prepare(signature),
               "--cudnn on: attention_grad of bf16");
  EXPECT_EQ(notes.size(), 1u);
}

TEST_F(CudnnAttention, FindsCudnn) {
  EXPECT_OK(findCudnn());
  EXPECT_TRUE(testing::contains(*findCudnn(), "cuDNN 9."));
}

/// All devices of a process execute one plan of cuDNN, each with a handle of its own. The stand-in
/// refuses two at a time.
TEST_F(CudnnAttention, DevicesExecuteAPlanOneAfterTheOther) {
  for (int round = 0; round < 5; ++round) {
    std::unique_ptr<Backend> backend = createCudaBackend({.usesCudnn = true});
    KernelSignature signature = makeSignature("attention", DType::BF16);
    std::unique_ptr<Kernel> kernel = take(backend->prepare(signature));
    std::vector<std::thread> threads;
    for (int64_t index = 0; index < 4; ++index)
      threads.emplace_back([&, index] {
        std::unique_ptr<Device> device = take(backend->openDevice(index));
        size_t count = signature.inputs.size() + signature.outputs.size();
        auto memory = take(device->allocate(count * kPlaceBytes)),
             workspace = take(device->allocate(std::max<size_t>(kernel->workspaceBytes(), 256)));
        std::vector<void *> places;
        for (size_t i = 0; i < count; ++i)
          places.push_back(memory->data() + i * kPlaceBytes);
        std::span<void *const> all = places;
        auto queue = take(device->openQueue(QueueKind::Compute));
        check(queue->enqueue(*kernel, {all.first(signature.inputs.size()),
                                       all.subspan(signature.inputs.size()),
                                       {},
                                       workspace->data()}));
        check(queue->finish());
      });
    for (std::thread &thread : threads)
      thread.join();
  }
}

} // namespace

} // namespace dtc::runtime
