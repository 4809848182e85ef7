//===- Fabric.h - The connections of the devices of a plan ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A fabric knows which devices of a mesh live in this process and connects them with each other and
// with those of other processes. It is opened once for a plan; all its entry points share it.
//
// Collectives and messages are work of queues (Device.h). The results of a fabric are the same, bit
// by bit, each time that it runs a plan; another fabric may add in another order.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_FABRIC_H
#define DTC_RUNTIME_FABRICS_FABRIC_H

#include "runtime/backends/Device.h"
#include "runtime/fabrics/Communicator.h"
#include "runtime/fabrics/Transfers.h"
#include "support/GpuMemory.h"
#include "support/Mesh.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dtc::runtime {

class Fabric {
public:
  virtual ~Fabric() = default;

  const Mesh &mesh() const { return theMesh; }
  /// The devices of the mesh that live in this process, in rising order; at least one.
  std::span<const int64_t> devices() const { return held; }
  bool holdsAllDevices() const { return std::ssize(held) == theMesh.numDevices(); }

  /// The processes that share the mesh are numbered from 0.
  virtual int64_t process() const { return 0; }
  virtual int64_t numProcesses() const { return 1; }
  /// How many of them share the machine of this one, with itself.
  virtual int64_t processesOnHost() const { return 1; }
  /// The process in which a device of the mesh lives.
  virtual int64_t processOf(int64_t device) const { return 0; }

  /// The end of a device of this process for collectives. Those of one lane run in their order,
  /// those of different lanes have none. `memory` is where its operands lie, and outlives it.
  virtual Expected<std::unique_ptr<Communicator>> openCommunicator(int64_t device, int64_t lane,
                                                                   Device &memory) = 0;
  /// The end of a device of this process for messages to and from single devices.
  virtual Expected<std::unique_ptr<Transfers>> openTransfers(int64_t device, Device &memory) = 0;

  struct MemoryUse {
    uint64_t bytes = 0;
    std::string description; ///< "3 communicators of ... take about 588.0 MiB"
  };
  /// The memory that it takes of a device with such needs, beside all plans: an estimate.
  virtual MemoryUse memoryFor(const CommunicatorNeeds &needs) const { return {}; }

  /// Whether devices that wait for each other on the device share a GPU.
  virtual bool sharesGpus() const { return false; }

  /// Connects the groups that communicators of this process have opened and the pairs that messages
  /// were prepared for since the last call, before the first collective or message of these. Waits
  /// for all processes, which call it as often and have opened and prepared the same.
  virtual MaybeError connect() { return std::nullopt; }

  /// Reduces the values of all processes; the result is the same in each. Waits for all of them,
  /// which call this and broadcast() in the same order, each from one thread at a time. For
  /// decisions that must be the same everywhere, such as to stop; not for data.
  virtual Expected<int64_t> agree(ReductionKind reduction, int64_t value) = 0;
  /// Whether it holds in any process; as agree().
  Expected<bool> any(bool holds);
  /// Returns the bytes of process `from`; those of the others are ignored. Waits like agree().
  virtual Expected<std::string> broadcast(int64_t from, std::string bytes) = 0;

  /// Makes every collective, message and agreement that runs or will run fail, in all processes,
  /// with an error that contains `reason`; of several reasons, the first. May be called from any
  /// thread.
  virtual void abort(const Error &reason) = 0;

protected:
  Fabric(Mesh mesh, std::vector<int64_t> devices)
      : theMesh(std::move(mesh)), held(std::move(devices)) {}

private:
  Mesh theMesh;
  std::vector<int64_t> held;
};

inline Expected<bool> Fabric::any(bool holds) {
  Expected<int64_t> agreed = agree(ReductionKind::Max, holds ? 1 : 0);
  return agreed ? Expected<bool>(*agreed != 0) : Expected<bool>(agreed.error());
}

/// Opens a fabric for the devices of a mesh, for example openLocalFabric(). The error says why it
/// cannot have them.
using OpenFabric = std::function<Expected<std::shared_ptr<Fabric>>(const Mesh &mesh)>;

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_FABRIC_H
