//===- StopTokens.cpp - The tokens that end a text of a model -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/generate/StopTokens.h"

#include "support/ReadText.h"

#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

namespace dtc::runtime {

namespace fs = std::filesystem;
using Json = nlohmann::json;

static constexpr const char *kField = "eos_token_id";

/// The tokens of a value; none of null. nullopt if it is neither a token nor a list of some.
static std::optional<std::vector<int32_t>> tokensOf(const Json &value) {
  std::vector<int32_t> tokens;
  if (value.is_null())
    return tokens;
  for (const Json &each : value.is_array() ? value : Json::array({value})) {
    if (!each.is_number_integer() || each < 0 || each > std::numeric_limits<int32_t>::max())
      return std::nullopt;
    tokens.push_back(each.get<int32_t>());
  }
  return tokens;
}

/// The stop tokens of a configuration. Models of text and images have those of the text in an
/// object.
static Expected<std::vector<int32_t>> readTokens(const std::string &path) {
  Expected<std::string> text = readText(path);
  if (!text)
    return text.error();
  Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return Error{fmt::format("{}: is no JSON object", path)};
  Json value = json.value(kField, Json());
  if (Json inner = json.value("text_config", Json()); value.is_null() && inner.is_object())
    value = inner.value(kField, Json());
  if (auto tokens = tokensOf(value))
    return *tokens;
  return Error{fmt::format("{}: {} is {}, expected a token or a list of tokens, as numbers of 0 or "
                           "more; give --stop-token or --ignore-eos to do without it",
                           path, kField,
                           value.dump(-1, ' ', false, Json::error_handler_t::replace))};
}

Expected<ModelStopTokens> findStopTokens(const std::string &weightsPath) {
  std::error_code code;
  fs::path folder;
  if (fs::is_directory(weightsPath, code))
    folder = weightsPath;
  else if (weightsPath.ends_with(".json")) // an index
    folder = fs::path(weightsPath).parent_path();
  else
    return ModelStopTokens();
  for (const char *name : {"generation_config.json", "config.json"}) {
    std::string path = (folder / name).string();
    if (!fs::exists(path, code))
      continue;
    auto tokens = readTokens(path);
    if (!tokens)
      return tokens.error();
    if (!tokens->empty())
      return ModelStopTokens{path, *tokens};
  }
  return ModelStopTokens();
}

} // namespace dtc::runtime
