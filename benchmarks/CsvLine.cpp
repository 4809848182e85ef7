//===- CsvLine.cpp - Lines of tables with commas ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/CsvLine.h"

using namespace dtc;

std::string benchmarks::trimmed(const std::string &text) {
  size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == text.npos ? "" : text.substr(begin, end - begin + 1);
}

std::optional<std::vector<std::string>> benchmarks::splitCsvLine(const std::string &line) {
  std::vector<std::string> values(1);
  bool isQuoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && isQuoted && i + 1 < line.size() && line[i + 1] == '"')
      values.back() += line[i++];
    else if (line[i] == '"')
      isQuoted = !isQuoted;
    else if (line[i] == ',' && !isQuoted)
      values.emplace_back();
    else
      values.back() += line[i];
  }
  if (isQuoted)
    return std::nullopt;
  for (std::string &value : values)
    value = trimmed(value);
  return values;
}

std::string benchmarks::csvValue(const std::string &value) {
  if (value.find_first_of(",\"") == value.npos)
    return value;
  std::string quoted = "\"";
  for (char c : value)
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}
