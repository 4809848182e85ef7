//===- Network.h - All devices of a mesh, for tests of communicators ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RUNTIME_FABRICS_LOCAL_NETWORK_H
#define DTC_TEST_RUNTIME_FABRICS_LOCAL_NETWORK_H

#include "runtime/executor/DeviceThreads.h"
#include "runtime/fabrics/local/LocalCommunicator.h"
#include "test/lib/plans/Expect.h"

#include <gtest/gtest.h>
#include <random>

namespace dtc::runtime::testing {

using Axes = std::vector<std::string>;

/// All devices of a mesh with their communicators.
struct Network {
  explicit Network(Mesh mesh)
      : mesh(mesh), world(std::make_shared<LocalWorld>(mesh)),
        threads(static_cast<size_t>(mesh.numDevices()), [this] { world->abort(); }) {
    for (int64_t device = 0; device < mesh.numDevices(); ++device)
      ends.push_back(std::make_unique<LocalCommunicator>(world, device));
  }

  /// Tensors of all devices.
  using Tensors = std::vector<HostTensor>;

  /// Runs a bucket on all devices, given the tensors of each spec; `inPlace` writes over the
  /// inputs. Returns the outputs of each spec.
  std::vector<Tensors> run(std::vector<CollectiveSpec> specs, const Axes &axes,
                           std::vector<Tensors> inputs, bool inPlace = false) {
    std::vector<Tensors> outputs;
    for (CollectiveSpec &spec : specs) {
      spec.members = mesh.groupSize(axes);
      outputs.emplace_back(ends.size(), HostTensor(spec.output()));
    }
    for (auto &end : ends)
      group = *end->openGroup(axes);
    MaybeError error = threads.run([&](size_t device) {
      std::vector<CollectiveOperands> operands;
      for (size_t i = 0; i < specs.size(); ++i)
        operands.push_back(
            {inputs[i][device].bytes.data(), (inPlace ? inputs : outputs)[i][device].bytes.data()});
      return ends[device]->run(group, specs, operands);
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
  std::shared_ptr<LocalWorld> world;
  std::vector<std::unique_ptr<LocalCommunicator>> ends;
  Communicator::Group group = 0;
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

#endif // DTC_TEST_RUNTIME_FABRICS_LOCAL_NETWORK_H
