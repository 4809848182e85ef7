//===- TokenSource.cpp - Batches from text and token files ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/TokenSource.h"

#include "runtime/data/Fingerprint.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>

namespace dtc::runtime {

static constexpr uint64_t kTokensCheckedAtOnce = uint64_t{1} << 20;

const DataInput *TokenSource::findInput(const char *name) const {
  auto found = std::find_if(inputs.begin(), inputs.end(),
                            [&](const DataInput &input) { return input.name == name; });
  return found == inputs.end() ? nullptr : &*found;
}

MaybeError TokenSource::checkInputs() {
  static constexpr std::string_view kNames[] = {"tokens", "labels", "segments", "positions"};
  for (const DataInput &input : inputs) {
    if (std::ranges::find(kNames, input.name) == std::end(kNames))
      return Error{
          fmt::format("holds tokens, which serve the inputs \"tokens\" and \"labels\", and "
                      "\"segments\" and \"positions\" of packed documents; the plan also "
                      "needs \"{}\" (a .safetensors file can give it)",
                      input.name)};
    if (input.type.dtype != DType::I32 || input.type.rank() != 2)
      return Error{fmt::format("holds tokens, but the input \"{}\" of the plan is {}; expected "
                               "i32[batch,seq]",
                               input.name, input.type.str())};
  }
  const DataInput *tokens = findInput("tokens"), *labels = findInput("labels");
  if (!tokens)
    return Error{"holds tokens, but the plan has no input \"tokens\""};
  for (const DataInput &input : inputs)
    if (input.type != tokens->type)
      return Error{fmt::format("the inputs \"tokens\" ({}) and \"{}\" ({}) of the plan differ",
                               tokens->type.str(), input.name, input.type.str())};
  isPacked = findInput("segments") || findInput("positions");
  if (isPacked && labels && !labels->ignoredIndex)
    return Error{
        "holds tokens, but the plan has packed documents and no label that does not count, "
        "for the last token of a document; import with dtc-import --packed"};
  samplesOfBatch = tokens->type.shape[0];
  length = tokens->type.shape[1];
  return std::nullopt;
}

/// The error names the file.
MaybeError TokenSource::add(TokenFile file) {
  if (!files.empty() && file.formatName() != files[0].formatName())
    return Error{fmt::format("{}: has {}, but {} has {}; the files of a data set have one format",
                             file.path(), file.formatName(), files[0].path(),
                             files[0].formatName())};
  auto window = static_cast<uint64_t>(length) + 1;
  if (file.size() < window)
    return Error{fmt::format("{}: has {} tokens; a sample takes {} (sequences of {} and the token "
                             "after them)",
                             file.path(), file.size(), window, length)};
  if (MaybeError error = file.checkWidth(findInput("tokens")->indexLimit))
    return error;
  if (isPacked) {
    Expected<DocumentFile> found = DocumentFile::open(file.path(), file.size());
    if (!found)
      return found.error();
    documents.push_back(std::move(*found));
  }
  places.add(file.size() - static_cast<uint64_t>(length));
  windows.add((file.size() - 1) / static_cast<uint64_t>(std::max<int64_t>(length, 1)));
  files.push_back(std::move(file));
  return std::nullopt;
}

Expected<std::unique_ptr<DataSource>> TokenSource::open(const std::vector<std::string> &paths,
                                                        std::vector<DataInput> inputs,
                                                        DataOptions options) {
  std::unique_ptr<TokenSource> source(new TokenSource(std::move(inputs), options));
  MaybeError inputError = source->checkInputs();
  for (const std::string &path : paths) {
    Expected<TokenFile> file = TokenFile::open(path);
    if (!file)
      return file.error();
    if (inputError)
      return inputError->inContext(path);
    if (MaybeError error = source->add(std::move(*file)))
      return *error;
  }
  return std::unique_ptr<DataSource>(std::move(source));
}

/// All tokens of an input are below it.
static int64_t limitOf(const DataInput &input) {
  return input.indexLimit > 0 ? input.indexLimit : int64_t{1} << 31;
}

/// `position` is that of the first value in the file.
static MaybeError checkLimit(const TokenFile &file, const DataInput &input, uint64_t position,
                             std::span<const int32_t> values) {
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

uint64_t TokenSource::disjointSample(uint64_t index) const {
  auto [file, window] = windows.find(index);
  return places.firstOf(file) + window * static_cast<uint64_t>(length);
}

MaybeError TokenSource::readSample(const DataInput &input, uint64_t sample, std::byte *out) const {
  auto [index, position] = places.find(sample);
  const TokenFile &file = files[index];
  std::span<int32_t> values(reinterpret_cast<int32_t *>(out), static_cast<size_t>(length));
  if (input.name == "tokens" || input.name == "labels") {
    uint64_t first = input.name == "labels" ? position + 1 : position;
    if (MaybeError error = file.read(first, values))
      return error;
    if (MaybeError error = checkLimit(file, input, first, values))
      return error;
  }
  return isPacked ? readPacked(input, index, position, values) : std::nullopt;
}

/// Reads the values of an input in the window at a position of a file, as they follow from its
/// documents.
MaybeError TokenSource::readPacked(const DataInput &input, size_t file, uint64_t position,
                                   std::span<int32_t> values) const {
  uint64_t end = position + values.size() + 1; // with the last label
  Expected<std::vector<uint64_t>> begins = documents[file].beginsWithin(position, end);
  if (!begins)
    return begins.error();
  if (input.name == "labels") {
    for (uint64_t begin : *begins)
      values[begin - position - 1] = static_cast<int32_t>(*input.ignoredIndex);
    return std::nullopt;
  }
  if (input.name == "tokens")
    return std::nullopt;
  bool counts = input.name == "positions";
  int32_t value = 0;
  auto next = begins->begin();
  for (size_t i = 0; i < values.size(); ++i) {
    bool begun = next != begins->end() && *next == position + i;
    if (begun)
      ++next;
    if (i != 0)
      value = counts ? (begun ? 0 : value + 1) : value + begun;
    values[i] = value;
  }
  if (int64_t longest = std::ranges::max(values); counts && longest >= limitOf(input))
    return Error{fmt::format("{}: has {} tokens of one document in a row from position {} on; the "
                             "model has {} positions",
                             files[file].path(), longest + 1, position, limitOf(input))};
  return std::nullopt;
}

/// Whether any input for tokens does not take it.
bool TokenSource::isOutOfRange(uint32_t token) const {
  return std::any_of(inputs.begin(), inputs.end(), [&](const DataInput &input) {
    return (input.name == "tokens" || input.name == "labels") && token >= limitOf(input);
  });
}

MaybeError TokenSource::check(const Progress &progress) const {
  // Where every token that the format can hold is one of the model, there is none to look at.
  bool hasTokens = isOutOfRange(static_cast<uint32_t>(files[0].tokenLimit() - 1));
  uint64_t all = 0, before = 0;
  for (const DocumentFile &file : documents)
    all += file.documents();
  for (const TokenFile &file : files)
    all += hasTokens ? file.size() : 0;
  bool goesOn = true;
  auto report = [&](uint64_t done) { return goesOn = progress(before + done, all); };
  for (const DocumentFile &file : documents) {
    if (MaybeError error = file.check(report); error || !goesOn)
      return error;
    before += file.documents();
  }
  for (size_t i = 0; hasTokens && i < files.size(); ++i) {
    if (MaybeError error = checkTokens(files[i], report); error || !goesOn)
      return error;
    before += files[i].size();
  }
  return std::nullopt;
}

/// Goes on while `report`, which is told how many tokens it has looked at, returns true.
MaybeError TokenSource::checkTokens(const TokenFile &file,
                                    const std::function<bool(uint64_t done)> &report) const {
  const DataInput *tokens = findInput("tokens"), *labels = findInput("labels");
  std::vector<int32_t> part;
  for (uint64_t begin = 0; begin < file.size() && report(begin); begin += part.size()) {
    part.resize(std::min(file.size() - begin, kTokensCheckedAtOnce));
    if (MaybeError error = file.read(begin, part))
      return error;
    // Nearly always all of them are below all limits.
    uint32_t largest = 0;
    for (int32_t token : part)
      largest = std::max(largest, static_cast<uint32_t>(token));
    if (!isOutOfRange(largest))
      continue;
    // The last token of the file is a label only, and the first one is none.
    bool hasLast = begin + part.size() == file.size();
    if (MaybeError error =
            checkLimit(file, *tokens, begin, std::span(part).first(part.size() - hasLast)))
      return error;
    size_t first = begin == 0 ? 1 : 0;
    if (!labels)
      continue;
    if (MaybeError error = checkLimit(file, *labels, begin + first, std::span(part).subspan(first)))
      return error;
  }
  return std::nullopt;
}

Expected<std::string> TokenSource::fingerprint() const {
  std::vector<const InputFile *> opened;
  uint64_t count = 0;
  for (const TokenFile &file : files) {
    opened.push_back(&file.input());
    count += file.size();
  }
  for (const DocumentFile &file : documents)
    opened.push_back(&file.input());
  return fingerprintOf(fmt::format("u{}", files[0].tokenBits()), count, opened);
}

Expected<std::vector<std::string>> TokenSource::notes() const {
  for (const TokenFile &file : files) {
    Expected<std::string> note = file.noteOnText();
    if (!note)
      return note.error();
    if (!note->empty()) // the others are alike
      return std::vector{fmt::format("{}: {}", file.path(), *note)};
  }
  return std::vector<std::string>();
}

std::string TokenSource::describe() const {
  std::vector<std::string> paths;
  uint64_t count = 0;
  for (const TokenFile &file : files) {
    paths.push_back(file.path());
    count += file.size();
  }
  std::string text = fmt::format("{}: {} {}", describeFiles(paths), count, files[0].formatName());
  if (!isPacked)
    return text;
  uint64_t packed = 0;
  for (const DocumentFile &file : documents)
    packed += file.documents();
  return fmt::format("{}, {} documents", text, packed);
}

} // namespace dtc::runtime
