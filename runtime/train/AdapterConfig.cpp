//===- AdapterConfig.cpp - What PEFT says of adapters ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/AdapterConfig.h"

#include "plan/AdapterNames.h"
#include "runtime/data/WeightsFileShards.h"
#include "runtime/train/MergeAdapter.h"
#include "support/ReadText.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace dtc::runtime {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json; // the first pattern that matches holds

/// Longer patterns are none that a person or PEFT writes.
static constexpr size_t kLongestPattern = 256;

/// Fields that change what is computed, and that no --lora asks for. Absent, null, false and empty
/// mean that they are not used.
static constexpr std::string_view kUnsupported[] = {"use_dora",         "lora_bias",
                                                    "modules_to_save",  "layer_replication",
                                                    "use_qalora",       "trainable_token_indices",
                                                    "arrow_config",     "alora_invocation_tokens",
                                                    "use_bdlora",       "kasa_config",
                                                    "monteclora_config"};

/// Initial values of adapters that leave the base weights as they are. The others change these.
static constexpr std::string_view kPlainInit[] = {"gaussian", "eva", "orthogonal"};

static constexpr const char *kTargetParameters = "target_parameters";

static std::string show(const Json &value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

static bool isUnused(const Json &value) {
  return value.is_null() || value == false ||
         ((value.is_array() || value.is_object()) && value.empty());
}

static constexpr const char *kMerge =
    "merge the adapters into the weights with PEFT (merge_and_unload), and give these to --init";

/// Refuses a configuration that a model of dtc cannot compute.
static MaybeError checkSupported(const Json &json) {
  constexpr const char *remedy = kMerge;
  if (auto type = json.find("peft_type"); type != json.end() && *type != "LORA")
    return Error{fmt::format("peft_type is {}, expected \"LORA\"; {}", show(*type), remedy)};
  for (std::string_view field : kUnsupported)
    if (auto value = json.find(field); value != json.end() && !isUnused(*value))
      return Error{fmt::format("{} is {}, which dtc-import --lora has not; {}", field, show(*value),
                               remedy)};
  // Their names are those of tensors, which adapters in files do not have.
  for (const char *field : {"rank_pattern", "alpha_pattern"})
    if (!isUnused(json.value(kTargetParameters, Json())) && !isUnused(json.value(field, Json())))
      return Error{fmt::format("{} is given beside {}, expected the same rank and "
                               "scale for all adapters then; {}",
                               field, kTargetParameters, remedy)};
  if (auto bias = json.find("bias"); bias != json.end() && !bias->is_null() && *bias != "none")
    return Error{
        fmt::format("bias is {}, expected \"none\", as dtc-import --lora trains no biases; "
                    "{}",
                    show(*bias), remedy)};
  auto init = json.find("init_lora_weights");
  if (init == json.end() || init->is_boolean() || init->is_null() ||
      (init->is_string() && std::ranges::count(kPlainInit, init->get<std::string>()) > 0))
    return std::nullopt;
  return Error{fmt::format("init_lora_weights is {}, by which PEFT changes the base weights; {}",
                           show(*init), remedy)};
}

/// A number above 0; whole where `isWhole`.
static Expected<double> readNumber(const std::string &field, const Json &value, bool isWhole) {
  double number = value.is_number() ? value.get<double>() : 0;
  if (number > 0 && std::isfinite(number) &&
      (!isWhole || (number == std::floor(number) && number < 1e9)))
    return number;
  return Error{fmt::format("{} is {}, expected a {}number above 0", field, show(value),
                           isWhole ? "whole " : "")};
}

/// As PEFT matches: the whole name of a module, or what comes after a point of it.
static Expected<std::regex> patternOf(const std::string &field, const std::string &text) {
  try {
    if (text.size() <= kLongestPattern)
      return std::regex("(?:.*\\.)?(?:" + text + ")");
  } catch (const std::regex_error &) {
  }
  return Error{fmt::format("{} has \"{}\", expected a regular expression of at most {} characters "
                           "for names of modules",
                           field, text, kLongestPattern)};
}

MaybeError AdapterConfig::parse(const std::string &text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return Error{"is no JSON object, expected the configuration of PEFT's adapters"};
  if (MaybeError error = checkSupported(json))
    return error;
  Expected<double> r = readNumber("r", json.value("r", Json()), true);
  if (!r)
    return r.error();
  Expected<double> a = readNumber("lora_alpha", json.value("lora_alpha", Json()), false);
  if (!a)
    return a.error();
  rank = static_cast<int64_t>(*r);
  alpha = *a;
  dividesByRoot = json.value("use_rslora", Json()) == true;
  for (auto [field, pattern, isWhole] :
       {std::tuple("rank_pattern", &ranks, true), std::tuple("alpha_pattern", &alphas, false)}) {
    Json given = json.value(field, Json());
    if (isUnused(given))
      continue;
    if (!given.is_object())
      return Error{fmt::format("{} is {}, expected an object", field, show(given))};
    for (const auto &[name, value] : given.items()) {
      Expected<double> number =
          readNumber(fmt::format("{} of \"{}\"", field, name), value, isWhole);
      if (!number)
        return number.error();
      Expected<std::regex> matches = patternOf(field, name);
      if (!matches)
        return matches.error();
      pattern->emplace_back(std::move(*matches), *number);
    }
  }
  for (auto [field, names] :
       {std::pair("target_modules", &targets), std::pair(kTargetParameters, &tensorTargets)})
    if (Json given = json.value(field, Json()); given.is_array())
      for (const Json &target : given)
        if (target.is_string())
          names->push_back(target.get<std::string>());
  std::ranges::sort(targets); // PEFT writes a set
  return std::nullopt;
}

MaybeError AdapterConfig::checkTensors(const std::map<std::string, FileTensor> &tensors) const {
  for (const std::string &target : tensorTargets)
    if (!namesTensor(tensors, target))
      return Error{fmt::format("{}: {} is {}, which dtc-import --lora has not; {}", file,
                               kTargetParameters, show(Json(tensorTargets)), kMerge)};
  return std::nullopt;
}

Expected<std::optional<AdapterConfig>> AdapterConfig::read(const std::string &weightsPath) {
  Expected<std::vector<std::string>> files = safetensorsFilesOf(weightsPath);
  if (!files)
    return files.error();
  std::error_code code;
  fs::path weights = files->front(), path = weights.parent_path() / kAdapterConfigName;
  if (weights.filename() != kAdapterTensorsName || !fs::exists(path, code))
    return std::optional<AdapterConfig>();
  Expected<std::string> text = readText(path.string());
  if (!text)
    return text.error();
  AdapterConfig config;
  config.file = path.string();
  if (MaybeError error = config.parse(*text))
    return error->inContext(config.file);
  return std::optional(std::move(config));
}

/// "layers.0.q_proj" of "base_model.model.layers.0.q_proj.lora_B.weight".
static std::string_view moduleOf(std::string_view tensor) {
  if (tensor.starts_with(kAdapterPrefix))
    tensor.remove_prefix(kAdapterPrefix.size());
  return tensor.substr(0, tensor.rfind(".lora_"));
}

const double *AdapterConfig::find(const Pattern &pattern, std::string_view tensor) {
  std::string_view module = moduleOf(tensor);
  for (const auto &[matches, value] : pattern)
    if (std::regex_match(module.begin(), module.end(), matches))
      return &value;
  return nullptr;
}

int64_t AdapterConfig::rankOf(std::string_view tensor) const {
  const double *own = find(ranks, tensor);
  return own ? static_cast<int64_t>(*own) : rank;
}

double AdapterConfig::alphaOf(std::string_view tensor) const {
  const double *own = find(alphas, tensor);
  return own ? *own : alpha;
}

double AdapterConfig::scaleOf(std::string_view tensor) const {
  auto divisor = static_cast<double>(rankOf(tensor));
  return alphaOf(tensor) / (dividesByRoot ? std::sqrt(divisor) : divisor);
}

std::string AdapterConfig::rankField(std::string_view tensor) const {
  return find(ranks, tensor) ? "rank_pattern" : "r";
}

std::string AdapterConfig::scaleField(std::string_view tensor) const {
  return fmt::format("{}{}", find(alphas, tensor) ? "alpha_pattern" : "lora_alpha",
                     dividesByRoot ? " and use_rslora" : "");
}

std::string AdapterConfig::loraFlag() const {
  double scale =
      alpha / (dividesByRoot ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank));
  std::vector<std::string> all = targets;
  all.insert(all.end(), tensorTargets.begin(), tensorTargets.end());
  return fmt::format("rank={},alpha={}{}", rank, scale * static_cast<double>(rank),
                     all.empty() ? "" : fmt::format(",target={}", fmt::join(all, ",")));
}

} // namespace dtc::runtime
