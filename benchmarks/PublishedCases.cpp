//===- PublishedCases.cpp - Published configurations and times ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/PublishedCases.h"

#include "benchmarks/CsvLine.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <initializer_list>
#include <sstream>

using namespace dtc;
using namespace dtc::benchmarks;

namespace {

/// Reads a value; returns what was expected instead, or nothing.
using Reader = std::function<std::string(const std::string &, PublishedCase &)>;

struct Column {
  std::string name;
  Reader read;
};

template <typename T> bool parseNumber(const std::string &text, T &value) {
  const char *end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end;
}

Reader into(std::string PublishedCase::*field) {
  return [=](const std::string &text, PublishedCase &row) {
    row.*field = text;
    return std::string();
  };
}

Reader oneOf(std::string PublishedCase::*field, std::initializer_list<const char *> words) {
  return [=, names = std::vector<std::string>(words.begin(), words.end())](const std::string &text,
                                                                           PublishedCase &row) {
    row.*field = text;
    for (const std::string &name : names)
      if (name == text)
        return std::string();
    return fmt::format("{}", fmt::join(names, ", "));
  };
}

Reader between(int64_t PublishedCase::*field, int64_t least, int64_t most) {
  return [=](const std::string &text, PublishedCase &row) {
    bool fits = parseNumber(text, row.*field) && row.*field >= least && row.*field <= most;
    return fits ? std::string() : fmt::format("a whole number from {} to {}", least, most);
  };
}

Reader flag(bool PublishedCase::*field) {
  return [=](const std::string &text, PublishedCase &row) {
    row.*field = text == "true" || text == "1";
    bool fits = row.*field || text == "false" || text == "0";
    return std::string(fits ? "" : "true or false");
  };
}

Reader measured(std::optional<double> PublishedCase::*field) {
  return [=](const std::string &text, PublishedCase &row) {
    double value = 0;
    if (!parseNumber(text, value) || !std::isfinite(value) || value <= 0)
      return std::string("a finite number of more than 0");
    row.*field = value;
    return std::string();
  };
}

const std::vector<Column> &columns() {
  using Case = PublishedCase;
  constexpr int64_t many = int64_t{1} << 20;
  static const std::vector<Column> all = {
      {"name", into(&Case::name)},
      {"config", into(&Case::config)},
      {"heads", between(&Case::heads, 1, many)},
      {"kv_heads", between(&Case::kvHeads, 1, many)},
      {"hidden", between(&Case::hidden, 1, many)},
      {"mlp", between(&Case::mlp, 1, many)},
      {"layers", between(&Case::layers, 1, many)},
      {"vocab", between(&Case::vocab, 1, int64_t{1} << 28)},
      {"seq", between(&Case::seq, 1, many)},
      {"batch", between(&Case::batch, 1, many)},
      {"microbatch", between(&Case::microbatch, 1, many)},
      {"tp", between(&Case::tp, 1, many)},
      {"pp", between(&Case::pp, 1, many)},
      {"dp", between(&Case::dp, 1, many)},
      {"chunks", between(&Case::chunks, 1, 1024)},
      {"schedule",
       oneOf(&Case::schedule, {"naive", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"})},
      {"sequence_parallel", flag(&Case::sequenceParallel)},
      {"zero", between(&Case::zero, 0, 3)},
      {"recompute", oneOf(&Case::recompute, {"none", "gathers", "selective", "full"})},
      {"attention", oneOf(&Case::attention, {"fused", "decomposed"})},
      {"dtype", oneOf(&Case::dtype, {"f32", "bf16", "f16"})},
      {"optimizer", oneOf(&Case::optimizer, {"adamw", "adam", "sgd", "lion"})},
      {"dropout", flag(&Case::dropout)},
      {"executed_by", oneOf(&Case::executedBy, {"dtc", "megatron-lm-2022"})},
      {"stages", into(&Case::stages)},
      {"equal_stages", flag(&Case::equalStages)},
      {"measured_seconds", measured(&Case::measuredSeconds)},
      {"measured_state_gib", measured(&Case::measuredStateGib)},
      {"state_of_layers", flag(&Case::stateOfLayers)},
      {"measured_activation_gib", measured(&Case::measuredActivationGib)},
      {"measured_forward_ms", measured(&Case::measuredForwardMs)},
      {"measured_backward_ms", measured(&Case::measuredBackwardMs)},
      {"source", into(&Case::source)}};
  return all;
}

const Column *findColumn(const std::string &name) {
  for (const Column &column : columns())
    if (column.name == name)
      return &column;
  return nullptr;
}

/// Checks that the columns of a row agree with each other. Returns what is wrong, or an empty text.
std::string checkCase(PublishedCase &row) {
  int64_t perTurn = row.dp * row.microbatch;
  if (row.batch == 0)
    row.batch = perTurn;
  if (row.batch % perTurn != 0)
    return fmt::format("column batch: found {}, expected a multiple of dp times microbatch, {}",
                       row.batch, perTurn);
  if (row.sequenceParallel && row.tp == 1)
    return "column sequence_parallel: found true with tp 1; give a tp of at least 2, or false";
  if (row.isMegatron() && row.zero > 0)
    return fmt::format("column executed_by: found {} with zero {}, expected zero 0, whose update "
                       "is the one that is known here; give that, or dtc",
                       row.executedBy, row.zero);
  if (row.devices() > 1 << 20)
    return fmt::format("columns tp, pp, dp: found {} devices, expected at most {}", row.devices(),
                       1 << 20);
  return "";
}

} // namespace

Expected<std::vector<PublishedCase>> benchmarks::parsePublishedCases(const std::string &text) {
  std::vector<const Column *> header;
  std::vector<PublishedCase> cases;
  std::istringstream lines(text);
  std::string line;
  for (int64_t number = 1; std::getline(lines, line); ++number) {
    if (trimmed(line).empty() || line.front() == '#')
      continue;
    auto values = splitCsvLine(line);
    if (!values)
      return Error{fmt::format("line {}: a double quote is not closed; close it", number)};
    if (header.empty()) {
      for (size_t c = 0; c < values->size(); ++c) {
        const Column *column = findColumn((*values)[c]);
        std::vector<std::string> names;
        for (const Column &known : columns())
          names.push_back(known.name);
        if (!column)
          return Error{fmt::format("line {}, column {}: found \"{}\", expected one of {}", number,
                                   c + 1, (*values)[c], fmt::join(names, ", "))};
        for (const Column *before : header)
          if (before == column)
            return Error{fmt::format("line {}, column {}: \"{}\" is there twice; take one away",
                                     number, c + 1, column->name)};
        header.push_back(column);
      }
      continue;
    }
    if (values->size() > header.size())
      return Error{fmt::format("line {}: found {} values, expected at most {}, one for each column",
                               number, values->size(), header.size())};
    PublishedCase row;
    row.line = number;
    for (size_t c = 0; c < values->size(); ++c)
      if (const std::string &value = (*values)[c]; !value.empty())
        if (std::string expected = header[c]->read(value, row); !expected.empty())
          return Error{fmt::format("line {}, column {}: found \"{}\", expected {}", number,
                                   header[c]->name, value, expected)};
    if (std::string problem = checkCase(row); !problem.empty())
      return Error{fmt::format("line {}, {}", number, problem)};
    if (row.name.empty())
      row.name = fmt::format("line {}", number);
    cases.push_back(std::move(row));
  }
  if (cases.empty())
    return Error{"found no configuration, expected a line of column names and a line for each "
                 "configuration"};
  return cases;
}
