//===- Devices.cpp - Devices that dtc-run finds ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-run/Devices.h"

#include "runtime/backends/Device.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "support/Format.h"
#include "support/Print.h"

#ifdef DTC_HAS_CUDA
#include "runtime/backends/cuda/CudaBackend.h"
#endif
#ifdef DTC_HAS_NCCL
#include "runtime/fabrics/nccl/NcclFabric.h"
#endif

#include <fmt/format.h>
#include <thread>

namespace dtc {

using namespace dtc;
using namespace dtc::runtime;

#ifndef DTC_HAS_CUDA
static constexpr const char *kWithoutCuda =
    "dtc was built without CUDA, since there was no nvcc (-DDTC_CUDA=ON demands it)";
#endif

std::vector<std::string> listDevices() {
  std::vector<std::string> lines;
  Expected<std::unique_ptr<Device>> cpu = createCpuBackend()->openDevice(0);
  Expected<Device::FreeMemory> free =
      cpu ? (*cpu)->freeMemory() : Expected<Device::FreeMemory>(cpu.error());
  lines.push_back(free ? fmt::format("cpu: {} threads, {} free ({})",
                                     std::thread::hardware_concurrency(), formatBytes(free->bytes),
                                     free->limitedBy)
                       : "cpu: " + free.error().message);
#ifdef DTC_HAS_CUDA
  for (std::string &line : describeCuda())
    lines.push_back(std::move(line));
#ifdef DTC_HAS_NCCL
  lines.push_back(describeNccl());
#endif
#else
  lines.push_back(std::string("cuda: ") + kWithoutCuda);
#endif
  return lines;
}

#ifdef DTC_HAS_CUDA
static Expected<std::shared_ptr<const Backend>> openGpus(const DeviceSelection &options) {
  if (options.cudnn == DeviceSelection::Cudnn::On)
    if (Expected<std::string> cudnn = findCudnn(); !cudnn)
      return cudnn.error().inContext("--cudnn on");
  return std::shared_ptr<const Backend>(createCudaBackend(
      {.timesProducts = options.timesProducts,
       .cachePath = defaultCachePath(),
       .fusesCalls = options.fusesCalls,
       .usesCudnn = options.cudnn != DeviceSelection::Cudnn::Off,
       .demandsCudnn = options.cudnn == DeviceSelection::Cudnn::On,
       .usesTf32 = options.usesTf32,
       .note = [](const std::string &sentence) { fmt::print(stderr, "note: {}\n", sentence); }}));
}
#endif

Expected<std::shared_ptr<const Backend>> openBackend(const DeviceSelection &options) {
#ifdef DTC_HAS_CUDA
  if (options.device != "cpu") {
    Expected<int> gpus = countGpus();
    if (gpus)
      return openGpus(options);
    if (options.device == "cuda")
      return gpus.error().inContext("--device cuda");
  }
#else
  if (options.device == "cuda")
    return Error{std::string("--device cuda: ") + kWithoutCuda};
#endif
  return std::shared_ptr<const Backend>(createCpuBackend());
}

void noteUnusedGpus([[maybe_unused]] std::FILE *notes) {
#ifdef DTC_HAS_CUDA
  Expected<int> gpus = countGpus();
  if (!gpus)
    return;
  printTo(notes, "note: this machine has {} GPU{}; add --device cuda to use {}\n", *gpus,
          *gpus == 1 ? "" : "s", *gpus == 1 ? "it" : "them");
  std::fflush(notes);
#endif
}

#ifdef DTC_HAS_NCCL
/// NCCL where each device has a GPU of its own, else the memory of the hosts.
static Expected<std::shared_ptr<Fabric>> openWhereGpusAreEnough(const Mesh &mesh,
                                                                const Processes &processes,
                                                                int channels, std::FILE *notes) {
  Expected<int> gpus = countGpus();
  if (mesh.numDevices() == 1 || (!processes.areSeveral() && (!gpus || mesh.numDevices() > *gpus)))
    return processes.openFabric(mesh);
  Expected<std::shared_ptr<Fabric>> opened =
      openNcclFabric(mesh, processes.network(), {.mostChannels = channels});
  if (opened)
    return opened;
  if (processes.isFirst()) // all have the same error
    printTo(notes, "note: the GPUs exchange tensors through the memory of the host{}: {}\n",
            processes.areSeveral() ? "s" : "", opened.error().message);
  std::fflush(notes);
  return processes.openFabric(mesh);
}
#endif

/// Checks that all processes compute on the same kind of device as the first one, and have NCCL if
/// it has.
static MaybeError checkSameDevices(const Backend &backend, const Processes &processes) {
#ifdef DTC_HAS_NCCL
  const char *build = "";
#else
  const char *build = " without NCCL";
#endif
  std::string own = backend.name() + build;
  Expected<std::string> first = processes.ofFirst(own);
  if (!first)
    return first.error();
  Expected<std::string> others = processes.differing(own);
  if (!others)
    return others.error();
  if (others->empty())
    return std::nullopt;
  return Error{
      fmt::format("process 0 computes on {}, and not {}; give --device cpu, or let all see "
                  "GPUs (dtc-run devices)",
                  *first, *others)};
}

Expected<OpenFabric> chooseFabric(const DeviceSelection &options, const Backend &backend,
                                  const Processes &processes, std::FILE *notes) {
  const bool onGpus = backend.name() == "cuda", wantsNccl = options.fabric == "nccl";
  if (options.sharesGpu && !wantsNccl)
    return Error{"--share-gpu is for --fabric nccl; add that, or leave it out: with --fabric local "
                 "devices share GPUs anyway"};
  if (options.ncclChannels > 0 && (options.fabric == "local" || !onGpus))
    return Error{"--nccl-channels is for GPUs that NCCL connects; leave it out, or give --device "
                 "cuda and --fabric nccl or auto"};
  if (wantsNccl && !onGpus)
    return Error{"--fabric nccl is for GPUs; add --device cuda, or leave it out"};
  if (MaybeError error = checkSameDevices(backend, processes))
    return *error;
#ifdef DTC_HAS_NCCL
  if (wantsNccl)
    return OpenFabric([processes, options](const Mesh &mesh) {
      Expected<std::shared_ptr<Fabric>> opened =
          openNcclFabric(mesh, processes.network(),
                         {.sharesGpus = options.sharesGpu, .mostChannels = options.ncclChannels});
      return opened ? opened : opened.error().inContext("--fabric nccl");
    });
  if (options.fabric == "auto" && onGpus)
    return OpenFabric([processes, channels = options.ncclChannels, notes](const Mesh &mesh) {
      return openWhereGpusAreEnough(mesh, processes, channels, notes);
    });
#else
  if (wantsNccl)
    return Error{"--fabric nccl: dtc was built without NCCL, since there was no nccl.h "
                 "(-DDTC_NCCL_INCLUDE_DIR names its folder)"};
#endif
  return OpenFabric();
}

Expected<OpenDevices> openDevices(const DeviceSelection &options, const Processes &processes,
                                  std::FILE *notes) {
  Expected<std::shared_ptr<const Backend>> backend = openBackend(options);
  if (!backend)
    return backend.error();
  Expected<OpenFabric> fabric = chooseFabric(options, **backend, processes, notes);
  if (!fabric)
    return fabric.error();
  return OpenDevices{std::move(*backend), std::move(*fabric)};
}

} // namespace dtc
