//===- Manifest.cpp - The manifest of a checkpoint ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/Manifest.h"

#include "runtime/checkpoint/Checksum.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dtc::runtime {

using Json = nlohmann::ordered_json;

static constexpr std::string_view kFormat = "dtc checkpoint";
/// The text before the checksum, and the digits that stand in its place while the checksum is
/// computed.
static constexpr std::string_view kChecksumKey = "\"checksum\": \"";
static constexpr std::string_view kNoChecksum = "00000000000000000000000000000000";

uint64_t CheckpointManifest::numBytes() const {
  uint64_t bytes = 0;
  for (const CheckpointFile &file : files)
    bytes += file.bytes;
  return bytes;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static Json toJson(const RunIdentity &identity) {
  return {{"seed", identity.seed},
          {"samples", identity.samples},
          {"batches", identity.batches},
          {"sequence", identity.sequence},
          {"optimizer", identity.optimizer},
          {"data", identity.data},
          {"model", identity.model},
          {"adapters", identity.adapters},
          {"operations", identity.operations},
          {"update_settings", identity.updateSettings}};
}

static Json toJson(const RunPosition &position) {
  Json json = {{"step", position.step},
               {"skipped_in_a_row", position.skippedInARow},
               {"last_finite_step", position.lastFiniteStep},
               {"next_batch", position.nextBatch}};
  if (position.outerForgotten > 0)
    json["outer_forgotten"] = position.outerForgotten;
  return json;
}

static Json toJson(const CheckpointTensor &tensor) {
  Json regions = Json::array();
  for (const CheckpointRegion &region : tensor.regions)
    regions.push_back({{"shape", region.shape},
                       {"offset", region.offset},
                       {"size", region.size},
                       {"xxh3_128", region.checksum}});
  Json json = {
      {"file", tensor.file}, {"dtype", name(tensor.type.dtype)}, {"shape", tensor.type.shape}};
  if (!tensor.parameter.empty())
    json["parameter"] = tensor.parameter;
  if (tensor.isStepState)
    json["step_state"] = true;
  json["regions"] = regions;
  return json;
}

std::string toJson(const CheckpointManifest &manifest) {
  Json files = Json::array(), tensors = Json::object();
  for (const CheckpointFile &file : manifest.files)
    files.push_back(
        {{"name", file.name}, {"bytes", file.bytes}, {"header_xxh3_128", file.headerChecksum}});
  for (const auto &[name, tensor] : manifest.tensors)
    tensors[name] = toJson(tensor);
  Json json = {{"format", kFormat},
               {"version", kCheckpointVersion},
               {"checksum", kNoChecksum},
               {"producer", manifest.producer},
               {"plan", {{"version", manifest.planVersion}, {"producer", manifest.planProducer}}},
               {"model", manifest.model},
               {"position", toJson(manifest.position)},
               {"identity", toJson(manifest.identity)},
               {"learning_rate", manifest.learningRate},
               {"files", files},
               {"tensors", tensors}};
  std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  // The first such key is that of the object itself: values before it have no quotes unescaped.
  text.replace(text.find(kChecksumKey) + kChecksumKey.size(), kNoChecksum.size(), checksumOf(text));
  return text;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static RunIdentity parseIdentity(const Json &json) {
  return {.seed = json.at("seed").get<uint64_t>(),
          .samples = json.at("samples").get<int64_t>(),
          .batches = json.at("batches").get<int64_t>(),
          .sequence = json.at("sequence").get<int64_t>(),
          .optimizer = json.at("optimizer").get<std::map<std::string, std::set<std::string>>>(),
          .data = json.at("data").get<std::string>(),
          .model = json.at("model").get<std::string>(),
          .adapters = json.value("adapters", ""),
          .operations = json.value("operations", ""),
          .updateSettings = json.value("update_settings", "")};
}

static RunPosition parsePosition(const Json &json) {
  return {.step = json.at("step").get<int64_t>(),
          .skippedInARow = json.at("skipped_in_a_row").get<int64_t>(),
          .lastFiniteStep = json.at("last_finite_step").get<int64_t>(),
          .nextBatch = json.at("next_batch").get<int64_t>(),
          .outerForgotten = json.value("outer_forgotten", int64_t{0})};
}

static Expected<DType> parseDType(const std::string &text) {
  for (DType dtype : {DType::F32, DType::F64, DType::I32, DType::Bool, DType::BF16, DType::F16})
    if (name(dtype) == text)
      return dtype;
  return Error{fmt::format("unknown element type \"{}\"", text)};
}

static Expected<CheckpointTensor> parseTensor(const Json &json, size_t numFiles) {
  Expected<DType> dtype = parseDType(json.at("dtype").get<std::string>());
  if (!dtype)
    return dtype.error();
  CheckpointTensor tensor{.file = json.at("file").get<size_t>(),
                          .type = {*dtype, json.at("shape").get<std::vector<int64_t>>()},
                          .parameter = json.value("parameter", ""),
                          .isStepState = json.value("step_state", false),
                          .regions = {}};
  if (tensor.file >= numFiles)
    return Error{fmt::format("is in file {} of {}", tensor.file, numFiles)};
  int64_t elements = 0;
  for (const Json &region : json.at("regions")) {
    CheckpointRegion added{.shape = region.at("shape").get<std::vector<int64_t>>(),
                           .offset = region.at("offset").get<std::vector<int64_t>>(),
                           .size = region.at("size").get<std::vector<int64_t>>(),
                           .checksum = region.at("xxh3_128").get<std::string>()};
    bool valid = added.offset.size() == added.shape.size() &&
                 added.size.size() == added.shape.size() &&
                 TensorType{*dtype, added.shape}.numElements() == tensor.type.numElements();
    for (size_t d = 0; valid && d < added.shape.size(); ++d)
      valid = added.offset[d] >= 0 && added.size[d] >= 0 &&
              added.size[d] <= added.shape[d] - added.offset[d];
    if (!valid)
      return Error{"has a region that does not lie in it"};
    elements += TensorType{*dtype, added.size}.numElements();
    tensor.regions.push_back(std::move(added));
  }
  if (elements != tensor.type.numElements())
    return Error{
        fmt::format("has {} elements, and its regions {}", tensor.type.numElements(), elements)};
  return tensor;
}

/// Whether the text has the checksum of itself, as it was before the checksum was put in.
static bool hasItsChecksum(std::string_view text) {
  size_t key = text.find(kChecksumKey);
  if (key == std::string_view::npos)
    return false;
  size_t digits = key + kChecksumKey.size();
  std::string without(text);
  without.replace(digits, kNoChecksum.size(), kNoChecksum);
  return text.substr(digits, kNoChecksum.size()) == checksumOf(without);
}

Expected<CheckpointManifest> parseManifest(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("format", Json()) != kFormat)
    return Error{"is no manifest of a checkpoint, or damaged"};
  // Before anything else, so that fields of a later version are not taken for damage.
  if (Json version = json.value("version", Json()); version != kCheckpointVersion)
    return Error{fmt::format("the checkpoint has version {}, expected {}; use the dtc-run that "
                             "wrote it",
                             version.dump(), kCheckpointVersion)};
  if (!hasItsChecksum(text))
    return Error{"is damaged: its checksum is another"};
  CheckpointManifest manifest;
  try {
    manifest.producer = json.at("producer").get<std::string>();
    manifest.planVersion = json.at("plan").at("version").get<uint32_t>();
    manifest.planProducer = json.at("plan").at("producer").get<std::string>();
    manifest.model = json.at("model").get<std::string>();
    manifest.learningRate = json.at("learning_rate").get<std::string>();
    manifest.position = parsePosition(json.at("position"));
    manifest.identity = parseIdentity(json.at("identity"));
    for (const Json &file : json.at("files"))
      manifest.files.push_back({.name = file.at("name").get<std::string>(),
                                .bytes = file.at("bytes").get<uint64_t>(),
                                .headerChecksum = file.at("header_xxh3_128").get<std::string>()});
    for (const auto &[name, value] : json.at("tensors").items()) {
      Expected<CheckpointTensor> tensor = parseTensor(value, manifest.files.size());
      if (!tensor)
        return tensor.error().inContext(fmt::format("tensor \"{}\"", name));
      manifest.tensors.emplace(name, std::move(*tensor));
    }
  } catch (const Json::exception &exception) {
    return Error{fmt::format("is no manifest of a checkpoint: {}", exception.what())};
  }
  return manifest;
}

} // namespace dtc::runtime
