//===- ProcessFabric.cpp - Devices in several processes --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/ProcessFabric.h"

#include "runtime/fabrics/Staged.h"
#include "runtime/fabrics/processes/Agreement.h"
#include "runtime/fabrics/processes/Placement.h"
#include "runtime/fabrics/processes/ProcessCommunicator.h"
#include "runtime/fabrics/processes/ProcessTransfers.h"

namespace dtc::runtime {

namespace {

class ProcessFabric final : public Fabric {
public:
  explicit ProcessFabric(std::shared_ptr<ProcessWorld> theWorld)
      : Fabric(theWorld->getMesh(), theWorld->ownDevices()), world(std::move(theWorld)) {}

  int64_t process() const override { return messages().process(); }
  int64_t numProcesses() const override { return messages().numProcesses(); }
  int64_t processesOnHost() const override { return messages().processesOnHost(); }
  int64_t processOf(int64_t device) const override { return world->processOf(device); }

  Expected<std::unique_ptr<Communicator>> openCommunicator(int64_t device, int64_t lane,
                                                           Device &memory) override {
    return stageCommunicator(std::make_unique<ProcessCommunicator>(world, device, lane), memory);
  }
  Expected<std::unique_ptr<Transfers>> openTransfers(int64_t device, Device &memory) override {
    return stageTransfers(std::make_unique<ProcessTransfers>(world, device), memory);
  }

  Expected<int64_t> agree(Reduction reduction, int64_t value) override {
    Expected<int64_t> agreed = runtime::agree(messages(), reduction, value);
    if (MaybeError error = world->failure(); error && !agreed)
      return *error;
    return agreed;
  }
  Expected<std::string> broadcast(int64_t from, std::string bytes) override {
    Expected<std::string> given = runtime::broadcast(messages(), from, std::move(bytes));
    if (MaybeError error = world->failure(); error && !given)
      return *error;
    return given;
  }

  void abort(const Error &reason) override { world->abort(reason); }

private:
  Messages &messages() const { return world->getMessages(); }

  std::shared_ptr<ProcessWorld> world;
};

} // namespace

Expected<std::shared_ptr<Fabric>>
openProcessFabric(const Mesh &mesh, std::shared_ptr<Messages> messages, HostSharing sharing) {
  int64_t processes = messages->numProcesses();
  if (MaybeError error = checkProcesses(mesh, processes))
    return *error;
  auto world = std::make_shared<ProcessWorld>(mesh, placeDevices(mesh.numDevices(), processes),
                                              std::move(messages), sharing);
  if (MaybeError error = world->checkTags())
    return *error;
  return std::shared_ptr<Fabric>(std::make_shared<ProcessFabric>(std::move(world)));
}

} // namespace dtc::runtime
