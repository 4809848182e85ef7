//===- Generator.cpp - Generation of tokens -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/generate/Generator.h"

#include "plan/PlanTypes.h"
#include "runtime/data/DataSource.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <limits>

namespace dtc::runtime {

struct Generator::Sequence {
  int64_t number = 0;
  std::vector<int32_t> tokens; // the prompt's and those that follow
  size_t promptLength = 0;
  bool isDone = false;
};

/// Checks that an entry point takes tokens of `shape` and a position for each sample, and gives the
/// logits of one token of each.
static MaybeError checkEntry(const Session &session, const std::vector<int64_t> &shape) {
  int64_t samples = shape[0];
  bool hasTokens = false;
  for (const DataInput &input : dataInputsOf(session.plan())) {
    bool isTokens = input.name == "tokens" && input.type == TensorType{DType::I32, shape};
    // There are none where nothing depends on them.
    bool isPositions = input.name == "positions" && input.type == TensorType{DType::I32, {samples}};
    hasTokens |= isTokens;
    if (!isTokens && !isPositions)
      return Error{fmt::format("has the input \"{}\", {}; expected tokens and positions alone",
                               input.name, input.type.str())};
  }
  const plan::Output *logits = session.findOutput("logits");
  bool fits = logits && isFloat(toDType(logits->dtype())) && logits->shape_size() == 3 &&
              logits->shape(0) == samples && logits->shape(1) == 1 && logits->shape(2) > 0;
  if (!hasTokens || !fits)
    return Error{fmt::format("needs an input \"tokens\" and an output \"logits\", floats of [{}, "
                             "1, vocabulary]",
                             samples)};
  return std::nullopt;
}

Expected<Generator> Generator::create(Session &session) {
  Session *decode = session.findEntry("decode");
  if (!decode)
    return Error{"the plan has no entry point \"decode\"; compile the model with --mode generate"};
  Generator generator(session, *decode);
  for (const DataInput &input : dataInputsOf(session.plan()))
    if (input.name == "tokens" && input.type.rank() == 2) {
      generator.samples = input.type.shape[0];
      generator.places = input.type.shape[1];
    }
  if (generator.samples < 1 || generator.places < 1)
    return Error{"the plan has no input \"tokens\", i32[batch,seq]"};
  if (MaybeError error = checkEntry(session, {generator.samples, generator.places}))
    return error->inContext("the plan's own entry point, which reads the prompts");
  if (MaybeError error = checkEntry(*decode, {generator.samples, 1}))
    return error->inContext("entry point \"decode\"");
  return generator;
}

MaybeError Generator::step(Session &session, HostTensor tokens, const HostTensor &positions) {
  if (MaybeError error = session.setInput("tokens", std::move(tokens)))
    return error;
  for (const DataInput &input : dataInputsOf(session.plan()))
    if (input.name == "positions")
      if (MaybeError error = session.setInput("positions", positions))
        return error;
  return session.step();
}

/// Adds a token to each sequence that is not done.
MaybeError Generator::sample(Session &session, std::vector<Sequence> &sequences,
                             const GeneratorOptions &options) {
  Expected<HostTensor> logits = session.getOutput("logits");
  if (!logits)
    return logits.error();
  int64_t width = logits->type.shape[2];
  std::vector<double> values(static_cast<size_t>(width)); // of one sequence
  for (size_t i = 0; i < sequences.size(); ++i) {
    Sequence &sequence = sequences[i];
    if (sequence.isDone)
      continue;
    auto position = static_cast<int64_t>(sequence.tokens.size());
    for (int64_t at = 0; at < width; ++at)
      values[static_cast<size_t>(at)] = elementAt(*logits, static_cast<int64_t>(i) * width + at);
    int32_t token = sampleToken(values, sequence.number, position, options.sampler);
    sequence.tokens.push_back(token);
    auto added = static_cast<int64_t>(sequence.tokens.size() - sequence.promptLength);
    sequence.isDone =
        added >= options.maxNewTokens || std::ranges::count(options.stopTokens, token) > 0;
  }
  return std::nullopt;
}

MaybeError Generator::runTogether(std::vector<Sequence> &sequences, const GeneratorOptions &options,
                                  const std::atomic<bool> &stop, GeneratedText &text) {
  using Clock = std::chrono::steady_clock;
  auto seconds = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  Clock::time_point begin = Clock::now();
  // Tokens after a prompt have no influence on it, nor do samples on each other.
  HostTensor all(TensorType{DType::I32, {samples, places}});
  HostTensor last(TensorType{DType::I32, {samples}});
  for (size_t i = 0; i < sequences.size(); ++i) {
    std::copy(sequences[i].tokens.begin(), sequences[i].tokens.end(),
              all.as<int32_t>() + static_cast<int64_t>(i) * places);
    last.as<int32_t>()[i] = static_cast<int32_t>(sequences[i].tokens.size()) - 1;
  }
  if (MaybeError error = step(prefill, all, last))
    return error;
  if (MaybeError error = sample(prefill, sequences, options))
    return error;
  text.prefillSeconds += seconds(begin);

  begin = Clock::now();
  auto isDone = [](const Sequence &sequence) { return sequence.isDone; };
  while (!std::all_of(sequences.begin(), sequences.end(), isDone)) {
    Expected<bool> stopped = decode.fabric().any(stop);
    if (!stopped)
      return stopped.error();
    if (*stopped)
      break;
    HostTensor tokens(TensorType{DType::I32, {samples, 1}});
    HostTensor positions(TensorType{DType::I32, {samples}});
    for (size_t i = 0; i < sequences.size(); ++i) {
      tokens.as<int32_t>()[i] = sequences[i].tokens.back();
      // The last token of a sequence that is done is written to its place again and again.
      positions.as<int32_t>()[i] = static_cast<int32_t>(
          std::min(static_cast<int64_t>(sequences[i].tokens.size()) - 1, places - 1));
    }
    if (MaybeError error = step(decode, tokens, positions))
      return error;
    if (MaybeError error = sample(decode, sequences, options))
      return error;
    ++text.decodeSteps;
  }
  text.decodeSeconds += seconds(begin);
  return std::nullopt;
}

Expected<GeneratedText> Generator::run(const std::vector<std::vector<int32_t>> &prompts,
                                       const GeneratorOptions &options,
                                       const std::atomic<bool> &stop) {
  for (int32_t token : options.stopTokens)
    if (token >= vocabulary())
      return Error{fmt::format("the stop token is {}; the vocabulary has tokens from 0 to {}",
                               token, vocabulary() - 1)};
  int64_t limit = std::numeric_limits<int32_t>::max();
  for (const DataInput &input : dataInputsOf(prefill.plan()))
    if (input.name == "tokens" && input.indexLimit > 0)
      limit = input.indexLimit;
  for (size_t i = 0; i < prompts.size(); ++i) {
    for (size_t at = 0; at < prompts[i].size(); ++at)
      if (prompts[i][at] < 0 || prompts[i][at] >= limit)
        return Error{fmt::format("prompt {} has token {} at position {}; the vocabulary has tokens "
                                 "from 0 to {} (it is too small for this file, or the file has "
                                 "another format)",
                                 i + 1, prompts[i][at], at, limit - 1)};
    auto length = static_cast<int64_t>(prompts[i].size());
    if (length < 1)
      return Error{fmt::format("prompt {} is empty; expected at least one token", i + 1)};
    if (options.maxNewTokens > longest() - length)
      return Error{
          fmt::format("prompt {} has {} tokens, and {} more are asked for; the plan is for "
                      "sequences of at most {}: ask for fewer, or import the model with a "
                      "larger --seq",
                      i + 1, length, options.maxNewTokens, longest())};
  }
  GeneratedText text;
  auto all = static_cast<int64_t>(prompts.size());
  for (int64_t begin = 0; begin < all; begin += samples) {
    Expected<bool> stopped = prefill.fabric().any(stop);
    if (!stopped)
      return stopped.error();
    if (*stopped)
      break;
    std::vector<Sequence> sequences;
    for (int64_t i = begin; i < std::min(begin + samples, all); ++i) {
      const std::vector<int32_t> &prompt = prompts[static_cast<size_t>(i)];
      sequences.push_back({i, prompt, prompt.size()});
    }
    if (MaybeError error = runTogether(sequences, options, stop, text))
      return *error;
    for (const Sequence &sequence : sequences)
      text.tokens.emplace_back(sequence.tokens.begin() +
                                   static_cast<std::ptrdiff_t>(sequence.promptLength),
                               sequence.tokens.end());
  }
  return text;
}

} // namespace dtc::runtime
