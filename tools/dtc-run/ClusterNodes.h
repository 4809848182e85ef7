//===- ClusterNodes.h - The nodes of a cluster and the hosts of a run -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_RUN_CLUSTERNODES_H
#define DTC_TOOLS_DTC_RUN_CLUSTERNODES_H

#include "support/Error.h"
#include "support/Mesh.h"

#include <string>
#include <vector>

namespace dtc {

/// Whether the hosts of a run have the devices that the nodes of a cluster file have, which the
/// planner has assumed. `hosts` are those of the processes, in their order. The error names the
/// first node for which it is not so.
MaybeError checkNodes(const std::string &clusterPath, const Mesh &mesh,
                      const std::vector<std::string> &hosts);

} // namespace dtc

#endif // DTC_TOOLS_DTC_RUN_CLUSTERNODES_H
