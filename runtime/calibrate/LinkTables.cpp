//===- LinkTables.cpp - Tables of collectives -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/LinkTables.h"

#include "runtime/calibrate/Measurements.h"
#include "simulator/cluster/CollectiveTime.h"

#include <algorithm>
#include <numeric>

namespace dtc::runtime {

CollectiveSpec specOf(CollectiveKind kind, int64_t members, int64_t bytes) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.members = members;
  // Rows for the members to take, each of at least one element.
  int64_t columns = std::max<int64_t>(1, bytes / 4 / members);
  spec.input = {DType::F32, {members, columns}};
  if (kind == CollectiveKind::Permute) {
    std::vector<int64_t> sources(static_cast<size_t>(members));
    std::iota(sources.begin(), sources.end(), 1);
    sources.back() = 0;
    spec.sources = std::make_shared<const std::vector<int64_t>>(std::move(sources));
  }
  return spec;
}

void addPoint(cluster::CollectiveTable &table, double bytes, double seconds) {
  cluster::TimePoint *point = table.add_points();
  point->set_bytes(bytes);
  point->set_seconds(rounded(seconds));
}

static const cluster::CollectiveTable *findTable(const cluster::Link &link, std::string_view kind) {
  auto found = std::ranges::find_if(link.collectives(),
                                    [&](const auto &table) { return table.kind() == kind; });
  return found == link.collectives().end() ? nullptr : &*found;
}

void fitLink(cluster::Link &link) {
  const cluster::CollectiveTable *transfers = findTable(link, kTransferTable);
  if (!transfers)
    transfers = findTable(link, name(CollectiveKind::Permute));
  if (!transfers)
    return;
  // seconds = latency + bytes * perByte, each equation divided by its seconds.
  double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
  for (const cluster::TimePoint &point : transfers->points()) {
    double ofLatency = 1 / point.seconds(), ofBytes = point.bytes() / point.seconds();
    aa += ofLatency * ofLatency;
    ab += ofLatency * ofBytes;
    bb += ofBytes * ofBytes;
    a += ofLatency;
    b += ofBytes;
  }
  double determinant = aa * bb - ab * ab;
  double latency = determinant > 0 ? (a * bb - b * ab) / determinant : 0;
  latency = std::max(latency, 0.0);
  double perByte = bb > 0 ? (b - latency * ab) / bb : 0;
  // Times that fall as messages grow: the noise of a busy machine.
  if (perByte <= 0) {
    latency = 0;
    perByte = bb > 0 ? b / bb : 0;
  }
  link.set_latency(rounded(latency));
  link.set_bandwidth(perByte > 0 ? rounded(1 / perByte) : 0);
}

} // namespace dtc::runtime
