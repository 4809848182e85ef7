//===- DataSource.cpp - Batches for the steps -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/DataSource.h"

#include "plan/PlanTypes.h"
#include "runtime/data/DataFiles.h"
#include "runtime/data/Permutation.h"
#include "runtime/data/SafetensorsSource.h"
#include "runtime/data/TokenSource.h"
#include "support/OuterEntries.h"

#include <algorithm>
#include <fmt/format.h>
#include <span>

namespace dtc::runtime {

std::vector<DataInput> dataInputsOf(const plan::Plan &plan) {
  std::vector<DataInput> inputs;
  for (const plan::Input *input : distinctInputs(plan))
    if (input->role() == plan::Input::DATA && input->name() != kClientActiveInput) {
      DataInput &added = inputs.emplace_back();
      added.name = input->name();
      added.type = typeOf(*input);
      added.indexLimit = input->index_limit();
      if (input->has_ignored_index())
        added.ignoredIndex = input->ignored_index();
    }
  return inputs;
}

uint64_t DataSource::drawnSample(int64_t number, int64_t row, int64_t rows) const {
  if (options.sampling == Sampling::Random)
    return drawSample(options.seed, number, row, numSamples());
  uint64_t position =
      static_cast<uint64_t>(number - 1) * static_cast<uint64_t>(rows) + static_cast<uint64_t>(row);
  return disjointSample(
      permuted(options.seed, position / numDisjoint(), position % numDisjoint(), numDisjoint()));
}

/// Whether samples that do not count can fill a batch.
bool DataSource::fillsBatches() const {
  return std::ranges::any_of(inputs,
                             [](const DataInput &input) { return input.ignoredIndex.has_value(); });
}

MaybeError DataSource::readRow(const DataInput &input, std::optional<uint64_t> sample,
                               std::byte *out) const {
  if (sample || !input.ignoredIndex)
    return readSample(input, sample.value_or(disjointSample(0)), out);
  std::fill_n(reinterpret_cast<int32_t *>(out), input.type.numElements() / samplesOfBatch,
              static_cast<int32_t>(*input.ignoredIndex));
  return std::nullopt;
}

Expected<HostTensor> DataSource::readRows(const DataInput &input, const std::vector<RowRange> &rows,
                                          const SampleOf &sampleOf) const {
  TensorType type = input.type;
  type.shape[0] = 0;
  int64_t end = 0;
  for (const RowRange &range : rows) {
    if (range.begin < end || range.end < range.begin || range.end > samplesOfBatch)
      return Error{
          fmt::format("rows {} to {} of the input \"{}\" were asked for, after those up to "
                      "{}; it has {}",
                      range.begin, range.end, input.name, end, samplesOfBatch)};
    end = range.end;
    type.shape[0] += range.end - range.begin;
  }
  HostTensor tensor(type);
  if (tensor.bytes.empty())
    return tensor;
  size_t rowBytes = tensor.bytes.size() / static_cast<size_t>(type.shape[0]);
  std::byte *out = tensor.bytes.data();
  for (const RowRange &range : rows)
    for (int64_t row = range.begin; row < range.end; ++row, out += rowBytes)
      if (MaybeError error = readRow(input, sampleOf(row), out))
        return *error;
  return tensor;
}

Expected<Batch> DataSource::readBatch(const BatchRows &rows, const SampleOf &sampleOf) const {
  for (const auto &[name, ranges] : rows)
    if (std::none_of(inputs.begin(), inputs.end(),
                     [&](const DataInput &input) { return input.name == name; }))
      return Error{fmt::format("rows of \"{}\" were asked for, which is no input", name)};
  Batch batch;
  for (const DataInput &input : inputs) {
    auto wanted = rows.find(input.name);
    Expected<HostTensor> tensor = wanted == rows.end()
                                      ? readRows(input, {{0, samplesOfBatch}}, sampleOf)
                                      : readRows(input, wanted->second, sampleOf);
    if (!tensor)
      return tensor.error();
    batch.emplace(input.name, std::move(*tensor));
  }
  return batch;
}

Expected<Batch> DataSource::batch(int64_t number, const BatchRows &rows) const {
  return readBatch(rows, [&](int64_t row) { return trainingSample(number, row); });
}

int64_t DataSource::sequentialBatches() const {
  if (samplesOfBatch == 0)
    return 0;
  auto all = static_cast<int64_t>(numDisjoint());
  return all / samplesOfBatch + (fillsBatches() && all % samplesOfBatch > 0);
}

uint64_t DataSource::samplesLeftOut() const {
  uint64_t taken = static_cast<uint64_t>(sequentialBatches() * samplesOfBatch);
  return numDisjoint() - std::min(taken, numDisjoint());
}

Expected<Batch> DataSource::sequentialBatch(int64_t index, const BatchRows &rows) const {
  return readBatch(rows, [&](int64_t row) {
    auto number = static_cast<uint64_t>(index * samplesOfBatch + row);
    return number < numDisjoint() ? std::optional(disjointSample(number)) : std::nullopt;
  });
}

Expected<bool> DataSource::hasLabelThatCounts(const std::function<bool()> &goesOn) const {
  bool canIgnore = false;
  for (const DataInput &input : inputs) {
    if (!input.ignoredIndex || input.type.dtype != DType::I32 || samplesOfBatch == 0)
      continue;
    canIgnore = true;
    std::vector<int32_t> labels(static_cast<size_t>(input.type.numElements() / samplesOfBatch));
    for (uint64_t index = 0; index < numDisjoint(); ++index) {
      if (!goesOn())
        return true;
      if (MaybeError error = readSample(input, disjointSample(index),
                                        std::as_writable_bytes(std::span(labels)).data()))
        return *error;
      if (std::ranges::any_of(labels, [&](int32_t label) { return label != *input.ignoredIndex; }))
        return true;
    }
  }
  return !canIgnore;
}

static bool isSafetensors(const std::string &path) { return path.ends_with(".safetensors"); }

Expected<std::unique_ptr<DataSource>> openDataSource(const std::vector<std::string> &paths,
                                                     std::vector<DataInput> inputs,
                                                     DataOptions options) {
  if (paths.empty())
    return Error{"a data set has at least one file"};
  for (const std::string &path : paths)
    if (isSafetensors(path) != isSafetensors(paths[0]))
      return Error{
          fmt::format("{}: is {} file of tensors (.safetensors), but {} {}; the files of a "
                      "data set have one format",
                      path, isSafetensors(path) ? "a" : "no", paths[0],
                      isSafetensors(path) ? "is none" : "is one")};
  if (MaybeError error = allowOpenFiles(paths.size()))
    return *error;
  if (isSafetensors(paths[0]))
    return SafetensorsSource::open(paths, std::move(inputs), options);
  return TokenSource::open(paths, std::move(inputs), options);
}

std::string describeFiles(const std::vector<std::string> &paths) {
  return paths.size() == 1
             ? paths[0]
             : fmt::format("{} files, {} to {}", paths.size(), paths.front(), paths.back());
}

} // namespace dtc::runtime
