//===- OptionValue.cpp - The values of options as text --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/OptionTable.h"

#include "support/LinkSpeed.h"
#include "support/Quantity.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>

using namespace dtc;
using llvm::ArrayRef;
using llvm::StringRef;

template <> ArrayRef<StringRef> dtc::wordsOf<CompileMode>() {
  static constexpr StringRef words[] = {"train", "gradients", "forward", "generate"};
  return words;
}

template <> ArrayRef<StringRef> dtc::wordsOf<Recompute>() {
  static constexpr StringRef words[] = {"none",      "gathers", "elementwise",
                                        "selective", "full",    "auto"};
  return words;
}

template <> ArrayRef<StringRef> dtc::wordsOf<ContextExchange>() {
  static constexpr StringRef words[] = {"auto", "all-gather", "all-to-all", "ring"};
  return words;
}

template <> ArrayRef<StringRef> dtc::wordsOf<ComputeType>() {
  static constexpr StringRef words[] = {"f32", "bf16", "f16", "fp8"};
  return words;
}

template <> ArrayRef<StringRef> dtc::wordsOf<Optimizer>() {
  static constexpr StringRef words[] = {"adamw", "adam", "sgd", "lion"};
  return words;
}

bool CompileOptions::hasAxis(StringRef axis) const {
  return llvm::any_of(mesh, [&](const auto &entry) { return entry.first == axis; });
}

/// The number of devices along ep; 1 without it.
static int64_t expertDevices(const CompileOptions &options) {
  auto it = llvm::find_if(options.mesh, [](const auto &axis) { return axis.first == kExpertAxis; });
  return it == options.mesh.end() ? 1 : it->second;
}

bool dtc::hasExpertGroups(const CompileOptions &options) {
  const int64_t devices = expertDevices(options), group = options.expertGroup;
  return group > 1 && group < devices && devices % group == 0;
}

MeshSizes dtc::meshWithExpertGroups(const CompileOptions &options) {
  if (!hasExpertGroups(options))
    return options.mesh;
  MeshSizes mesh;
  for (const auto &[name, size] : options.mesh) {
    if (name != kExpertAxis) {
      mesh.emplace_back(name, size);
      continue;
    }
    mesh.emplace_back(kExpertGroupsAxis, size / options.expertGroup);
    mesh.emplace_back(kInExpertGroupAxis, options.expertGroup);
  }
  return mesh;
}

std::vector<std::string> dtc::zeroAxesOf(const CompileOptions &options) {
  if (!options.zeroAxes.empty())
    return options.zeroAxes;
  if (options.hasAxis(kShardedDataAxis))
    return {kShardedDataAxis};
  // Devices that split experts hold copies of all other parameters, and devices that split
  // sequences hold copies of all.
  std::vector<std::string> axes;
  for (const char *axis : {kDataAxis, kExpertAxis, kContextAxis})
    if (options.hasAxis(axis))
      axes.emplace_back(axis);
  return axes.empty() ? std::vector<std::string>{kDataAxis} : axes;
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

/// False of NaN.
static bool contains(const NumberRange &range, double value) {
  return (range.isLeastExcluded ? value > range.least : value >= range.least) &&
         (range.isMostExcluded ? value < range.most : value <= range.most);
}

static std::string describe(const NumberRange &range) {
  return range.expected ? range.expected
                        : fmt::format("{} to {}", int64_t(range.least), int64_t(range.most));
}

static std::string describeWords(ArrayRef<std::string> words) {
  return "one of " + llvm::join(words, ", ");
}

/// The word for a value that dtc-compile chooses.
static constexpr StringRef kAuto = "auto";

/// The words that an option takes; `all` are those of its type.
static std::vector<std::string> wordList(const Option &option, ArrayRef<StringRef> all,
                                         bool isFixed) {
  std::vector<std::string> words;
  if (option.words)
    words = option.words();
  else
    for (StringRef word : all)
      words.push_back(word.str());
  if (isFixed)
    llvm::erase(words, kAuto);
  return words;
}

//===----------------------------------------------------------------------===//
// From text
//===----------------------------------------------------------------------===//

namespace {

/// A value that cannot be.
struct BadValue {
  std::string found;    ///< as it was given
  std::string expected; ///< "0 to 3", "one of none, selective, full, auto"
  /// Replaces the sentence made of the other two, if it is not empty.
  std::string message = "";
};

using Problem = std::optional<BadValue>;

/// Reads a value of any type of option.
struct ValueParser {
  const Option &option;
  StringRef text;
  bool isFixed;

  BadValue bad(std::string expected) const { return {text.str(), std::move(expected)}; }

  Problem parse(bool &value) const {
    if (text != "true" && text != "false")
      return bad("one of true, false");
    value = text == "true";
    return std::nullopt;
  }

  Problem parse(int64_t &value) const {
    if (option.unit == OptionUnit::Bytes) {
      auto bytes = parseByteSize(text);
      if (!bytes)
        return BadValue{text.str(), "", bytes.error().message};
      if (!contains(option.range, double(*bytes)))
        return bad(describe(option.range));
      value = int64_t(std::min<uint64_t>(*bytes, INT64_MAX));
      return std::nullopt;
    }
    int64_t parsed = 0;
    if (text.getAsInteger(10, parsed) || !contains(option.range, double(parsed)))
      return bad(describe(option.range));
    value = parsed;
    return std::nullopt;
  }

  Problem parse(double &value) const {
    double parsed = 0;
    auto [end, error] = std::from_chars(text.begin(), text.end(), parsed);
    if (error != std::errc() || end != text.end() || !contains(option.range, parsed))
      return bad(describe(option.range));
    value = parsed;
    return std::nullopt;
  }

  Problem parse(std::optional<double> &value) const { return parse(value.emplace()); }

  Problem parse(std::string &value) const {
    if (option.words) {
      std::vector<std::string> words = wordList(option, {}, isFixed);
      if (!llvm::is_contained(words, text))
        return bad(describeWords(words));
    }
    value = text.str();
    return std::nullopt;
  }

  Problem parse(std::vector<std::string> &value) const {
    value.push_back(text.str());
    return std::nullopt;
  }

  template <typename Enum>
  requires std::is_enum_v<Enum> Problem parse(Enum &value)
  const {
    std::vector<std::string> words = wordList(option, wordsOf<Enum>(), isFixed);
    if (!llvm::is_contained(words, text))
      return bad(describeWords(words));
    value = *valueOf<Enum>(text);
    return std::nullopt;
  }

  Problem parse(MeshSizes &value) const {
    auto [name, size] = text.split('=');
    auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
    int64_t number = 0;
    if (name.empty() || !llvm::all_of(name, isWord) || size.getAsInteger(10, number) || number < 1)
      return bad("axis=size with a name and a size of at least 1, such as dp=2");
    if (name == kMicrobatchAxis)
      return bad(fmt::format("another name than {}, that of the microbatch axis; see "
                             "--microbatches",
                             kMicrobatchAxis));
    value.emplace_back(name.str(), number);
    return std::nullopt;
  }

  Problem parse(LinkSpeeds &value) const {
    auto link = parseNamedLink(text);
    if (!link)
      return BadValue{text.str(), "", link.error().message};
    value[link->axis] = {link->speed.bandwidth, link->speed.latency};
    return std::nullopt;
  }
};

} // namespace

MaybeError dtc::setOption(const Option &option, StringRef text, CompileOptions &options,
                          OptionSpelling spelling, bool isFixed) {
  Problem bad = std::visit(
      [&](auto member) {
        return ValueParser{option, text, isFixed}.parse(options.*member);
      },
      option.member);
  if (!bad)
    return std::nullopt;
  bool isField = spelling == OptionSpelling::Field;
  if (!bad->message.empty())
    return isField ? Error{bad->message}.inContext(option.name.str()) : Error{bad->message};
  return isField ? Error{fmt::format("{} is \"{}\", expected {}", option.name.str(), bad->found,
                                     bad->expected)}
                 : Error{fmt::format("found {}, expected {}",
                                     bad->found.empty() ? "\"\"" : bad->found, bad->expected)};
}

//===----------------------------------------------------------------------===//
// To text
//===----------------------------------------------------------------------===//

/// The shortest text that is read as the same number.
static std::string format(double value) { return fmt::to_string(value); }
static std::string format(bool value) { return value ? "true" : "false"; }
static std::string format(const std::optional<double> &value) {
  return value ? format(*value) : "";
}
static std::string format(const std::string &value) { return value; }
static std::string format(const std::vector<std::string> &value) { return llvm::join(value, ","); }
template <typename Enum>
requires std::is_enum_v<Enum>
static std::string format(Enum value) { return wordOf(value); }
static std::string format(const MeshSizes &value) {
  std::vector<std::string> axes;
  for (const auto &[name, size] : value)
    axes.push_back(fmt::format("{}={}", name, size));
  return llvm::join(axes, ",");
}
static std::string format(const LinkSpeeds &value) {
  std::vector<std::string> links;
  for (const auto &[axis, speed] : value)
    links.push_back(fmt::format("{}={}B/s,{}s", axis, speed.first, speed.second));
  return llvm::join(links, ";");
}

/// "25MiB", in the largest unit that divides.
static std::string formatBytes(int64_t bytes) {
  static constexpr const char *units[] = {"", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{}{}", bytes, units[unit]);
}

std::string dtc::formatOption(const Option &option, const CompileOptions &options) {
  if (auto *member = std::get_if<int64_t CompileOptions::*>(&option.member))
    return option.unit == OptionUnit::Bytes ? formatBytes(options.**member)
                                            : fmt::to_string(options.**member);
  return std::visit(
      [&](auto member) -> std::string {
        if constexpr (std::is_same_v<decltype(member), int64_t CompileOptions::*>)
          return "";
        else
          return format(options.*member);
      },
      option.member);
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

MaybeError dtc::checkOption(const Option &option, const CompileOptions &options) {
  const CompileOptions defaults;
  auto bad = [&](const std::string &found, const std::string &expected) {
    return Error{fmt::format("{} is {}, expected {}", option.name.str(), found, expected)};
  };
  auto check = [&](auto value, std::optional<double> ofDefault) -> MaybeError {
    if (double(value) == ofDefault || contains(option.range, double(value)))
      return std::nullopt;
    return bad(fmt::to_string(value), describe(option.range));
  };
  if (auto *member = std::get_if<int64_t CompileOptions::*>(&option.member))
    return check(options.**member, double(defaults.**member));
  if (auto *member = std::get_if<double CompileOptions::*>(&option.member))
    return check(options.**member, defaults.**member);
  if (auto *member = std::get_if<std::optional<double> CompileOptions::*>(&option.member))
    if (const std::optional<double> &value = options.**member)
      return check(*value, std::nullopt);
  if (auto *member = std::get_if<std::string CompileOptions::*>(&option.member);
      member && option.words)
    if (std::vector<std::string> words = option.words();
        !llvm::is_contained(words, options.**member))
      return bad("\"" + options.**member + "\"", describeWords(words));
  return std::nullopt;
}
