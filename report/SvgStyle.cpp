//===- SvgStyle.cpp - Common style of SVG figures -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/SvgStyle.h"

#include <iterator>
#include <nlohmann/json.hpp>

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

/// Whether the character of valid UTF-8 that begins at `i` is one of the control characters U+0080
/// to U+009F, which take two bytes, or of U+FFFE and U+FFFF, which take three.
static size_t forbiddenBytes(const std::string &text, size_t i) {
  auto byte = [&](size_t k) {
    return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0;
  };
  if (byte(0) == 0xC2 && byte(1) < 0xA0)
    return 2;
  if (byte(0) == 0xEF && byte(1) == 0xBF && byte(2) >= 0xBE)
    return 3;
  return 0;
}

std::string escapeXml(std::string_view text) {
  using Json = nlohmann::json;
  // Through JSON, which puts U+FFFD for what is not UTF-8.
  std::string valid = Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
                          .get<std::string>();
  std::string result;
  for (size_t i = 0; i < valid.size(); ++i) {
    char c = valid[i];
    if (size_t skipped = forbiddenBytes(valid, i)) {
      result += ' ';
      i += skipped - 1;
    } else if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else
      result += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
  }
  return result;
}

} // namespace dtc
