//===- NcclFabric.cpp - GPUs that are connected by NCCL -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/nccl/NcclFabric.h"

#include "runtime/backends/cuda/CudaBackend.h"
#include "runtime/fabrics/nccl/NcclCommunicator.h"
#include "runtime/fabrics/nccl/NcclMessages.h"
#include "runtime/fabrics/nccl/NcclTransfers.h"
#include "runtime/fabrics/nccl/NcclWorld.h"
#include "support/StartThread.h"

#include <fmt/format.h>
#include <numeric>

namespace dtc::runtime {

namespace nccl {

namespace {

class NcclFabric final : public Fabric {
public:
  NcclFabric(const Nccl &api, const Mesh &mesh, std::vector<int64_t> devices)
      : Fabric(mesh, std::move(devices)), world(std::make_shared<NcclWorld>(api, mesh)) {}

  Expected<std::unique_ptr<Communicator>> openCommunicator(int64_t device, int64_t lane,
                                                           Device &memory) override {
    return std::unique_ptr<Communicator>(
        std::make_unique<NcclCommunicator>(world, device, lane, memory));
  }

  Expected<std::unique_ptr<Transfers>> openTransfers(int64_t device, Device &memory) override {
    auto transfers = std::make_unique<NcclTransfers>(world, messages, device, memory);
    if (MaybeError error = transfers->connectNeighbours())
      return *error;
    return std::unique_ptr<Transfers>(std::move(transfers));
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
  std::shared_ptr<NcclWorld> world;
  std::shared_ptr<NcclMessages> messages = std::make_shared<NcclMessages>();
};

} // namespace

} // namespace nccl

Expected<std::shared_ptr<Fabric>> openNcclFabric(const Mesh &mesh) {
  Expected<int> gpus = countGpus();
  if (!gpus)
    return gpus.error();
  if (mesh.numDevices() > *gpus)
    return Error{
        fmt::format("the plan is for {} devices and this process sees {} GPUs, expected one "
                    "for each with NCCL; with --fabric local devices share a GPU",
                    mesh.numDevices(), *gpus)};
  Expected<const nccl::Nccl *> api = nccl::loadNccl();
  if (!api)
    return api.error();
  std::vector<int64_t> devices(static_cast<size_t>(mesh.numDevices()));
  std::iota(devices.begin(), devices.end(), int64_t{0});
  try {
    return std::shared_ptr<Fabric>(
        std::make_shared<nccl::NcclFabric>(**api, mesh, std::move(devices)));
  } catch (const ThreadStartError &error) {
    return Error{error.what()};
  }
}

std::string describeNccl() {
  Expected<const nccl::Nccl *> api = nccl::loadNccl();
  if (!api)
    return api.error().message;
  int version = 0;
  (void)(*api)->getVersion(&version);
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

} // namespace dtc::runtime
