//===- ThreadMessages.h - Processes that are threads -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_FABRICS_THREADMESSAGES_H
#define DTC_TEST_LIB_FABRICS_THREADMESSAGES_H

#include "runtime/fabrics/Fabric.h"
#include "runtime/fabrics/processes/Messages.h"
#include "runtime/fabrics/processes/ProcessGroup.h"

#include <functional>
#include <memory>
#include <vector>

namespace dtc::runtime::testing {

struct ThreadMessagesOptions {
  uint64_t seed = 1;
  /// The share of the times that a batch is asked whether it is done in which nothing has moved.
  double delayed = 0.5;
  HostSharing sharing = HostSharing::Messages;
};

/// Returns the ends of a network between `processes` simulated processes, which are threads of this
/// process. The network moves messages of different tags in any order, and only when an end asks.
std::vector<std::shared_ptr<Messages>> openThreadMessages(int64_t processes,
                                                          ThreadMessagesOptions options = {});

/// As openThreadMessages(), over sockets of this host.
std::vector<std::shared_ptr<Messages>> openSocketMessagesHere(int64_t processes);
/// A port of this host at which nobody listens.
int freePort();

using OpenMessages = std::function<std::vector<std::shared_ptr<Messages>>(int64_t processes)>;

/// The fabric of several processes with all of them in this one, so that a test can drive all
/// devices: of `processes` there are as many as the mesh has devices, at most.
OpenFabric processesFabric(int64_t processes, OpenMessages open,
                           HostSharing sharing = HostSharing::Messages);
/// As processesFabric(), with what `openEnd` opens in each process, all at the same time.
using OpenEnd = std::function<Expected<std::shared_ptr<Fabric>>(const Mesh &,
                                                                const std::shared_ptr<Messages> &)>;
OpenFabric processesFabric(int64_t processes, OpenMessages open, OpenEnd openEnd);
OpenFabric threadProcessesFabric(int64_t processes, ThreadMessagesOptions options = {});

} // namespace dtc::runtime::testing

#endif // DTC_TEST_LIB_FABRICS_THREADMESSAGES_H
