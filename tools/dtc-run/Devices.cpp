//===- Devices.cpp - What dtc-run can run on ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-run/Devices.h"

#include "runtime/backends/Device.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "support/Format.h"

#ifdef DTC_HAS_CUDA
#include "runtime/backends/cuda/CudaBackend.h"
#endif

#include <fmt/format.h>
#include <thread>

namespace dtc {

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
#else
  lines.push_back(std::string("cuda: ") + kWithoutCuda);
#endif
  return lines;
}

Expected<std::shared_ptr<const Backend>> openBackend(const std::string &device) {
#ifdef DTC_HAS_CUDA
  if (device != "cpu") {
    Expected<int> gpus = countGpus();
    if (gpus)
      return std::shared_ptr<const Backend>(createCudaBackend());
    if (device == "cuda")
      return gpus.error().inContext("--device cuda");
  }
#else
  if (device == "cuda")
    return Error{std::string("--device cuda: ") + kWithoutCuda};
#endif
  return std::shared_ptr<const Backend>(createCpuBackend());
}

} // namespace dtc
