//===- LoadCheckpoint.cpp - States from a checkpoint ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/LoadCheckpoint.h"

#include "plan/AdapterNames.h"
#include "plan/PlanTypes.h"
#include "runtime/checkpoint/SavedStates.h"
#include "runtime/data/ElementConversion.h"
#include "support/NearestName.h"
#include "support/OuterStates.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

namespace dtc::runtime {

namespace {

/// The names of tensors that only one of the two has.
struct Difference {
  std::vector<std::string> parameters, adapters, optimizer, stepState;

  void add(const std::string &name, const std::string &parameter, bool isStepState) {
    (isStepState           ? stepState
     : !parameter.empty()  ? optimizer
     : isAdapterName(name) ? adapters
                           : parameters)
        .push_back(name);
  }
};

} // namespace

/// The tensor of the outer step that a checkpoint lacks; null if it has all. Zeros are no outer
/// parameters.
static const std::string *missingOfOuterStep(const std::map<std::string, SavedState> &states,
                                             const Checkpoint &checkpoint) {
  bool differ = std::ranges::any_of(states, [](const auto &entry) { return entry.second.copies; });
  for (const auto &[name, saved] : states)
    // The states of the inner optimizer differ between replicas.
    if (differ && saved.state->kind() == plan::State::OPTIMIZER && saved.copies == 0 &&
        !checkpoint.manifest().tensors.count(name))
      return &name;
  return nullptr;
}

/// Whether a tensor of the checkpoint has the state for another number of replicas than the plan.
static bool hasOtherReplicas(const SavedState &saved, const TensorType &inFile) {
  TensorType type = savedTypeOf(saved);
  if (saved.copies == 0 || inFile.shape.size() != type.shape.size() || inFile.shape.front() < 1)
    return false;
  type.shape.front() = inFile.shape.front();
  return type.shape == inFile.shape;
}

/// What becomes of the replicas of a checkpoint that has others than the plan; none if it has not.
static std::optional<std::string> describeReplicas(const std::map<std::string, SavedState> &states,
                                                   const Checkpoint &checkpoint) {
  const auto &tensors = checkpoint.manifest().tensors;
  for (const auto &[name, saved] : states) {
    auto tensor = tensors.find(name);
    if (tensor == tensors.end() || !hasOtherReplicas(saved, tensor->second.type))
      continue;
    int64_t had = tensor->second.type.shape.front();
    if (saved.copies < had)
      return fmt::format("the checkpoint has {} replicas and the plan {}: the first {} go on, and "
                         "outer steps are means over these",
                         had, saved.copies, saved.copies);
    const bool hasOuter = std::ranges::any_of(tensors, [](const auto &each) {
      return each.first.ends_with(std::string(".") + kOuterParametersState);
    });
    if (saved.copies > had)
      return fmt::format("the checkpoint has {} replica{} and the plan {}: the further ones begin "
                         "with {}",
                         had, had == 1 ? "" : "s", saved.copies,
                         hasOuter ? "the newest outer parameters" : "the parameters of these");
  }
  return std::nullopt;
}

/// Checks shapes, and finds missing and extra tensors.
static Expected<std::vector<std::string>>
compareTensors(const std::map<std::string, SavedState> &states, const Checkpoint &checkpoint,
               bool allowModelChange) {
  const auto &tensors = checkpoint.manifest().tensors;
  if (const std::string *name = missingOfOuterStep(states, checkpoint))
    return Error{
        fmt::format("{}: there is no tensor \"{}\", expected one of the outer step; give a "
                    "plan with the --outer-step of the run that saved it",
                    checkpoint.path(), *name)};
  Difference missing, extra;
  for (const auto &[name, saved] : states) {
    auto tensor = tensors.find(name);
    if (tensor == tensors.end())
      missing.add(name, saved.rounded ? "" : saved.state->parameter(),
                  isStepState(saved.state->kind()));
    else if (TensorType type = savedTypeOf(saved); tensor->second.type.shape != type.shape &&
                                                   !hasOtherReplicas(saved, tensor->second.type))
      return Error{fmt::format("{}: tensor \"{}\" is {}, but the plan has {}; give the plan of the "
                               "same model",
                               checkpoint.path(), name, tensor->second.type.str(), type.str())};
  }
  for (const auto &[name, tensor] : tensors)
    if (!states.count(name))
      extra.add(name, tensor.parameter, tensor.isStepState);
  std::vector<std::string> notes, problems;
  if (std::optional<std::string> text = describeReplicas(states, checkpoint))
    notes.push_back(*text);
  auto add = [&](const std::vector<std::string> &names, const char *what, bool allowed) {
    if (!names.empty())
      (allowed ? notes : problems)
          .push_back(fmt::format("{} {}: {}", names.size(), what, listSome(names)));
  };
  add(missing.parameters,
      "parameters of the plan are not in the checkpoint and keep their initial "
      "values",
      allowModelChange);
  add(extra.parameters, "parameters of the checkpoint are not in the plan", allowModelChange);
  add(missing.adapters,
      "adapters of the plan are not in the checkpoint and keep their initial "
      "values",
      true);
  add(extra.adapters, "adapters of the checkpoint are not in the plan", true);
  add(missing.optimizer, "tensors of optimizer state are not in the checkpoint and start as zeros",
      true);
  add(extra.optimizer, "tensors of optimizer state are not in the plan", true);
  add(missing.stepState, "tensors of step state are not in the checkpoint and start anew", true);
  add(extra.stepState, "tensors of step state are not in the plan", true);
  if (!problems.empty())
    return Error{fmt::format("{}: the checkpoint is of another model: {}; give the plan of the "
                             "same model, or allow the change with --allow-change model",
                             checkpoint.path(), fmt::join(problems, "; "))};
  return notes;
}

/// The value in another element type.
static Expected<HostTensor> convert(HostTensor value, DType dtype) {
  static const std::map<DType, const char *> fileNames = {
      {DType::F32, "F32"},        {DType::F64, "F64"},       {DType::I32, "I32"},
      {DType::Bool, "BOOL"},      {DType::BF16, "BF16"},     {DType::F16, "F16"},
      {DType::F8E4M3, "F8_E4M3"}, {DType::F8E5M2, "F8_E5M2"}};
  if (value.type.dtype == dtype)
    return value;
  HostTensor converted(TensorType{dtype, value.type.shape});
  if (MaybeError error = convertElements(fileNames.at(value.type.dtype), value.bytes, 0, dtype,
                                         converted.bytes.data()))
    return *error;
  return converted;
}

/// The state of as many replicas as the plan has. Those that the checkpoint lacks have the outer
/// parameters as their own, where there are some, and otherwise the values of one that it has.
static Expected<HostTensor> forReplicas(const SavedState &saved, const Checkpoint &checkpoint,
                                        HostTensor value) {
  const int64_t had = value.type.shape.empty() ? 0 : value.type.shape.front();
  if (saved.copies == had || !hasOtherReplicas(saved, value.type))
    return value;
  HostTensor result(TensorType{value.type.dtype, savedTypeOf(saved).shape});
  const size_t bytes = value.bytes.size() / static_cast<size_t>(had);
  const plan::State &state = *saved.state;
  const std::string outer =
      (saved.rounded ? state.parameter() : state.name()) + "." + kOuterParametersState;
  const bool isWeights =
      state.kind() == plan::State::PARAMETER || state.kind() == plan::State::MASTER_WEIGHTS;
  std::optional<HostTensor> newest;
  if (isWeights && saved.copies > had && checkpoint.manifest().tensors.count(outer)) {
    Expected<HostTensor> read = checkpoint.read(outer);
    Expected<HostTensor> converted = read ? convert(std::move(*read), value.type.dtype) : read;
    if (!converted)
      return converted;
    newest = std::move(*converted);
  }
  for (int64_t replica = 0; replica < saved.copies; ++replica) {
    const std::byte *from = replica >= had && newest
                                ? newest->bytes.data()
                                : value.bytes.data() + static_cast<size_t>(replica % had) * bytes;
    std::copy_n(from, bytes, result.bytes.data() + static_cast<size_t>(replica) * bytes);
  }
  return result;
}

Expected<std::vector<std::string>> loadCheckpoint(Session &session, const Checkpoint &checkpoint,
                                                  bool allowModelChange) {
  std::map<std::string, SavedState> states = savedStatesOf(session.plan());
  auto notes = compareTensors(states, checkpoint, allowModelChange);
  if (!notes)
    return notes;
  std::map<std::string, std::vector<StateShard>> shardsOf; // by state
  for (StateShard &shard : session.stateShards())
    shardsOf[shard.state->name()].push_back(std::move(shard));
  auto set = [&](const plan::State &state, HostTensor &value) {
    std::vector<HostShard> shards;
    for (const StateShard &shard : shardsOf[state.name()])
      shards.push_back({shard, value.bytes.data()});
    return session.writeShards(shards);
  };
  for (const auto &[name, saved] : states) {
    if (!checkpoint.manifest().tensors.count(name))
      continue;
    Expected<HostTensor> value = checkpoint.read(name);
    if (value)
      value = forReplicas(saved, checkpoint, std::move(*value));
    if (!value)
      return value.error();
    for (const plan::State *state : {saved.state, saved.rounded}) {
      if (state)
        value = convert(std::move(*value), toDType(state->dtype()));
      if (!value)
        return value.error().inContext(fmt::format("{}: tensor \"{}\"", checkpoint.path(), name));
      if (state)
        if (MaybeError error = set(*state, *value))
          return *error;
    }
  }
  return notes;
}

} // namespace dtc::runtime
