//===- CollectiveBenchmark.cpp - Speed of collectives in one process ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Every device is a thread. Bytes are those of one member's whole tensors: the input of all_reduce
// and reduce_scatter, the output of all_gather. memcpyLoop and addLoop show on as many
// threads what the memory gives.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/DeviceThreads.h"
#include "runtime/fabrics/local/LocalCommunicator.h"

#include <benchmark/benchmark.h>
#include <cstring>
#include <deque>

using namespace dtc;
using namespace dtc::runtime;

namespace {

/// Threads with an input and an output of `count` floats each.
struct Devices {
  Devices(int64_t devices, int64_t count)
      : world(std::make_shared<LocalWorld>(Mesh({{"dp", devices, false}}))),
        threads(static_cast<size_t>(devices), [this](const Error &error) { world->abort(error); }) {
    for (int64_t device = 0; device < devices; ++device) {
      communicators.emplace_back(world, device);
      (void)communicators.back().openGroup({"dp"});
      inputs.emplace_back(static_cast<size_t>(count), 1.0f);
      outputs.emplace_back(static_cast<size_t>(count), 0.0f);
    }
  }

  template <typename Work> void repeat(benchmark::State &state, const Work &work) {
    for (auto _ : state)
      if (MaybeError error = threads.run(work))
        state.SkipWithError(error->message.c_str());
  }

  std::shared_ptr<LocalWorld> world;
  std::deque<LocalCommunicator> communicators;
  std::vector<std::vector<float>> inputs, outputs;
  DeviceThreads threads;
};

} // namespace

/// range(0) devices, range(1) floats.
static void collective(benchmark::State &state, CollectiveKind kind, bool inPlace) {
  int64_t members = state.range(0), count = state.range(1);
  Devices devices(members, count);
  CollectiveSpec spec;
  spec.kind = kind;
  spec.input = {DType::F32, {kind == CollectiveKind::AllGather ? count / members : count}};
  spec.members = members;
  devices.repeat(state, [&](size_t device) {
    float *input = devices.inputs[device].data(), *output = devices.outputs[device].data();
    return devices.communicators[device].run(0, spec, input, inPlace ? input : output);
  });
  state.SetBytesProcessed(state.iterations() * count * 4);
}

/// All-reduce of 64 tensors of range(1) floats over range(0) devices, as one bucket or one by one.
static void manyTensors(benchmark::State &state, bool bucket) {
  constexpr int64_t tensors = 64;
  int64_t members = state.range(0), count = state.range(1);
  Devices devices(members, tensors * count);
  CollectiveSpec spec;
  spec.input = {DType::F32, {count}};
  spec.members = members;
  std::vector<CollectiveSpec> specs(tensors, spec);
  std::vector<std::vector<CollectiveOperands>> operands(static_cast<size_t>(members));
  for (size_t device = 0; device < operands.size(); ++device)
    for (int64_t i = 0; i < tensors; ++i) {
      float *data = devices.inputs[device].data() + i * count;
      operands[device].push_back({data, data});
    }
  devices.repeat(state, [&](size_t device) -> MaybeError {
    LocalCommunicator &communicator = devices.communicators[device];
    if (bucket)
      return communicator.run(0, specs, operands[device]);
    for (const CollectiveOperands &one : operands[device])
      if (MaybeError error = communicator.run(0, spec, one.input, one.output))
        return error;
    return std::nullopt;
  });
  state.SetBytesProcessed(state.iterations() * tensors * count * 4);
}

/// The devices copy `count` floats each, or add the parts of two arrays in which they lie.
static void loop(benchmark::State &state, bool add) {
  int64_t members = state.range(0), count = state.range(1);
  Devices devices(members, count);
  devices.repeat(state, [&](size_t device) -> MaybeError {
    float *output = devices.outputs[device].data();
    const float *a = devices.inputs[device].data();
    if (!add) {
      std::memcpy(output, a, static_cast<size_t>(count) * 4);
      return std::nullopt;
    }
    const float *b = devices.inputs[(device + 1) % static_cast<size_t>(members)].data();
    auto share = static_cast<size_t>(count / members), begin = device * share;
    for (size_t i = begin; i < begin + share; ++i)
      output[i] = a[i] + b[i];
    benchmark::DoNotOptimize(output);
    return std::nullopt;
  });
  state.SetBytesProcessed(state.iterations() * count * 4);
}

static void arguments(benchmark::internal::Benchmark *b) {
  b->ArgsProduct({{2, 4, 16}, {16, 16 << 10, 8 << 20}})->ArgNames({"devices", "floats"});
  b->UseRealTime();
}

BENCHMARK_CAPTURE(collective, allReduceInPlace, CollectiveKind::AllReduce, true)->Apply(arguments);
BENCHMARK_CAPTURE(collective, allReduce, CollectiveKind::AllReduce, false)->Apply(arguments);
BENCHMARK_CAPTURE(collective, allGather, CollectiveKind::AllGather, false)->Apply(arguments);
BENCHMARK_CAPTURE(collective, reduceScatter, CollectiveKind::ReduceScatter, false)
    ->Apply(arguments);
BENCHMARK_CAPTURE(manyTensors, bucket, true)
    ->ArgsProduct({{2, 16}, {16, 4096}})
    ->ArgNames({"devices", "floats"})
    ->UseRealTime();
BENCHMARK_CAPTURE(manyTensors, oneByOne, false)
    ->ArgsProduct({{2, 16}, {16, 4096}})
    ->ArgNames({"devices", "floats"})
    ->UseRealTime();
BENCHMARK_CAPTURE(loop, memcpyLoop, false)->Apply(arguments);
BENCHMARK_CAPTURE(loop, addLoop, true)->Apply(arguments);
