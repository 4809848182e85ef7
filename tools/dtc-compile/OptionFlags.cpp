//===- OptionFlags.cpp - The options of a compilation as flags ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-compile/OptionFlags.h"

#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

using namespace dtc;

namespace {

/// The type of a flag's value in --help: "INT in [0 - 3]", "{none,full}".
template <typename T> std::string typeName(const Option &option, const T &) {
  if (option.words)
    return "{" + llvm::join(option.words(), ",") + "}";
  if constexpr (std::is_enum_v<T>)
    return "{" + llvm::join(wordsOf<T>(), ",") + "}";
  if (option.unit == OptionUnit::Bytes)
    return "BYTES";
  if constexpr (std::is_same_v<T, int64_t>)
    return fmt::format("INT in [{} - {}]", int64_t(option.range.least), int64_t(option.range.most));
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>)
    return "FLOAT";
  return "TEXT";
}

} // namespace

void dtc::addOptionFlags(CLI::App &app, CompileOptions &options) {
  const CompileOptions defaults;
  for (const Option &option : getOptions()) {
    if (auto *member = std::get_if<bool CompileOptions::*>(&option.member)) {
      app.add_flag_callback(
          option.flag(), [&options, member = *member] { options.*member = true; }, option.help);
      continue;
    }
    CLI::Option *flag = app.add_option(
        option.flag(),
        [&options, &option](const CLI::results_t &texts) {
          for (const std::string &text : texts)
            if (auto error = setOption(option, text, options, OptionSpelling::Flag))
              throw CLI::ValidationError(option.flag(), error->message);
          return true;
        },
        option.help);
    std::visit(
        [&](auto member) {
          using T = std::decay_t<decltype(options.*member)>;
          flag->type_name(typeName(option, T()));
        },
        option.member);
    if (option.isList()) {
      flag->type_size(1)
          ->expected(1, CLI::detail::expected_max_vector_size)
          ->allow_extra_args(false);
      if (!option.hasCommas)
        flag->delimiter(',');
    }
    // A help text that names the default says it better.
    if (std::string text = formatOption(option, defaults);
        !text.empty() && option.help.find("(default:") == std::string::npos &&
        option.name != "memory_limit")
      flag->default_str(text);
  }
}
