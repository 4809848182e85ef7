//===- Printable.cpp - Escaping of text for terminals ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Printable.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>

namespace dtc {

namespace {
struct Character {
  uint32_t code = 0;
  size_t bytes = 0; // 0: the text does not begin with a character in UTF-8
};
} // namespace

/// The first character of a text that is not empty. Forms that are longer than needed, surrogates
/// and codes beyond U+10FFFF are no UTF-8.
static Character firstCharacter(std::string_view text) {
  auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80)
    return {lead, 1};
  size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes)
    return {};
  uint32_t code = lead & (0xFFu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    auto next = static_cast<unsigned char>(text[i]);
    if (next >> 6 != 2)
      return {};
    code = code << 6 | (next & 0x3Fu);
  }
  constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < least[bytes] || (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF)
    return {};
  return {code, bytes};
}

static bool isHarmless(uint32_t code) {
  if (code < 0x20 || (code >= 0x7F && code < 0xA0))
    return false; // control characters
  // Line and paragraph separators, characters that change the direction of writing, and codes that
  // are no characters and are not allowed in XML.
  return code != 0xFFFE && code != 0xFFFF && !(code >= 0x2028 && code <= 0x202E) &&
         !(code >= 0x2066 && code <= 0x2069) && code != 0x200E && code != 0x200F && code != 0x061C;
}

/// `keeps` decides which harmful characters stay, also by the text after them.
template <typename Keeps> static std::string escape(std::string_view text, Keeps keeps) {
  std::string result;
  result.reserve(text.size());
  auto out = std::back_inserter(result);
  while (!text.empty()) {
    Character character = firstCharacter(text);
    size_t bytes = character.bytes == 0 ? 1 : character.bytes;
    if (character.bytes > 0 && (isHarmless(character.code) || keeps(text)))
      result += text.substr(0, bytes);
    else if (character.bytes == 0)
      fmt::format_to(out, "\\x{:02X}", static_cast<unsigned char>(text.front()));
    else if (character.code == '\n' || character.code == '\t' || character.code == '\r')
      fmt::format_to(out, "\\{}",
                     character.code == '\n'   ? 'n'
                     : character.code == '\t' ? 't'
                                              : 'r');
    else if (character.code < 0x20)
      fmt::format_to(out, "\\x{:02X}", character.code);
    else
      fmt::format_to(out, "\\u{:04X}", character.code);
    text.remove_prefix(bytes);
  }
  return result;
}

std::string printable(std::string_view text) {
  return escape(text, [](std::string_view) { return false; });
}

std::string printableLines(std::string_view text) {
  return escape(text, [](std::string_view rest) { return rest[0] == '\n' || rest[0] == '\t'; });
}

/// The begin of a character: `at`, or up to three bytes before it.
static size_t characterAt(std::string_view text, size_t at) {
  size_t begin = at;
  while (begin > 0 && at - begin < 3 && (static_cast<unsigned char>(text[begin]) >> 6) == 2)
    --begin;
  return begin;
}

/// A line without its middle, if it is long. Messages speak of a name before or after it.
static std::string shorten(std::string_view line) {
  constexpr size_t most = 4000, firstPart = 2800, lastPart = 1000;
  if (line.size() <= most)
    return std::string(line);
  size_t begin = characterAt(line, firstPart), end = characterAt(line, line.size() - lastPart);
  return fmt::format("{} [... {} bytes ...] {}", line.substr(0, begin), end - begin,
                     line.substr(end));
}

std::string printableMessage(std::string_view message) {
  constexpr std::string_view lineBegin = "\n  "; // of details
  constexpr int mostLines = 1000;
  std::string result;
  for (int line = 1;; ++line) {
    size_t end = std::min(message.find(lineBegin), message.size());
    result += escape(shorten(message.substr(0, end)), [](std::string_view) { return false; });
    if (end == message.size())
      return result;
    if (line == mostLines)
      return result + fmt::format("\n  [... {} bytes ...]", message.size() - end);
    result += lineBegin;
    message.remove_prefix(end + lineBegin.size());
  }
}

} // namespace dtc
