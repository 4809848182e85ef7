//===- Adapters.cpp - Files of adapters -----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Adapters.h"

#include "runtime/plan/AdapterNames.h"
#include "runtime/plan/PlanTypes.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/train/Weights.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dtc::runtime {

static std::string configPathOf(const std::string &path) {
  return (std::filesystem::path(path).parent_path() / "adapter_config.json").string();
}

/// The fields of PEFT's LoraConfig that have no fitting default.
static std::string formatConfig(const plan::Lora &lora) {
  nlohmann::ordered_json json = {
      {"peft_type", "LORA"},
      {"r", lora.rank()},
      {"lora_alpha", lora.alpha()},
      {"lora_dropout", lora.dropout()},
      {"target_modules", nlohmann::ordered_json(toVector(lora.targets()))},
      {"bias", "none"},
      {"inference_mode", true},
  };
  // PEFT writes whole numbers as such, and its type of alpha is an integer.
  if (double whole = std::floor(lora.alpha()); whole == lora.alpha() && whole < 1e15)
    json["lora_alpha"] = static_cast<int64_t>(whole);
  // Names from a plan need not be UTF-8.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

MaybeError checkAdapters(const plan::Plan &plan, const std::string &path) {
  std::vector<const plan::State *> states = distinctStates(plan);
  if (std::none_of(states.begin(), states.end(),
                   [](const plan::State *state) { return isAdapterName(state->name()); }))
    return Error{"--save-adapters: the plan has no adapters; import the model with --lora for one "
                 "that has, or leave the flag out"};
  if (MaybeError error = checkWritable(path))
    return error;
  return plan.has_lora() ? checkWritable(configPathOf(path)) : std::nullopt;
}

MaybeError saveAdapters(const Session &session, const std::string &path) {
  if (MaybeError error = saveWeights(session, path, isAdapterName))
    return error;
  const plan::Plan &plan = session.plan();
  if (!plan.has_lora())
    return std::nullopt;
  auto file = AtomicFile::create(configPathOf(path));
  if (!file)
    return file.error();
  if (MaybeError error = file->write(formatConfig(plan.lora())))
    return error;
  return file->commit();
}

} // namespace dtc::runtime
