//===- FileTensors.cpp - Parameters and tensors of weights files ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/FileTensors.h"

#include "plan/PlanFileTensors.h"
#include "plan/PlanTypes.h"

#include <charconv>
#include <fmt/format.h>

namespace dtc {

/// No stack has more tensors; a longer range is part of a name.
static constexpr int64_t kMaxStack = 1 << 16;

/// Digits without a sign and without zeros before them, so that a number has one name.
static std::optional<int64_t> readNumber(std::string_view text) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || std::to_string(number) != text)
    return std::nullopt;
  return number;
}

/// The numbers of "8:16", the second one larger.
static std::optional<std::pair<int64_t, int64_t>> readRange(std::string_view text) {
  size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    return std::nullopt;
  std::optional<int64_t> begin = readNumber(text.substr(0, colon));
  std::optional<int64_t> end = readNumber(text.substr(colon + 1));
  if (!begin || !end || *begin < 0 || *end <= *begin)
    return std::nullopt;
  return std::pair(*begin, *end);
}

std::optional<FileRows> fileRowsOf(std::string_view parameter) {
  size_t open = parameter.rfind('[');
  if (!parameter.ends_with(']') || open == std::string_view::npos || open == 0)
    return std::nullopt;
  std::string_view places = parameter.substr(open + 1, parameter.size() - open - 2);
  int64_t dim = 0;
  for (; places.starts_with(":,"); ++dim)
    places.remove_prefix(2);
  auto range = readRange(places);
  if (!range)
    return std::nullopt;
  return FileRows{parameter.substr(0, open), range->first, range->second, dim};
}

std::optional<FileStack> fileStackOf(std::string_view parameter) {
  if (fileRowsOf(parameter))
    return std::nullopt;
  size_t close = parameter.rfind("]."), open = parameter.rfind('[', close);
  if (close == std::string_view::npos || open == std::string_view::npos || open == 0 ||
      close + 2 == parameter.size())
    return std::nullopt;
  auto range = readRange(parameter.substr(open + 1, close - open - 1));
  if (!range || range->second - range->first > kMaxStack)
    return std::nullopt;
  return FileStack{std::string(parameter.substr(0, open)), range->first, range->second,
                   std::string(parameter.substr(close + 2))};
}

std::vector<std::string> fileTensorNames(std::string_view parameter) {
  if (std::optional<FileRows> rows = fileRowsOf(parameter))
    return {std::string(rows->tensor)};
  std::optional<FileStack> stack = fileStackOf(parameter);
  if (!stack)
    return {std::string(parameter)};
  std::vector<std::string> names;
  for (int64_t number = stack->begin; number < stack->end; ++number)
    names.push_back(stack->tensor(number));
  return names;
}

/// Makes of the parts of a tensor its type, and checks that they are all of it.
static MaybeError finish(const std::string &name, FileTensor &tensor) {
  const plan::State &first = *tensor.parts.begin()->second;
  tensor.type = fileTypeOf(first);
  if (std::optional<FileStack> stack = fileStackOf(first.name())) {
    if (tensor.type.rank() == 0 || tensor.type.shape[0] != stack->end - stack->begin)
      return Error{fmt::format("parameter \"{}\" is {} in the file, expected {} tensors, as its "
                               "name says",
                               first.name(), tensor.type.str(), stack->end - stack->begin)};
    tensor.type.shape.erase(tensor.type.shape.begin());
    return std::nullopt;
  }
  std::optional<FileRows> firstRows = fileRowsOf(first.name());
  if (!firstRows)
    return std::nullopt;
  int64_t rows = 0;
  auto dim = static_cast<size_t>(firstRows->dim);
  for (const auto &[begin, part] : tensor.parts) {
    TensorType type = fileTypeOf(*part);
    FileRows own = *fileRowsOf(part->name());
    int64_t end = own.end;
    if (own.dim != firstRows->dim)
      return Error{fmt::format("parameters \"{}\" and \"{}\" are parts along different dimensions, "
                               "expected rows of one tensor",
                               first.name(), part->name())};
    if (type.shape.size() <= dim || type.shape[dim] != end - begin)
      return Error{fmt::format("parameter \"{}\" is {} in the file, expected {} rows, as its name "
                               "says",
                               part->name(), type.str(), end - begin)};
    if (begin != rows)
      return Error{
          fmt::format("parameter \"{}\" begins at row {} of \"{}\", expected {}, where the "
                      "parameter before it ends; a model has all rows of a tensor, once",
                      part->name(), begin, name, rows)};
    rows = end;
    type.shape[dim] = tensor.type.shape[dim];
    if (type.shape != tensor.type.shape)
      return Error{fmt::format("parameters \"{}\" and \"{}\" are {} and {} in the file, expected "
                               "rows of one tensor",
                               first.name(), part->name(), fileTypeOf(first).str(),
                               fileTypeOf(*part).str())};
  }
  tensor.type.shape[dim] = rows;
  return std::nullopt;
}

Expected<std::map<std::string, FileTensor>> fileTensorsOf(const plan::Plan &plan) {
  std::map<std::string, FileTensor> tensors;
  for (const plan::State *state : distinctStates(plan)) {
    if (state->kind() != plan::State::PARAMETER)
      continue;
    std::optional<FileRows> rows = fileRowsOf(state->name());
    bool isStack = fileStackOf(state->name()).has_value();
    int64_t element = 0;
    for (const std::string &name : fileTensorNames(state->name())) {
      FileTensor &tensor = tensors[name];
      if (isStack)
        tensor.element = element++;
      auto &parts = tensor.parts;
      bool isAlone = parts.empty() || (rows && fileRowsOf(parts.begin()->second->name()));
      auto [it, isNew] = parts.emplace(rows ? rows->begin : 0, state);
      if (!isAlone || !isNew)
        return Error{fmt::format("parameters \"{}\" and \"{}\" are the same rows of a tensor of "
                                 "weights files",
                                 parts.begin()->second->name(), state->name())};
    }
  }
  for (auto &[name, tensor] : tensors)
    if (MaybeError error = finish(name, tensor))
      return *error;
  return tensors;
}

} // namespace dtc
