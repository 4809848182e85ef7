//===- AlikeCollectives.cpp - Collectives that are alike ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/AlikeCollectives.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

namespace dtc {

/// The end of a place such as " (model.mlir:12:8)" that begins there, or `begin`.
static size_t endOfPlace(const std::string &text, size_t begin) {
  size_t end = text.find_first_of("()", begin + 2);
  if (text.compare(begin, 2, " (") != 0 || end == std::string::npos || text[end] != ')')
    return begin;
  size_t column = text.rfind(':', end), line = column > 0 ? text.rfind(':', column - 1) : 0;
  auto isNumber = [&](size_t from, size_t to) {
    return from < to && text.find_first_not_of("0123456789", from) >= to;
  };
  bool isPlace = column != std::string::npos && line != std::string::npos && line > begin &&
                 isNumber(line + 1, column) && isNumber(column + 1, end);
  return isPlace ? end + 1 : begin;
}

std::string layerPattern(const std::string &text, bool keepsPlaces) {
  std::string pattern;
  bool isLayer = false; // of several, each at a place of its own
  for (size_t i = 0; i < text.size();) {
    if (size_t place = isLayer && !keepsPlaces ? endOfPlace(text, i) : i; place > i) {
      i = place;
      continue;
    }
    size_t end = i;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9')
      ++end;
    bool ends = end == text.size() || text[end] == '.' || text[end] == ' ';
    bool isNumber = end > i && i > 0 && text[i - 1] == '.' && ends;
    isLayer |= isNumber;
    if (isNumber)
      pattern += '*';
    else
      pattern.append(text, i, std::max<size_t>(end - i, 1));
    i = std::max(end, i + 1);
  }
  return pattern;
}

/// Calls `visit` with each text of a collective that may name a layer.
template <typename Visitor>
static void visitLayerTexts(ExplainedCollective &collective, Visitor visit) {
  visit(collective.location);
  visit(collective.task);
  for (ExplainedTensor &tensor : collective.tensors) {
    visit(tensor.reason.value);
    visit(tensor.reason.producer);
    visit(tensor.reason.consumer);
    visit(tensor.reason.remedy);
  }
}

/// The common properties of the collectives of one group.
static std::vector<std::string> groupKey(ExplainedCollective collective) {
  std::vector<std::string> key{collective.kindName(), std::to_string(collective.async),
                               std::to_string(collective.bytes),
                               fmt::format("{}", fmt::join(collective.axes, "+"))};
  for (const ExplainedTensor &tensor : collective.tensors)
    key.insert(key.end(), {tensor.type, tensor.reason.from, tensor.reason.to});
  visitLayerTexts(collective, [&](const std::string &text) {
    key.push_back(layerPattern(text, /*keepsPlaces=*/false));
  });
  return key;
}

ExplainedCollective representativeOf(const PlanExplanation &explanation,
                                     const ExplainedRow &group) {
  auto textsOf = [](ExplainedCollective collective) {
    std::vector<std::string> texts;
    visitLayerTexts(collective, [&](const std::string &text) { texts.push_back(text); });
    return texts;
  };
  ExplainedCollective result = explanation.collectives[group.members.front()];
  std::vector<std::string> first = textsOf(result);
  for (size_t member : group.members) {
    std::vector<std::string> texts = textsOf(explanation.collectives[member]);
    size_t i = 0;
    visitLayerTexts(result, [&](std::string &text) {
      if (texts[i] != first[i])
        text = layerPattern(first[i], layerPattern(first[i]) == layerPattern(texts[i]));
      ++i;
    });
  }
  return result;
}

std::vector<ExplainedRow>
mergeAlikeCollectives(const std::vector<ExplainedCollective> &collectives) {
  std::vector<ExplainedRow> result;
  std::map<std::vector<std::string>, size_t> groups;
  for (size_t i = 0; i < collectives.size(); ++i) {
    const ExplainedCollective &collective = collectives[i];
    auto [it, fresh] = groups.try_emplace(groupKey(collective), result.size());
    if (fresh)
      result.emplace_back();
    ExplainedRow &group = result[it->second];
    group.members.push_back(i);
    group.calls += collective.calls;
    group.bytes += collective.stepBytes();
    group.seconds += collective.stepSeconds();
  }
  return result;
}

} // namespace dtc
