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
/// parameters for which it does. The location of a kernel that updates a parameter is the
/// parameter's name.
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

/// The checksum of the names and shapes of the adapters, or of all other parameters: the same for
/// all layouts, element types and frozen parts. Empty where there are none.
static std::string checksumOfParameters(const plan::Plan &plan, bool adapters) {
  std::set<std::string> lines;
  for (const plan::State *state : distinctStates(plan))
    if (state->kind() == plan::State::PARAMETER && isAdapterName(state->name()) == adapters)
      lines.insert(fmt::format("{} [{}]\n", state->name(), fmt::join(state->file_shape(), ", ")));
  return lines.empty() ? "" : checksumOf(std::string_view(fmt::format("{}", fmt::join(lines, ""))));
}

int64_t samplesOfBatch(const plan::Plan &plan) {
  for (const DataInput &input : dataInputsOf(plan))
    if (input.type.rank() > 0)
      return input.type.shape[0];
  return 0;
}

Expected<RunIdentity> identityOf(const plan::Plan &plan, int64_t batches, uint64_t seed,
                                 const DataSource *data, Sampling sampling) {
  RunIdentity identity{.seed = seed,
                       .samples = samplesOfBatch(plan),
                       .batches = batches,
                       .optimizer = optimizerOf(plan),
                       .model = checksumOfParameters(plan, /*adapters=*/false),
                       .adapters = checksumOfParameters(plan, /*adapters=*/true),
                       .operations = plan.model_fingerprint(),
                       .updateSettings = plan.update_settings()};
  for (const DataInput &input : dataInputsOf(plan))
    if (input.name == "tokens" && input.type.rank() == 2)
      identity.sequence = input.type.shape[1];
  if (!data)
    return identity;
  Expected<std::string> fingerprint = data->fingerprint();
  if (!fingerprint)
    return fingerprint.error();
  identity.data = fmt::format("{}, sampled {}", *fingerprint,
                              sampling == Sampling::Epochs ? "by epochs" : "at random");
  return identity;
}

namespace {

/// The differences between two parts of a run.
class Changes {
public:
  Changes(const std::set<std::string> &allowed, std::vector<std::string> &notes)
      : allowed(allowed), notes(notes) {}

  void add(const char *flag, const std::string &change) {
    if (allowed.count(flag)) {
      notes.push_back(change);
      return;
    }
    changes.push_back(change);
    if (std::ranges::find(flags, flag) == flags.end())
      flags.emplace_back(flag);
  }

  void compare(const char *flag, const std::string &what, const std::string &before,
               const std::string &after) {
    if (before != after)
      add(flag, describe(what, before, after));
  }

  /// Does what compare() does, for values that one of the two may not know.
  void compareKnown(const char *flag, const std::string &what, const std::string &before,
                    const std::string &after) {
    if (!before.empty() && !after.empty())
      compare(flag, what, before, after);
  }

  static std::string describe(const std::string &what, const std::string &before,
                              const std::string &after) {
    return fmt::format("{} was {}, and is {}", what, before, after);
  }

  MaybeError error() const {
    if (changes.empty())
      return std::nullopt;
    return Error{
        fmt::format("the run is not the one that was saved: {}; give what it had, or allow "
                    "the change with --allow-change {}",
                    fmt::join(changes, "; "), fmt::join(flags, ","))};
  }

private:
  const std::set<std::string> &allowed;
  std::vector<std::string> &notes;
  std::vector<std::string> changes, flags;
};

} // namespace

static std::string describeStep(const RunIdentity &identity) {
  return fmt::format("{} samples ({} of {})", identity.samples * identity.batches,
                     identity.batches == 1 ? std::string("a batch")
                                           : fmt::format("{} batches", identity.batches),
                     identity.samples);
}

MaybeError checkIdentity(const RunIdentity &saved, const RunIdentity &now,
                         const std::set<std::string> &allowed, std::vector<std::string> &notes) {
  Changes changes(allowed, notes);
  if (saved.samples * saved.batches != now.samples * now.batches)
    changes.compare("batch", "a step", describeStep(saved), describeStep(now));
  else if (saved.batches != now.batches)
    // How often the loop over microbatches runs is of no more concern than their number.
    notes.push_back(Changes::describe("a step", describeStep(saved), describeStep(now)));
  changes.compare("sequence", "a sequence", fmt::format("{} tokens", saved.sequence),
                  fmt::format("{} tokens", now.sequence));
  // Without data there is nothing to train on, and so no step that the data could change.
  changes.compareKnown("data", "the data set", saved.data, now.data);
  // loadCheckpoint() says which parameters or adapters differ.
  if (saved.model == now.model && saved.adapters == now.adapters && !saved.operations.empty() &&
      !now.operations.empty() && saved.operations != now.operations)
    changes.add("model", "the operations of the model differ (what they are, how they are "
                         "connected, or their numbers)");
  if (OptimizerChange change(saved.optimizer, now.optimizer); !change.parameters.empty())
    changes.compare("optimizer", change.what(),
                    fmt::format("{}", fmt::join(change.before, " and ")),
                    fmt::format("{}", fmt::join(change.after, " and ")));
  changes.compareKnown("optimizer", "what is done to gradients and learning rates",
                       saved.updateSettings, now.updateSettings);
  changes.compare("seed", "the seed", fmt::format("{}", saved.seed), fmt::format("{}", now.seed));
  return changes.error();
}

} // namespace dtc::runtime
