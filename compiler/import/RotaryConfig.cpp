//===- RotaryConfig.cpp - Rotary positions of a configuration -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The frequencies are those of transformers' modeling_rope_utils.py, computed in f64.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/RotaryConfig.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cmath>
#include <numbers>

using namespace dtc;
using nlohmann::json;

namespace {

/// A kind of scaling, and the keys that it reads.
struct RopeType {
  llvm::StringLiteral name;
  std::vector<llvm::StringRef> keys;
};

} // namespace

static const RopeType kTypes[] = {
    {"default", {}},
    {"linear", {"factor"}},
    // Beyond the positions of the configuration only, which no sequence is.
    {"dynamic", {"factor", "original_max_position_embeddings"}},
    {"llama3",
     {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}},
    {"yarn",
     {"factor", "original_max_position_embeddings", "attention_factor", "beta_fast", "beta_slow",
      "mscale", "mscale_all_dim", "truncate"}},
    {"longrope",
     {"short_factor", "long_factor", "factor", "attention_factor",
      "original_max_position_embeddings"}},
};

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

RotaryConfig::RotaryConfig(ConfigReader &reader, const Family &family, int64_t headSize,
                           int64_t positions, int64_t seq)
    : reader(reader), headSize(headSize), positions(positions), seq(seq),
      theta(family.defaults.ropeTheta), part(family.defaults.rotaryPart) {
  if (const json *found = findEntries())
    entries = *found;
  // Of a model whose layers differ: an object for each kind of layer.
  if (entries.contains("full_attention") && entries["full_attention"].is_object()) {
    slidingEntries = entries.value("sliding_attention", json::object());
    json full = entries["full_attention"];
    entries = full;
    checkKeys(slidingEntries);
  }
  checkKeys(entries);
  part = reader.getPositive(family.fields.rotaryPart, part);
  part = number(entries, "partial_rotary_factor", part);
  if (part > 1)
    reader.error("the part of a head that is rotated is " + ConfigReader::show(part) +
                 ", expected at most 1");
  readTheta(family);
  readOriginal(family);
}

/// The object of the field that is there; null if there is none.
const json *RotaryConfig::findEntries() {
  const json *found = nullptr;
  for (const char *name : {"rope_scaling", "rope_parameters"}) {
    const json *value = reader.find(name);
    if (!value || value->is_null())
      continue;
    if (!value->is_object()) {
      reader.error(reader.quote(name) + " is " + ConfigReader::show(*value) +
                   ", expected an object or null");
      continue;
    }
    if (found && *found != *value)
      reader.error("'rope_scaling' is " + ConfigReader::show(*found) +
                   " but 'rope_parameters' is " + ConfigReader::show(*value) +
                   ", and both mean the same; remove one");
    found = value;
    field = name;
  }
  return found;
}

void RotaryConfig::readTheta(const Family &family) {
  theta = reader.getPositive(family.fields.ropeTheta, theta);
  auto entry = entries.find("rope_theta");
  if (entry == entries.end())
    return;
  double inside = number(entries, "rope_theta", theta);
  if (reader.has(family.fields.ropeTheta) && theta != inside)
    reader.error(reader.quote(family.fields.ropeTheta) + " is " + ConfigReader::show(theta) +
                 " but " + where("rope_theta") + " " + ConfigReader::show(*entry) + "; remove one");
  theta = inside;
}

/// The field of longrope that is beside its entries, as Phi-3 has it.
void RotaryConfig::readOriginal(const Family &family) {
  const char *name = "original_max_position_embeddings";
  if (!family.defaults.originalPositions && typeOf(entries) != "longrope")
    return;
  original = reader.getOptionalSize(name);
  if (!original && entries.contains(name))
    original = static_cast<int64_t>(number(entries, name, double(positions)));
  if (!original && family.defaults.originalPositions)
    original = family.defaults.originalPositions;
}

std::string RotaryConfig::typeOf(const json &entries) const {
  // "type" is what transformers before 4.43 wrote, and "su" what the first files of Phi-3 have.
  for (const char *key : {"rope_type", "type"})
    if (auto type = entries.find(key); type != entries.end() && type->is_string())
      return *type == "su" ? "longrope" : type->get<std::string>();
  return "default";
}

void RotaryConfig::checkKeys(const json &entries) const {
  for (const char *key : {"rope_type", "type"})
    if (auto type = entries.find(key);
        type != entries.end() && *type != typeOf(entries) && *type != "su")
      reader.error(where(key) + " " + ConfigReader::show(*type) +
                   ", expected the same as the other "
                   "of 'rope_type' and 'type', a string");
  std::string name = typeOf(entries);
  const auto *type = llvm::find_if(kTypes, [&](const RopeType &t) { return t.name == name; });
  if (type == std::end(kTypes)) {
    auto names = llvm::map_range(kTypes, [](const RopeType &t) { return t.name.str(); });
    reader.error(where(entries.contains("rope_type") ? "rope_type" : "type") + " \"" + name +
                 "\", which is not supported; supported are " + llvm::join(names, ", "));
    return;
  }
  for (const auto &item : entries.items()) {
    llvm::StringRef key = item.key();
    if (key == "rope_type" || key == "type" || key == "rope_theta" ||
        key == "partial_rotary_factor" || llvm::is_contained(type->keys, key) ||
        item.value().is_null())
      continue;
    reader.error(where(key) + " " + ConfigReader::show(item.value()) +
                 ", which rotary positions of type \"" + name + "\" do not have; remove it");
  }
}

double RotaryConfig::number(const json &entries, llvm::StringRef key, double fallback) const {
  auto entry = entries.find(key.str());
  if (entry == entries.end() || entry->is_null())
    return fallback;
  if (entry->is_number() && entry->get<double>() > 0 && std::isfinite(entry->get<double>()))
    return entry->get<double>();
  reader.error(where(key) + " " + ConfigReader::show(*entry) +
               ", expected a number greater than 0");
  return fallback;
}

double RotaryConfig::requiredNumber(const json &entries, llvm::StringRef key) const {
  if (!entries.contains(key.str()) || entries[key.str()].is_null())
    reader.error(reader.quote(field) + " of type \"" + typeOf(entries) + "\" has no '" + key.str() +
                 "', expected a number greater than 0");
  return number(entries, key, 1);
}

int64_t RotaryConfig::reach() const {
  std::string type = typeOf(entries);
  bool isLonger = type == "yarn" || type == "llama3" || type == "linear" ||
                  (type == "longrope" && !this->original);
  if (!isLonger)
    return positions;
  double original = number(entries, "original_max_position_embeddings", double(positions));
  double most = original * number(entries, "factor", 1);
  return std::max(positions, int64_t(std::min(most, double(ConfigReader::kMaxSize))));
}

//===----------------------------------------------------------------------===//
// Frequencies
//===----------------------------------------------------------------------===//

/// Low frequencies are divided by the factor, high ones stay, with a ramp between.
static void scaleLlama3(Rotary &rotary, double factor, double low, double high, double original) {
  for (double &frequency : rotary.frequencies) {
    double turns = original * frequency / (2 * std::numbers::pi);
    double smooth = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    frequency = (1 - smooth) * frequency / factor + smooth * frequency;
  }
}

/// Frequencies that turn often in the original positions stay, others are divided by the factor,
/// with a ramp between.
void RotaryConfig::scaleYarn(Rotary &rotary, const json &entries, double theta) const {
  double size = 2 * double(rotary.frequencies.size());
  double factor = requiredNumber(entries, "factor");
  double original = number(entries, "original_max_position_embeddings", double(positions));
  // Which pair turns so often in the original positions.
  auto pairOf = [&](double turns) {
    return size * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(theta));
  };
  double low = pairOf(number(entries, "beta_fast", 32));
  double high = pairOf(number(entries, "beta_slow", 1));
  if (entries.value("truncate", json(true)) != false) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, size - 1);
  if (low == high)
    high += 0.001;
  for (auto [i, frequency] : llvm::enumerate(rotary.frequencies)) {
    double ramp = std::clamp((double(i) - low) / (high - low), 0.0, 1.0);
    frequency = frequency / factor * ramp + frequency * (1 - ramp);
  }
  auto magnitude = [&](double weight) {
    return factor <= 1 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
  };
  bool hasBoth = entries.value("mscale", json()).is_number() &&
                 entries.value("mscale_all_dim", json()).is_number();
  double inferred = hasBoth ? magnitude(number(entries, "mscale", 1)) /
                                  magnitude(number(entries, "mscale_all_dim", 1))
                            : magnitude(1);
  rotary.factor = number(entries, "attention_factor", inferred);
}

/// A list of a positive number for each pair that is rotated.
std::vector<double> RotaryConfig::factors(const json &entries, llvm::StringRef key,
                                          size_t count) const {
  auto entry = entries.find(key.str());
  bool fits =
      entry != entries.end() && entry->is_array() && entry->size() == count &&
      llvm::all_of(*entry, [](const json &each) {
        return each.is_number() && each.get<double>() > 0 && std::isfinite(each.get<double>());
      });
  if (fits)
    return entry->get<std::vector<double>>();
  reader.error((entry == entries.end()
                    ? reader.quote(field) + " of type \"longrope\" has no '" + key.str() + "'"
                    : where(key) + " " + ConfigReader::show(*entry)) +
               ", expected a list of " + std::to_string(count) +
               " numbers greater than 0, one for each pair that is rotated");
  return std::vector<double>(count, 1);
}

/// Each frequency is divided by a factor of its own, of one list for sequences within the original
/// positions and of another for longer ones.
void RotaryConfig::scaleLong(Rotary &rotary, const json &entries) const {
  size_t pairs = rotary.frequencies.size();
  std::vector<double> within = factors(entries, "short_factor", pairs);
  std::vector<double> beyond = factors(entries, "long_factor", pairs);
  double factor =
      original ? double(positions) / double(*original) : requiredNumber(entries, "factor");
  auto start = double(original.value_or(positions));
  const std::vector<double> &used = double(seq) > start ? beyond : within;
  for (auto [frequency, divisor] : llvm::zip_equal(rotary.frequencies, used))
    frequency /= divisor;
  double inferred = factor <= 1 ? 1.0 : std::sqrt(1 + std::log(factor) / std::log(start));
  rotary.factor = number(entries, "attention_factor", inferred);
}

Rotary RotaryConfig::rotaryFor(const json &entries, double theta) const {
  Rotary rotary{theta, {}, 1};
  auto size = static_cast<int64_t>(double(headSize) * part);
  std::string type = typeOf(entries);
  if (size < 2 || size % 2 != 0) {
    reader.error("the part of a head that is rotated has " + std::to_string(size) + " of its " +
                 std::to_string(headSize) + " elements, expected an even number of them");
    return rotary;
  }
  if ((type == "default" || type == "dynamic") && size == headSize)
    return rotary;
  for (int64_t i = 0; i < size / 2; ++i)
    rotary.frequencies.push_back(std::pow(theta, -2.0 * double(i) / double(size)));
  if (type == "linear") {
    double factor = requiredNumber(entries, "factor");
    for (double &frequency : rotary.frequencies)
      frequency /= factor;
  } else if (type == "llama3") {
    double low = requiredNumber(entries, "low_freq_factor");
    double high = requiredNumber(entries, "high_freq_factor");
    if (high <= low) {
      reader.error(where("high_freq_factor") + " " + ConfigReader::show(high) +
                   ", expected more than 'low_freq_factor' (" + ConfigReader::show(low) + ")");
      return rotary;
    }
    scaleLlama3(rotary, requiredNumber(entries, "factor"), low, high,
                requiredNumber(entries, "original_max_position_embeddings"));
  } else if (type == "yarn") {
    scaleYarn(rotary, entries, theta);
  } else if (type == "longrope") {
    scaleLong(rotary, entries);
  }
  return rotary;
}

Rotary RotaryConfig::sliding(double base) const {
  if (slidingEntries.is_object())
    return rotaryFor(slidingEntries, number(slidingEntries, "rope_theta", base));
  return rotaryFor(json::object(), base);
}
