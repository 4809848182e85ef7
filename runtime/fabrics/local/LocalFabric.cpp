//===- LocalFabric.cpp - Devices that are threads -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/local/LocalFabric.h"

#include "runtime/fabrics/Staged.h"
#include "runtime/fabrics/local/LocalCommunicator.h"
#include "runtime/fabrics/local/LocalTransfers.h"
#include "runtime/fabrics/processes/FabricOfProcesses.h"

#include <fmt/format.h>

namespace dtc::runtime {

namespace {

class LocalFabric final : public FabricOfProcesses {
public:
  explicit LocalFabric(const Mesh &mesh)
      : FabricOfProcesses(mesh, /*messages=*/nullptr), world(std::make_shared<LocalWorld>(mesh)) {}

  Expected<std::unique_ptr<Communicator>> openCommunicator(int64_t device, int64_t lane,
                                                           Device &memory) override {
    return stageCommunicator(std::make_unique<LocalCommunicator>(world, device, lane), memory);
  }

  Expected<std::unique_ptr<Transfers>> openTransfers(int64_t device, Device &memory) override {
    return stageTransfers(std::make_unique<LocalTransfers>(world, device), memory);
  }

  void abort(const Error &reason) override { world->abort(reason); }

protected:
  MaybeError failure() const override { return world->failure(); }

private:
  std::shared_ptr<LocalWorld> world;
};

} // namespace

Expected<std::shared_ptr<Fabric>> openLocalFabric(const Mesh &mesh) {
  if (mesh.numDevices() > kMaxLocalDevices)
    return Error{fmt::format("the plan is for {} devices; at most {} run in one process",
                             mesh.numDevices(), kMaxLocalDevices)};
  return std::shared_ptr<Fabric>(std::make_shared<LocalFabric>(mesh));
}

} // namespace dtc::runtime
