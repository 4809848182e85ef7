//===- AlgorithmCacheTest.cpp - Timed algorithms of products --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/AlgorithmCache.h"

#include "runtime/backends/cuda/CudaBackend.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"
#include "test/standin/cuda/Standin.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

namespace dtc::runtime::algorithmCacheTest {

namespace {

using testing::check;
using testing::take;
using Algorithm = cuda::AlgorithmCache::Algorithm;

const Algorithm kOne = {1, 2, 3, 4, 5, 6, 7, 8}, kTwo = {9, 0, 0, 0, 0, 0, 0, ~uint64_t(0)};

class AlgorithmCacheTest : public ::testing::Test {
protected:
  void TearDown() override { standin::reset(); }

  std::string text() const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string &text) { std::ofstream(path) << text; }

  /// Computes [[1, 2], [3, 4]] times itself on a new backend; what it gives the GPU.
  uint64_t multiply(const std::string &cachePath) {
    standin::reset();
    std::unique_ptr<Backend> backend = createCudaBackend({true, cachePath});
    std::unique_ptr<Device> device = take(backend->openDevice(0));
    TensorType type{DType::F32, {2, 2}};
    std::unique_ptr<Kernel> kernel =
        take(backend->prepare({"einsum", {type, type}, {type}, {{"equation", "ij,jk->ik"}}, {}}));
    auto staging = take(device->allocateStaging(16)), memory = take(device->allocate(512)),
         workspace = take(device->allocate(kernel->workspaceBytes()));
    auto queue = take(device->openQueue(QueueKind::Compute));
    const float values[] = {1, 2, 3, 4}, expected[] = {7, 10, 15, 22};
    std::memcpy(staging->data(), values, sizeof(values));
    std::byte *out = memory->data() + 256;
    check(queue->copy(memory->data(), staging->data(), 16));
    uint64_t before = standin::counts().launches;
    void *inputs[] = {memory->data(), memory->data()}, *outputs[] = {out};
    check(queue->enqueue(*kernel, {inputs, outputs, {}, workspace->data()}));
    uint64_t launches = standin::counts().launches - before;
    check(queue->copy(staging->data(), out, 16));
    check(queue->finish());
    const auto *found = reinterpret_cast<const float *>(staging->data());
    EXPECT_TRUE(std::equal(std::begin(expected), std::end(expected), found));
    return launches;
  }

  testing::TempDir folder;
  const std::string path = folder.path("a/b/products.txt");
};

TEST_F(AlgorithmCacheTest, KeepsWhatWasFirst) {
  cuda::AlgorithmCache cache("");
  EXPECT_EQ(cache.find("a"), std::nullopt);
  EXPECT_EQ(cache.keep("a", kOne), kOne);
  EXPECT_EQ(cache.keep("a", kTwo), kOne);
  EXPECT_EQ(cache.find("a"), kOne);
  cache.forget("a");
  EXPECT_EQ(cache.keep("a", kTwo), kTwo);
  EXPECT_FALSE(cache.error());
}

TEST_F(AlgorithmCacheTest, OthersFindItInTheFile) {
  cuda::AlgorithmCache first(path), second(path);
  EXPECT_EQ(second.find("a"), std::nullopt);
  first.keep("a", kOne);
  second.keep("b", kTwo); // and leaves the other's entries
  cuda::AlgorithmCache third(path);
  EXPECT_EQ(third.find("a"), kOne);
  EXPECT_EQ(third.find("b"), kTwo);
}

TEST_F(AlgorithmCacheTest, IgnoresDamagedLines) {
  {
    cuda::AlgorithmCache cache(path);
    cache.keep("a", kOne);
    cache.keep("b", kTwo);
  }
  const std::string whole = text();
  size_t at = whole.find("\ta\t");
  ASSERT_NE(at, std::string::npos);
  std::string damaged = whole;
  damaged[at + 3] = '7';
  write(damaged);
  cuda::AlgorithmCache cache(path);
  EXPECT_EQ(cache.find("a"), std::nullopt);
  EXPECT_EQ(cache.find("b"), kTwo);
  for (size_t size = 0; size < whole.size(); ++size) { // cut off anywhere
    write(whole.substr(0, size));
    cuda::AlgorithmCache cut(path);
    EXPECT_TRUE(!cut.find("b") || size + 1 == whole.size());
  }
}

TEST_F(AlgorithmCacheTest, IgnoresForeignFiles) {
  cuda::AlgorithmCache(path).keep("a", kOne);
  std::string foreign = text();
  foreign[foreign.find("products 1") + 9] = '2';
  for (const std::string &other : {foreign, std::string("\0\xFF\n\n\t\t", 6), std::string("\n")}) {
    write(other);
    cuda::AlgorithmCache cache(path);
    EXPECT_EQ(cache.find("a"), std::nullopt);
    cache.keep("c", kTwo); // and replaces them
    EXPECT_EQ(cuda::AlgorithmCache(path).find("c"), kTwo);
  }
}

TEST_F(AlgorithmCacheTest, GoesOnWhereTheFileCannotBeWritten) {
  std::ofstream(folder.path("file")) << "no folder";
  cuda::AlgorithmCache cache(folder.path("file/products.txt"));
  EXPECT_EQ(cache.keep("a", kOne), kOne);
  EXPECT_EQ(cache.find("a"), kOne);
  ASSERT_TRUE(cache.error());
  EXPECT_NE(cache.error()->message.find("file/products.txt"), std::string::npos);
}

TEST_F(AlgorithmCacheTest, ProductsAreTimedOnce) {
  // Six runs of each of the stand-in's three algorithms, and the product.
  EXPECT_EQ(multiply(path), 19u);
  EXPECT_NE(text().find("CUDA stand-in, cuBLASLt 130000, 1 products of 2x2x2 (f32 to f32), "),
            std::string::npos)
      << text();
  EXPECT_EQ(multiply(path), 1u);
  EXPECT_EQ(multiply(""), 19u);
}

TEST_F(AlgorithmCacheTest, AnAlgorithmThatIsNoneIsTimedAgain) {
  multiply(path);
  std::string line = text().substr(text().find('\n') + 1);
  std::string key = line.substr(line.find('\t') + 1);
  key.resize(key.find('\t'));
  std::filesystem::remove(path);
  cuda::AlgorithmCache(path).keep(key, kOne);
  EXPECT_EQ(multiply(path), 19u);
  EXPECT_EQ(multiply(path), 1u);
}

TEST_F(AlgorithmCacheTest, TheFolderIsThatOfTheEnvironment) {
  ASSERT_EQ(setenv("DTC_CUDA_CACHE", "/somewhere", 1), 0);
  EXPECT_EQ(defaultCachePath(), "/somewhere/products.txt");
  ASSERT_EQ(unsetenv("DTC_CUDA_CACHE"), 0);
}

} // namespace

} // namespace dtc::runtime::algorithmCacheTest
