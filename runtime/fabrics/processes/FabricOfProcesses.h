//===- FabricOfProcesses.h - Agreements of the processes of a fabric -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_FABRICOFPROCESSES_H
#define DTC_RUNTIME_FABRICS_PROCESSES_FABRICOFPROCESSES_H

#include "runtime/fabrics/Fabric.h"
#include "runtime/fabrics/processes/Messages.h"

#include <memory>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The places of devices and the agreement of processes (one or more), for any transport of the
/// tensors of devices.
class FabricOfProcesses : public Fabric {
public:
  int64_t process() const override { return network ? network->process() : 0; }
  int64_t numProcesses() const override { return network ? network->numProcesses() : 1; }
  int64_t processesOnHost() const override { return network ? network->processesOnHost() : 1; }
  int64_t processOf(int64_t device) const override {
    return processOfDevice[static_cast<size_t>(device)];
  }

  Expected<int64_t> agree(ReductionKind reduction, int64_t value) override;
  Expected<std::string> broadcast(int64_t from, std::string bytes) override;

protected:
  /// `messages` connect the processes, which are at most as many as devices; null: one process has
  /// all devices.
  FabricOfProcesses(const Mesh &mesh, std::shared_ptr<Messages> messages);

  /// Why the run has failed, if it has.
  virtual MaybeError failure() const = 0;

private:
  std::shared_ptr<Messages> network;
  std::vector<int64_t> processOfDevice;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_FABRICOFPROCESSES_H
