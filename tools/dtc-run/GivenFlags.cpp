//===- GivenFlags.cpp - What was given on the command line ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-run/GivenFlags.h"

#include "tools/OptionChecks.h"

#include <fmt/format.h>
#include <map>
#include <sstream>

namespace dtc {

std::string describeGiven(const CLI::App &app) {
  std::string text = fmt::format("command {}\n", app.get_name());
  for (const CLI::Option *option : app.get_options()) {
    if (option->count() == 0)
      continue;
    text += option->get_name();
    if (takesValue(*option))
      for (const std::string &value : option->results())
        text += ' ' + value;
    text += '\n';
  }
  return text;
}

/// The lines of a text by their first words.
static std::map<std::string, std::string> linesOf(const std::string &text) {
  std::map<std::string, std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines[line.substr(0, line.find(' '))] += line;
  return lines;
}

std::string firstDifference(const std::string &first, const std::string &second) {
  std::map<std::string, std::string> ofFirst = linesOf(first), ofSecond = linesOf(second);
  for (const auto &[name, line] : ofFirst)
    if (auto other = ofSecond.find(name); other == ofSecond.end())
      return fmt::format("{} and no {}", line, name);
    else if (other->second != line)
      return fmt::format("{} and {}", line, other->second);
  for (const auto &[name, line] : ofSecond)
    if (!ofFirst.count(name))
      return fmt::format("no {} and {}", name, line);
  return "";
}

} // namespace dtc
