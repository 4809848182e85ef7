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
#include "runtime/fabrics/local/LocalFabric.h"
#include "runtime/fabrics/nccl/NcclFabric.h"
#endif

#include <fmt/format.h>
#include <thread>

namespace dtc {

using namespace dtc;
using namespace dtc::runtime;

#ifndef DTC_HAS_CUDA
static constexpr const char *kWithoutCuda =
    "dtc-run was built without CUDA, since there was no nvcc (-DDTC_CUDA=ON demands it)";
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

Expected<std::shared_ptr<const Backend>> openBackend(const std::string &device, bool timesProducts,
                                                     bool fusesCalls) {
#ifdef DTC_HAS_CUDA
  if (device != "cpu") {
    Expected<int> gpus = countGpus();
    if (gpus)
      return std::shared_ptr<const Backend>(createCudaBackend({.timesProducts = timesProducts,
                                                               .cachePath = defaultCachePath(),
                                                               .fusesCalls = fusesCalls}));
    if (device == "cuda")
      return gpus.error().inContext("--device cuda");
  }
#else
  if (device == "cuda")
    return Error{std::string("--device cuda: ") + kWithoutCuda};
#endif
  return std::shared_ptr<const Backend>(createCpuBackend());
}

#ifdef DTC_HAS_NCCL
/// NCCL where each device has a GPU of its own, else threads of the host.
static Expected<std::shared_ptr<Fabric>> openWhereGpusAreEnough(const Mesh &mesh,
                                                                std::FILE *notes) {
  Expected<int> gpus = countGpus();
  if (mesh.numDevices() == 1 || !gpus || mesh.numDevices() > *gpus)
    return openLocalFabric(mesh);
  Expected<std::shared_ptr<Fabric>> opened = openNcclFabric(mesh);
  if (opened)
    return opened;
  printTo(notes, "note: the GPUs exchange tensors through the memory of the host: {}\n",
          opened.error().message);
  std::fflush(notes);
  return openLocalFabric(mesh);
}
#endif

Expected<OpenFabric> chooseFabric(const std::string &fabric, const Backend &backend,
                                  const Processes &processes, std::FILE *notes) {
  if (fabric == "nccl" && processes.areSeveral())
    return Error{"--fabric nccl is for the GPUs of one process; leave it out, or run one process"};
  if (fabric == "nccl" && backend.name() != "cuda")
    return Error{"--fabric nccl is for GPUs; add --device cuda, or leave it out"};
#ifdef DTC_HAS_NCCL
  if (fabric == "nccl")
    return OpenFabric([](const Mesh &mesh) {
      Expected<std::shared_ptr<Fabric>> opened = openNcclFabric(mesh);
      return opened ? opened : opened.error().inContext("--fabric nccl");
    });
  if (fabric == "auto" && backend.name() == "cuda" && !processes.areSeveral())
    return OpenFabric([notes](const Mesh &mesh) { return openWhereGpusAreEnough(mesh, notes); });
#else
  if (fabric == "nccl")
    return Error{"--fabric nccl: dtc-run was built without NCCL, since there was no nccl.h "
                 "(-DDTC_NCCL_INCLUDE_DIR names its folder)"};
#endif
  return OpenFabric();
}

} // namespace dtc
