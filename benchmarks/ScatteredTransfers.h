//===- ScatteredTransfers.h - Megatron-LM's messages between stages -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_SCATTEREDTRANSFERS_H
#define DTC_BENCHMARKS_SCATTEREDTRANSFERS_H

#include "plan/plan.pb.h"

#include <cstdint>
#include <string>

namespace dtc::benchmarks {

/// Divides the tensors that go from stage to stage over the `size` devices of an axis, on which all
/// have the same: each sends its part to the device beside it in the next stage, and the parts are
/// gathered there at once (Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on
/// GPU Clusters Using Megatron-LM", section 4.1). Megatron-LM of 24 June 2022 (commit 2755bcb87b88,
/// megatron/p2p_communication.py, scatter_gather_tensors_in_pipeline, a default) does so without
/// sequence parallelism, with which each device has a part anyway. Tensors whose elements `size`
/// does not divide stay whole. The plan is one of --no-overlap; the result is for simulating only.
void scatterTransfers(plan::Plan &plan, const std::string &axis, int64_t size);

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_SCATTEREDTRANSFERS_H
