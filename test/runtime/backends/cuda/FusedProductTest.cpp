//===- FusedProductTest.cpp - Products that are added to a sum ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CudaBackend.h"
#include "test/lib/plans/Expect.h"
#include "test/standin/cuda/Standin.h"

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

namespace dtc::runtime {

namespace {

using testing::check;
using testing::take;

class FusedProduct : public ::testing::Test {
protected:
  FusedProduct() { standin::reset(); }
  ~FusedProduct() override { standin::reset(); }

  KernelSignature product(const std::string &equation, const TensorType &a, const TensorType &b,
                          const TensorType &out) const {
    return {"einsum", {a, b}, {out}, {{"equation", equation}}, mesh};
  }
  KernelSignature sum(const TensorType &type) const {
    return {"accumulate", {type}, {type}, {{"axis", "micro"}}, mesh};
  }

  const std::vector<AxisCoordinate> mesh = {{"dp", 2, 1}, {"micro", 3, 0, true}};
  std::unique_ptr<Backend> backend = createCudaBackend();
};

TEST_F(FusedProduct, IsAddedFromTheSecondMicrobatchOn) {
  TensorType type{DType::F32, {2, 2}};
  // The gradient of a weight: both operands are transposed in memory.
  std::unique_ptr<Kernel> kernel =
      backend->prepareFused(product("ki,kj->ij", type, type, type), sum(type));
  ASSERT_TRUE(kernel);
  std::unique_ptr<Device> device = take(backend->openDevice(0));
  auto staging = take(device->allocateStaging(512)), memory = take(device->allocate(768)),
       workspace = take(device->allocate(kernel->workspaceBytes()));
  auto queue = take(device->openQueue(QueueKind::Compute));
  const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
  std::memcpy(staging->data(), a, sizeof(a));
  std::memcpy(staging->data() + 256, b, sizeof(b));
  check(queue->copy(memory->data(), staging->data(), 512));
  check(queue->finish());
  // With gradients that are accumulated over two batches.
  std::vector<AxisCoordinate> position = mesh;
  float times = 0;
  for (int64_t repetition : {0, 1})
    for (int64_t microbatch : {0, 1, 2}) {
      position[1].coordinate = microbatch;
      position[1].repetition = repetition;
      void *inputs[] = {memory->data(), memory->data() + 256}, *outputs[] = {memory->data() + 512};
      uint64_t before = standin::counts().launches;
      check(queue->enqueue(*kernel, {inputs, outputs, position, workspace->data()}));
      EXPECT_EQ(standin::counts().launches, before + 1);
      check(queue->copy(staging->data(), memory->data() + 512, 16));
      check(queue->finish());
      ++times;
      const float expected[] = {26 * times, 30 * times, 38 * times, 44 * times};
      EXPECT_EQ(std::memcmp(staging->data(), expected, 16), 0) << repetition << " " << microbatch;
    }
}

TEST_F(FusedProduct, IsThereForProductsOfMatricesAlone) {
  TensorType narrow{DType::BF16, {4, 4}}, wide{DType::F32, {4, 4}}, row{DType::F32, {4}};
  EXPECT_TRUE(backend->prepareFused(product("ij,jk->ik", narrow, narrow, wide), sum(wide)));
  // Elements, and dots.
  EXPECT_FALSE(backend->prepareFused(product("ij,ij->ij", wide, wide, wide), sum(wide)));
  EXPECT_FALSE(backend->prepareFused(product("ij,ij->i", wide, wide, row), sum(row)));
  EXPECT_FALSE(backend->prepareFused(sum(wide), sum(wide)));
  EXPECT_FALSE(backend->prepareFused(product("ij,jk->ik", wide, wide, wide),
                                     {"exp", {wide}, {wide}, {}, mesh}));
}

} // namespace

} // namespace dtc::runtime
