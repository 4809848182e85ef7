//===- Network.h - All devices of a mesh, for tests of communicators ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RUNTIME_FABRICS_NETWORK_H
#define DTC_TEST_RUNTIME_FABRICS_NETWORK_H

#include "runtime/backends/cpu/CpuDevice.h"
#include "runtime/executor/DeviceThreads.h"
#include "runtime/fabrics/local/LocalFabric.h"
#include "test/lib/fabrics/TestFabric.h"
#include "test/lib/plans/Expect.h"

#include <gtest/gtest.h>
#include <list>
#include <random>

namespace dtc::runtime::testing {

using Axes = std::vector<std::string>;

/// A test of every fabric, by its name.
class FabricConformance : public ::testing::TestWithParam<const char *> {
protected:
  static OpenFabric fabric() {
    return std::string(GetParam()) == "Local" ? OpenFabric(openLocalFabric) : testFabric();
  }
};

#define INSTANTIATE_FABRIC_CONFORMANCE(suite)                                                      \
  INSTANTIATE_TEST_SUITE_P(Fabrics, suite, ::testing::Values("Local", "Test"),                     \
                           [](const auto &info) { return std::string(info.param); })

/// All devices of a mesh with their communicators, each on a queue of a thread of its own.
struct Network {
  explicit Network(const Mesh &mesh, const OpenFabric &open = openLocalFabric)
      : mesh(mesh), fabric(std::move(*open(mesh))),
        threads(static_cast<size_t>(mesh.numDevices()),
                [this](const Error &reason) { fabric->abort(reason); }) {
    for (int64_t device = 0; device < mesh.numDevices(); ++device) {
      ends.push_back(std::move(*fabric->openCommunicator(device, /*lane=*/0, *host)));
      queues.push_back(std::move(*host->openQueue(QueueKind::Compute)));
    }
    specs.resize(ends.size());
  }

  /// Tensors of all devices.
  using Tensors = std::vector<HostTensor>;

  /// Runs one device's part of a bucket.
  MaybeError run(size_t device, Communicator::Group group, std::vector<CollectiveSpec> bucket,
                 const std::vector<CollectiveOperands> &operands) {
    // They live as long as the communicator.
    const std::vector<CollectiveSpec> &kept = specs[device].emplace_back(std::move(bucket));
    if (MaybeError error = ends[device]->enqueue(*queues[device], group, kept, operands))
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
    Communicator::Group group = 0;
    for (auto &end : ends)
      group = *end->openGroup(axes);
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
  std::unique_ptr<Device> host = cpu::createCpuDevice(1);
  std::shared_ptr<Fabric> fabric;
  std::vector<std::list<std::vector<CollectiveSpec>>> specs; // of each device's calls
  std::vector<std::unique_ptr<Communicator>> ends;
  std::vector<std::unique_ptr<Queue>> queues;
  DeviceThreads threads;
};

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
    for (int64_t i = 0; i < type.numElements(); ++i)
      tensor.as<T>()[i] = randomElement<T>(random);
  }
  return inputs;
}

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
