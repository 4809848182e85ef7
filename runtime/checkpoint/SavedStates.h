//===- SavedStates.h - The tensors of a checkpoint of a plan --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CHECKPOINT_SAVEDSTATES_H
#define DTC_RUNTIME_CHECKPOINT_SAVEDSTATES_H

#include "plan/plan.pb.h"
#include "support/Tensor.h"

#include <map>
#include <string>

namespace dtc::runtime {

/// A tensor of a checkpoint and the state of a plan that has its values.
struct SavedState {
  const plan::State *state = nullptr;   // in the first program that has it
  const plan::State *rounded = nullptr; // the parameter that `state` is the master weights of
  int64_t copies = 0;                   // of replicas that differ; 0: all have the same
};

/// The contents of a checkpoint of a plan, by the names of the tensors: every state under its own
/// name, except that master weights have the name of their parameter and stand for it, as they
/// round to it. So a plan that computes in 16 bits and one that does not have the same tensors.
/// Caches, which hold nothing between steps, are in no checkpoint, nor are the values that the
/// options of each part of a run decide: the growth interval and the random key. The plan must
/// stay.
std::map<std::string, SavedState> savedStatesOf(const plan::Plan &plan);

/// The type of a state's tensor in the files. Where replicas have different values of a state
/// (plan/Replicas.h), one tensor holds all of them; its first dimension counts the replicas.
TensorType savedTypeOf(const SavedState &saved);

/// The types of the tensors in the files.
std::map<std::string, TensorType> typesOf(const std::map<std::string, SavedState> &states);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CHECKPOINT_SAVEDSTATES_H
