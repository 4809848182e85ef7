//===- SvgStyle.cpp - Common style of SVG figures -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/SvgStyle.h"

#include "support/Printable.h"

#include <iterator>

namespace dtc {

const char *taskColour(std::optional<StagePass> pass, size_t chunk) {
  static constexpr const char *forward[] = {"#1f5fb4", "#4a8ad4", "#153f7a", "#3d74a8"};
  static constexpr const char *backward[] = {"#2b7a3d", "#4f9a5c", "#1a5229", "#5d8a3a"};
  static constexpr const char *weight[] = {"#7a3fa8", "#9b6ac4", "#552b78", "#8a4f8f"};
  static_assert(std::size(forward) == kNumTaskShades && std::size(backward) == kNumTaskShades &&
                std::size(weight) == kNumTaskShades);
  if (!pass)
    return "#6b6f76";
  switch (*pass) {
  case StagePass::Forward:
    return forward[chunk % kNumTaskShades];
  case StagePass::Backward:
    return backward[chunk % kNumTaskShades];
  case StagePass::Weight:
    return weight[chunk % kNumTaskShades];
  }
  return "";
}

std::string escapeXml(std::string_view text) {
  std::string result;
  for (char c : printable(text)) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

} // namespace dtc
