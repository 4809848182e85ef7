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
#include "runtime/fabrics/processes/DevicePlacement.h"
#include "runtime/fabrics/processes/FabricOfProcesses.h"
#include "runtime/fabrics/processes/Processes.h"
#include "support/StartThread.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <sstream>

namespace dtc::runtime {

namespace nccl {

namespace {

class NcclFabric final : public FabricOfProcesses {
public:
  NcclFabric(const Nccl &api, const Mesh &mesh, int gpus, const std::shared_ptr<Messages> &messages,
             const NcclOptions &options)
      : FabricOfProcesses(mesh, messages),
        world(std::make_shared<NcclWorld>(api, mesh, gpus, messages, options.mostChannels)),
        options(options) {}

  Expected<std::unique_ptr<Communicator>> openCommunicator(int64_t device, int64_t lane,
                                                           Device &memory) override {
    return std::unique_ptr<Communicator>(
        std::make_unique<NcclCommunicator>(world, device, lane, memory));
  }
  Expected<std::unique_ptr<Transfers>> openTransfers(int64_t device, Device &memory) override {
    return std::unique_ptr<Transfers>(
        std::make_unique<NcclTransfers>(world, sizes, device, memory));
  }
  MaybeError connect() override {
    if (MaybeError error = world->connect())
      return error;
    // Until all processes have.
    if (Expected<bool> met = any(false); !met)
      return met.error();
    return world->connectPairs();
  }
  bool sharesGpus() const override { return options.sharesGpus; }
  MemoryUse memoryFor(const CommunicatorNeeds &needs) const override;

  void abort(const Error &reason) override { world->abort(reason); }

protected:
  MaybeError failure() const override { return world->failure(); }

private:
  std::shared_ptr<NcclWorld> world;
  const NcclOptions options;
  std::shared_ptr<NcclMessages> sizes = std::make_shared<NcclMessages>();
};

/// The smaller of the limits of the option and of the environment, which NCCL prefers to the
/// option.
NcclChannels channelsOf(const NcclOptions &options) {
  NcclChannels channels;
  if (options.mostChannels > 0)
    channels.most = options.mostChannels;
  for (const char *name : {"NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS"})
    if (const char *text = std::getenv(name); text && std::atoi(text) > 0)
      channels.most = std::min<int64_t>(channels.most, std::atoi(text));
  const char *multicasts = std::getenv("NCCL_NVLS_ENABLE");
  channels.multicasts = !multicasts || std::string_view(multicasts) != "0";
  return channels;
}

Fabric::MemoryUse NcclFabric::memoryFor(const CommunicatorNeeds &needs) const {
  NcclChannels channels = channelsOf(options);
  NcclMemory memory = estimateNcclMemory(needs, channels);
  if (memory.communicators == 0)
    return {};
  return {memory.total(), memory.describe(channels)};
}

/// The equipment of a process, in words that the others read.
struct Equipment {
  std::string host;
  std::string lack;              // why it cannot take part, or nothing
  std::string version;           // of NCCL
  std::vector<std::string> gpus; // the identities of its devices' GPUs

  static constexpr char kSeparator = '\x1f';

  std::string encode() const {
    std::string text;
    for (const std::string *line : {&host, &lack, &version})
      text += *line + kSeparator;
    for (const std::string &gpu : gpus)
      text += gpu + kSeparator;
    return text;
  }
  static Equipment decode(const std::string &text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line, kSeparator);)
      lines.push_back(line);
    lines.resize(std::max<size_t>(lines.size(), 3));
    return {lines[0], lines[1], lines[2], {lines.begin() + 3, lines.end()}};
  }
};

/// Where the memory of a GPU is for many ranks, and time says nothing.
constexpr int kChannelsOnSharedGpus = 2;

/// The first version that connects several ranks on one GPU; those before refuse ("Duplicate GPU
/// detected").
constexpr int kFirstThatShares = 23000;

/// Lets NCCL, which reads them at its first communicator, connect several ranks on one GPU.
void shareGpus() {
  (void)setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", /*overwrite=*/1);
  (void)setenv("NCCL_NVLS_ENABLE", "0", /*overwrite=*/1);
}

Equipment findEquipment(const Mesh &mesh, const Processes &processes, const NcclOptions &options) {
  Equipment own{hostName(), "", "", {}};
  std::vector<int64_t> devices =
      devicesOfProcess(mesh.numDevices(), processes.count(), processes.process());
  Expected<int> gpus = countGpus();
  if (!gpus)
    own.lack = gpus.error().message;
  else if (std::ssize(devices) > *gpus && !options.sharesGpus)
    own.lack = fmt::format("{} device{} of the plan {} in this process, which sees {} GPU{}; "
                           "expected one for each with NCCL; with --fabric local devices share a "
                           "GPU, and for tests with --share-gpu",
                           devices.size(), devices.size() == 1 ? "" : "s",
                           devices.size() == 1 ? "is" : "are", *gpus, *gpus == 1 ? "" : "s");
  Expected<const Nccl *> api = loadNccl();
  if (own.lack.empty() && !api)
    own.lack = api.error().message;
  if (!own.lack.empty())
    return own;
  own.version = describeNccl();
  int version = 0;
  (void)(*api)->getVersion(&version);
  if (options.sharesGpus && version < kFirstThatShares)
    own.lack = fmt::format("{} connects no devices that share a GPU, which --share-gpu asks for; "
                           "expected NCCL 2.30 or newer",
                           own.version);
  for (int64_t device : devices) {
    Expected<std::string> identity = identityOfGpu(static_cast<int>(device % *gpus));
    if (identity)
      own.gpus.push_back(std::move(*identity));
    else
      own.lack = identity.error().message;
  }
  return own;
}

/// Reports a reason why the processes cannot use NCCL together; each finds the same.
MaybeError checkEquipment(const std::vector<Equipment> &all, const NcclOptions &options) {
  auto nameOf = [&](size_t process) {
    return fmt::format("process {} on {}", process, all[process].host);
  };
  std::map<std::string, size_t> owners;
  for (size_t process = 0; process < all.size(); ++process) {
    const Equipment &one = all[process];
    if (!one.lack.empty())
      return all.size() == 1 ? Error{one.lack} : Error{one.lack}.inContext(nameOf(process));
    if (one.version != all.front().version)
      return Error{fmt::format("{} has {}, but {} has {}; give all the same", nameOf(process),
                               one.version, nameOf(0), all.front().version)};
    for (const std::string &gpu : one.gpus)
      if (auto [owner, isNew] = owners.emplace(gpu, process); !isNew && !options.sharesGpus)
        return Error{fmt::format("{} and {} have the same GPU, {}; expected one for each device "
                                 "with NCCL: start fewer processes on the host, or let "
                                 "CUDA_VISIBLE_DEVICES give each its own; with --fabric local "
                                 "devices share a GPU, and for tests with --share-gpu",
                                 nameOf(owner->second), nameOf(process), gpu)};
  }
  return std::nullopt;
}

} // namespace

} // namespace nccl

Expected<std::shared_ptr<Fabric>> openNcclFabric(const Mesh &mesh,
                                                 const std::shared_ptr<Messages> &messages,
                                                 const NcclOptions &asked) {
  NcclOptions options = asked;
  if (options.sharesGpus && options.mostChannels == 0)
    options.mostChannels = nccl::kChannelsOnSharedGpus;
  Processes processes = messages ? Processes(messages) : Processes();
  if (MaybeError error = checkProcesses(mesh, processes.count()))
    return *error;
  Expected<std::vector<std::string>> texts =
      processes.all(nccl::findEquipment(mesh, processes, options).encode());
  if (!texts)
    return texts.error();
  std::vector<nccl::Equipment> all;
  for (const std::string &text : *texts)
    all.push_back(nccl::Equipment::decode(text));
  if (MaybeError error = nccl::checkEquipment(all, options))
    return *error;
  if (options.sharesGpus)
    nccl::shareGpus();
  try {
    return std::shared_ptr<Fabric>(std::make_shared<nccl::NcclFabric>(
        **nccl::loadNccl(), mesh, *countGpus(), messages, options));
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
