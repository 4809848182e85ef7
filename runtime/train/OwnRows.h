//===- OwnRows.h - Rows of a batch that a process reads -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_OWNROWS_H
#define DTC_RUNTIME_TRAIN_OWNROWS_H

#include "plan/Replicas.h"
#include "plan/plan.pb.h"
#include "runtime/data/ClientsSource.h"
#include "support/Mesh.h"

#include <cstdint>
#include <span>
#include <vector>

namespace dtc::runtime {

/// The rows of each data input of the plan that some of the devices have; none of an input that
/// their programs lack. Empty, which stands for all rows, if the devices are all of the mesh.
BatchRows rowsOf(const plan::Plan &plan, const Mesh &mesh, std::span<const int64_t> devices);

/// Which replica along the axis has each row of a batch. The error is that a row lies on several
/// replicas, or not on the same one in all inputs.
Expected<ReplicaRows> rowsOfReplicas(const plan::Plan &plan, const Replicas &replicas);

/// Whole inputs with these rows at their places, and zeros for the others, which no device reads.
Batch intoWhole(Batch part, const BatchRows &rows, const std::vector<DataInput> &inputs);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_OWNROWS_H
