//===- DeviceLinkTimes.cpp - Times of collectives of GPUs -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/CoreSpeed.h"
#include "runtime/calibrate/LinkTables.h"
#include "runtime/calibrate/Measurements.h"
#include "runtime/calibrate/QueueTimer.h"
#include "runtime/executor/DeviceThreads.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

namespace dtc::runtime {

/// Larger results are left out, such as those of an all_gather of many members.
static constexpr size_t kLargestResult = size_t{2} << 30;

namespace {

/// Some devices that are members of one group, with a thread each.
class ConnectedDevices {
public:
  static Expected<std::unique_ptr<ConnectedDevices>> open(const CalibrationOptions &options,
                                                          const Backend &backend, int64_t count) {
    Expected<std::shared_ptr<Fabric>> fabric = options.openFabric(Mesh({{"device", count, false}}));
    if (!fabric)
      return fabric.error();
    std::unique_ptr<ConnectedDevices> devices(new ConnectedDevices(*fabric, count));
    for (int64_t i = 0; i < count; ++i)
      if (MaybeError error = devices->members[static_cast<size_t>(i)].open(backend, **fabric, i))
        return *error;
    if (MaybeError error = (*fabric)->connect())
      return *error;
    return devices;
  }

  /// The median seconds of a collective, on the member that takes longest.
  Expected<double> secondsOf(const CollectiveSpec &spec, double seconds) {
    specs.push_back(std::make_unique<CollectiveSpec>(spec));
    if (MaybeError error =
            threads.run([&](size_t device) { return members[device].prepare(*specs.back()); }))
      return *error;
    // The first ones connect the members.
    for (int i = 0; i < 2; ++i)
      if (Expected<double> unmeasured = mean(*specs.back(), 1); !unmeasured)
        return unmeasured;
    Expected<double> once = mean(*specs.back(), 1);
    if (!once)
      return once;
    constexpr int numSamples = 3;
    auto calls =
        static_cast<int64_t>(std::clamp(seconds / numSamples / std::max(*once, 1e-9), 1.0, 256.0));
    std::vector<double> samples;
    for (int i = 0; i < numSamples; ++i) {
      Expected<double> sample = mean(*specs.back(), calls);
      if (!sample)
        return sample;
      samples.push_back(*sample);
    }
    return std::max(median(std::move(samples)), 1e-9);
  }

private:
  struct Member {
    std::unique_ptr<Device> device;
    std::unique_ptr<Queue> queue;
    std::unique_ptr<Event> begin, end;
    std::unique_ptr<Communicator> communicator;
    Communicator::Group group = 0;
    std::unique_ptr<DeviceMemory> input, output;

    MaybeError open(const Backend &backend, Fabric &fabric, int64_t index);
    MaybeError prepare(const CollectiveSpec &spec);
    Expected<double> secondsBetween(const CollectiveSpec &spec, int64_t calls);
  };

  ConnectedDevices(const std::shared_ptr<Fabric> &fabric, int64_t count)
      : fabric(fabric), members(static_cast<size_t>(count)),
        threads(members.size(), [fabric](const Error &error) { fabric->abort(error); }) {}

  /// The mean seconds of `calls` collectives that follow each other.
  Expected<double> mean(const CollectiveSpec &spec, int64_t calls) {
    std::vector<double> seconds(members.size());
    if (MaybeError error = threads.run([&](size_t device) -> MaybeError {
          Expected<double> own = members[device].secondsBetween(spec, calls);
          if (!own)
            return own.error();
          seconds[device] = *own;
          return std::nullopt;
        }))
      return *error;
    return *std::ranges::max_element(seconds) / static_cast<double>(calls);
  }

  std::shared_ptr<Fabric> fabric;
  std::vector<std::unique_ptr<CollectiveSpec>> specs; // live as long as the communicators
  std::vector<Member> members;
  DeviceThreads threads; // last: they use the others
};

template <typename T> MaybeError keep(Expected<T> made, T &to) {
  if (!made)
    return made.error();
  to = std::move(*made);
  return std::nullopt;
}

MaybeError ConnectedDevices::Member::open(const Backend &backend, Fabric &fabric, int64_t index) {
  MaybeError error = keep(backend.openDevice(index), device);
  if (!error)
    error = keep(device->openQueue(QueueKind::Compute), queue);
  for (std::unique_ptr<Event> *event : {&begin, &end})
    if (!error)
      error = keep(device->createEvent(/*timed=*/true), *event);
  if (!error)
    error = keep(fabric.openCommunicator(index, 0, *device), communicator);
  if (!error)
    error = keep(communicator->openGroup({"device"}), group);
  if (!error)
    error = communicator->prepare(*queue, group, {});
  return error;
}

MaybeError ConnectedDevices::Member::prepare(const CollectiveSpec &spec) {
  for (auto [memory, bytes] :
       {std::pair(&input, spec.input.numBytes()), std::pair(&output, spec.output().numBytes())}) {
    if (*memory && (*memory)->bytes() >= bytes)
      continue;
    if (MaybeError error = keep(device->allocate(bytes), *memory))
      return error;
    if (MaybeError error = queue->clear((*memory)->data(), bytes))
      return error;
  }
  if (MaybeError error = queue->finish())
    return error;
  return communicator->prepare(*queue, group, {&spec, 1});
}

Expected<double> ConnectedDevices::Member::secondsBetween(const CollectiveSpec &spec,
                                                          int64_t calls) {
  // As plans have it, all_reduce is in place.
  CollectiveOperands operands{
      input->data(), spec.kind == CollectiveKind::AllReduce ? input->data() : output->data()};
  MaybeError error = queue->record(*begin);
  for (int64_t i = 0; i < calls && !error; ++i)
    error = communicator->enqueue(*queue, group, {&spec, 1}, {&operands, 1});
  if (!error)
    error = queue->record(*end);
  if (!error)
    error = queue->finish();
  if (error)
    return *error;
  return elapsedSeconds(*begin, *end);
}

} // namespace

MaybeError measureDeviceLink(const CalibrationContext &context, const Backend &backend,
                             cluster::Link &link) {
  const CalibrationOptions &options = context.options;
  std::vector<int64_t> groups;
  for (int64_t members : options.members)
    if (members <= options.devices)
      groups.push_back(members);
  context.announce("collectives",
                   kAllCollectiveKinds.size() * groups.size() * options.collectiveBytes.size());
  for (int64_t members : groups) {
    Expected<std::unique_ptr<ConnectedDevices>> devices =
        ConnectedDevices::open(options, backend, members);
    if (!devices)
      return devices.error();
    for (CollectiveKind kind : kAllCollectiveKinds) {
      cluster::CollectiveTable *table = link.add_collectives();
      table->set_kind(name(kind));
      table->set_members(members);
      for (int64_t bytes : options.collectiveBytes) {
        CollectiveSpec spec = specOf(kind, members, bytes);
        if (spec.output().numBytes() > kLargestResult)
          continue;
        Expected<double> seconds = (*devices)->secondsOf(spec, options.secondsPerPoint);
        if (!seconds)
          return seconds.error().inContext(fmt::format("{} of {} GPUs", name(kind), members));
        addPoint(*table, static_cast<double>(spec.input.numBytes()), *seconds);
      }
    }
  }
  fitLink(link);
  return std::nullopt;
}

} // namespace dtc::runtime
