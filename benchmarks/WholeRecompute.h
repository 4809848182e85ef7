//===- WholeRecompute.h - Recomputation of whole layers -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_WHOLERECOMPUTE_H
#define DTC_BENCHMARKS_WHOLERECOMPUTE_H

#include "plan/plan.pb.h"

#include <string>

namespace dtc::benchmarks {

/// Whether an instruction belongs to a layer whose name begins with `prefix` and a number.
bool isOfLayer(const plan::Plan &plan, const plan::Instruction &instruction,
               const std::string &prefix);

/// Makes each backward task of a plan of --recompute none begin with the work of the forward task
/// of its stage in layers whose names begin with `prefix` and a number, and read the results of
/// that.
///
/// Frameworks that run a layer's function again do this (torch.utils.checkpoint, Megatron-LM): also
/// its last product and the sum of that over devices, which no gradient needs
/// and dtc's own plans leave out. The result is for simulating only: the buffers of recomputed
/// values have no place in the arena.
void computeForwardAgain(plan::Plan &plan, const std::string &prefix);

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_WHOLERECOMPUTE_H
