//===- OptionChecks.h - Checks of the values of options -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_OPTIONCHECKS_H
#define DTC_TOOLS_OPTIONCHECKS_H

#include <CLI/CLI.hpp>

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace dtc {

/// A number from `least` to `most`, whole where T is; `expected` says so in the error. CLI11's own
/// Range lets NaN pass, takes -1 for the largest unsigned number, and what is larger than the
/// largest one for it.
template <typename T> CLI::Validator numberBetween(T least, T most, std::string expected) {
  return CLI::Validator(
      [least, most, expected = std::move(expected)](const std::string &text) -> std::string {
        T value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= least &&
            value <= most)
          return "";
        return "found " + text + ", expected " + expected;
      },
      "");
}

inline bool takesValue(const CLI::Option &option) { return option.get_items_expected_max() > 0; }

/// The message for an option with an empty value.
inline std::string describeEmptyValue(const CLI::Option &option) {
  std::string text = "the value is empty, as that of a variable that is not set; give one";
  if (!option.get_positional() && !option.get_required())
    text += ", or leave " + option.get_name() + " out";
  return text;
}

/// Refuses empty values of all options of the app and its subcommands: CLI11 takes them for 0, and
/// a path that is empty would be one that was not given.
inline void refuseEmptyValues(CLI::App &app) {
  for (CLI::Option *option : app.get_options())
    if (takesValue(*option))
      // At the front, where it is asked before the checks that the option has.
      option->transform(CLI::Validator(
          [option](const std::string &text) {
            return text.empty() ? describeEmptyValue(*option) : std::string();
          },
          ""));
  for (CLI::App *subcommand : app.get_subcommands({}))
    refuseEmptyValues(*subcommand);
}

/// Throws for a word such as "--save=", after which CLI11 would take the next word for the value.
inline void refuseEmptyAssignment(const CLI::App &app, std::string_view word) {
  if (!word.starts_with("--") || !word.ends_with('='))
    return;
  const CLI::Option *option = app.get_option_no_throw(std::string(word.substr(0, word.size() - 1)));
  if (option && takesValue(*option))
    throw CLI::ValidationError(option->get_name(), describeEmptyValue(*option));
  for (const CLI::App *subcommand : app.get_subcommands({}))
    refuseEmptyAssignment(*subcommand, word);
}

} // namespace dtc

#endif // DTC_TOOLS_OPTIONCHECKS_H
