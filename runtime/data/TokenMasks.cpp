//===- TokenMasks.cpp - Masks of tokens beside the tokens -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/TokenMasks.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime {

/// Elements [begin, begin + count) of a mask, each 0 or 1.
static Expected<std::vector<float>> readMask(const SafetensorsFile &file, const std::string &name,
                                             int64_t begin, size_t count) {
  const SafetensorsEntry &entry = file.tensors().at(name);
  std::vector<float> mask(count);
  auto read = [&](DType dtype, auto element) -> MaybeError {
    std::vector<decltype(element)> stored(count);
    if (MaybeError error = file.read(name, begin, static_cast<int64_t>(count), dtype,
                                     reinterpret_cast<std::byte *>(stored.data())))
      return error;
    for (size_t i = 0; i < count; ++i)
      mask[i] = static_cast<float>(stored[i]);
    return std::nullopt;
  };
  bool isFloat = entry.dtype.starts_with('F') || entry.dtype == "BF16";
  MaybeError error = entry.dtype == "BOOL" ? read(DType::Bool, uint8_t{})
                     : isFloat             ? read(DType::F32, float{})
                                           : read(DType::I32, int32_t{});
  if (error)
    return *error;
  int64_t elements =
      std::max<int64_t>(entry.numElements() / std::max<int64_t>(entry.shape[0], 1), 1);
  for (size_t i = 0; i < count; ++i)
    if (mask[i] != 0 && mask[i] != 1) {
      int64_t at = begin + static_cast<int64_t>(i);
      return Error{fmt::format("{}: tensor \"{}\" has {} at element {} of sample {}; expected 0 or "
                               "1, for a token that counts",
                               file.path(), name, mask[i], at % elements, at / elements)};
    }
  return mask;
}

std::vector<std::string> masksOf(const SafetensorsFile &file, const DataInput &input,
                                 std::span<const DataInput> inputs) {
  std::vector<std::string> masks;
  auto masked = file.tensors().find(input.name);
  if (!input.ignoredIndex || masked == file.tensors().end())
    return masks;
  for (const char *name : {kAttentionMask, "loss_mask"})
    if (auto mask = file.tensors().find(name);
        mask != file.tensors().end() && mask->second.shape == masked->second.shape &&
        std::ranges::none_of(inputs, [&](const DataInput &each) { return each.name == name; }))
      masks.emplace_back(name);
  return masks;
}

MaybeError applyMasks(const SafetensorsFile &file, const DataInput &input,
                      std::span<const DataInput> inputs, int64_t begin, std::span<int32_t> out) {
  for (const std::string &name : masksOf(file, input, inputs)) {
    Expected<std::vector<float>> mask = readMask(file, name, begin, out.size());
    if (!mask)
      return mask.error();
    for (size_t i = 0; i < out.size(); ++i)
      if ((*mask)[i] == 0)
        out[i] = static_cast<int32_t>(*input.ignoredIndex);
  }
  return std::nullopt;
}

bool isFromAttentionMask(const SafetensorsFile &file, const DataInput &input) {
  // Segments of the file are those of documents in a row, whose positions a mask does not tell.
  return (input.name == "segments" || input.name == "positions") && input.type.rank() == 2 &&
         !file.tensors().contains(input.name) && !file.tensors().contains("segments") &&
         file.tensors().contains(kAttentionMask);
}

MaybeError readFromAttentionMask(const SafetensorsFile &file, const DataInput &input, int64_t begin,
                                 std::span<int32_t> out) {
  Expected<std::vector<float>> mask = readMask(file, kAttentionMask, begin, out.size());
  if (!mask)
    return mask.error();
  int64_t length = input.type.shape[1];
  for (size_t i = 0; i < out.size(); ++i)
    out[i] =
        static_cast<int32_t>(input.name == "segments" ? static_cast<int64_t>((*mask)[i]) - 1
                                                      : (begin + static_cast<int64_t>(i)) % length);
  return std::nullopt;
}

} // namespace dtc::runtime
