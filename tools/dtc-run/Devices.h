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
#include <optional>
#include <string>
#include <vector>

namespace dtc {

/// A line for the CPU, one for each GPU and one for each library that GPUs need; or why there are
/// none.
std::vector<std::string> listDevices();

/// What the devices of a plan are, and how they compute and exchange tensors: flags of dtc-run, and
/// arguments of dtc.compile().
struct DeviceSelection {
  enum class Cudnn : uint8_t { On, Off, Auto };

  std::string device = "cpu";  // "cpu", "cuda", or "auto", which is CUDA where there is a GPU
  std::string fabric = "auto"; // "local", the memory of the hosts; "nccl"; or "auto", which is NCCL
                               // where every device of the plan has a GPU of its own
  bool sharesGpu = false;      // devices may share a GPU with "nccl" too
  int ncclChannels = 0;        // the most of a communicator; 0: as many as NCCL chooses
  std::optional<bool> graphs;  // GPUs get steps as CUDA graphs; none: where nothing speaks against
  bool timesProducts = false;  // time the algorithms of products, and keep the fastest
  bool usesTf32 = false;       // round f32 operands of products to TF32
  bool fusesCalls = true;      // compute calls of a plan together
  Cudnn cudnn = Cudnn::Auto;   // compute attention by cuDNN; Auto: where it is found
};

/// What a session needs of the devices.
struct OpenDevices {
  std::shared_ptr<const runtime::Backend> backend;
  runtime::OpenFabric openFabric; // none: that of the processes
};

/// Tells `notes` how many GPUs this machine has, if it has any: for a run on the CPU that was not
/// asked for by --device.
void noteUnusedGpus(std::FILE *notes);

/// The backend. An error says why there is no such device, or no cuDNN that is demanded.
Expected<std::shared_ptr<const runtime::Backend>> openBackend(const DeviceSelection &options);

/// The network; `notes` is told where it cannot be NCCL with "auto". All processes call it. An
/// error says why there is no NCCL, or which of them have other devices.
Expected<runtime::OpenFabric> chooseFabric(const DeviceSelection &options,
                                           const runtime::Backend &backend,
                                           const runtime::Processes &processes, std::FILE *notes);

/// Both. All processes call it.
Expected<OpenDevices> openDevices(const DeviceSelection &options,
                                  const runtime::Processes &processes, std::FILE *notes);

} // namespace dtc

#endif // DTC_TOOLS_DTC_RUN_DEVICES_H
