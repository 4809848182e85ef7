//===- AttentionAgain.h - Recomputation of attention to its end -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_ATTENTIONAGAIN_H
#define DTC_BENCHMARKS_ATTENTIONAGAIN_H

#include "plan/plan.pb.h"

namespace dtc::benchmarks {

/// Adds to a plan of --recompute selective with decomposed attention what Megatron-LM of 24 June
/// 2022 (commit 2755bcb87b88) recomputed too: it ran the function of the core of attention again
/// (megatron/model/transformer.py, _checkpointed_attention_forward), also its last product, which
/// no gradient needs and dtc's own plans leave out. In backward tasks that product follows the
/// dropout of the probabilities which the task recomputes. The result is for simulating only: the
/// buffers of the products have no place in the arena.
void computeAttentionToItsEnd(plan::Plan &plan);

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_ATTENTIONAGAIN_H
