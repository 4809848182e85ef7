//===- FabricOfProcesses.cpp - Agreements of the processes of a fabric -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/FabricOfProcesses.h"

#include "runtime/fabrics/processes/Agreement.h"
#include "runtime/fabrics/processes/DevicePlacement.h"

namespace dtc::runtime {

FabricOfProcesses::FabricOfProcesses(const Mesh &mesh, std::shared_ptr<Messages> messages)
    : Fabric(mesh, devicesOfProcess(mesh.numDevices(), messages ? messages->numProcesses() : 1,
                                    messages ? messages->process() : 0)),
      network(std::move(messages)),
      processOfDevice(placeDevices(mesh.numDevices(), network ? network->numProcesses() : 1)) {}

Expected<int64_t> FabricOfProcesses::agree(ReductionKind reduction, int64_t value) {
  Expected<int64_t> agreed = value;
  if (network)
    agreed = runtime::agree(*network, reduction, value);
  if (MaybeError error = failure(); error && (!network || !agreed))
    return *error;
  return agreed;
}

Expected<std::string> FabricOfProcesses::broadcast(int64_t from, std::string bytes) {
  Expected<std::string> given = std::move(bytes);
  if (network)
    given = runtime::broadcast(*network, from, std::move(*given));
  if (MaybeError error = failure(); error && (!network || !given))
    return *error;
  return given;
}

} // namespace dtc::runtime
