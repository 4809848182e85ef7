//===- TokenSource.cpp - Batches from text and token files ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/TokenSource.h"

#include "runtime/data/Sampling.h"

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

MaybeError TokenSource::readLayout() {
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

MaybeError TokenSource::bindInputs(std::vector<DataInput> inputs) {
  bool hasTokens = false;
  for (DataInput &input : inputs) {
    if (input.name != "tokens" && input.name != "labels")
      return Error{fmt::format("holds tokens, which serve the inputs \"tokens\" and \"labels\"; "
                               "the plan also needs \"{}\" (a .safetensors file can give it)",
                               input.name)};
    if (input.type.dtype != DType::I32 || input.type.rank() != 2)
      return Error{fmt::format("holds tokens, but the input \"{}\" of the plan is {}; expected "
                               "i32[batch,seq]",
                               input.name, input.type.str())};
    if (input.name == "tokens") {
      tokens = std::move(input);
      hasTokens = true;
    } else {
      labels = std::move(input);
    }
  }
  if (!hasTokens)
    return Error{"holds tokens, but the plan has no input \"tokens\""};
  if (labels && labels->type != tokens.type)
    return Error{fmt::format("the inputs \"tokens\" ({}) and \"labels\" ({}) of the plan differ",
                             tokens.type.str(), labels->type.str())};
  auto window = static_cast<uint64_t>(tokens.type.shape[1]) + 1;
  if (tokenCount < window)
    return Error{fmt::format("has {} tokens; a sample takes {} (sequences of {} and the token "
                             "after them)",
                             tokenCount, window, window - 1)};
  return std::nullopt;
}

Expected<std::unique_ptr<DataSource>>
TokenSource::open(const std::string &path, std::vector<DataInput> inputs, uint64_t seed) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.error();
  std::unique_ptr<TokenSource> source(new TokenSource(std::move(*file), seed));
  if (MaybeError error = source->readLayout())
    return error->inContext(path);
  if (MaybeError error = source->bindInputs(std::move(inputs)))
    return error->inContext(path);
  return std::unique_ptr<DataSource>(std::move(source));
}

int32_t TokenSource::tokenAt(uint64_t position) const {
  const std::byte *at = file.bytes().data() + dataBegin + position * tokenBytes;
  if (tokenBytes == 1)
    return std::to_integer<int32_t>(*at);
  uint16_t token;
  std::memcpy(&token, at, sizeof(token));
  return token;
}

MaybeError TokenSource::copyTokens(const DataInput &input, uint64_t position, int64_t count,
                                   int32_t *out) const {
  for (int64_t i = 0; i < count; ++i) {
    int32_t token = tokenAt(position + static_cast<uint64_t>(i));
    if (input.indexLimit > 0 && token >= input.indexLimit)
      return Error{fmt::format("{}: token {} at position {} is out of range; the input \"{}\" "
                               "takes tokens from 0 to {} (the model's vocabulary is too small "
                               "for this data, or the file has another format)",
                               file.path(), token, position + static_cast<uint64_t>(i), input.name,
                               input.indexLimit - 1)};
    out[i] = token;
  }
  return std::nullopt;
}

Expected<std::map<std::string, HostTensor>> TokenSource::batch(int64_t step) const {
  std::map<std::string, HostTensor> result;
  HostTensor &inputs = result.emplace(tokens.name, tokens.type).first->second;
  HostTensor *targets =
      labels ? &result.emplace(labels->name, labels->type).first->second : nullptr;
  int64_t length = tokens.type.shape[1];
  uint64_t places = tokenCount - static_cast<uint64_t>(length);
  for (int64_t sample = 0; sample < tokens.type.shape[0]; ++sample) {
    uint64_t position = drawSample(seed, step, sample, places);
    if (MaybeError error =
            copyTokens(tokens, position, length, inputs.as<int32_t>() + sample * length))
      return *error;
    if (!targets)
      continue;
    if (MaybeError error =
            copyTokens(*labels, position + 1, length, targets->as<int32_t>() + sample * length))
      return *error;
  }
  return result;
}

std::string TokenSource::describe() const {
  return fmt::format("{}: {} {}", file.path(), tokenCount, format);
}

} // namespace dtc::runtime
