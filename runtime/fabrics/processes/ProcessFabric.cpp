//===- ProcessFabric.cpp - Devices in several processes --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/ProcessFabric.h"

#include "runtime/fabrics/Staged.h"
#include "runtime/fabrics/processes/DevicePlacement.h"
#include "runtime/fabrics/processes/FabricOfProcesses.h"
#include "runtime/fabrics/processes/ProcessCommunicator.h"
#include "runtime/fabrics/processes/ProcessTransfers.h"

namespace dtc::runtime {

namespace {

class ProcessFabric final : public FabricOfProcesses {
public:
  ProcessFabric(std::shared_ptr<ProcessWorld> theWorld, std::shared_ptr<Messages> messages)
      : FabricOfProcesses(theWorld->getMesh(), std::move(messages)), world(std::move(theWorld)) {}

  Expected<std::unique_ptr<Communicator>> openCommunicator(int64_t device, int64_t lane,
                                                           Device &memory) override {
    return stageCommunicator(std::make_unique<ProcessCommunicator>(world, device, lane), memory);
  }
  Expected<std::unique_ptr<Transfers>> openTransfers(int64_t device, Device &memory) override {
    return stageTransfers(std::make_unique<ProcessTransfers>(world, device), memory);
  }

  void abort(const Error &reason) override { world->abort(reason); }

protected:
  MaybeError failure() const override { return world->failure(); }

private:
  std::shared_ptr<ProcessWorld> world;
};

} // namespace

Expected<std::shared_ptr<Fabric>>
openProcessFabric(const Mesh &mesh, std::shared_ptr<Messages> messages, HostSharing sharing) {
  int64_t processes = messages->numProcesses();
  if (MaybeError error = checkProcesses(mesh, processes))
    return *error;
  auto world = std::make_shared<ProcessWorld>(mesh, placeDevices(mesh.numDevices(), processes),
                                              messages, sharing);
  if (MaybeError error = world->checkTags())
    return *error;
  return std::shared_ptr<Fabric>(
      std::make_shared<ProcessFabric>(std::move(world), std::move(messages)));
}

} // namespace dtc::runtime
