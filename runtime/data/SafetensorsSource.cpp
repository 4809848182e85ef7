//===- SafetensorsSource.cpp - Batches from named tensors -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/SafetensorsSource.h"

#include "runtime/data/ElementConversion.h"
#include "runtime/data/Fingerprint.h"
#include "runtime/data/Sampling.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime {

static constexpr int64_t elementsCheckedAtOnce = int64_t{1} << 20;

MaybeError SafetensorsSource::bindInputs() {
  if (inputs.empty())
    return Error{"the plan has no data inputs"};
  const DataInput *first = nullptr;
  for (const DataInput &input : inputs) {
    if (input.type.rank() == 0)
      return Error{fmt::format("the input \"{}\" of the plan is a scalar; data have samples along "
                               "the first dimension",
                               input.name)};
    auto it = file.tensors().find(input.name);
    if (it == file.tensors().end())
      return Error{
          fmt::format("has no tensor \"{}\", which the plan needs as an input", input.name)};
    const SafetensorsEntry &entry = it->second;
    bool sameRow =
        entry.shape.size() == input.type.shape.size() &&
        std::equal(entry.shape.begin() + 1, entry.shape.end(), input.type.shape.begin() + 1);
    if (!sameRow)
      return Error{fmt::format("tensor \"{}\" is {}, the input of the plan is {}; all dimensions "
                               "but the first must agree",
                               input.name, entry.str(), input.type.str())};
    if (entry.shape[0] == 0)
      return Error{fmt::format("tensor \"{}\" has no samples", input.name)};
    if (!first) {
      first = &input;
      sampleCount = entry.shape[0];
      batchSize = input.type.shape[0];
    }
    if (entry.shape[0] != sampleCount)
      return Error{
          fmt::format("tensors \"{}\" and \"{}\" have {} and {} samples; expected the same "
                      "number",
                      first->name, input.name, sampleCount, entry.shape[0])};
    if (input.type.shape[0] != batchSize)
      return Error{fmt::format("the inputs \"{}\" and \"{}\" of the plan have {} and {} samples; "
                               "expected the same number",
                               first->name, input.name, batchSize, input.type.shape[0])};
    // Nothing is converted, but a type that cannot be is found before the first step.
    if (MaybeError error = convertElements(entry.dtype, {}, 0, input.type.dtype, nullptr))
      return error->inContext(fmt::format("tensor \"{}\"", input.name));
  }
  return std::nullopt;
}

Expected<std::unique_ptr<DataSource>>
SafetensorsSource::open(const std::string &path, std::vector<DataInput> inputs, uint64_t seed) {
  Expected<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file)
    return file.error();
  std::unique_ptr<SafetensorsSource> source(
      new SafetensorsSource(std::move(*file), std::move(inputs), seed));
  if (MaybeError error = source->bindInputs())
    return error->inContext(path);
  return std::unique_ptr<DataSource>(std::move(source));
}

MaybeError SafetensorsSource::checkIndices(const DataInput &input, int64_t row,
                                           const int32_t *values, int64_t count) const {
  if (input.indexLimit == 0)
    return std::nullopt;
  for (int64_t i = 0; i < count; ++i)
    if ((values[i] < 0 || values[i] >= input.indexLimit) && values[i] != input.ignoredIndex)
      return Error{fmt::format("{}: tensor \"{}\" has {} at element {} of sample {}; expected an "
                               "index from 0 to {}",
                               file.path(), input.name, values[i], i, row, input.indexLimit - 1)};
  return std::nullopt;
}

Expected<std::map<std::string, HostTensor>> SafetensorsSource::batch(int64_t step) const {
  return batchOf([&](int64_t sample) {
    return static_cast<int64_t>(drawSample(seed, step, sample, static_cast<uint64_t>(sampleCount)));
  });
}

int64_t SafetensorsSource::sequentialBatches() const {
  return batchSize > 0 ? sampleCount / batchSize : 0;
}

Expected<std::map<std::string, HostTensor>>
SafetensorsSource::sequentialBatch(int64_t index) const {
  return batchOf([&](int64_t sample) { return index * batchSize + sample; });
}

Expected<std::map<std::string, HostTensor>>
SafetensorsSource::batchOf(const std::function<int64_t(int64_t)> &rowOf) const {
  std::map<std::string, HostTensor> result;
  for (const DataInput &input : inputs) {
    HostTensor &tensor = result.emplace(input.name, input.type).first->second;
    if (batchSize == 0)
      continue;
    int64_t rowElements = input.type.numElements() / batchSize;
    size_t rowBytes = tensor.bytes.size() / static_cast<size_t>(batchSize);
    for (int64_t sample = 0; sample < batchSize; ++sample) {
      int64_t row = rowOf(sample);
      std::byte *out = tensor.bytes.data() + static_cast<size_t>(sample) * rowBytes;
      if (MaybeError error =
              file.read(input.name, row * rowElements, rowElements, input.type.dtype, out))
        return *error;
      if (MaybeError error =
              checkIndices(input, row, reinterpret_cast<const int32_t *>(out), rowElements))
        return *error;
    }
  }
  return result;
}

MaybeError SafetensorsSource::check(const Progress &progress) const {
  // Only integers have values that no input takes.
  std::vector<const DataInput *> checked;
  uint64_t elements = 0, done = 0;
  for (const DataInput &input : inputs)
    if (input.type.dtype == DType::I32 && batchSize > 0) {
      checked.push_back(&input);
      elements += static_cast<uint64_t>(file.tensors().at(input.name).numElements());
    }
  std::vector<int32_t> part;
  for (const DataInput *input : checked) {
    int64_t rowElements = input->type.numElements() / batchSize;
    if (rowElements == 0)
      continue;
    int64_t rowsAtOnce = std::max<int64_t>(elementsCheckedAtOnce / rowElements, 1);
    for (int64_t row = 0; row < sampleCount; row += rowsAtOnce) {
      if (!progress(done, elements))
        return std::nullopt;
      int64_t rows = std::min(rowsAtOnce, sampleCount - row);
      part.resize(static_cast<size_t>(rows * rowElements));
      if (MaybeError error = file.read(input->name, row * rowElements, rows * rowElements,
                                       DType::I32, reinterpret_cast<std::byte *>(part.data())))
        return error;
      for (int64_t each = 0; each < rows; ++each)
        if (MaybeError error =
                checkIndices(*input, row + each, part.data() + each * rowElements, rowElements))
          return error;
      done += part.size();
    }
  }
  return std::nullopt;
}

Expected<std::string> SafetensorsSource::fingerprint() const {
  const InputFile *files[] = {&file.input()};
  return fingerprintOf("safetensors", static_cast<uint64_t>(sampleCount), files);
}

std::string SafetensorsSource::describe() const {
  return fmt::format("{}: {} samples", file.path(), sampleCount);
}

} // namespace dtc::runtime
