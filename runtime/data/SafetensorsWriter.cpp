//===- SafetensorsWriter.cpp - Writes tensors to files --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Safetensors.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dtc::runtime {

static const char *fileDtype(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return "F32";
  case DType::F64:
    return "F64";
  case DType::I32:
    return "I32";
  case DType::Bool:
    return "BOOL";
  case DType::BF16:
    return "BF16";
  case DType::F16:
    return "F16";
  case DType::F8E4M3:
    return "F8_E4M3";
  case DType::F8E5M2:
    return "F8_E5M2";
  }
  return "";
}

std::string safetensorsHeader(const std::map<std::string, TensorType> &tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  // Readers of weights ask for this key; the tensors mean what they mean to PyTorch.
  header["__metadata__"] = {{"format", "pt"}};
  size_t position = 0;
  for (const auto &[name, type] : tensors) {
    header[name] = {{"dtype", fileDtype(type.dtype)},
                    {"shape", type.shape},
                    {"data_offsets", {position, position + type.numBytes()}}};
    position += type.numBytes();
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  // The data begin at a multiple of 8 bytes of the file.
  text.append((8 - text.size() % 8) % 8, ' ');
  uint64_t length = text.size();
  return std::string(reinterpret_cast<const char *>(&length), sizeof(length)) + text;
}

SafetensorsWriter::SafetensorsWriter(std::map<std::string, TensorType> tensors)
    : tensors(std::move(tensors)), header(safetensorsHeader(this->tensors)) {}

uint64_t SafetensorsWriter::numBytes() const {
  uint64_t bytes = header.size();
  for (const auto &[name, type] : tensors)
    bytes += type.numBytes();
  return bytes;
}

MaybeError SafetensorsWriter::write(AtomicFile &file, const Source &tensorOf) const {
  if (MaybeError error = file.write(header))
    return error;
  for (const auto &[name, type] : tensors) {
    Expected<HostTensor> tensor = tensorOf(name);
    if (!tensor)
      return tensor.error().inContext(file.getPath());
    if (tensor->type != type)
      return Error{fmt::format("{}: tensor \"{}\" is {}, found {}", file.getPath(), name,
                               type.str(), tensor->type.str())};
    if (MaybeError error = file.write(tensor->bytes))
      return error;
  }
  return std::nullopt;
}

MaybeError writeSafetensors(const std::string &path,
                            const std::map<std::string, TensorType> &tensors,
                            const SafetensorsWriter::Source &tensorOf) {
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  if (MaybeError error = SafetensorsWriter(tensors).write(*file, tensorOf))
    return error;
  return file->commit();
}

MaybeError writeSafetensors(const std::string &path,
                            const std::map<std::string, HostTensor> &tensors) {
  std::map<std::string, TensorType> types;
  for (const auto &[name, tensor] : tensors)
    types.emplace(name, tensor.type);
  return writeSafetensors(path, types, [&](const std::string &name) -> Expected<HostTensor> {
    return tensors.at(name);
  });
}

} // namespace dtc::runtime
