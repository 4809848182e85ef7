//===- TokenSource.cpp - Batches from text and token files ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/TokenSource.h"

#include "runtime/data/Fingerprint.h"
#include "runtime/data/Sampling.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime {

static constexpr uint64_t tokensCheckedAtOnce = uint64_t{1} << 20;

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
  if (file.size() < window)
    return Error{fmt::format("has {} tokens; a sample takes {} (sequences of {} and the token "
                             "after them)",
                             file.size(), window, window - 1)};
  return std::nullopt;
}

Expected<std::unique_ptr<DataSource>>
TokenSource::open(const std::string &path, std::vector<DataInput> inputs, uint64_t seed) {
  Expected<TokenFile> file = TokenFile::open(path);
  if (!file)
    return file.error();
  std::unique_ptr<TokenSource> source(new TokenSource(std::move(*file), seed));
  if (MaybeError error = source->bindInputs(std::move(inputs)))
    return error->inContext(path);
  if (MaybeError error = source->file.checkWidth(source->tokens.indexLimit))
    return *error;
  return std::unique_ptr<DataSource>(std::move(source));
}

/// All tokens of an input are below it.
static int64_t limitOf(const DataInput &input) {
  return input.indexLimit > 0 ? input.indexLimit : int64_t{1} << 31;
}

MaybeError TokenSource::checkLimit(const DataInput &input, uint64_t position,
                                   std::span<const int32_t> values) const {
  // Negative numbers are tokens of more than 31 bits.
  for (size_t i = 0; i < values.size(); ++i)
    if (static_cast<uint32_t>(values[i]) >= limitOf(input))
      return Error{fmt::format("{}: token {} at position {} is out of range; the input \"{}\" "
                               "takes tokens from 0 to {} (the model's vocabulary is too small "
                               "for this data, or the file has another format)",
                               file.path(), static_cast<uint32_t>(values[i]), position + i,
                               input.name, limitOf(input) - 1)};
  return std::nullopt;
}

MaybeError TokenSource::readTokens(const DataInput &input, uint64_t position,
                                   std::span<int32_t> out) const {
  if (MaybeError error = file.read(position, out))
    return error;
  return checkLimit(input, position, out);
}

MaybeError TokenSource::check(const Progress &progress) const {
  auto takesAll = [&](const DataInput &input) { return limitOf(input) >= file.tokenLimit(); };
  if (takesAll(tokens) && (!labels || takesAll(*labels)))
    return std::nullopt;
  std::vector<int32_t> part;
  for (uint64_t begin = 0; begin < file.size() && progress(begin, file.size());
       begin += part.size()) {
    part.resize(std::min(file.size() - begin, tokensCheckedAtOnce));
    if (MaybeError error = file.read(begin, part))
      return error;
    // Nearly always all of them are below all limits.
    uint32_t largest = 0;
    for (int32_t token : part)
      largest = std::max(largest, static_cast<uint32_t>(token));
    if (largest < limitOf(tokens) && (!labels || largest < limitOf(*labels)))
      continue;
    // The last token of the file is a label only, and the first one is none.
    bool hasLast = begin + part.size() == file.size();
    if (MaybeError error = checkLimit(tokens, begin, std::span(part).first(part.size() - hasLast)))
      return error;
    size_t first = begin == 0 ? 1 : 0;
    if (!labels)
      continue;
    if (MaybeError error = checkLimit(*labels, begin + first, std::span(part).subspan(first)))
      return error;
  }
  return std::nullopt;
}

Expected<std::map<std::string, HostTensor>> TokenSource::batch(int64_t step) const {
  uint64_t places = file.size() - static_cast<uint64_t>(tokens.type.shape[1]);
  return batchAt([&](int64_t sample) { return drawSample(seed, step, sample, places); });
}

int64_t TokenSource::sequentialBatches() const {
  // The last token of a window is the first of the next one too: as a label, and as a token.
  int64_t samples = tokens.type.shape[0], length = tokens.type.shape[1];
  return samples * length > 0 ? (static_cast<int64_t>(file.size()) - 1) / length / samples : 0;
}

Expected<std::map<std::string, HostTensor>> TokenSource::sequentialBatch(int64_t index) const {
  int64_t first = index * tokens.type.shape[0];
  return batchAt([&](int64_t sample) {
    return static_cast<uint64_t>((first + sample) * tokens.type.shape[1]);
  });
}

Expected<std::map<std::string, HostTensor>>
TokenSource::batchAt(const std::function<uint64_t(int64_t)> &positionOf) const {
  std::map<std::string, HostTensor> result;
  HostTensor &inputs = result.emplace(tokens.name, tokens.type).first->second;
  HostTensor *targets =
      labels ? &result.emplace(labels->name, labels->type).first->second : nullptr;
  auto length = static_cast<size_t>(tokens.type.shape[1]);
  for (int64_t sample = 0; sample < tokens.type.shape[0]; ++sample) {
    uint64_t position = positionOf(sample);
    size_t at = static_cast<size_t>(sample) * length;
    if (MaybeError error = readTokens(tokens, position, {inputs.as<int32_t>() + at, length}))
      return *error;
    if (!targets)
      continue;
    if (MaybeError error = readTokens(*labels, position + 1, {targets->as<int32_t>() + at, length}))
      return *error;
  }
  return result;
}

Expected<std::string> TokenSource::fingerprint() const {
  const InputFile *files[] = {&file.input()};
  return fingerprintOf(fmt::format("u{}", file.tokenBits()), file.size(), files);
}

std::string TokenSource::describe() const { return file.describe(); }

} // namespace dtc::runtime
