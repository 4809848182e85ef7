//===- Network.h - All devices of a mesh, for tests of communicators ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RUNTIME_FABRICS_NETWORK_H
#define DTC_TEST_RUNTIME_FABRICS_NETWORK_H

#include "runtime/backends/cpu/CpuDevice.h"
#include "runtime/backends/cuda/CudaBackend.h"
#include "runtime/executor/DeviceThreads.h"
#include "runtime/fabrics/local/LocalFabric.h"
#include "test/lib/fabrics/NcclFabrics.h"
#include "test/lib/fabrics/TestFabric.h"
#include "test/lib/fabrics/ThreadMessages.h"
#include "test/lib/files/Sanitizer.h"
#include "test/lib/plans/Expect.h"
#include "test/standin/cuda/Standin.h"

#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <gtest/gtest.h>
#include <list>
#include <map>
#include <random>

namespace dtc::runtime::testing {

using Axes = std::vector<std::string>;

template <typename T> T randomElement(std::mt19937_64 &random) {
  // Sums of such numbers are rounded, so that the order of additions shows.
  if constexpr (!std::is_integral_v<T>)
    return static_cast<T>(std::normal_distribution<double>(0, 1e3)(random) / 3);
  else
    return static_cast<T>(random());
}

template <typename T>
std::vector<HostTensor> randomInputs(const Mesh &mesh, const TensorType &type, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<HostTensor> inputs;
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    HostTensor &tensor = inputs.emplace_back(type);
    // Large tensors repeat after a prime number of elements, so that no two parts of them are
    // equal.
    constexpr int64_t period = 65521;
    for (int64_t i = 0; i < type.numElements(); ++i)
      tensor.as<T>()[i] = i < period ? randomElement<T>(random) : tensor.as<T>()[i - period];
  }
  return inputs;
}

/// A fabric and the devices that it connects.
struct FabricUnderTest {
  OpenFabric open = openLocalFabric;
  std::function<std::unique_ptr<Device>(int64_t device)> openDevice = [](int64_t) {
    return cpu::createCpuDevice(1);
  };

  Expected<std::shared_ptr<Fabric>> operator()(const Mesh &mesh) const { return open(mesh); }
  std::vector<std::unique_ptr<Device>> openDevices(const Mesh &mesh) const {
    std::vector<std::unique_ptr<Device>> devices;
    for (int64_t device = 0; device < mesh.numDevices(); ++device)
      devices.push_back(openDevice(device));
    return devices;
  }
};

/// Why a test that makes a wrong plan is not for NCCL between processes.
inline constexpr const char *kComparedByNobody =
    "NCCL does not compare what the members call: all processes have the same plan";

/// A test of every fabric, by its name: threads of one process (Local), whose devices may be those
/// of the stand-in of CUDA, whose memory the host cannot follow (LocalOnCuda); such devices with a
/// GPU each and the stand-in of NCCL between them (NcclOnCuda), also of three processes
/// (NcclProcesses); threads with messages that are copied and delayed (Test); a process for each
/// device (Processes), and three processes that have the devices together (SharedProcesses), here
/// too with those of the stand-in (ProcessesOnCuda); both with memory that the processes share
/// (HostMemory, SharedHostMemory); a process for each device, over sockets (Sockets).
class FabricConformance : public ::testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    if (DTC_SANITIZE_THREAD && is("NcclProcesses"))
      GTEST_SKIP() << "it would take minutes";
    if (!isOnNccl())
      return;
    standin::Settings settings;
    settings.devices = 24;           // as many as the largest mesh has
    settings.refusesWaits = false;   // of tests that allocate between messages
    settings.addsInRankOrder = true; // like the expected results
    standin::reset(settings);
  }
  void TearDown() override {
    if (isOnNccl())
      standin::reset();
  }
  static bool is(const char *name) { return std::string(GetParam()) == name; }
  static FabricUnderTest fabric() {
    if (is("Test"))
      return {testFabric()};
    if (is("Sockets"))
      return {processesFabric(16, openSocketMessagesHere)};
    ThreadMessagesOptions options;
    options.sharing = sharesMemory() ? HostSharing::Memory : HostSharing::Messages;
    OpenFabric open = hasProcesses() ? threadProcessesFabric(hasShared() ? 3 : 16, options)
                      : isOnNccl()   ? ncclFabric(is("NcclProcesses") ? 3 : 1)
                                     : OpenFabric(openLocalFabric);
    if (!isOnCuda())
      return {open};
    return {open, [backend = std::shared_ptr(createCudaBackend())](int64_t device) {
              return std::move(*backend->openDevice(device));
            }};
  }
  static bool isOnNccl() { return is("NcclOnCuda") || is("NcclProcesses"); }
  static bool isOnCuda() { return is("LocalOnCuda") || isOnNccl() || is("ProcessesOnCuda"); }
  /// Whether processes add up their own members first.
  static bool hasShared() {
    return is("SharedProcesses") || is("ProcessesOnCuda") || is("SharedHostMemory");
  }
  static bool sharesMemory() { return is("HostMemory") || is("SharedHostMemory"); }
  static bool hasProcesses() {
    return is("Processes") || is("Sockets") || is("HostMemory") || hasShared();
  }

  /// Where a process adds up its own members first, the order is not that of the ranks: the tests
  /// let such a fabric add whole numbers.
  template <typename T>
  static std::vector<HostTensor> randomInputs(const Mesh &mesh, const TensorType &type,
                                              uint64_t seed) {
    std::vector<HostTensor> inputs = testing::randomInputs<T>(mesh, type, seed);
    if constexpr (!std::is_integral_v<T>)
      for (HostTensor &tensor : inputs)
        for (int64_t i = 0; i < type.numElements() && hasShared(); ++i)
          // Plus 0, as there is no order between the two zeros.
          tensor.as<T>()[i] = static_cast<T>(
              std::fmod(std::round(static_cast<double>(tensor.as<T>()[i])), 32) + 0.0);
    return inputs;
  }
};

#define INSTANTIATE_FABRIC_CONFORMANCE(suite)                                                      \
  INSTANTIATE_TEST_SUITE_P(Fabrics, suite,                                                         \
                           ::testing::Values("Local", "LocalOnCuda", "NcclOnCuda",                 \
                                             "NcclProcesses", "Test", "Processes",                 \
                                             "SharedProcesses", "ProcessesOnCuda", "HostMemory",   \
                                             "SharedHostMemory", "Sockets"),                       \
                           [](const auto &info) { return std::string(info.param); })

/// Tensors of the host in the memory of a device. Where that is the host's, they stay where they
/// are. Not thread-safe.
class DeviceTensors {
public:
  DeviceTensors(Device &device, Queue &queue) : device(device), queue(queue) {}

  /// Where the tensor lies on the device. The queue has come to the end of what uses the place
  /// before.
  void *place(const void *host, size_t bytes) {
    if (device.isHostMemory())
      return const_cast<void *>(host);
    Place &place = places[host];
    if (!place.memory || place.memory->bytes() < bytes) {
      // To free memory may wait for the work of all devices, which may wait for this one.
      for (std::unique_ptr<DeviceMemory> *old : {&place.memory, &place.staging})
        if (*old)
          outgrown.push_back(std::move(*old));
      place.memory = std::move(*device.allocate(bytes));
      place.staging = std::move(*device.allocateStaging(bytes));
    }
    return place.memory->data();
  }
  /// Copies a tensor that has a place to the device, which it reaches before what the queue gets
  /// later.
  MaybeError give(const void *host, size_t bytes) {
    if (device.isHostMemory() || bytes == 0)
      return std::nullopt;
    Place &place = places.at(host);
    if (MaybeError error = queue.finish()) // the staging memory has been read
      return error;
    std::memcpy(place.staging->data(), host, bytes);
    return queue.copy(place.memory->data(), place.staging->data(), bytes);
  }
  /// Copies a tensor back when the queue has done what it holds.
  MaybeError take(void *host, size_t bytes) {
    if (device.isHostMemory() || bytes == 0)
      return std::nullopt;
    Place &place = places.at(host);
    if (MaybeError error = queue.copy(place.staging->data(), place.memory->data(), bytes))
      return error;
    if (MaybeError error = queue.finish())
      return error;
    std::memcpy(host, place.staging->data(), bytes);
    return std::nullopt;
  }

private:
  struct Place {
    std::unique_ptr<DeviceMemory> memory, staging;
  };
  Device &device;
  Queue &queue;
  std::map<const void *, Place> places;
  std::vector<std::unique_ptr<DeviceMemory>> outgrown;
};

/// All devices of a mesh with their communicators, each on a queue of a thread of its own.
struct Network {
  explicit Network(const Mesh &mesh, const FabricUnderTest &tested = {})
      : mesh(mesh), devices(tested.openDevices(mesh)), fabric(std::move(*tested(mesh))),
        threads(static_cast<size_t>(mesh.numDevices()),
                [this](const Error &reason) { fabric->abort(reason); }) {
    for (int64_t device = 0; device < mesh.numDevices(); ++device) {
      Device &own = *devices[static_cast<size_t>(device)];
      ends.push_back(std::move(*fabric->openCommunicator(device, /*lane=*/0, own)));
      queues.push_back(std::move(*own.openQueue(QueueKind::Compute)));
      tensors.emplace_back(own, *queues.back());
    }
    specs.resize(ends.size());
  }

  /// Tensors of all devices.
  using Tensors = std::vector<HostTensor>;

  /// The same group of all devices.
  Communicator::Group open(const Axes &axes) {
    Communicator::Group group = 0;
    for (size_t device = 0; device < ends.size(); ++device) {
      group = *ends[device]->openGroup(axes);
      EXPECT_OK(ends[device]->prepare(*queues[device], group, {}));
    }
    EXPECT_OK(fabric->connect());
    return group;
  }

  /// Runs one device's part of a bucket.
  MaybeError run(size_t device, Communicator::Group group, std::vector<CollectiveSpec> bucket,
                 const std::vector<CollectiveOperands> &operands) {
    // They live as long as the communicator.
    const std::vector<CollectiveSpec> &kept = specs[device].emplace_back(std::move(bucket));
    std::vector<CollectiveOperands> placed;
    for (size_t i = 0; i < kept.size(); ++i) {
      size_t inputBytes = kept[i].input.numBytes(), outputBytes = kept[i].output().numBytes();
      placed.push_back({tensors[device].place(operands[i].input, inputBytes),
                        tensors[device].place(operands[i].output, outputBytes)});
      if (MaybeError error = tensors[device].give(operands[i].input, inputBytes))
        return error;
    }
    if (MaybeError error = ends[device]->prepare(*queues[device], group, kept))
      return error;
    if (MaybeError error = ends[device]->enqueue(*queues[device], group, kept, placed))
      return error;
    for (size_t i = 0; i < kept.size(); ++i)
      if (MaybeError error = tensors[device].take(operands[i].output, kept[i].output().numBytes()))
        return error;
    return queues[device]->finish();
  }
  MaybeError run(size_t device, Communicator::Group group, CollectiveSpec spec, const void *input,
                 void *output) {
    return run(device, group, std::vector{std::move(spec)}, {{input, output}});
  }

  /// Runs a bucket on all devices, given the tensors of each spec; `inPlace` writes over the
  /// inputs. Returns the outputs of each spec.
  std::vector<Tensors> run(std::vector<CollectiveSpec> bucket, const Axes &axes,
                           std::vector<Tensors> inputs, bool inPlace = false) {
    std::vector<Tensors> outputs;
    for (CollectiveSpec &spec : bucket) {
      spec.members = mesh.groupSize(axes);
      outputs.emplace_back(ends.size(), HostTensor(spec.output()));
    }
    Communicator::Group group = open(axes);
    MaybeError error = threads.run([&](size_t device) {
      std::vector<CollectiveOperands> operands;
      for (size_t i = 0; i < bucket.size(); ++i)
        operands.push_back(
            {inputs[i][device].bytes.data(), (inPlace ? inputs : outputs)[i][device].bytes.data()});
      return run(device, group, bucket, operands);
    });
    EXPECT_OK(error);
    return inPlace ? inputs : outputs;
  }

  /// Runs a collective on one tensor of each device.
  Tensors run(const CollectiveSpec &spec, const Axes &axes, Tensors inputs, bool inPlace = false) {
    return run(std::vector<CollectiveSpec>{spec}, axes, std::vector<Tensors>{std::move(inputs)},
               inPlace)
        .front();
  }

  Mesh mesh;
  std::vector<std::unique_ptr<Device>> devices;
  std::shared_ptr<Fabric> fabric;
  std::vector<std::list<std::vector<CollectiveSpec>>> specs; // of each device's calls
  std::vector<std::unique_ptr<Communicator>> ends;
  std::deque<DeviceTensors> tensors;
  std::vector<std::unique_ptr<Queue>> queues; // before what they use
  DeviceThreads threads;
};

inline CollectiveSpec makeSpec(CollectiveKind kind, TensorType input, int64_t dim = 0,
                               int64_t splitDim = -1) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.input = std::move(input);
  spec.dim = dim;
  spec.splitDim = splitDim < 0 ? dim : splitDim;
  return spec;
}

} // namespace dtc::runtime::testing

#endif // DTC_TEST_RUNTIME_FABRICS_NETWORK_H
