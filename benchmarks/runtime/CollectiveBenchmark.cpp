//===- CollectiveBenchmark.cpp - Speed of collectives in one process ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/communicators/local/LocalCommunicator.h"
#include "runtime/executor/DeviceThreads.h"

#include <benchmark/benchmark.h>

using namespace dtc::runtime;

/// All-reduce in place of range(1) floats over range(0) devices. Bytes are those of the tensor.
static void allReduce(benchmark::State &state) {
  int64_t devices = state.range(0), count = state.range(1);
  auto world = std::make_shared<LocalWorld>(Mesh({{"dp", devices, false}}));
  std::vector<LocalCommunicator> communicators;
  std::vector<std::vector<float>> buffers;
  for (int64_t device = 0; device < devices; ++device) {
    communicators.emplace_back(world, device);
    (void)communicators.back().openGroup({"dp"});
    buffers.emplace_back(static_cast<size_t>(count), 0.0f);
  }
  CollectiveSpec spec;
  spec.input = {DType::F32, {count}};
  spec.members = devices;
  DeviceThreads threads(static_cast<size_t>(devices), [&] { world->abort(); });
  for (auto _ : state) {
    MaybeError error = threads.run([&](size_t device) {
      float *data = buffers[device].data();
      return communicators[device].run(0, spec, data, data);
    });
    if (error)
      state.SkipWithError(error->message.c_str());
  }
  state.SetBytesProcessed(state.iterations() * count * 4);
}
BENCHMARK(allReduce)
    ->ArgsProduct({{2, 4, 16}, {1, 1024, 1 << 20}})
    ->ArgNames({"devices", "floats"})
    ->UseRealTime();
