//===- OuterEntries.h - Entry points of replicas that differ --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_OUTERENTRIES_H
#define DTC_SUPPORT_OUTERENTRIES_H

namespace dtc {

/// The entry point of a plan that gives its replicas the same parameters again, and the one that
/// runs before the first step, if the outer step has states to begin with.
inline constexpr const char *kOuterStepEntry = "outer";
inline constexpr const char *kOuterBeginEntry = "outer_begin";

/// Of a plan whose outer steps are those of fragments, one after the other, instead of "outer":
/// entry point kOuterTakeEntry + "k" puts the changes of the replica to fragment k into the
/// pending states of its parameters, kOuterSendEntry + "k" makes these the means over the replicas,
/// and kOuterApplyEntry + "k" + kOuterDelay + "D" takes the outer step with them, D steps later.
/// What sends touches no other state, and may run beside the steps before that. Fragments are
/// numbered from 0.
inline constexpr const char *kOuterTakeEntry = "outer_take.";
inline constexpr const char *kOuterSendEntry = "outer_send.";
inline constexpr const char *kOuterApplyEntry = "outer_apply.";
inline constexpr const char *kOuterDelay = ".after.";
inline constexpr const char *kOuterPendingState = "outer_pending";

/// The most fragments: a plan has at most 16 entry points beside its own.
inline constexpr int kMaxOuterFragments = 4;

/// The entry point that measures the changes of each replica before the outer step, in a plan whose
/// replicas train for clients. Program k has two outputs with an element for each replica: the sum
/// of the squares of the changes of its parameters, and the number of steps that were applied.
/// Their names end in k.
inline constexpr const char *kOuterCheckEntry = "outer_check";
inline constexpr const char *kUpdateSquaresOutput = "update_squares.";
inline constexpr const char *kInnerStepsOutput = "inner_steps.";

/// The input of the outer step of such a plan: the weight of each replica in the mean. They are at
/// least 0 and add up to 1; a replica of weight 0 is left out, whatever its parameters are. Where
/// all are 0, the parameters become the outer parameters, and nothing else changes.
inline constexpr const char *kClientWeightsInput = "client_weights";

/// Of a plan whose outer step adds noise to the mean: the input that multiplies it, one number, and
/// the state of each parameter, its name behind a dot, that holds it.
inline constexpr const char *kNoiseScaleInput = "noise_scale";
inline constexpr const char *kOuterNoiseState = "outer_noise";

/// The input of the step of such a plan that says which replicas take the step: 1, or 0 for one
/// whose parameters stay as they are.
inline constexpr const char *kClientActiveInput = "client_active";

/// The output of the step of such a plan with the loss of each replica.
inline constexpr const char *kClientLossesOutput = "client_losses";

} // namespace dtc

#endif // DTC_SUPPORT_OUTERENTRIES_H
