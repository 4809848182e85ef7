//===- SafetensorsSource.cpp - Batches from named tensors -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/SafetensorsSource.h"

#include "runtime/data/ElementConversion.h"
#include "runtime/data/Fingerprint.h"
#include "runtime/data/TokenMasks.h"
#include "support/NearestName.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <set>

namespace dtc::runtime {

static constexpr int64_t kElementsCheckedAtOnce = int64_t{1} << 20;

/// The tensor that serves an input.
static std::string tensorFor(const SafetensorsFile &file, const DataInput &input) {
  return isFromAttentionMask(file, input) ? kAttentionMask : input.name;
}

MaybeError SafetensorsSource::checkInputs() {
  if (inputs.empty())
    return Error{"the plan has no data inputs"};
  for (const DataInput &input : inputs) {
    if (input.type.rank() == 0)
      return Error{fmt::format("the input \"{}\" of the plan is a scalar; data have samples along "
                               "the first dimension",
                               input.name)};
    samplesOfBatch = inputs[0].type.shape[0];
    if (input.type.shape[0] != samplesOfBatch)
      return Error{fmt::format("the inputs \"{}\" and \"{}\" of the plan have {} and {} samples; "
                               "expected the same number",
                               inputs[0].name, input.name, samplesOfBatch, input.type.shape[0])};
  }
  return std::nullopt;
}

/// Whether the file has a tensor that can serve the input.
MaybeError SafetensorsSource::checkTensor(const SafetensorsFile &file,
                                          const DataInput &input) const {
  auto it = file.tensors().find(tensorFor(file, input));
  if (it == file.tensors().end())
    return Error{fmt::format("has no tensor \"{}\", which the plan needs as an input", input.name)};
  const SafetensorsEntry &entry = it->second;
  bool sameRow =
      entry.shape.size() == input.type.shape.size() &&
      std::equal(entry.shape.begin() + 1, entry.shape.end(), input.type.shape.begin() + 1);
  if (!sameRow)
    return Error{fmt::format("tensor \"{}\" is {}, the input of the plan is {}; all dimensions "
                             "but the first must agree",
                             it->first, entry.str(), input.type.str())};
  if (entry.shape[0] == 0)
    return Error{fmt::format("tensor \"{}\" has no samples", it->first)};
  if (isFromAttentionMask(file, input))
    return std::nullopt;
  // Nothing is converted, but a type that cannot be is found before the first step.
  if (MaybeError error = convertElements(entry.dtype, {}, 0, input.type.dtype, nullptr))
    return error->inContext(fmt::format("tensor \"{}\"", input.name));
  return std::nullopt;
}

Expected<int64_t> SafetensorsSource::samplesOf(const SafetensorsFile &file) const {
  auto countOf = [&](const DataInput &input) {
    return file.tensors().at(tensorFor(file, input)).shape[0];
  };
  for (const DataInput &input : inputs) {
    if (MaybeError error = checkTensor(file, input))
      return *error;
    if (countOf(input) != countOf(inputs[0]))
      return Error{fmt::format(
          "tensors \"{}\" and \"{}\" have {} and {} samples; expected the same "
          "number",
          tensorFor(file, inputs[0]), tensorFor(file, input), countOf(inputs[0]), countOf(input))};
  }
  return countOf(inputs[0]);
}

Expected<std::unique_ptr<DataSource>> SafetensorsSource::open(const std::vector<std::string> &paths,
                                                              std::vector<DataInput> inputs,
                                                              DataOptions options) {
  std::unique_ptr<SafetensorsSource> source(new SafetensorsSource(std::move(inputs), options));
  MaybeError inputError = source->checkInputs();
  for (const std::string &path : paths) {
    Expected<SafetensorsFile> file = SafetensorsFile::open(path);
    if (!file)
      return file.error();
    if (inputError)
      return inputError->inContext(path);
    Expected<int64_t> count = source->samplesOf(*file);
    if (!count)
      return count.error().inContext(path);
    source->samples.add(static_cast<uint64_t>(*count));
    source->files.push_back(std::move(*file));
  }
  return std::unique_ptr<DataSource>(std::move(source));
}

MaybeError SafetensorsSource::checkIndices(const SafetensorsFile &file, const DataInput &input,
                                           int64_t row, const int32_t *values,
                                           int64_t count) const {
  if (input.indexLimit == 0)
    return std::nullopt;
  for (int64_t i = 0; i < count; ++i)
    if ((values[i] < 0 || values[i] >= input.indexLimit) && values[i] != input.ignoredIndex)
      return Error{fmt::format(
          "{}: tensor \"{}\" has {} at element {} of sample {}; expected an index from 0 to {}{}{}",
          file.path(), input.name, values[i], i, row, input.indexLimit - 1,
          input.ignoredIndex ? fmt::format(", or {} for none", *input.ignoredIndex) : "",
          values[i] < 0 && input.name == "labels"
              ? fmt::format("; if labels of {0} shall not count in the loss, import the model with "
                            "dtc-import --ignore-index {0}",
                            values[i])
              : "")};
  return std::nullopt;
}

/// Reads rows of an input, with what masks say of them.
MaybeError SafetensorsSource::readRows(const SafetensorsFile &file, const DataInput &input,
                                       int64_t row, int64_t rows, std::byte *out) const {
  int64_t elements = input.type.numElements() / samplesOfBatch;
  int64_t begin = row * elements, count = rows * elements;
  std::span<int32_t> integers;
  if (input.type.dtype == DType::I32)
    integers = {reinterpret_cast<int32_t *>(out), static_cast<size_t>(count)};
  if (isFromAttentionMask(file, input))
    return readFromAttentionMask(file, input, begin, integers);
  if (MaybeError error = file.read(input.name, begin, count, input.type.dtype, out))
    return error;
  return applyMasks(file, input, inputs, begin, integers);
}

MaybeError SafetensorsSource::readSample(const DataInput &input, uint64_t sample,
                                         std::byte *out) const {
  auto [index, offset] = samples.find(sample);
  const SafetensorsFile &file = files[index];
  auto row = static_cast<int64_t>(offset);
  int64_t elements = input.type.numElements() / samplesOfBatch;
  if (MaybeError error = readRows(file, input, row, 1, out))
    return error;
  return checkIndices(file, input, row, reinterpret_cast<const int32_t *>(out), elements);
}

/// Looks at all rows of an integer tensor. `goesOn` is told of how many elements.
MaybeError SafetensorsSource::checkRows(const SafetensorsFile &file, const DataInput &input,
                                        const std::function<bool(uint64_t)> &goesOn) const {
  int64_t elements = input.type.numElements() / samplesOfBatch;
  if (elements == 0)
    return std::nullopt;
  int64_t count = file.tensors().at(tensorFor(file, input)).shape[0];
  int64_t rowsAtOnce = std::max<int64_t>(kElementsCheckedAtOnce / elements, 1);
  std::vector<int32_t> part;
  for (int64_t row = 0; row < count; row += rowsAtOnce) {
    if (!goesOn(static_cast<uint64_t>(row * elements)))
      return std::nullopt;
    int64_t rows = std::min(rowsAtOnce, count - row);
    part.resize(static_cast<size_t>(rows * elements));
    if (MaybeError error =
            readRows(file, input, row, rows, reinterpret_cast<std::byte *>(part.data())))
      return error;
    for (int64_t each = 0; each < rows; ++each)
      if (MaybeError error =
              checkIndices(file, input, row + each, part.data() + each * elements, elements))
        return error;
  }
  return std::nullopt;
}

MaybeError SafetensorsSource::check(const Progress &progress) const {
  // Only integers have values that no input takes.
  std::vector<std::pair<const SafetensorsFile *, const DataInput *>> checked;
  auto elementsOf = [](const SafetensorsFile &file, const DataInput &input) {
    return static_cast<uint64_t>(file.tensors().at(tensorFor(file, input)).numElements());
  };
  uint64_t all = 0, before = 0;
  for (const SafetensorsFile &file : files)
    for (const DataInput &input : inputs)
      if (input.type.dtype == DType::I32 && samplesOfBatch > 0) {
        checked.emplace_back(&file, &input);
        all += elementsOf(file, input);
      }
  bool goesOn = true;
  for (auto [file, input] : checked) {
    if (MaybeError error = checkRows(
            *file, *input, [&](uint64_t done) { return goesOn = progress(before + done, all); }))
      return error;
    if (!goesOn)
      break;
    before += elementsOf(*file, *input);
  }
  return std::nullopt;
}

Expected<std::string> SafetensorsSource::fingerprint() const {
  std::vector<const InputFile *> opened;
  for (const SafetensorsFile &file : files)
    opened.push_back(&file.input());
  return fingerprintOf("safetensors", samples.total(), opened);
}

/// The files, in a few words.
std::string SafetensorsSource::listFiles() const {
  std::vector<std::string> paths;
  for (const SafetensorsFile &file : files)
    paths.push_back(file.path());
  return describeFiles(paths);
}

/// Says what the masks of tokens change. Nullopt if they change nothing, or there are none.
std::optional<std::string> SafetensorsSource::describeMasks() const {
  std::set<std::string> masks;
  bool servesSegments = false, hasSegments = false;
  for (const DataInput &input : inputs) {
    hasSegments |= input.name == "segments";
    for (const SafetensorsFile &file : files) {
      std::ranges::copy(masksOf(file, input, inputs), std::inserter(masks, masks.end()));
      servesSegments |= input.name == "segments" && isFromAttentionMask(file, input);
    }
  }
  std::string text;
  if (!masks.empty())
    text = fmt::format("labels count where {} {} 1", fmt::join(masks, " and "),
                       masks.size() == 1 ? "is" : "are");
  if (servesSegments)
    text += fmt::format("{}no token attends to one whose {} is 0", text.empty() ? "" : ", and ",
                        kAttentionMask);
  else if (masks.contains(kAttentionMask) && !hasSegments)
    text += fmt::format("; attention does not read {}: a causal model needs none for padding after "
                        "the tokens, others do: import the model with dtc-import --packed",
                        kAttentionMask);
  return text.empty() ? std::nullopt : std::optional(listFiles() + ": " + text);
}

Expected<std::vector<std::string>> SafetensorsSource::notes() const {
  std::vector<std::string> found;
  if (std::optional<std::string> masks = describeMasks())
    found.push_back(std::move(*masks));
  std::set<std::string> unused;
  for (const SafetensorsFile &file : files)
    for (const auto &[name, entry] : file.tensors())
      unused.insert(name);
  for (const SafetensorsFile &file : files)
    for (const DataInput &input : inputs) {
      unused.erase(tensorFor(file, input));
      for (const std::string &mask : masksOf(file, input, inputs))
        unused.erase(mask);
    }
  if (unused.empty())
    return found;
  std::vector<std::string> names(unused.begin(), unused.end());
  // As collators make them: attention_mask, loss_mask.
  bool hasMask = std::ranges::any_of(
      names, [](const std::string &name) { return name.find("mask") != std::string::npos; });
  found.push_back(fmt::format(
      "{}: {} tensor{} no input of the plan and {} not used: {}{}", listFiles(), names.size(),
      names.size() == 1 ? " is" : "s are", names.size() == 1 ? "is" : "are", listSome(names),
      hasMask ? "; for a token not to count in the loss, give it the label of dtc-import "
                "--ignore-index, or with that flag a loss_mask or attention_mask in the shape of "
                "the labels"
              : ""));
  return found;
}

std::string SafetensorsSource::describe() const {
  return fmt::format("{}: {} samples", listFiles(), samples.total());
}

} // namespace dtc::runtime
