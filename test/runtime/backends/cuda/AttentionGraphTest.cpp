//===- AttentionGraphTest.cpp - Engines of cuDNN for attention ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// cuDNN itself tells which calls it has an engine for on an H100, whose properties it is given, so
// that no GPU is needed. The results of the engines are tested on GPUs and on the stand-in.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/AttentionGraph.h"
#include "test/lib/plans/Expect.h"

#include <cstdio>
#include <gtest/gtest.h>

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::cuda;

namespace {

constexpr int kSkipped = 77; // SKIP_RETURN_CODE

GraphTarget h100() {
  return {.computeCapability = 90, .properties = R"({
    "deviceName": "NVIDIA H100 80GB HBM3", "cudaDeviceId": 0, "deviceVer": 900, "driverVer": 13000,
    "multiProcessorCount": 132, "warpSize": 32, "totalGlobalMem": 85029158912,
    "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
    "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "maxCtasPerSM": 32,
    "regsPerBlock": 65536, "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152,
    "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
    "l2CacheSize": 52428800, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000,
    "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1})"};
}

/// Causal, with the window where there is one.
AttentionCall makeCall(DType dtype, int64_t queries, int64_t keys, int64_t heads, int64_t kvHeads,
                       int64_t headSize, int64_t window = 0) {
  AttentionCall call;
  call.dtype = dtype;
  call.shape = {.batch = 4,
                .queries = queries,
                .keys = keys,
                .heads = heads,
                .kvHeads = kvHeads,
                .headSize = headSize,
                .causal = true,
                .scale = 0.125,
                .earlier = keys - queries,
                .window = window};
  return call;
}

void expectEngine(const AttentionCall &call) {
  EXPECT_TRUE(AttentionGraph::isAsked(call));
  int64_t heads = call.shape.heads, kvHeads = call.shape.kvHeads, size = call.shape.headSize;
  JoinedHeads joined{{0, heads * size, (heads + kvHeads) * size}, heads + 2 * kvHeads};
  for (bool isGradient : {false, true})
    for (const std::optional<JoinedHeads> &placed : {std::optional<JoinedHeads>(), {joined}})
      EXPECT_OK(AttentionGraph::findEngine({call, placed, isGradient}, h100()));
}

TEST(AttentionGraph, EnginesForModels) {
  expectEngine(makeCall(DType::BF16, 1024, 1024, 12, 12, 64));       // GPT-2 124M
  expectEngine(makeCall(DType::BF16, 1024, 1024, 25, 25, 64));       // GPT-2 1558M
  expectEngine(makeCall(DType::BF16, 2048, 2048, 32, 8, 64));        // Llama 3.2 1B
  expectEngine(makeCall(DType::BF16, 8192, 8192, 32, 8, 128));       // Llama 3.1 8B
  expectEngine(makeCall(DType::BF16, 8192, 8192, 32, 8, 128, 4096)); // Mistral 7B
  expectEngine(makeCall(DType::F16, 1024, 1024, 12, 12, 64));
}

TEST(AttentionGraph, EnginesForUnusualShapes) {
  expectEngine(makeCall(DType::BF16, 512, 512, 8, 4, 96));
  expectEngine(makeCall(DType::BF16, 512, 512, 8, 4, 256));
  expectEngine(makeCall(DType::BF16, 100, 333, 8, 2, 64)); // more keys than queries
  AttentionCall all = makeCall(DType::BF16, 197, 197, 16, 16, 64);
  all.shape.causal = false; // ViT-L/16
  all.shape.earlier = 0;
  expectEngine(all);
}

TEST(AttentionGraph, NoEngineForOddHeadSizes) {
  AttentionCall call = makeCall(DType::BF16, 512, 512, 8, 8, 20);
  EXPECT_TRUE(AttentionGraph::isAsked(call));
  EXPECT_ERROR(AttentionGraph::findEngine({call, std::nullopt, false}, h100()),
               "cuDNN cannot take the call");
}

TEST(AttentionGraph, UnreadablePropertiesAreAnError) {
  AttentionCall call = makeCall(DType::BF16, 512, 512, 8, 8, 64);
  EXPECT_ERROR(AttentionGraph::findEngine({call, std::nullopt, false},
                                          {.computeCapability = 90, .properties = "{}"}),
               "cuDNN cannot read the properties of the GPU");
}

TEST(AttentionGraph, CallsThatAreNotAskedOfCudnn) {
  AttentionCall call = makeCall(DType::BF16, 512, 512, 8, 8, 64);
  EXPECT_TRUE(AttentionGraph::isAsked(call));
  auto isAskedWith = [&](auto change) {
    AttentionCall changed = call;
    change(changed);
    return AttentionGraph::isAsked(changed);
  };
  EXPECT_FALSE(isAskedWith([](AttentionCall &c) { c.dtype = DType::F32; }));
  EXPECT_FALSE(isAskedWith([](AttentionCall &c) { c.dtype = DType::F64; }));
  EXPECT_FALSE(isAskedWith([](AttentionCall &c) { c.mask.emplace(); }));
  EXPECT_FALSE(isAskedWith([](AttentionCall &c) { c.segments = 3; }));
  EXPECT_FALSE(isAskedWith([](AttentionCall &c) { c.shape.softcap = 50; }));
  EXPECT_FALSE(isAskedWith([](AttentionCall &c) { c.shape.scale = -0.125; }));
  EXPECT_FALSE(isAskedWith([](AttentionCall &c) { c.shape.queries = 0; }));
  EXPECT_FALSE(isAskedWith([](AttentionCall &c) { c.shape.keys = 100; }));
}

} // namespace

int main(int argc, char **argv) {
  if (Expected<std::string> cudnn = loadCudnn(); !cudnn) {
    std::fprintf(stderr, "skipped: %s\n", cudnn.error().message.c_str());
    return kSkipped;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
