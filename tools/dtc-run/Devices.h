//===- Devices.h - Devices that dtc-run finds -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_RUN_DEVICES_H
#define DTC_TOOLS_DTC_RUN_DEVICES_H

#include "runtime/backends/Kernel.h"
#include "runtime/fabrics/processes/Processes.h"
#include "support/Error.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace dtc {

/// A line for the CPU, one for each GPU and one for each library that GPUs need; or why there are
/// none.
std::vector<std::string> listDevices();

/// How GPUs compute what a plan asks for.
struct GpuOptions {
  enum class Cudnn : uint8_t { On, Off, Auto };

  bool timesProducts = false; // time the algorithms of products, and keep the fastest
  bool usesTf32 = false;      // round f32 operands of products to TF32
  bool fusesCalls = true;     // compute calls of a plan together
  Cudnn cudnn = Cudnn::Auto;  // compute attention by cuDNN; Auto: where it is found
};

/// The backend of --device: "cpu", "cuda", or "auto", which is CUDA where there is a GPU. An error
/// says why there is no such device, or no cuDNN that is demanded.
Expected<std::shared_ptr<const runtime::Backend>> openBackend(const std::string &device,
                                                              const GpuOptions &options);

/// Tells `notes` how many GPUs this machine has, if it has any: for a run on the CPU that was not
/// asked for by --device.
void noteUnusedGpus(std::FILE *notes);

/// The network of --fabric: "local", which is the memory of the hosts, "nccl", or "auto", which is
/// NCCL where every device of the plan has a GPU of its own; `notes` is told where that cannot be.
/// `sharesGpu`: with "nccl", devices may share a GPU. `channels`: the most of a communicator of
/// NCCL; 0: as many as it chooses. All processes call it. An error says why
/// there is no NCCL, or which of them have other devices.
Expected<runtime::OpenFabric> chooseFabric(const std::string &fabric, bool sharesGpu, int channels,
                                           const runtime::Backend &backend,
                                           const runtime::Processes &processes, std::FILE *notes);

} // namespace dtc

#endif // DTC_TOOLS_DTC_RUN_DEVICES_H
