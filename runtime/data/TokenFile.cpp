//===- TokenFile.cpp - Files that are one long sequence of tokens ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/TokenFile.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <iterator>
#include <vector>

namespace dtc::runtime {

// llm.c: 256 numbers of 32 bits (magic, version, number of tokens), then the tokens.
static constexpr size_t kLlmcHeaderBytes = 1024;

namespace {
struct LlmcFormat {
  int32_t magic, version;
  size_t tokenBytes;
  const char *description;
};
} // namespace

/// For GPT-2's vocabulary, and for that of Llama 3.
static constexpr LlmcFormat kLlmcFormats[] = {{20240520, 1, 2, "16-bit tokens (llm.c)"},
                                              {20240801, 7, 4, "32-bit tokens (llm.c)"}};

MaybeError TokenFile::readLayout(const std::array<int32_t, 3> &header) {
  uint64_t bytes = file.size();
  if (bytes == 0)
    return Error{"the file is empty"};
  bool isNarrow = file.path().ends_with(".bin"), isWide = file.path().ends_with(".u32");
  tokenBytes = isNarrow ? 2 : isWide ? 4 : 1;
  tokenCount = bytes / tokenBytes;
  if (tokenBytes == 1)
    return std::nullopt;
  const auto *llmc =
      std::find_if(std::begin(kLlmcFormats), std::end(kLlmcFormats),
                   [&](const LlmcFormat &each) { return isNarrow && each.magic == header[0]; });
  if (llmc == std::end(kLlmcFormats)) {
    format = isNarrow ? "16-bit tokens" : "32-bit tokens";
    mayBeWider = isNarrow;
    if (bytes % tokenBytes != 0)
      return Error{fmt::format("has {} bytes; a file of {} has {} (a text file should not be named "
                               "{})",
                               bytes, format, isNarrow ? "an even number" : "a multiple of 4",
                               isNarrow ? ".bin" : ".u32")};
    return std::nullopt;
  }
  format = llmc->description;
  tokenBytes = llmc->tokenBytes;
  if (header[1] != llmc->version)
    return Error{
        fmt::format("is an llm.c token file of version {}; expected {}", header[1], llmc->version)};
  if (bytes < kLlmcHeaderBytes)
    return Error{fmt::format("is an llm.c token file, but has {} bytes, fewer than its header of "
                             "{}",
                             bytes, kLlmcHeaderBytes)};
  dataBegin = kLlmcHeaderBytes;
  uint64_t dataBytes = bytes - kLlmcHeaderBytes;
  if (header[2] < 0 || dataBytes != static_cast<uint64_t>(header[2]) * tokenBytes)
    return Error{fmt::format("is an llm.c token file of {} tokens by its header, but holds {} "
                             "bytes of tokens; it is truncated or damaged",
                             header[2], dataBytes)};
  tokenCount = static_cast<uint64_t>(header[2]);
  return std::nullopt;
}

MaybeError TokenFile::checkWidth(int64_t vocabulary) const {
  // The upper halves of tokens of 32 bits are no larger than this; those of 16 bits, which are
  // every second token, differ as the others do.
  int64_t mostUpper = vocabulary > 0 ? (vocabulary - 1) >> 16 : 0;
  constexpr uint64_t fewest = 64, most = 8192;
  uint64_t count = std::min(tokenCount, most) / 2 * 2;
  if (!mayBeWider || count < fewest || tokenCount % 2 != 0)
    return std::nullopt;
  std::vector<int32_t> tokens(count);
  if (MaybeError error = read(0, tokens))
    return error;
  bool differs = false; // among what would be lower halves
  for (uint64_t i = 0; i < count; i += 2) {
    if (tokens[i + 1] > mostUpper)
      return std::nullopt;
    differs |= tokens[i] != tokens[0];
  }
  if (!differs)
    return std::nullopt;
  return Error{fmt::format("{}: every second of its first {} 16-bit numbers is {}, as in a file of "
                           "32-bit tokens; name such a file .u32 (16-bit tokens that are like "
                           "this need llm.c's header)",
                           path(), count,
                           mostUpper == 0 ? "0" : fmt::format("at most {}", mostUpper))};
}

Expected<TokenFile> TokenFile::open(const std::string &path) {
  Expected<InputFile> file = InputFile::open(path);
  if (!file)
    return file.error();
  std::array<int32_t, 3> header{};
  if (file->size() >= sizeof(header))
    if (MaybeError error = file->read(0, std::as_writable_bytes(std::span(header))))
      return *error;
  TokenFile tokens(std::move(*file));
  if (MaybeError error = tokens.readLayout(header))
    return error->inContext(path);
  return tokens;
}

/// From little-endian tokens, as the host has them.
template <typename Token> static void widen(const std::byte *from, std::span<int32_t> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    Token token;
    std::memcpy(&token, from + i * sizeof(Token), sizeof(Token));
    out[i] = token;
  }
}

MaybeError TokenFile::read(uint64_t position, std::span<int32_t> out) const {
  // The file's bytes go to the end of `out`, so that none is overwritten before it is converted.
  std::span<std::byte> bytes = std::as_writable_bytes(out).last(out.size() * tokenBytes);
  if (MaybeError error = file.read(dataBegin + position * tokenBytes, bytes))
    return error;
  if (tokenBytes == 1)
    widen<uint8_t>(bytes.data(), out);
  else if (tokenBytes == 2)
    widen<uint16_t>(bytes.data(), out);
  return std::nullopt; // tokens of four bytes are where they should be
}

} // namespace dtc::runtime
