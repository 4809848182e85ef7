//===- ProcessTransfers.h - Messages of devices in many processes ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_PROCESSTRANSFERS_H
#define DTC_RUNTIME_FABRICS_PROCESSES_PROCESSTRANSFERS_H

#include "runtime/fabrics/processes/ProcessWorld.h"

#include <memory>

namespace dtc::runtime {

/// Devices of one process send each other messages as those of several do. A thread of the process
/// moves them while the devices compute.
class ProcessTransfers final : public QueuedTransfers {
public:
  ProcessTransfers(const std::shared_ptr<ProcessWorld> &world, int64_t device)
      : QueuedTransfers(world->results(device)), world(world), device(device) {}

  MaybeError prepare(int64_t, bool sends) override {
    if (!sends)
      world->getProgress().start();
    return std::nullopt;
  }
  void drain() override { world->getProgress().cancel(device); }

protected:
  void startNow(const Start &end) override;

private:
  std::shared_ptr<ProcessWorld> world;
  int64_t device;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_PROCESSTRANSFERS_H
