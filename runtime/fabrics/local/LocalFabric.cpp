//===- LocalFabric.cpp - Devices that are threads -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/local/LocalFabric.h"

#include "runtime/fabrics/Staged.h"
#include "runtime/fabrics/local/LocalCommunicator.h"
#include "runtime/fabrics/local/LocalTransfers.h"

#include <fmt/format.h>
#include <numeric>

namespace dtc::runtime {

namespace {

class LocalFabric final : public Fabric {
public:
  LocalFabric(const Mesh &mesh, std::vector<int64_t> devices)
      : Fabric(mesh, std::move(devices)), world(std::make_shared<LocalWorld>(mesh)) {}

  Expected<std::unique_ptr<Communicator>> openCommunicator(int64_t device, int64_t lane,
                                                           Device &memory) override {
    return stageCommunicator(std::make_unique<LocalCommunicator>(world, device, lane), memory);
  }

  Expected<std::unique_ptr<Transfers>> openTransfers(int64_t device, Device &memory) override {
    return stageTransfers(std::make_unique<LocalTransfers>(world, device), memory);
  }

  Expected<int64_t> agree(Reduction, int64_t value) override {
    if (MaybeError error = world->failure())
      return *error;
    return value;
  }
  Expected<std::string> broadcast(int64_t, std::string bytes) override {
    if (MaybeError error = world->failure())
      return *error;
    return bytes;
  }

  void abort(const Error &reason) override { world->abort(reason); }

private:
  std::shared_ptr<LocalWorld> world;
};

} // namespace

Expected<std::shared_ptr<Fabric>> openLocalFabric(const Mesh &mesh) {
  if (mesh.numDevices() > kMaxLocalDevices)
    return Error{fmt::format("the plan is for {} devices; at most {} run in one process",
                             mesh.numDevices(), kMaxLocalDevices)};
  std::vector<int64_t> devices(static_cast<size_t>(mesh.numDevices()));
  std::iota(devices.begin(), devices.end(), int64_t{0});
  return std::shared_ptr<Fabric>(std::make_shared<LocalFabric>(mesh, std::move(devices)));
}

} // namespace dtc::runtime
