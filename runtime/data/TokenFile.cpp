//===- TokenFile.cpp - Files that are one long sequence of tokens ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/TokenFile.h"

#include <array>
#include <cstring>
#include <fmt/format.h>

namespace dtc::runtime {

// llm.c: 256 numbers of 32 bits (magic, version, number of tokens), then tokens of 16 bits.
static constexpr size_t llmcHeaderBytes = 1024;
static constexpr int32_t llmcMagic = 20240520;
static constexpr int32_t llmcVersion = 1;
/// llm.c's files for Llama 3 have tokens of 32 bits.
static constexpr int32_t llmcLlama3Magic = 20240801;

MaybeError TokenFile::readLayout() {
  std::span<const std::byte> bytes = file.bytes();
  if (bytes.empty())
    return Error{"the file is empty"};
  if (!file.path().ends_with(".bin")) {
    tokenCount = bytes.size();
    return std::nullopt;
  }
  std::array<int32_t, 3> header{};
  if (bytes.size() >= sizeof(header))
    std::memcpy(header.data(), bytes.data(), sizeof(header));
  tokenBytes = 2;
  if (header[0] == llmcLlama3Magic)
    return Error{"holds 32-bit tokens of llm.c (Llama 3); only its 16-bit token files are read"};
  if (header[0] != llmcMagic) {
    if (bytes.size() % 2 != 0)
      return Error{fmt::format("has {} bytes; a file of 16-bit tokens has an even number (a text "
                               "file should not be named .bin)",
                               bytes.size())};
    format = "16-bit tokens";
    tokenCount = bytes.size() / 2;
    return std::nullopt;
  }
  format = "16-bit tokens (llm.c)";
  if (header[1] != llmcVersion)
    return Error{
        fmt::format("is an llm.c token file of version {}; expected {}", header[1], llmcVersion)};
  if (bytes.size() < llmcHeaderBytes)
    return Error{fmt::format("is an llm.c token file, but has {} bytes, fewer than its header of "
                             "{}",
                             bytes.size(), llmcHeaderBytes)};
  dataBegin = llmcHeaderBytes;
  size_t dataBytes = bytes.size() - llmcHeaderBytes;
  if (header[2] < 0 || dataBytes != static_cast<size_t>(header[2]) * 2)
    return Error{fmt::format("is an llm.c token file of {} tokens by its header, but holds {} "
                             "bytes of tokens; it is truncated or damaged",
                             header[2], dataBytes)};
  tokenCount = static_cast<uint64_t>(header[2]);
  return std::nullopt;
}

Expected<TokenFile> TokenFile::open(const std::string &path) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.error();
  TokenFile tokens(std::move(*file));
  if (MaybeError error = tokens.readLayout())
    return error->inContext(path);
  return tokens;
}

int32_t TokenFile::operator[](uint64_t position) const {
  const std::byte *at = file.bytes().data() + dataBegin + position * tokenBytes;
  if (tokenBytes == 1)
    return std::to_integer<int32_t>(*at);
  uint16_t token;
  std::memcpy(&token, at, sizeof(token));
  return token;
}

std::string TokenFile::describe() const {
  return fmt::format("{}: {} {}", file.path(), tokenCount, format);
}

} // namespace dtc::runtime
