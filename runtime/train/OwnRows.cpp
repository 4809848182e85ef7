//===- OwnRows.cpp - Rows of a batch that a process reads -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/OwnRows.h"

#include "plan/PlanTypes.h"
#include "runtime/executor/ShardRegion.h"

#include <algorithm>
#include <cstring>

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
