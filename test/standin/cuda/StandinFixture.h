//===- StandinFixture.h - Tests that use the stand-in of CUDA ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_STANDINFIXTURE_H
#define DTC_TEST_STANDIN_CUDA_STANDINFIXTURE_H

#include "test/standin/cuda/Standin.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace dtc::standin {

#define EXPECT_CUDA(call) EXPECT_EQ(call, cudaSuccess) << #call
#define ASSERT_CUDA(call) ASSERT_EQ(call, cudaSuccess) << #call

class StandinFixture : public ::testing::Test {
protected:
  void SetUp() override {
    // A process that is forked has not the stand-in's threads.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    restart();
  }
  void TearDown() override { reset(); }

  void restart(uint64_t seed = 1) {
    Settings settings;
    settings.seed = seed;
    restart(settings);
  }
  void restart(const Settings &settings) {
    reset(settings);
    (void)cudaSetDevice(0);
  }

  /// From now on violations are kept here.
  void collect() {
    collectViolations([this](const std::string &message) { violations.push_back(message); });
  }
  void expectViolation(const std::string &part) {
    ASSERT_EQ(violations.size(), 1u) << ::testing::PrintToString(violations);
    EXPECT_NE(violations[0].find(part), std::string::npos)
        << violations[0] << "\nexpected: " << part;
    violations.clear();
  }

  static cudaStream_t openStream() {
    cudaStream_t stream = nullptr;
    EXPECT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
  }
  static cudaEvent_t openEvent(unsigned flags = cudaEventDisableTiming) {
    cudaEvent_t event = nullptr;
    EXPECT_CUDA(cudaEventCreateWithFlags(&event, flags));
    return event;
  }
  template <typename T> static T *onDevice(size_t count) {
    void *data = nullptr;
    EXPECT_CUDA(cudaMalloc(&data, count * sizeof(T)));
    return static_cast<T *>(data);
  }
  template <typename T> static T *pinned(size_t count) {
    void *data = nullptr;
    EXPECT_CUDA(cudaMallocHost(&data, count * sizeof(T)));
    return static_cast<T *>(data);
  }
  /// The contents of memory of a device that `stream` sees after all its work.
  template <typename T>
  static std::vector<T> read(const T *from, size_t count, cudaStream_t stream) {
    std::vector<T> values(count);
    EXPECT_CUDA(
        cudaMemcpyAsync(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost, stream));
    return values;
  }
  template <typename T> static T *upload(const std::vector<T> &values, cudaStream_t stream) {
    T *data = onDevice<T>(values.size());
    EXPECT_CUDA(cudaMemcpyAsync(data, values.data(), values.size() * sizeof(T),
                                cudaMemcpyHostToDevice, stream));
    return data;
  }
  template <typename... Parameters, typename... Arguments>
  static cudaError_t launch(cudaStream_t stream, dim3 grid, dim3 block,
                            void (*kernel)(Parameters...), Arguments &&...arguments) {
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.stream = stream;
    return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
  }

  std::vector<std::string> violations;
};

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_STANDINFIXTURE_H
