//===- RunIdentity.cpp - Identity of a run --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/RunIdentity.h"

#include "plan/AdapterNames.h"
#include "plan/KernelTable.h"
#include "plan/PlanTypes.h"
#include "runtime/checkpoint/Checksum.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtc::runtime {

static constexpr std::string_view kChanges[] = {"batch",     "data", "model",
                                                "optimizer", "seed", "sequence"};

std::span<const std::string_view> allowedChanges() { return kChanges; }

static std::string str(const plan::Attribute &attribute) {
  switch (attribute.value_case()) {
  case plan::Attribute::kI:
    return fmt::format("{}", attribute.i());
  case plan::Attribute::kF:
    return fmt::format("{}", attribute.f());
  case plan::Attribute::kS:
    return attribute.s();
  case plan::Attribute::kB:
    return fmt::format("{}", attribute.b());
  default:
    return attribute.ShortDebugString();
  }
}

using Optimizer = std::map<std::string, std::set<std::string>>;

/// "adamw beta1=0.9 beta2=0.95 eps=1e-08 weight_decay=0.1", for each that the plan calls, and the
/// parameters for which it does. The location of what updates a parameter is its name.
static Optimizer optimizerOf(const plan::Plan &plan) {
  Optimizer found;
  for (const plan::Program &program : plan.programs())
    for (const plan::Task &task : program.tasks())
      for (const plan::Instruction &instruction : task.instructions()) {
        const plan::KernelCall &call = instruction.kernel();
        if (!instruction.has_kernel() || classOf(call.kernel()) != KernelClass::Optimizer)
          continue;
        std::set<std::string> settings;
        for (const auto &[name, value] : call.attributes())
          settings.insert(fmt::format(" {}={}", name, str(value)));
        found[call.kernel() + fmt::format("{}", fmt::join(settings, ""))].insert(
            plan.locations(static_cast<int>(instruction.location())));
      }
  return found;
}

/// How the optimizers of the parameters that both train differ.
struct OptimizerChange {
  std::set<std::string> parameters, before, after;

  OptimizerChange(const Optimizer &saved, const Optimizer &now) {
    std::map<std::string, std::set<std::string>> settingsBefore = settingsOf(saved);
    for (const auto &[parameter, settings] : settingsOf(now)) {
      auto found = settingsBefore.find(parameter);
      if (found == settingsBefore.end() || found->second == settings)
        continue;
      parameters.insert(parameter);
      before.insert(found->second.begin(), found->second.end());
      after.insert(settings.begin(), settings.end());
    }
  }

  /// "the optimizer of h.0.attn.weight and 3 more".
  std::string what() const {
    std::string more =
        parameters.size() > 1 ? fmt::format(" and {} more", parameters.size() - 1) : "";
    return fmt::format("the optimizer of {}{}", *parameters.begin(), more);
  }

private:
  static std::map<std::string, std::set<std::string>> settingsOf(const Optimizer &optimizer) {
    std::map<std::string, std::set<std::string>> result;
    for (const auto &[settings, parameters] : optimizer)
      for (const std::string &parameter : parameters)
        result[parameter].insert(settings);
    return result;
  }
};

/// Of the parameters' names and shapes, adapters aside: the same for all layouts, element types
/// and frozen parts.
static std::string modelFingerprint(const plan::Plan &plan) {
  std::set<std::string> lines;
  for (const plan::State *state : distinctStates(plan))
    if (state->kind() == plan::State::PARAMETER && !isAdapterName(state->name()))
      lines.insert(fmt::format("{} [{}]\n", state->name(), fmt::join(state->file_shape(), ", ")));
  return checksumOf(std::string_view(fmt::format("{}", fmt::join(lines, ""))));
}

Expected<RunIdentity> identityOf(const plan::Plan &plan, int64_t batches, uint64_t seed,
                                 const DataSource *data, Sampling sampling) {
  RunIdentity identity{.seed = seed,
                       .batches = batches,
                       .optimizer = optimizerOf(plan),
                       .model = modelFingerprint(plan)};
  for (const DataInput &input : dataInputsOf(plan)) {
    if (identity.samples == 0 && input.type.rank() > 0)
      identity.samples = input.type.shape[0];
    if (input.name == "tokens" && input.type.rank() == 2)
      identity.sequence = input.type.shape[1];
  }
  if (!data)
    return identity;
  Expected<std::string> fingerprint = data->fingerprint();
  if (!fingerprint)
    return fingerprint.error();
  identity.data = fmt::format("{}, sampled {}", *fingerprint,
                              sampling == Sampling::Epochs ? "by epochs" : "at random");
  return identity;
}

MaybeError checkIdentity(const RunIdentity &saved, const RunIdentity &now,
                         const std::set<std::string> &allowed, std::vector<std::string> &notes) {
  std::vector<std::string> changes, flags;
  auto add = [&](const char *flag, const std::string &what, const std::string &before,
                 const std::string &after) {
    std::string change = fmt::format("{} was {}, and is {}", what, before, after);
    if (allowed.count(flag)) {
      notes.push_back(change);
      return;
    }
    changes.push_back(change);
    flags.push_back(flag);
  };
  auto compare = [&](const char *flag, const char *what, const std::string &before,
                     const std::string &after) {
    if (before != after)
      add(flag, what, before, after);
  };
  auto batchOf = [](const RunIdentity &identity) {
    return fmt::format("{} samples ({} of {})", identity.samples * identity.batches,
                       identity.batches == 1 ? std::string("a batch")
                                             : fmt::format("{} batches", identity.batches),
                       identity.samples);
  };
  compare("batch", "a step", batchOf(saved), batchOf(now));
  compare("sequence", "a sequence", fmt::format("{} tokens", saved.sequence),
          fmt::format("{} tokens", now.sequence));
  // Without data there is nothing to train on, and so no step that the data could change.
  if (!saved.data.empty() && !now.data.empty())
    compare("data", "the data set", saved.data, now.data);
  if (OptimizerChange change(saved.optimizer, now.optimizer); !change.parameters.empty())
    add("optimizer", change.what(), fmt::format("{}", fmt::join(change.before, " and ")),
        fmt::format("{}", fmt::join(change.after, " and ")));
  compare("seed", "the seed", fmt::format("{}", saved.seed), fmt::format("{}", now.seed));
  if (changes.empty())
    return std::nullopt;
  return Error{fmt::format("the run is not the one that was saved: {}; give what it had, or allow "
                           "the change with --allow-change {}",
                           fmt::join(changes, "; "), fmt::join(flags, ","))};
}

} // namespace dtc::runtime
