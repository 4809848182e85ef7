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

static constexpr llvm::StringLiteral kTypes[] = {"default", "linear", "dynamic",
                                                 "llama3",  "yarn",   "longrope"};

static constexpr llvm::StringLiteral kPartialFactor = "partial_rotary_factor";

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

RotaryConfig::RotaryConfig(ConfigReader &reader, const Family &family, int64_t headSize,
                           int64_t positions, int64_t seq)
    : reader(reader), family(family), headSize(headSize), positions(positions), seq(seq) {
  if (family.fields.localTheta.empty())
    readEntries();
  else
    readEntriesOfKinds();
  readTheta(fullEntries, family.fields.ropeTheta, family.defaults.ropeTheta);
  if (!family.fields.localTheta.empty())
    readTheta(slidingEntries, family.fields.localTheta, 10000);
  if (family.defaults.originalPositions) // of Phi-3, which always has it
    reader.find("original_max_position_embeddings");
  checkType(fullEntries);
  checkType(slidingEntries);
}

/// The object of a field; null if there is none.
const json *RotaryConfig::findObject(llvm::StringRef name) {
  const json *value = reader.find(name);
  if (!value || value->is_null())
    return nullptr;
  if (value->is_object())
    return value;
  reader.error(reader.quote(name) + " is " + ConfigReader::show(*value) +
               ", expected an object or null");
  return nullptr;
}

/// Entries of all layers, in the one field or the other.
void RotaryConfig::readEntries() {
  const json *scaling = findObject("rope_scaling"), *parameters = findObject("rope_parameters");
  if (scaling && parameters && *scaling != *parameters)
    reader.error("'rope_scaling' is " + ConfigReader::show(*scaling) +
                 " but 'rope_parameters' is " + ConfigReader::show(*parameters) +
                 ", and both mean the same; remove one");
  if (const json *found = parameters ? parameters : scaling)
    fullEntries = {found == scaling ? "rope_scaling" : "rope_parameters", *found, {}};
  else if (llvm::StringRef rope = family.defaults.rope; !rope.empty())
    fullEntries.values = json::parse(rope.begin(), rope.end());
}

/// Entries of the layers with windows and of the others in 'rope_parameters', an object for each;
/// those of 'rope_scaling' are of the others.
void RotaryConfig::readEntriesOfKinds() {
  static constexpr llvm::StringLiteral kFull = "full_attention", kSliding = "sliding_attention";
  if (const json *parameters = findObject("rope_parameters")) {
    for (const auto &item : parameters->items()) {
      bool isKind = item.key() == kFull || item.key() == kSliding;
      if (isKind && item.value().is_object())
        (item.key() == kFull ? fullEntries : slidingEntries) = {
            "rope_parameters." + item.key(), item.value(), {}};
      else if (!isKind)
        reader.addUnread("rope_parameters." + item.key());
      else if (!item.value().is_null())
        reader.error("'rope_parameters." + item.key() + "' is " + ConfigReader::show(item.value()) +
                     ", expected an object or null");
    }
  }
  if (const json *scaling = findObject("rope_scaling")) {
    fullEntries.name = "rope_scaling";
    fullEntries.values.update(*scaling);
  }
}

void RotaryConfig::readTheta(Entries &entries, llvm::StringRef field, double fallback) {
  entries.theta = reader.getPositive(field, fallback);
  const json *entry = entries.find("rope_theta");
  if (!entry || entry->is_null())
    return;
  double inside = number(entries, "rope_theta", entries.theta);
  if (reader.has(field) && entries.theta != inside)
    reader.warning(reader.quote(field) + " is " + ConfigReader::show(entries.theta) + " but " +
                   where(entries, "rope_theta") + " " + ConfigReader::show(*entry) +
                   ", which transformers takes; remove one");
  entries.theta = inside;
}

/// The type as it is written: "type" is what transformers before 4.43 wrote.
static std::pair<std::string, json> writtenType(const json &values) {
  for (const char *key : {"rope_type", "type"})
    if (auto type = values.find(key); type != values.end() && !type->is_null())
      return {key, *type};
  return {"rope_type", "default"};
}

std::string RotaryConfig::typeNamed(const json &written) const {
  std::string name = written.is_string() ? written.get<std::string>() : "";
  if (family.ropeTypes.empty())
    return llvm::is_contained(kTypes, name) ? name : "";
  for (auto [each, meaning] : family.ropeTypes)
    if (each == name)
      return meaning.str();
  return "";
}

std::string RotaryConfig::typeOf(const Entries &entries) const {
  std::string type = typeNamed(writtenType(entries.values).second);
  return type.empty() ? "default" : type;
}

void RotaryConfig::checkType(Entries &entries) {
  auto [key, written] = writtenType(entries.values);
  if (typeNamed(written).empty()) {
    llvm::SmallVector<llvm::StringRef> names(std::begin(kTypes), std::end(kTypes));
    if (!family.ropeTypes.empty())
      names = llvm::to_vector(llvm::make_first_range(family.ropeTypes));
    reader.error(where(entries, key) + " " + ConfigReader::show(written) +
                 ", which is not supported; supported are " + llvm::join(names, ", "));
  }
  entries.find("rope_type");
  if (const json *other = entries.find("type");
      other && !other->is_null() && typeNamed(*other) != typeNamed(written))
    reader.error(where(entries, "type") + " " + ConfigReader::show(*other) +
                 ", expected the same as the other of 'rope_type' and 'type', a string");
}

double RotaryConfig::number(Entries &entries, llvm::StringRef key, double fallback) {
  const json *entry = entries.find(key);
  if (!entry || entry->is_null())
    return fallback;
  if (entry->is_number() && entry->get<double>() > 0 && std::isfinite(entry->get<double>()))
    return entry->get<double>();
  reader.error(where(entries, key) + " " + ConfigReader::show(*entry) +
               ", expected a number greater than 0");
  return fallback;
}

/// Reads an entry that transformers takes as absent where it is 0.
double RotaryConfig::numberUnlessZero(Entries &entries, llvm::StringRef key, double fallback) {
  const json *entry = entries.find(key);
  return entry && *entry == 0 ? fallback : number(entries, key, fallback);
}

double RotaryConfig::requiredNumber(Entries &entries, llvm::StringRef key) {
  const json *entry = entries.find(key);
  if (!entry || entry->is_null())
    reader.error(reader.quote(entries.name) + " of type \"" + typeOf(entries) + "\" has no '" +
                 key.str() + "', expected a number greater than 0");
  return number(entries, key, 1);
}

/// The positions that scaling starts from. Those of the field beside the entries win.
double RotaryConfig::originalOf(Entries &entries) {
  const char *name = "original_max_position_embeddings";
  if (family.fields.localTheta.empty()) {
    if (std::optional<int64_t> beside = reader.getOptionalSize(name))
      return double(*beside);
    if (family.defaults.originalPositions)
      return double(family.defaults.originalPositions);
  }
  return number(entries, name, double(positions));
}

/// The factor by which YaRN scales the rotated elements when positions are extended `factor` times:
/// 0.1 ln(factor) + 1 (Peng et al. 2023, arXiv:2309.00071, section 3.4). DeepSeek multiplies the
/// logarithm by `weight`.
static double magnitude(double factor, double weight) {
  return factor <= 1 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
}

double RotaryConfig::scaleOfScores() {
  double weight = numberUnlessZero(fullEntries, "mscale_all_dim", 0);
  if (typeOf(fullEntries) == "default" || weight == 0)
    return 1;
  return std::pow(magnitude(requiredNumber(fullEntries, "factor"), weight), 2);
}

int64_t RotaryConfig::reach() {
  std::string type = typeOf(fullEntries);
  if (type == "default" || type == "dynamic")
    return positions;
  double original = type == "linear" ? double(positions) : originalOf(fullEntries);
  double most = original * number(fullEntries, "factor", 1);
  return std::max(positions, int64_t(std::min(most, double(ConfigReader::kMaxSize))));
}

void RotaryConfig::listUnread() {
  for (const Entries *entries : {&fullEntries, &slidingEntries})
    for (const auto &item : entries->values.items())
      if (!entries->known.count(item.key()) && !item.value().is_null())
        reader.addUnread(entries->name + "." + item.key());
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
void RotaryConfig::scaleYarn(Rotary &rotary, Entries &entries) {
  double size = 2 * double(rotary.frequencies.size());
  double original = originalOf(entries);
  const json *given = entries.find("factor");
  double factor =
      given && given->is_null() ? double(positions) / original : requiredNumber(entries, "factor");
  // The pair of elements that makes this many turns within the original positions.
  auto pairOf = [&](double turns) {
    return size * std::log(original / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(entries.theta));
  };
  double low = pairOf(numberUnlessZero(entries, "beta_fast", 32));
  double high = pairOf(numberUnlessZero(entries, "beta_slow", 1));
  // transformers does not read it where each kind of layers has entries of its own.
  const json *truncates = family.fields.localTheta.empty() ? entries.find("truncate") : nullptr;
  if (!truncates || *truncates != false) {
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
  double mscale = numberUnlessZero(entries, "mscale", 0);
  double ofAll = numberUnlessZero(entries, "mscale_all_dim", 0);
  double inferred = mscale != 0 && ofAll != 0 ? magnitude(factor, mscale) / magnitude(factor, ofAll)
                                              : magnitude(factor, 1);
  rotary.factor = number(entries, "attention_factor", inferred);
}

/// A list of a positive number for each pair that is rotated.
std::vector<double> RotaryConfig::factors(Entries &entries, llvm::StringRef key, size_t count) {
  const json *entry = entries.find(key);
  bool fits =
      entry && entry->is_array() && entry->size() == count &&
      llvm::all_of(*entry, [](const json &each) {
        return each.is_number() && each.get<double>() > 0 && std::isfinite(each.get<double>());
      });
  if (fits)
    return entry->get<std::vector<double>>();
  reader.error(
      (!entry ? reader.quote(entries.name) + " of type \"longrope\" has no '" + key.str() + "'"
              : where(entries, key) + " " + ConfigReader::show(*entry)) +
      ", expected a list of " + std::to_string(count) +
      " numbers greater than 0, one for each pair that is rotated");
  return std::vector<double>(count, 1);
}

/// Each frequency is divided by a factor of its own, which comes from one list for sequences within
/// the original positions and from another for longer ones.
void RotaryConfig::scaleLong(Rotary &rotary, Entries &entries) {
  // transformers multiplies all factors by all frequencies, so that a single one serves them all.
  if (const json *list = entries.find("short_factor"); list && list->is_array() && !list->empty() &&
                                                       rotary.frequencies.size() == 1 &&
                                                       2 * int64_t(list->size()) <= headSize)
    rotary.frequencies.resize(list->size(), rotary.frequencies.front());
  size_t pairs = rotary.frequencies.size();
  std::vector<double> within = factors(entries, "short_factor", pairs);
  std::vector<double> beyond = factors(entries, "long_factor", pairs);
  double start = originalOf(entries);
  double factor = number(entries, "factor", double(positions) / start);
  const std::vector<double> &used = double(seq) > start ? beyond : within;
  for (auto [frequency, divisor] : llvm::zip_equal(rotary.frequencies, used))
    frequency /= divisor;
  double inferred = factor <= 1 ? 1.0 : std::sqrt(1 + std::log(factor) / std::log(start));
  rotary.factor = number(entries, "attention_factor", inferred);
}

/// The part of each head that is rotated.
double RotaryConfig::rotatedPart(Entries &entries, llvm::StringRef type) {
  llvm::StringRef field = family.fields.rotaryPart, key = kPartialFactor;
  if (field.empty() && (type == "default" || type == "dynamic"))
    return 1; // transformers reads neither the field nor the entry
  double part = reader.getPositive(field.empty() ? key : field, family.defaults.rotaryPart);
  part = number(entries, key, part);
  if (part > 1)
    reader.error("the part of a head that is rotated is " + ConfigReader::show(part) +
                 ", expected at most 1");
  return part;
}

/// transformers rounds a part up to pairs, and models of most families then need all of the head.
void RotaryConfig::checkRotated(const Rotary &rotary, llvm::StringRef type, double part) {
  if (family.fields.rotaryPart.empty() && 2 * int64_t(rotary.frequencies.size()) != headSize)
    reader.error("the part of a head that is rotated is " + ConfigReader::show(part) + " ('" +
                 kPartialFactor.str() + "'), and rotary positions of type \"" + type.str() +
                 "\" rotate whole heads in models of this type; expected 1, or the field left out");
}

Rotary RotaryConfig::rotaryFor(Entries &entries) {
  double theta = entries.theta;
  Rotary rotary{theta, {}, 1};
  std::string type = typeOf(entries);
  double part = rotatedPart(entries, type);
  auto size = static_cast<int64_t>(double(headSize) * part);
  if (size < 1 || (size % 2 != 0 && type == "yarn")) {
    reader.error(
        "the part of a head that is rotated has " + std::to_string(size) + " of its " +
        std::to_string(headSize) + " elements, expected " +
        (type == "yarn" ? "an even number of them, as the type is \"yarn\"" : "at least 1"));
    return rotary;
  }
  if (type == "dynamic") // acts beyond the positions of the configuration, which no sequence is
    requiredNumber(entries, "factor");
  // The base alone says the frequencies of whole heads. Latent attention rotates a part of each.
  if ((type == "default" || type == "dynamic") && size == headSize &&
      family.queries != QueryForm::Latent)
    return rotary;
  // An odd number of elements is rounded up to pairs, whose frequencies still follow from it.
  for (int64_t i = 0; i < (size + 1) / 2; ++i)
    rotary.frequencies.push_back(std::pow(theta, -2.0 * double(i) / double(size)));
  if (type == "linear") {
    double factor = requiredNumber(entries, "factor");
    for (double &frequency : rotary.frequencies)
      frequency /= factor;
  } else if (type == "llama3") {
    double low = requiredNumber(entries, "low_freq_factor");
    double high = requiredNumber(entries, "high_freq_factor");
    if (high <= low) {
      reader.error(where(entries, "high_freq_factor") + " " + ConfigReader::show(high) +
                   ", expected more than 'low_freq_factor' (" + ConfigReader::show(low) + ")");
      return rotary;
    }
    scaleLlama3(rotary, requiredNumber(entries, "factor"), low, high, originalOf(entries));
  } else if (type == "yarn") {
    scaleYarn(rotary, entries);
  } else if (type == "longrope") {
    scaleLong(rotary, entries);
  }
  checkRotated(rotary, type, part);
  return rotary;
}
