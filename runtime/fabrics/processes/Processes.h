//===- Processes.h - The processes of a run --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_PROCESSES_H
#define DTC_RUNTIME_FABRICS_PROCESSES_PROCESSES_H

#include "runtime/fabrics/Fabric.h"
#include "runtime/fabrics/processes/Messages.h"
#include "runtime/fabrics/processes/ProcessGroup.h"
#include "support/Error.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The name of this host.
std::string hostName();

/// The processes that run a plan together. All make the same calls in the same order, from one
/// thread at a time; where there is one process, they cost nothing.
class Processes {
public:
  /// One process.
  Processes() = default;
  explicit Processes(std::shared_ptr<Messages> messages, HostSharing sharing = HostSharing::Memory)
      : messages(std::move(messages)), sharing(sharing) {}

  int64_t process() const { return messages ? messages->process() : 0; }
  int64_t count() const { return messages ? messages->numProcesses() : 1; }
  int64_t onHost() const { return messages ? messages->processesOnHost() : 1; }
  bool areSeveral() const { return count() > 1; }
  /// The one that writes what all have made together, and that speaks for all.
  bool isFirst() const { return process() == 0; }

  /// Whether it holds in any of them.
  Expected<bool> any(bool holds) const;
  /// The values of all, in their order, in the first one; nothing in the others.
  Expected<std::vector<double>> inFirst(double value) const;
  /// The bytes of the first one; those of the others are ignored.
  Expected<std::string> ofFirst(std::string bytes) const;
  /// The texts of all, in their order.
  Expected<std::vector<std::string>> all(const std::string &own) const;
  /// work() in the first process. An error of it is that of all.
  MaybeError inFirst(const std::function<MaybeError()> &work) const;
  /// The processes whose `value` is not that of the first: "process 1 on node7, process 3 on
  /// node8"; empty if there are none.
  Expected<std::string> differing(const std::string &value) const;

  /// The messages between them; null where there is one process.
  const std::shared_ptr<Messages> &network() const { return messages; }
  /// For the session of a plan: the local fabric of one process.
  Expected<std::shared_ptr<Fabric>> openFabric(const Mesh &mesh) const;
  /// Makes what the others do together with this one fail.
  void abort(const Error &error) const;

private:
  std::shared_ptr<Messages> messages; // null: one process
  HostSharing sharing = HostSharing::Memory;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_PROCESSES_H
