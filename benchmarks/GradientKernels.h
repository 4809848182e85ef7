//===- GradientKernels.h - Megatron-LM's own kernels over gradients -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_GRADIENTKERNELS_H
#define DTC_BENCHMARKS_GRADIENTKERNELS_H

#include "plan/plan.pb.h"

namespace dtc::benchmarks {

/// Adds to a plan without ZeRO what the training step of Megatron-LM of 24 June 2022 (commit
/// 2755bcb87b88) did with all gradients of a device beside what the plan's update does too: the
/// norm, the optimizer, and rounding its result to the parameters' type. By the type of the
/// parameters, in bytes that are moved for each element:
///
///                                                             bf16, f32     f16
///   zero_grad_buffer sets the buffer of gradients to zero        4           2
///   allreduce_gradients divides it by the number of replicas,
///     also by one                                                8           4
///   _copy_model_grads_to_main_grads: float(), which copies
///     what is not f32 yet                                        -           6
///   _unscale_main_grads_and_check_for_nan, for f16 alone         -           8
///   clip_grad_norm_fp32 scales them where the norm is too large  8           8
///
/// (megatron/training.py, model/distributed.py, optimizer/optimizer.py, optimizer/clip_grads.py;
/// what arguments.py has as defaults: local DDP, contiguous buffers, which are f32 for bf16,
/// clipping, a loss scale for f16 alone.) That the norm is too large is taken for granted. This
/// leaves out the work for each microbatch: adding the gradients of embeddings, norms and biases
/// to the buffer, and in f16 those of all parameters.
///
/// Each line is a kernel over a buffer with as many elements as the gradients that a task's
/// optimizer reads, before the first kernel of that optimizer. The result is for simulating only:
/// the buffers have no place in the arena and are not those that the gradients are in.
void addGradientKernels(plan::Plan &plan);

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_GRADIENTKERNELS_H
