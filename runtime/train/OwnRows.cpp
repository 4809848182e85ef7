//===- OwnRows.cpp - Rows of a batch that a process reads -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/OwnRows.h"

#include "plan/PlanTypes.h"
#include "runtime/executor/ShardRegion.h"
#include "support/OuterEntries.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <string>

namespace dtc::runtime {

/// Ascending and without overlap.
static std::vector<RowRange> merged(std::vector<RowRange> ranges) {
  std::ranges::sort(ranges, {}, &RowRange::begin);
  std::vector<RowRange> result;
  for (const RowRange &range : ranges)
    if (!result.empty() && range.begin <= result.back().end)
      result.back().end = std::max(result.back().end, range.end);
    else if (range.begin < range.end)
      result.push_back(range);
  return result;
}

BatchRows rowsOf(const plan::Plan &plan, const Mesh &mesh, std::span<const int64_t> devices) {
  BatchRows rows;
  if (std::ssize(devices) == mesh.numDevices())
    return rows;
  for (const DataInput &input : dataInputsOf(plan))
    if (input.type.rank() > 0)
      rows[input.name];
  for (int64_t device : devices) {
    const plan::Program &program = plan.programs(static_cast<int>(mesh.programOf(device)));
    for (const plan::Input &input : program.inputs()) {
      auto found = rows.find(input.name());
      if (found == rows.end())
        continue;
      ShardRegion region = ShardRegion::of(mesh, input.sharding(), toVector(input.shape()), device);
      for (int64_t piece = 0; piece < region.pieces; ++piece) {
        auto [begin, end] = region.rowsOfPiece(piece);
        found->second.push_back({begin, end});
      }
    }
  }
  for (auto &[name, ranges] : rows)
    ranges = merged(std::move(ranges));
  return rows;
}

/// Marks the rows of an input that a device has as those of its replica. Returns whether they are
/// of no other one.
static bool markRows(const ShardRegion &region, size_t replica,
                     std::vector<std::optional<size_t>> &replicaOf) {
  for (int64_t piece = 0; piece < region.pieces; ++piece) {
    auto [begin, end] = region.rowsOfPiece(piece);
    for (int64_t row = begin; row < end; ++row) {
      std::optional<size_t> &found = replicaOf[static_cast<size_t>(row)];
      if (found.value_or(replica) != replica)
        return false;
      found = replica;
    }
  }
  return true;
}

Expected<ReplicaRows> rowsOfReplicas(const plan::Plan &plan, const Replicas &replicas) {
  Mesh mesh = meshOf(plan);
  std::map<std::string, std::vector<std::optional<size_t>>> replicaOf; // by input and row
  for (int64_t device = 0; device < mesh.numDevices(); ++device) {
    auto replica = static_cast<size_t>(mesh.blockIndex(device, {replicas.axis}));
    for (const plan::Input &input :
         plan.programs(static_cast<int>(mesh.programOf(device))).inputs()) {
      if (input.role() != plan::Input::DATA || input.shape_size() == 0 ||
          input.name() == kClientActiveInput)
        continue;
      std::vector<std::optional<size_t>> &rows = replicaOf[input.name()];
      rows.resize(static_cast<size_t>(input.shape(0)));
      if (!markRows(ShardRegion::of(mesh, input.sharding(), toVector(input.shape()), device),
                    replica, rows))
        return Error{
            fmt::format("samples of the input \"{}\" lie on several replicas; expected that "
                        "\"{}\" splits the batch, so that each client has its own",
                        input.name(), replicas.axis)};
    }
  }
  ReplicaRows result{static_cast<size_t>(replicas.count), {}};
  for (const auto &[name, rows] : replicaOf) {
    std::vector<size_t> own;
    for (const std::optional<size_t> &replica : rows)
      own.push_back(replica.value_or(0));
    if (name != replicaOf.begin()->first && own != result.replicaOf)
      return Error{fmt::format("the inputs \"{}\" and \"{}\" are split over the replicas in "
                               "different ways; expected the same",
                               replicaOf.begin()->first, name)};
    result.replicaOf = std::move(own);
  }
  return result;
}

Batch intoWhole(Batch part, const BatchRows &rows, const std::vector<DataInput> &inputs) {
  for (const DataInput &input : inputs) {
    auto wanted = rows.find(input.name);
    auto found = part.find(input.name);
    if (wanted == rows.end() || found == part.end())
      continue;
    HostTensor whole(input.type);
    size_t rowBytes =
        whole.bytes.size() / static_cast<size_t>(std::max<int64_t>(input.type.shape[0], 1));
    const std::byte *from = found->second.bytes.data();
    for (const RowRange &range : wanted->second) {
      size_t bytes = static_cast<size_t>(range.end - range.begin) * rowBytes;
      if (bytes > 0)
        std::memcpy(whole.bytes.data() + static_cast<size_t>(range.begin) * rowBytes, from, bytes);
      from += bytes;
    }
    found->second = std::move(whole);
  }
  return part;
}

} // namespace dtc::runtime
