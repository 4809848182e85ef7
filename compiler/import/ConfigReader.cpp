//===- ConfigReader.cpp - Typed access to a model's configuration ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/ConfigReader.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <iterator>

using namespace dtc;
using nlohmann::json;

ConfigReader::ConfigReader(llvm::StringRef text, llvm::StringRef fileName, ImportLog &log)
    : object(json::object()), fileName(fileName.str()), log(log) {
  try {
    json value = json::parse(text.begin(), text.end());
    if (value.is_object())
      object = std::move(value);
    else
      error("the file holds a JSON " + std::string(value.type_name()) +
            ", expected an object: { \"model_type\": ..., ... }");
  } catch (const json::exception &exception) {
    // The text reads "[json.exception.parse_error.101] parse error at line 3, column 7: ...".
    llvm::StringRef what = exception.what();
    if (what.starts_with("["))
      what = what.split("] ").second;
    error("not valid JSON: " + what.str());
  }
}

void ConfigReader::addAlias(llvm::StringRef field, llvm::StringRef alias) {
  known.insert(alias.str());
  auto aliasIt = object.find(alias.str());
  if (aliasIt == object.end())
    return;
  auto fieldIt = object.find(field.str());
  if (fieldIt == object.end())
    aliases[field.str()] = alias.str();
  else if (*fieldIt != *aliasIt)
    error(llvm::formatv("'{0}' is {1} but '{2}' is {3}, and both mean the same; remove one", field,
                        show(*fieldIt), alias, show(*aliasIt)));
}

const json *ConfigReader::find(llvm::StringRef field) {
  known.insert(field.str());
  auto alias = aliases.find(field.str());
  auto it = object.find(alias == aliases.end() ? field.str() : alias->second);
  return it == object.end() ? nullptr : &*it;
}

bool ConfigReader::has(llvm::StringRef field) { return find(field) != nullptr; }

std::string ConfigReader::quote(llvm::StringRef field) {
  auto alias = aliases.find(field.str());
  return llvm::formatv("'{0}'", alias == aliases.end() ? field.str() : alias->second);
}

std::string ConfigReader::show(const json &value) {
  constexpr size_t limit = 60;
  std::string text = value.dump();
  if (text.size() <= limit)
    return text;
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end; // not inside of a UTF-8 sequence
  return text.substr(0, end) + "...";
}

void ConfigReader::error(const std::string &message) {
  log.errors.push_back(fileName + ": " + message);
}

void ConfigReader::warning(const std::string &message) {
  log.warnings.push_back(fileName + ": " + message);
}

//===----------------------------------------------------------------------===//
// Fields by type
//===----------------------------------------------------------------------===//

std::optional<int64_t> ConfigReader::checkSize(llvm::StringRef field, const json &value,
                                               int64_t maxSize) {
  if (!value.is_number_integer()) {
    error(quote(field) + " is " + show(value) + ", expected an integer");
    return std::nullopt;
  }
  bool fits = !value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t(maxSize);
  if (!fits || value.get<int64_t>() < 1 || value.get<int64_t>() > maxSize) {
    error(quote(field) + " is " + show(value) + ", expected an integer from 1 to " +
          std::to_string(maxSize));
    return std::nullopt;
  }
  return value.get<int64_t>();
}

int64_t ConfigReader::getSize(llvm::StringRef field, int64_t fallback, int64_t maxSize) {
  const json *value = find(field);
  return value ? checkSize(field, *value, maxSize).value_or(fallback) : fallback;
}

std::optional<int64_t> ConfigReader::getOptionalSize(llvm::StringRef field, int64_t maxSize) {
  const json *value = find(field);
  if (!value || value->is_null())
    return std::nullopt;
  return checkSize(field, *value, maxSize);
}

double ConfigReader::getNumber(llvm::StringRef field, double fallback, bool allowZero) {
  const json *value = find(field);
  if (!value)
    return fallback;
  if (!value->is_number()) {
    error(quote(field) + " is " + show(*value) + ", expected a number");
    return fallback;
  }
  double number = value->get<double>();
  if (!std::isfinite(number) || number < 0 || (number == 0 && !allowZero)) {
    error(quote(field) + " is " + show(*value) + ", expected a number that is " +
          (allowZero ? "not negative" : "greater than 0"));
    return fallback;
  }
  return number;
}

double ConfigReader::getPositive(llvm::StringRef field, double fallback) {
  return getNumber(field, fallback, /*allowZero=*/false);
}

double ConfigReader::getNonNegative(llvm::StringRef field, double fallback) {
  return getNumber(field, fallback, /*allowZero=*/true);
}

bool ConfigReader::getBool(llvm::StringRef field, bool fallback) {
  const json *value = find(field);
  if (!value)
    return fallback;
  if (!value->is_boolean()) {
    error(quote(field) + " is " + show(*value) + ", expected true or false");
    return fallback;
  }
  return value->get<bool>();
}

std::string ConfigReader::getString(llvm::StringRef field, llvm::StringRef fallback) {
  const json *value = find(field);
  if (!value)
    return fallback.str();
  if (!value->is_string()) {
    error(quote(field) + " is " + show(*value) + ", expected a string");
    return fallback.str();
  }
  return value->get<std::string>();
}

//===----------------------------------------------------------------------===//
// Fields that are not supported
//===----------------------------------------------------------------------===//

void ConfigReader::requireOneOf(llvm::StringRef field, llvm::ArrayRef<json> accepted) {
  const json *value = find(field);
  if (!value || value->is_null() || llvm::is_contained(accepted, *value))
    return;
  std::string expected;
  for (const json &choice : accepted)
    expected += show(choice) + " or ";
  error(quote(field) + " is " + show(*value) + ", which is not supported; expected " + expected +
        "null, or the field left out");
}

void ConfigReader::requireAnyOf(llvm::StringRef field, llvm::ArrayRef<llvm::StringRef> accepted) {
  const json *value = find(field);
  if (!value || value->is_null())
    return;
  if (!value->is_array()) {
    error(quote(field) + " is " + show(*value) + ", expected a list of strings");
    return;
  }
  auto isAccepted = [&](const json &element) {
    return element.is_string() &&
           llvm::is_contained(accepted, llvm::StringRef(element.get_ref<const std::string &>()));
  };
  if (!value->empty() && llvm::none_of(*value, isAccepted))
    error(quote(field) + " is " + show(*value) + ", which is not supported; expected one of " +
          llvm::join(accepted, ", ") + ", or the field left out");
}

double ConfigReader::getDropoutRate(llvm::StringRef field, double fallback) {
  double rate = getNonNegative(field, fallback);
  if (rate < 1)
    return rate;
  error(quote(field) + " is " + show(rate) + ", expected a rate of at least 0 and less than 1");
  return 0;
}

/// Fields that do not say what a model computes for its loss: of tokenizers, generation, other
/// tasks, files and the software that wrote them.
static constexpr llvm::StringLiteral kWithoutMeaning[] = {"_attn_implementation_autoset",
                                                          "_sliding_window_pattern",
                                                          "_name_or_path",
                                                          "auto_map",
                                                          "begin_suppress_tokens",
                                                          "bos_token_id",
                                                          "cache_implementation",
                                                          "chunk_size_feed_forward",
                                                          "classifier_dropout",
                                                          "decoder_start_token_id",
                                                          "dtype",
                                                          "eos_token_id",
                                                          "finetuning_task",
                                                          "gradient_checkpointing",
                                                          "id2label",
                                                          "is_decoder",
                                                          "label2id",
                                                          "n_ctx",
                                                          "num_labels",
                                                          "output_attentions",
                                                          "output_hidden_states",
                                                          "pad_token_id",
                                                          "prefix",
                                                          "pretraining_tp",
                                                          "problem_type",
                                                          "return_dict",
                                                          "sep_token_id",
                                                          "summary_activation",
                                                          "summary_first_dropout",
                                                          "summary_proj_to_labels",
                                                          "summary_type",
                                                          "summary_use_proj",
                                                          "task_specific_params",
                                                          "tokenizer_class",
                                                          "torch_dtype",
                                                          "torchscript",
                                                          "transformers_version",
                                                          "unsloth_fixed",
                                                          "use_cache"};

void ConfigReader::acceptUnread(llvm::StringRef field, const json &value) {
  auto it = object.find(field.str());
  if (it != object.end() && *it == value)
    known.insert(field.str());
}

void ConfigReader::warnAboutUnknownFields() {
  constexpr unsigned maxDistance = 2;
  constexpr size_t minLength = 6;
  std::string ignored;
  for (const auto &item : object.items()) {
    llvm::StringRef key = item.key();
    const json &value = item.value();
    if (known.count(item.key()) || llvm::is_contained(kWithoutMeaning, key))
      continue;
    auto isNear = [&](const std::string &field) {
      return key.edit_distance(field, /*AllowReplacements=*/true,
                               /*MaxEditDistance=*/maxDistance) <= maxDistance;
    };
    auto near = key.size() < minLength ? known.end() : llvm::find_if(known, isNear);
    if (near != known.end())
      warning("'" + item.key() + "' is not a field of this model and is ignored; '" + *near +
              "' is");
    else if (!value.is_null() && value != false)
      ignored += (ignored.empty() ? "'" : ", '") + item.key() + "'";
  }
  for (const std::string &name : unread)
    ignored += (ignored.empty() ? "'" : ", '") + name + "'";
  if (!ignored.empty())
    warning("ignored, for they are no fields of this model: " + ignored);
}
