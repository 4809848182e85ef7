//===- Checkpoint.cpp - Reading a checkpoint ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/Checkpoint.h"

#include "runtime/checkpoint/Checksum.h"
#include "runtime/executor/ShardRegion.h"
#include "support/InputFile.h"
#include "support/ReadText.h"

#include <filesystem>
#include <fmt/format.h>

namespace dtc::runtime {

/// The checksum of the bytes before the tensors.
static Expected<std::string> headerChecksum(const std::string &path) {
  Expected<InputFile> file = InputFile::open(path);
  if (!file)
    return file.error();
  uint64_t length = 0;
  if (MaybeError error = file->read(0, std::as_writable_bytes(std::span(&length, 1))))
    return *error;
  std::vector<std::byte> header(sizeof(length) + length);
  if (MaybeError error = file->read(0, header))
    return *error;
  return checksumOf(header);
}

MaybeError Checkpoint::openFile(const CheckpointFile &file) {
  std::string path = (std::filesystem::path(folder) / file.name).string();
  // A name that leads out of the folder is none that a checkpoint has.
  if (file.name.empty() || file.name.find('/') != std::string::npos)
    return Error{fmt::format("{}: is named by the manifest, but is not in the folder", path)};
  std::error_code code;
  uint64_t bytes = std::filesystem::file_size(path, code);
  if (code)
    return Error{fmt::format("{}: cannot open: {}", path, code.message())};
  if (bytes != file.bytes)
    return Error{fmt::format("{}: has {} bytes, expected {}", path, bytes, file.bytes)};
  Expected<SafetensorsFile> opened = SafetensorsFile::open(path);
  if (!opened)
    return opened.error();
  Expected<std::string> checksum = headerChecksum(path);
  if (!checksum)
    return checksum.error();
  if (*checksum != file.headerChecksum)
    return Error{fmt::format("{}: is damaged: the checksum of its header is another", path)};
  files.push_back(std::move(*opened));
  return std::nullopt;
}

Expected<Checkpoint> Checkpoint::open(const std::string &folder) {
  std::string path = (std::filesystem::path(folder) / kManifestName).string();
  Expected<std::string> text = readText(path);
  if (!text)
    return text.error();
  Expected<CheckpointManifest> manifest = parseManifest(*text);
  if (!manifest)
    return manifest.error().inContext(path);
  Checkpoint checkpoint(folder, std::move(*manifest));
  for (const CheckpointFile &file : checkpoint.content.files)
    if (MaybeError error = checkpoint.openFile(file))
      return *error;
  for (const auto &[name, tensor] : checkpoint.content.tensors) {
    const SafetensorsFile &file = checkpoint.files[tensor.file];
    auto entry = file.tensors().find(name);
    if (entry == file.tensors().end() || entry->second.shape != tensor.type.shape ||
        entry->second.end - entry->second.begin != tensor.type.numBytes())
      return Error{fmt::format("{}: has no tensor \"{}\" of type {}, which the manifest names",
                               file.path(), name, tensor.type.str())};
  }
  return checkpoint;
}

Expected<HostTensor> Checkpoint::read(const std::string &name) const {
  const CheckpointTensor &tensor = content.tensors.at(name);
  const SafetensorsFile &file = files[tensor.file];
  Expected<HostTensor> value = file.read(name, tensor.type.dtype);
  if (!value)
    return value;
  size_t width = byteWidth(tensor.type.dtype);
  for (const CheckpointRegion &region : tensor.regions) {
    Checksum checksum;
    ShardRegion box{region.shape, region.offset, region.size, region.size};
    box.forEachRun([&](int64_t begin, int64_t, int64_t count) {
      checksum.update(
          std::span(value->bytes)
              .subspan(static_cast<size_t>(begin) * width, static_cast<size_t>(count) * width));
    });
    if (checksum.str() != region.checksum)
      return Error{fmt::format("{}: is damaged: the checksum of tensor \"{}\" is another",
                               file.path(), name)};
  }
  return value;
}

MaybeError Checkpoint::verify() const {
  for (const auto &[name, tensor] : content.tensors) {
    Expected<HostTensor> value = read(name);
    if (!value)
      return value.error();
  }
  return std::nullopt;
}

} // namespace dtc::runtime
