//===- TokenFile.cpp - Files that are one long sequence of tokens ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/TokenFile.h"

#include <cstring>
#include <fmt/format.h>

namespace dtc::runtime {

// llm.c: 256 numbers of 32 bits (magic, version, number of tokens), then tokens of 16 bits.
static constexpr size_t llmcHeaderBytes = 1024;
static constexpr int32_t llmcMagic = 20240520;
static constexpr int32_t llmcVersion = 1;
/// llm.c's files for Llama 3 have tokens of 32 bits.
static constexpr int32_t llmcLlama3Magic = 20240801;

MaybeError TokenFile::readLayout(const std::array<int32_t, 3> &header) {
  uint64_t bytes = file.size();
  if (bytes == 0)
    return Error{"the file is empty"};
  if (!file.path().ends_with(".bin")) {
    tokenCount = bytes;
    return std::nullopt;
  }
  tokenBytes = 2;
  if (header[0] == llmcLlama3Magic)
    return Error{"holds 32-bit tokens of llm.c (Llama 3); only its 16-bit token files are read"};
  if (header[0] != llmcMagic) {
    if (bytes % 2 != 0)
      return Error{fmt::format("has {} bytes; a file of 16-bit tokens has an even number (a text "
                               "file should not be named .bin)",
                               bytes)};
    format = "16-bit tokens";
    tokenCount = bytes / 2;
    return std::nullopt;
  }
  format = "16-bit tokens (llm.c)";
  if (header[1] != llmcVersion)
    return Error{
        fmt::format("is an llm.c token file of version {}; expected {}", header[1], llmcVersion)};
  if (bytes < llmcHeaderBytes)
    return Error{fmt::format("is an llm.c token file, but has {} bytes, fewer than its header of "
                             "{}",
                             bytes, llmcHeaderBytes)};
  dataBegin = llmcHeaderBytes;
  uint64_t dataBytes = bytes - llmcHeaderBytes;
  if (header[2] < 0 || dataBytes != static_cast<uint64_t>(header[2]) * 2)
    return Error{fmt::format("is an llm.c token file of {} tokens by its header, but holds {} "
                             "bytes of tokens; it is truncated or damaged",
                             header[2], dataBytes)};
  tokenCount = static_cast<uint64_t>(header[2]);
  return std::nullopt;
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

std::string TokenFile::describe() const {
  return fmt::format("{}: {} {}", file.path(), tokenCount, format);
}

} // namespace dtc::runtime
