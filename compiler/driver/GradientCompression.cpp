//===- GradientCompression.cpp - The option --compress --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/GradientCompression.h"

#include "support/MeshAxes.h"
#include "support/NearestName.h"
#include "support/QuantizedBlocks.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>
#include <vector>

using namespace dtc;
using llvm::StringRef;

/// The axes of data parallelism, "dp, fsdp".
static std::vector<std::string> dataAxes() {
  std::vector<std::string> names;
  for (const MeshAxisInfo &axis : meshAxes())
    if (axis.splitsBatchOfExperts)
      names.emplace_back(axis.name);
  return names;
}

/// Reads a whole number in a range into `value`; false for anything else.
static bool readNumber(StringRef text, int64_t most, int64_t &value) {
  return !text.getAsInteger(10, value) && value >= 1 && value <= most;
}

/// Reads one of the names of an enum into `value`; false for anything else.
template <typename Enum> static bool readName(StringRef text, Enum &value) {
  auto found = findByName<Enum>({text.data(), text.size()});
  value = found.value_or(value);
  return found.has_value();
}

namespace {

/// A setting of some methods.
struct Setting {
  const char *key;
  std::string expected;
  bool (*hasIt)(CompressionMethod method);
  bool (*read)(StringRef value, CompressionSettings &compression);
  std::string (*str)(const CompressionSettings &compression);
};

} // namespace

/// Whether a device by default adds the lost part of a gradient to its next one: methods that leave
/// most of a gradient out do not converge without.
static bool feedsBack(CompressionMethod method) { return !quantizes(method); }

static std::vector<Setting> allSettings() {
  using C = CompressionSettings;
  using M = CompressionMethod;
  return {
      {.key = "rank",
       .expected = fmt::format("a number of columns from 1 to {}", kMaxCompressionRank),
       .hasIt = [](M method) { return method == M::PowerSgd; },
       .read = [](StringRef v, C &c) { return readNumber(v, kMaxCompressionRank, c.rank); },
       .str = [](const C &c) { return fmt::format("{}", c.rank); }},
      {.key = "share",
       .expected = "a share of the elements above 0 and below 1",
       .hasIt = [](M method) { return method == M::TopK; },
       .read = [](StringRef v,
                  C &c) { return !v.getAsDouble(c.share) && c.share > 0 && c.share < 1; },
       .str = [](const C &c) { return fmt::format("{}", c.share); }},
      {.key = "block",
       .expected = fmt::format("a number of elements from 1 to {}", kMaxQuantizedBlock),
       .hasIt = [](M method) { return method != M::PowerSgd; },
       .read = [](StringRef v, C &c) { return readNumber(v, kMaxQuantizedBlock, c.block); },
       .str = [](const C &c) { return fmt::format("{}", c.block); }},
      {.key = "feedback",
       .expected = "on or off",
       .hasIt = [](M) { return true; },
       .read =
           [](StringRef v, C &c) {
             c.feedback = v == "on";
             return v == "on" || v == "off";
           },
       .str =
           [](const C &c) {
             return std::string(c.feedback == feedsBack(c.method) ? "" : c.feedback ? "on" : "off");
           }},
      {.key = "rounding",
       .expected = "nearest or stochastic",
       .hasIt = quantizes,
       .read = [](StringRef v, C &c) { return readName(v, c.rounding); },
       .str =
           [](const C &c) {
             return std::string(c.rounding == Rounding::Nearest ? "" : name(c.rounding));
           }},
  };
}

/// Reads a setting such as "block=64".
static MaybeError parseSetting(StringRef text, CompressionSettings &compression) {
  auto [key, value] = text.split('=');
  std::vector<std::string> keys;
  for (const Setting &setting : allSettings()) {
    if (!setting.hasIt(compression.method))
      continue;
    keys.emplace_back(setting.key);
    if (key != setting.key)
      continue;
    if (setting.read(value, compression))
      return std::nullopt;
    return Error{
        fmt::format("{} is \"{}\", expected {}", setting.key, value.str(), setting.expected)};
  }
  return Error{fmt::format("\"{}\" is no setting of {}, expected one of {}{}", text.str(),
                           name(compression.method), llvm::join(keys, ", "),
                           didYouMean(key.str(), keys))};
}

std::string dtc::str(const CompressionSettings &compression) {
  std::vector<std::string> settings;
  for (const Setting &setting : allSettings())
    if (std::string value = setting.hasIt(compression.method) ? setting.str(compression) : "";
        !value.empty())
      settings.push_back(fmt::format("{}={}", setting.key, value));
  return fmt::format("{}={}:{}", compression.axis, name(compression.method),
                     llvm::join(settings, ","));
}

Expected<CompressionSettings> dtc::parseGradientCompression(StringRef text) {
  auto [target, settings] = text.split(':');
  auto [axis, method] = target.split('=');
  CompressionSettings compression{.axis = axis.str()};
  if (!llvm::is_contained(dataAxes(), axis))
    return Error{fmt::format("\"{}\" is no axis of data parallelism, expected one of {}",
                             axis.str(), llvm::join(dataAxes(), ", "))};
  if (!readName(method, compression.method)) {
    std::vector<std::string> methods(EnumNames<CompressionMethod>::list.begin(),
                                     EnumNames<CompressionMethod>::list.end());
    return Error{fmt::format("the method is \"{}\", expected one of {}{}", method.str(),
                             llvm::join(methods, ", "), didYouMean(method.str(), methods))};
  }
  compression.block = defaultBlock(compression.method);
  compression.feedback = feedsBack(compression.method);
  if (target.size() == text.size())
    return compression;
  llvm::SmallVector<StringRef> parts;
  settings.split(parts, ',');
  for (StringRef part : parts)
    if (MaybeError error = parseSetting(part, compression))
      return *error;
  return compression;
}

std::optional<CompressionSettings> dtc::outerCompressionOf(const CompileOptions &options) {
  auto compression = parseGradientCompression(options.compress);
  if (options.outer.empty() || !compression || compression->axis != options.outer)
    return std::nullopt;
  return *compression;
}
