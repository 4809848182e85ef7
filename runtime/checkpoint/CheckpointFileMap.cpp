//===- CheckpointFileMap.cpp - Files and offsets of checkpointed tensors ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/CheckpointFileMap.h"

#include "runtime/checkpoint/PositionedFile.h"
#include "runtime/data/Safetensors.h"

#include <fmt/format.h>

namespace dtc::runtime {

CheckpointFileMap::CheckpointFileMap(std::map<std::string, TensorType> tensors,
                                     uint64_t maxFileBytes)
    : types(std::move(tensors)) {
  std::vector<std::map<std::string, TensorType>> parts(1);
  uint64_t bytes = 0;
  for (const auto &[name, type] : types) {
    if (!parts.back().empty() && bytes + type.numBytes() > maxFileBytes) {
      parts.emplace_back();
      bytes = 0;
    }
    parts.back().emplace(name, type);
    bytes += type.numBytes();
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    File &file = allFiles.emplace_back();
    file.name = fmt::format("state-{:05}-of-{:05}.safetensors", i + 1, parts.size());
    file.header = safetensorsHeader(parts[i]);
    file.bytes = file.header.size();
    constexpr uint64_t block = PositionedFile::kBlockBytes;
    endOfCopy = (endOfCopy + block - 1) / block * block + file.bytes % block;
    for (const auto &[name, type] : parts[i]) {
      places[name] = {i, file.bytes, endOfCopy};
      file.bytes += type.numBytes();
      endOfCopy += type.numBytes();
    }
  }
}

uint64_t CheckpointFileMap::fileBytes() const {
  uint64_t bytes = 0;
  for (const File &file : allFiles)
    bytes += file.bytes;
  return bytes;
}

} // namespace dtc::runtime
