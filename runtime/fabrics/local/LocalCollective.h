//===- LocalCollective.h - The work of a collective among threads ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_LOCAL_LOCALCOLLECTIVE_H
#define DTC_RUNTIME_FABRICS_LOCAL_LOCALCOLLECTIVE_H

#include "runtime/fabrics/local/LocalGroup.h"
#include "runtime/fabrics/local/Reduce.h"

#include <span>
#include <vector>

namespace dtc::runtime {

/// A collective on a bucket, cut into one part for each member of the group. Parts may run in any
/// order and at the same time: they write different bytes, and none writes what another reads.
class LocalCollective {
public:
  /// Room for one address of each member, kept between collectives.
  struct Workspace {
    explicit Workspace(size_t members) : inputs(members), outputs(members) {}

    std::vector<const std::byte *> inputs;
    std::vector<std::byte *> outputs;
  };

  LocalCollective(const LocalGroup &group, std::span<const CollectiveSpec> specs,
                  Workspace &workspace);

  /// So little work that dividing it costs more than it saves.
  bool isSmall() const;
  /// Does the parts of the members [begin, end), whose slots must be filled.
  void run(size_t begin, size_t end);

private:
  void runTensor(size_t tensor, size_t rank);
  void allReduce(size_t begin, size_t end);
  void allGather(size_t tensor, size_t rank);
  void reduceScatter(size_t tensor, size_t rank);
  void allToAll(size_t tensor, size_t rank);
  void permute(size_t tensor, size_t rank);

  const std::byte *input(size_t tensor, size_t rank) const {
    return static_cast<const std::byte *>(group.slot(rank).operands[tensor].input);
  }
  std::byte *output(size_t tensor, size_t rank) const {
    return static_cast<std::byte *>(group.slot(rank).operands[tensor].output);
  }

  const LocalGroup &group;
  std::span<const CollectiveSpec> specs;
  Workspace &workspace;
  size_t members;
  uint64_t bytesOfMember = 0; // all inputs or all outputs of one member, whichever is more
  Store store = Store::Cached;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_LOCAL_LOCALCOLLECTIVE_H
