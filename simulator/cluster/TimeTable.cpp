//===- TimeTable.cpp - Interpolation of measured times --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/TimeTable.h"

#include <algorithm>
#include <cmath>

namespace dtc {

double interpolateTime(const google::protobuf::RepeatedPtrField<cluster::TimePoint> &points,
                       double bytes) {
  const cluster::TimePoint &first = points.Get(0), &last = points.Get(points.size() - 1);
  if (bytes <= first.bytes())
    return first.seconds();
  if (bytes >= last.bytes()) {
    double rate = last.bytes() > 0 ? last.seconds() / last.bytes() : 0;
    if (points.size() > 1) {
      const cluster::TimePoint &before = points.Get(points.size() - 2);
      // Noise may have made the larger one the faster.
      rate = std::max(0.0, (last.seconds() - before.seconds()) / (last.bytes() - before.bytes()));
    }
    return last.seconds() + rate * (bytes - last.bytes());
  }
  auto upper = std::upper_bound(
      points.begin(), points.end(), bytes,
      [](double value, const cluster::TimePoint &point) { return value < point.bytes(); });
  auto lower = std::prev(upper);
  double share = (bytes - lower->bytes()) / (upper->bytes() - lower->bytes());
  return lower->seconds() + share * (upper->seconds() - lower->seconds());
}

namespace {
/// The position of a size on an axis of the grid.
struct GridPosition {
  int lower = 0, upper = 0;
  double share = 0; // of the upper point
};
} // namespace

static GridPosition findPosition(const google::protobuf::RepeatedField<int64_t> &sizes,
                                 double size) {
  int last = sizes.size() - 1;
  if (size <= static_cast<double>(sizes.Get(0)))
    return {0, 0, 0};
  if (size >= static_cast<double>(sizes.Get(last)))
    return {last, last, 0};
  int upper = 1;
  while (static_cast<double>(sizes.Get(upper)) < size)
    ++upper;
  double low = std::log(static_cast<double>(sizes.Get(upper - 1)));
  double high = std::log(static_cast<double>(sizes.Get(upper)));
  return {upper - 1, upper, (std::log(size) - low) / (high - low)};
}

double interpolateRate(const cluster::MatrixTable &table, double rows, double columns, double depth,
                       const RateModel &model, double batch) {
  GridPosition r = findPosition(table.rows(), rows), c = findPosition(table.columns(), columns),
               d = findPosition(table.depths(), depth);
  double logRate = 0;
  for (int corner = 0; corner < 8; ++corner) {
    bool up[] = {(corner & 1) != 0, (corner & 2) != 0, (corner & 4) != 0};
    double share = (up[0] ? r.share : 1 - r.share) * (up[1] ? c.share : 1 - c.share) *
                   (up[2] ? d.share : 1 - d.share);
    if (share == 0)
      continue;
    int row = up[0] ? r.upper : r.lower, column = up[1] ? c.upper : c.lower,
        sum = up[2] ? d.upper : d.lower;
    double rate = table.flops((row * table.columns_size() + column) * table.depths_size() + sum);
    if (model)
      rate /=
          model(static_cast<double>(table.rows(row)), static_cast<double>(table.columns(column)),
                static_cast<double>(table.depths(sum)), 1);
    logRate += share * std::log(rate);
  }
  return std::exp(logRate) * (model ? model(rows, columns, depth, batch) : 1);
}

} // namespace dtc
