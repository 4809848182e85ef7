//===- ProcessGroup.cpp - The members of a group by their processes --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/ProcessGroup.h"

#include <algorithm>
#include <cassert>

namespace dtc::runtime {

ProcessGroup::ProcessGroup(const std::vector<int64_t> &members,
                           const std::function<int64_t(int64_t)> &processOf, int64_t process)
    : members(members) {
  for (size_t rank = 0; rank < members.size(); ++rank) {
    int64_t holder = processOf(members[rank]);
    auto place = static_cast<size_t>(std::ranges::find(processes, holder) - processes.begin());
    if (place == processes.size()) {
      processes.push_back(holder);
      ranks.emplace_back();
    }
    ranks[place].push_back(rank);
    processOfRank.push_back(place);
  }
  own = static_cast<size_t>(std::ranges::find(processes, process) - processes.begin());
  assert(own < processes.size() && "a group of which this process has a member");
}

} // namespace dtc::runtime
