//===- TokenFile.cpp - Files that are one long sequence of tokens ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/TokenFile.h"

#include "runtime/data/FileFormat.h"

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

/// The formats for GPT-2's vocabulary and for that of Llama 3.
static constexpr LlmcFormat kLlmcFormats[] = {{20240520, 1, 2, "16-bit tokens (llm.c)"},
                                              {20240801, 7, 4, "32-bit tokens (llm.c)"}};

MaybeError TokenFile::readLayout(const std::array<int32_t, 3> &header) {
  uint64_t bytes = file.size();
  if (bytes == 0)
    return Error{"the file is empty"};
  bool isNarrow = hasSuffix(file.path(), ".bin"), isWide = hasSuffix(file.path(), ".u32");
  if (hasSuffix(file.path(), ".npy"))
    return Error{
        "has the name of a NumPy file and not its first bytes; raw tokens, as dolma writes "
        "them under such a name, are read from a file that is named .bin (16 bits each) "
        "or .u32 (32 bits each)"};
  tokenBytes = isNarrow ? 2 : isWide ? 4 : 1;
  tokenCount = bytes / tokenBytes;
  if (tokenBytes == 1)
    return std::nullopt;
  const auto *llmc =
      std::find_if(std::begin(kLlmcFormats), std::end(kLlmcFormats),
                   [&](const LlmcFormat &each) { return isNarrow && each.magic == header[0]; });
  if (llmc == std::end(kLlmcFormats)) {
    format = isNarrow ? "16-bit tokens" : "32-bit tokens";
    mayBeWider = true;
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
  constexpr uint64_t fewest = 64, most = 8192;
  if (!mayBeWider)
    return std::nullopt;
  std::vector<int32_t> tokens(std::min(tokenCount, most) / 4 * 4);
  if (MaybeError error = read(0, tokens))
    return error;
  // The widest first: in numbers of 64 bits, every second half of 32 bits is 0 as well.
  for (uint64_t bits : {64, 32}) {
    uint64_t parts = bits / 8 / tokenBytes; // of a number, the lowest first
    if (parts < 2 || tokens.size() < fewest || tokenCount % parts != 0)
      continue;
    // The other parts of a number are no larger than this, and 0 from 32 bits on. As tokens they
    // would differ as the lowest parts do.
    auto mostAt = [&](uint64_t part) {
      return part == 1 && tokenBytes == 2 && vocabulary > 0 ? (vocabulary - 1) >> 16 : 0;
    };
    bool isWider = true, differs = false;
    for (uint64_t i = 0; isWider && i < tokens.size(); ++i) {
      if (i % parts == 0)
        differs |= tokens[i] != tokens[0];
      else
        isWider = tokens[i] >= 0 && tokens[i] <= mostAt(i % parts);
    }
    if (!isWider || !differs)
      continue;
    return Error{fmt::format(
        "{}: {} of its first {} {}-bit numbers is {}, as in a file of {}-bit tokens; {} ({}-bit "
        "tokens that are like this need llm.c's header)",
        path(), parts == 4 ? "all but every fourth" : "every second", tokens.size(), 8 * tokenBytes,
        mostAt(1) == 0 ? "0" : fmt::format("at most {}", mostAt(1)), bits,
        bits == 32 ? "name such a file .u32"
                   : "write it with 16 or 32 bits each, in Python numpy.fromfile(FILE, "
                     "'<i8').astype('<u2').tofile('tokens.bin'), or '<u4' to a file .u32",
        8 * tokenBytes)};
  }
  return std::nullopt;
}

Expected<std::string> TokenFile::noteOnText() const {
  constexpr uint64_t most = 4096;
  if (!isText())
    return std::string();
  std::string text(std::min(tokenCount, most), '\0');
  if (MaybeError error = file.read(0, std::as_writable_bytes(std::span(text))))
    return *error;
  // A file that is named as a text is meant as bytes.
  if (text.find('\0') != std::string::npos && !hasSuffix(path(), ".txt"))
    return std::string(
        "has bytes of 0, which no text has, and each byte is a token; name a file of "
        "tokens .bin (16 bits each) or .u32 (32 bits each)");
  size_t first = text.find_first_not_of(" \t\r\n");
  bool isNamedJson = hasSuffix(path(), ".json") || hasSuffix(path(), ".jsonl");
  if (isNamedJson || text.compare(std::min(first, text.size()), 2, "{\"") == 0)
    return std::string(
        "is JSON, and each byte of it would be a token; dtc-data makes tokens of the "
        "texts in it");
  return std::string();
}

Expected<TokenFile> TokenFile::open(const std::string &path) {
  Expected<InputFile> file = InputFile::open(path);
  if (!file)
    return file.error();
  if (MaybeError error = refuseForeignFormat(*file))
    return *error;
  std::array<int32_t, 3> header{};
  if (file->size() >= sizeof(header))
    if (MaybeError error = file->read(0, std::as_writable_bytes(std::span(header))))
      return *error;
  TokenFile tokens(std::move(*file));
  if (MaybeError error = tokens.readLayout(header))
    return error->inContext(path);
  return tokens;
}

/// Widens little-endian tokens, which is the order of the host.
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
