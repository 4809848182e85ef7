//===- QueueTimer.cpp - Times of calls in graphs of a device --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/QueueTimer.h"

#include "calls/fusion/SharedLaunches.h"
#include "runtime/calibrate/CoreSpeed.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

namespace dtc::runtime {

using Clock = std::chrono::steady_clock;

/// More calls take longer to capture than to run, and make the time of one no more exact.
static constexpr double kMostCalls = 256;
/// More sets take longer to fill than to use. Operands that still fit the cache then are small
/// enough to be found there in steps, too.
static constexpr size_t kMostSets = 64;
/// The least share of a call's time that is taken to be its own, however much of it is the launch.
static constexpr double kLeastShare = 0.1;

Expected<std::unique_ptr<QueueTimer>> QueueTimer::open(const CalibrationOptions &options,
                                                       const Backend &backend, Device &device) {
  std::unique_ptr<QueueTimer> timer(new QueueTimer(options, backend, device));
  if (MaybeError error = timer->initialize())
    return *error;
  return timer;
}

MaybeError QueueTimer::initialize() {
  if (!device.capturesGraphs())
    return Error{fmt::format("{} has no graphs, in which calls are timed", device.describe())};
  Expected<std::unique_ptr<Queue>> compute = device.openQueue(QueueKind::Compute);
  if (!compute)
    return compute.error();
  queue = std::move(*compute);
  for (std::unique_ptr<Event> *event : {&begin, &end}) {
    Expected<std::unique_ptr<Event>> created = device.createEvent(/*timed=*/true);
    if (!created)
      return created.error();
    *event = std::move(*created);
  }
  Expected<Device::FreeMemory> free = device.freeMemory();
  if (!free)
    return free.error();
  mostBytes = free->bytes / 4;
  // Room for a working set and for workspaces, so that nearly all points use the same memory.
  size_t chunkBytes = std::min<size_t>(2 * options.workingSetBytes, free->bytes / 8);
  memory = std::make_shared<DeviceOperandMemory>(device, *queue, chunkBytes);
  return std::nullopt;
}

Expected<std::vector<KernelRun>> QueueTimer::prepare(const std::vector<KernelSignature> &calls,
                                                     KernelRunOptions run) {
  memory->reset();
  run.memory = memory;
  run.queue = queue.get();
  run.mostSets = kMostSets;
  // The calls take turns: together they have the working set.
  run.workingSetBytes /= calls.size();
  std::vector<KernelRun> runs;
  for (const KernelSignature &call : calls) {
    Expected<KernelRun> made = KernelRun::create(backend, call, run);
    if (!made)
      return made.error();
    runs.push_back(std::move(*made));
  }
  return runs;
}

Expected<double> elapsedSeconds(const Event &begin, const Event &end) {
  // A device may relate its clock to the host's anew after a time that it tells, so that the next
  // one is not comparable: from here on it has no reason to.
  Expected<Event::TimePoint> from = begin.time();
  if (from)
    from = begin.time();
  if (!from)
    return from.error();
  Expected<Event::TimePoint> to = end.time();
  if (!to)
    return to.error();
  return std::chrono::duration<double>(*to - *from).count();
}

Expected<double> QueueTimer::secondsBetween(const Work &work) {
  MaybeError error = queue->record(*begin);
  if (!error)
    error = work();
  if (!error)
    error = queue->record(*end);
  if (!error)
    error = queue->finish();
  if (error)
    return *error;
  Expected<double> seconds = elapsedSeconds(*begin, *end);
  if (!seconds)
    return seconds;
  // Two events that follow each other may have the same time.
  return std::max(*seconds, 1e-9);
}

Expected<std::unique_ptr<Graph>> QueueTimer::capture(const Work &work) {
  if (MaybeError error = queue->beginCapture())
    return *error;
  MaybeError failed = work();
  Expected<std::unique_ptr<Graph>> graph = queue->endCapture();
  if (failed)
    return *failed;
  return graph;
}

Expected<double> QueueTimer::secondsOfTurn(std::vector<KernelRun> &runs) {
  auto takeTurns = [&](int64_t turns) -> MaybeError {
    for (int64_t i = 0; i < turns; ++i)
      for (KernelRun &run : runs)
        if (MaybeError error = run.enqueue())
          return error;
    return std::nullopt;
  };
  // The first turn loads code and chooses algorithms, which no graph can hold.
  MaybeError error = takeTurns(1);
  if (!error)
    error = queue->finish();
  if (error)
    return *error;
  Expected<double> once = secondsBetween([&] { return takeTurns(1); });
  if (!once)
    return once;
  constexpr double samplesPerPoint = 3;
  auto turns = static_cast<int64_t>(std::clamp(options.secondsPerPoint / samplesPerPoint / *once,
                                               1.0, kMostCalls / static_cast<double>(runs.size())));
  Expected<std::unique_ptr<Graph>> graph = capture([&] { return takeTurns(turns); });
  if (!graph)
    return graph.error();
  // The device gets a graph when it is launched first.
  if (MaybeError unmeasured = queue->enqueue(**graph))
    return *unmeasured;
  std::vector<double> samples;
  size_t least = *once > 4 * options.secondsPerPoint ? 1 : 3;
  for (double spent = 0; samples.size() < least || spent < options.secondsPerPoint;) {
    Expected<double> sample = secondsBetween([&] { return queue->enqueue(**graph); });
    if (!sample)
      return sample;
    spent += *sample;
    samples.push_back(*sample / static_cast<double>(turns));
  }
  return median(std::move(samples));
}

Expected<double> QueueTimer::secondsOf(const std::vector<KernelSignature> &calls,
                                       KernelRunOptions run) {
  Expected<std::vector<KernelRun>> runs = prepare(calls, std::move(run));
  if (!runs)
    return runs.error();
  Expected<double> seconds = secondsOfTurn(*runs);
  if (!seconds)
    return seconds;
  auto launches = static_cast<double>(std::ranges::count_if(
      calls, [](const KernelSignature &call) { return !mayShareLaunch(call); }));
  double work = std::max(*seconds - launches * launchSeconds, *seconds * kLeastShare);
  return work / static_cast<double>(calls.size());
}

Expected<double> QueueTimer::measureLaunch() {
  launchSeconds = 0;
  TensorType scalar{DType::F32, {}};
  Expected<double> seconds = secondsOf({{"add", {scalar, scalar}, {scalar}, {}, {}}}, {});
  if (seconds)
    launchSeconds = *seconds;
  return seconds;
}

MaybeError QueueTimer::warmUp(double seconds) {
  TensorType matrix{DType::BF16, {4096, 4096}};
  if (3 * matrix.numBytes() > mostBytes || seconds <= 0)
    return std::nullopt;
  Expected<std::vector<KernelRun>> runs =
      prepare({{"einsum", {matrix, matrix}, {matrix}, {{"equation", "mk,kn->mn"}}, {}}}, {});
  if (!runs)
    return runs.error();
  // Loads the library, during which the device is idle.
  MaybeError error = runs->front().enqueue();
  if (!error)
    error = queue->finish();
  if (error)
    return error;
  Clock::time_point begun = Clock::now();
  while (std::chrono::duration<double>(Clock::now() - begun).count() < seconds) {
    for (int i = 0; i < 16; ++i)
      if (MaybeError error = runs->front().enqueue())
        return error;
    if (MaybeError error = queue->finish())
      return error;
  }
  return std::nullopt;
}

} // namespace dtc::runtime
