//===- LinkTimes.cpp - Times of collectives and transfers -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/LinkTables.h"
#include "runtime/calibrate/Measurements.h"
#include "runtime/fabrics/local/LocalTransfers.h"
#include "simulator/cluster/CollectiveTime.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <fmt/format.h>
#include <numeric>
#include <time.h>
#include <utility>

namespace dtc::runtime {

using Clock = std::chrono::steady_clock;

/// Larger results are left out, such as those of an all_gather of many members.
static constexpr size_t kLargestResult = size_t{64} << 20;

namespace {

/// Devices that move bytes: a thread each, with an input and a result.
class MovingDevices {
public:
  MovingDevices(CoreSpeed &speed, CoreWatch &watch, int64_t count, size_t inputBytes,
                size_t outputBytes)
      : speed(speed), watch(watch), count(static_cast<size_t>(count)),
        world(std::make_shared<LocalWorld>(Mesh({{"device", count, false}}))),
        inputs(this->count, std::vector<float>(inputBytes / 4, 1.0f)),
        outputs(this->count, std::vector<float>(outputBytes / 4)),
        threads(this->count, [this](const Error &error) { world->abort(error); }) {
    for (int64_t device = 0; device < count; ++device) {
      communicators.emplace_back(world, device);
      transfers.emplace_back(world, device);
    }
  }

  /// One collective or message of a device.
  using Move = std::function<MaybeError(size_t device)>;

  /// The median of several samples that were taken while all cores were at full speed: `least` of
  /// them or, if that takes no waiting, `most`.
  Expected<double> medianOf(const std::function<Expected<double>()> &sample, size_t least,
                            size_t most) {
    std::vector<SpeedMeasurement> samples;
    double before = watch.referenceLoop();
    Clock::time_point begin = Clock::now();
    while (true) {
      Expected<double> value = sample();
      if (!value)
        return value;
      double after = watch.referenceLoop();
      Clock::time_point end = Clock::now();
      samples.push_back({*value, std::max(before, after)});
      before = after;
      std::chrono::duration<double> passed = end - std::exchange(begin, end);
      if (samples.size() >= most &&
          (countFull(samples, speed) >= least || !speed.wait(passed.count())))
        return medianAtFullSpeed(samples, speed);
    }
  }

  /// The median seconds of one move. All devices move the same number of times, as each needs the
  /// others.
  Expected<double> measure(const Move &move, double seconds) {
    Expected<double> first = mean(move, 1);
    if (!first)
      return first;
    Expected<double> second = mean(move, 1);
    if (!second)
      return second;
    // Several moves a sample: threads that wake each other do so in turns of different lengths.
    constexpr double samples = 5;
    auto moves =
        static_cast<int64_t>(std::clamp(seconds / samples / std::max(*second, 1e-7), 1.0, 1e4));
    size_t least = *second > seconds ? 1 : 3, most = *second > seconds ? 1 : 5;
    return medianOf([&] { return mean(move, moves); }, least, most);
  }

  /// The mean seconds of `moves` moves on the device that takes longest. The threads wake one after
  /// the other, and first meet in a move that does not count.
  Expected<double> mean(const Move &move, int64_t moves) {
    std::vector<double> seconds(count);
    if (MaybeError error = threads.run([&](size_t device) -> MaybeError {
          if (MaybeError error = move(device))
            return error;
          Clock::time_point begin = Clock::now();
          for (int64_t i = 0; i < moves; ++i)
            if (MaybeError error = move(device))
              return error;
          seconds[device] = std::chrono::duration<double>(Clock::now() - begin).count();
          return std::nullopt;
        }))
      return *error;
    return *std::max_element(seconds.begin(), seconds.end()) / static_cast<double>(moves);
  }

  CoreSpeed &speed;
  CoreWatch &watch;
  const size_t count;
  std::shared_ptr<LocalWorld> world;
  std::deque<LocalCommunicator> communicators;
  std::deque<LocalTransfers> transfers;
  std::vector<std::vector<float>> inputs, outputs;

private:
  DeviceThreads threads; // last: they use the others
};

/// A collective of all devices; all_reduce in place, as plans have it.
Expected<double> collectiveSeconds(CoreSpeed &speed, CoreWatch &watch, const CollectiveSpec &spec,
                                   double seconds) {
  MovingDevices devices(speed, watch, spec.members, spec.input.numBytes(),
                        spec.output().numBytes());
  for (LocalCommunicator &communicator : devices.communicators)
    if (auto group = communicator.openGroup({"device"}); !group)
      return group.error();
  return devices.measure(
      [&](size_t device) {
        float *input = devices.inputs[device].data(), *output = devices.outputs[device].data();
        return devices.communicators[device].run(
            0, spec, input, spec.kind == CollectiveKind::AllReduce ? input : output);
      },
      seconds);
}

/// The seconds for which the calling thread has had a core.
double threadSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// How much later than the mean device the last one comes to a collective: products before a small
/// all_reduce, against these products and an all_reduce that follows another at once.
Expected<cluster::ArrivalSkew> measureArrivalSkew(CoreContext &context, CoreWatch &watch,
                                                  int64_t members) {
  const CalibrationOptions &options = context.options;
  CollectiveSpec spec = specOf(CollectiveKind::AllReduce, members, 1 << 10);
  MovingDevices devices(context.speed, watch, members, spec.input.numBytes(),
                        spec.output().numBytes());
  for (LocalCommunicator &communicator : devices.communicators)
    if (auto group = communicator.openGroup({"device"}); !group)
      return group.error();
  TensorType matrix{DType::F32, {128, 128}};
  KernelRunOptions run;
  run.threads = options.threadsPerDevice;
  run.workingSetBytes = options.productSetBytes;
  std::vector<KernelRun> products;
  for (size_t device = 0; device < devices.count; ++device) {
    auto product = KernelRun::create(
        *context.backend, {"einsum", {matrix, matrix}, {matrix}, {{"equation", "mk,kn->mn"}}, {}},
        run);
    if (!product)
      return product.error();
    products.push_back(std::move(*product));
  }
  double begin = threadSeconds();
  products.front().run();
  products.front().run();
  double once = std::max((threadSeconds() - begin) / 2, 1e-9);
  auto calls = static_cast<int64_t>(std::max(1.0, options.secondsPerPoint / once));
  auto reduce = [&](size_t device) {
    float *data = devices.inputs[device].data();
    return devices.communicators[device].run(0, spec, data, data);
  };
  Expected<double> together = devices.measure(reduce, options.secondsPerPoint);
  if (!together)
    return together.error();
  constexpr int64_t moves = 8;
  double turns =
      std::max(1.0, static_cast<double>(members) / static_cast<double>(context.numGroups));
  std::vector<double> busy(devices.count), works;
  Expected<double> wait = devices.medianOf(
      [&]() -> Expected<double> {
        std::fill(busy.begin(), busy.end(), 0);
        Expected<double> all = devices.mean(
            [&](size_t device) {
              double from = threadSeconds();
              for (int64_t i = 0; i < calls; ++i)
                products[device].run();
              busy[device] += threadSeconds() - from;
              return reduce(device);
            },
            moves);
        if (!all)
          return all;
        double work = std::accumulate(busy.begin(), busy.end(), 0.0) /
                      static_cast<double>(members * (moves + 1));
        works.push_back(work);
        return std::max(0.0, *all - *together - work * turns);
      },
      5, 9);
  if (!wait)
    return wait.error();
  cluster::ArrivalSkew skew;
  skew.set_members(members);
  skew.set_work_seconds(rounded(std::max(1e-9, median(works))));
  // This is the time of a device that has a core for itself, as all times of a device are.
  skew.set_wait_seconds(rounded(*wait / turns));
  return skew;
}

/// A message from each even device to the odd one after it: half of the time of one there and one
/// back.
Expected<double> transferSeconds(CoreSpeed &speed, CoreWatch &watch, int64_t members, int64_t bytes,
                                 double seconds) {
  MovingDevices devices(speed, watch, members, static_cast<size_t>(bytes),
                        static_cast<size_t>(bytes));
  Expected<double> both = devices.measure(
      [&](size_t device) -> MaybeError {
        LocalTransfers &transfers = devices.transfers[device];
        auto peer = static_cast<int64_t>(device ^ 1);
        TransferTensor sent{devices.inputs[device].data(), static_cast<uint64_t>(bytes)};
        TransferTensor received{devices.outputs[device].data(), static_cast<uint64_t>(bytes)};
        for (bool sends : {device % 2 == 0, device % 2 == 1}) {
          TransferResult result =
              transfers.wait(transfers.startNow(peer, {sends ? &sent : &received, 1}, sends));
          if (result.error)
            return result.error;
        }
        return std::nullopt;
      },
      seconds);
  if (!both)
    return both;
  return *both / 2;
}

} // namespace

MaybeError measureLink(CoreContext &context, cluster::Link &link) {
  const CalibrationOptions &options = context.options;
  CoreWatch watch(context.speed);
  std::vector<int64_t> groups;
  for (int64_t members : options.members)
    if (members <= options.devices)
      groups.push_back(members);
  context.announce("collectives and messages", (kAllCollectiveKinds.size() + 1) * groups.size() *
                                                   options.collectiveBytes.size());
  for (CollectiveKind kind : kAllCollectiveKinds)
    for (int64_t members : groups) {
      cluster::CollectiveTable *table = link.add_collectives();
      table->set_kind(name(kind));
      table->set_members(members);
      for (int64_t bytes : options.collectiveBytes) {
        CollectiveSpec spec = specOf(kind, members, bytes);
        if (spec.output().numBytes() > kLargestResult)
          continue;
        Expected<double> seconds =
            collectiveSeconds(context.speed, watch, spec, options.secondsPerPoint);
        if (!seconds)
          return seconds.error();
        addPoint(*table, static_cast<double>(spec.input.numBytes()), *seconds);
      }
    }
  for (int64_t members : groups) {
    Expected<cluster::ArrivalSkew> skew = measureArrivalSkew(context, watch, members);
    if (!skew)
      return skew.error();
    *link.add_arrival_skews() = *skew;
  }
  for (int64_t members : groups) {
    if (members % 2 != 0)
      continue; // messages go between pairs
    cluster::CollectiveTable *table = link.add_collectives();
    table->set_kind(kTransferTable);
    table->set_members(members);
    for (int64_t bytes : options.collectiveBytes) {
      Expected<double> seconds =
          transferSeconds(context.speed, watch, members, bytes, options.secondsPerPoint);
      if (!seconds)
        return seconds.error();
      addPoint(*table, static_cast<double>(bytes), *seconds);
    }
  }
  return std::nullopt;
}

} // namespace dtc::runtime
