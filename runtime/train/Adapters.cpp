//===- Adapters.cpp - Files of adapters -----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Adapters.h"

#include "plan/AdapterNames.h"
#include "plan/PlanTypes.h"
#include "runtime/train/AdapterConfig.h"
#include "runtime/train/MergeAdapter.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dtc::runtime {

/// The fields of PEFT's LoraConfig that have no fitting default.
static std::string formatConfig(const plan::Plan &plan) {
  const plan::Lora &lora = plan.lora();
  const std::map<std::string, FileTensor> tensors = *fileTensorsOf(plan);
  std::vector<std::string> modules, parameters;
  for (const std::string &target : lora.targets())
    (namesTensor(tensors, target) ? parameters : modules).push_back(target);
  nlohmann::ordered_json json = {
      {"peft_type", "LORA"},
      {"r", lora.rank()},
      {"lora_alpha", lora.alpha()},
      {"lora_dropout", lora.dropout()},
      {"target_modules", nlohmann::ordered_json(modules)},
      {"bias", "none"},
      {"inference_mode", true},
  };
  // PEFT would find it out and warn.
  if (findOrientation(tensors) == Orientation::InOut)
    json["fan_in_fan_out"] = true;
  if (!parameters.empty())
    json["target_parameters"] = parameters;
  // PEFT writes whole numbers as such, and its type of alpha is an integer.
  if (double whole = std::floor(lora.alpha()); whole == lora.alpha() && whole < 1e15)
    json["lora_alpha"] = static_cast<int64_t>(whole);
  // Names from a plan need not be UTF-8.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Expected<AdapterFolder> AdapterFolder::create(const plan::Plan &plan, const std::string &path) {
  std::vector<const plan::State *> states = distinctStates(plan);
  if (std::none_of(states.begin(), states.end(),
                   [](const plan::State *state) { return isAdapterName(state->name()); }))
    return Error{"--save-adapters: the plan has no adapters; import the model with --lora for one "
                 "that has, or leave the flag out"};
  // A file of adapters has this suffix; nobody gives it to a folder.
  if (path.ends_with(".safetensors"))
    return Error{fmt::format("--save-adapters is {}, expected a folder; it gets {}{}", path,
                             kAdapterTensorsName,
                             plan.has_lora() ? fmt::format(" and {}", kAdapterConfigName) : "")};
  SavedWeights weights(plan, SavedContent::Adapters);
  std::vector<std::string> names = {kAdapterTensorsName};
  std::string config;
  if (plan.has_lora()) {
    names.push_back(kAdapterConfigName);
    config = formatConfig(plan);
  }
  Expected<AtomicFolder> folder = AtomicFolder::create(path, names);
  if (!folder)
    return folder.error();
  if (MaybeError error = folder->file(0).reserve(weights.numBytes()))
    return *error;
  if (!config.empty())
    if (MaybeError error = folder->file(1).reserve(config.size()))
      return *error;
  return AdapterFolder(std::move(*folder), std::move(weights), std::move(config));
}

MaybeError AdapterFolder::save(const Session &session) {
  if (MaybeError error = weights.write(session, folder.file(0)))
    return error;
  if (!config.empty())
    if (MaybeError error = folder.file(1).write(config))
      return error;
  return folder.commit();
}

} // namespace dtc::runtime
