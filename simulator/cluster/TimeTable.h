//===- TimeTable.h - Interpolation of measured times ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_CLUSTER_TIMETABLE_H
#define DTC_SIMULATOR_CLUSTER_TIMETABLE_H

#include "simulator/cluster/cluster.pb.h"

#include <functional>

namespace dtc {

/// Seconds for a number of bytes: between two points in proportion to the bytes, below the first
/// point as there, beyond the last one at the rate of the last two, which is not less than 0 (if
/// there is one alone, in proportion to its bytes, or as there if it has none). The points rise;
/// there is at least one.
double interpolateTime(const google::protobuf::RepeatedPtrField<cluster::TimePoint> &points,
                       double bytes);

/// FLOP/s of `batch` products of [rows x depth] by [depth x columns].
using RateModel = std::function<double(double rows, double columns, double depth, double batch)>;

/// FLOP/s of a product of [rows x depth] by [depth x columns]: between the points around it in the
/// logarithms of the three sizes, outside of the grid as at its edge. With a `model`, which tells
/// the FLOP/s of any sizes, that is done with the ratio of the table to the model for one product,
/// and the result is the model's for `batch` products times the ratio.
double interpolateRate(const cluster::MatrixTable &table, double rows, double columns, double depth,
                       const RateModel &model = nullptr, double batch = 1);

} // namespace dtc

#endif // DTC_SIMULATOR_CLUSTER_TIMETABLE_H
