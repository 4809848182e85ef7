//===- WeightsFileShards.cpp - Weights files in several parts -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/WeightsFileShards.h"

#include "runtime/data/ElementConversion.h"
#include "runtime/data/FileFormat.h"
#include "runtime/data/JsonMembers.h"
#include "support/ReadText.h"

#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <set>

namespace dtc::runtime {

using Json = nlohmann::json;
namespace fs = std::filesystem;

/// In the order in which transformers looks for them, and PEFT's.
static constexpr const char *kWeightsNames[] = {"model.safetensors", "model.safetensors.index.json",
                                                "adapter_model.safetensors"};

/// The file that a path stands for.
static Expected<std::string> findWeights(const std::string &path) {
  std::error_code code;
  if (!fs::is_directory(path, code))
    return path;
  for (const char *name : kWeightsNames)
    if (fs::path file = fs::path(path) / name; fs::exists(file, code))
      return file.string();
  // Weights of another format say best what to do.
  std::set<std::string> others;
  for (fs::directory_iterator it(path, code), end; !code && it != end; it.increment(code))
    if (std::string suffix = it->path().extension();
        suffix == ".bin" || suffix == ".pt" || suffix == ".pth" || suffix == ".gguf")
      others.insert(it->path());
  for (const std::string &other : others)
    if (Expected<InputFile> file = InputFile::open(other))
      if (MaybeError error = refuseForeignFormat(*file))
        return *error;
  return Error{fmt::format("{}: the folder has no weights; expected one of {}", path,
                           fmt::join(kWeightsNames, ", "))};
}

static bool isIndex(const std::string &path) { return path.ends_with(".json"); }

/// The shard of each tensor.
static Expected<std::map<std::string, std::string>> parseIndex(const std::string &text) {
  std::map<std::string, std::string> shards;
  bool isOfTensor = false; // the error is
  auto add = [&](const std::string &tensor, const Json &shard) -> MaybeError {
    isOfTensor = true;
    // A file elsewhere is none that was downloaded with the index.
    std::string name = shard.is_string() ? shard.get<std::string>() : "";
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos)
      return Error{fmt::format("weight_map has {} for the tensor \"{}\"; expected the name of a "
                               "file in the folder of the index",
                               shard.dump(-1, ' ', false, Json::error_handler_t::replace), tensor)};
    if (!shards.emplace(tensor, name).second)
      return Error{fmt::format("weight_map names the tensor \"{}\" twice", tensor)};
    isOfTensor = false;
    return std::nullopt;
  };
  if (MaybeError error = readJsonMembersWithin(text, "weight_map", add)) {
    if (isOfTensor)
      return *error;
    return Error{fmt::format("is no index of safetensors files: it {}; expected a JSON object with "
                             "weight_map",
                             error->message)};
  }
  if (shards.empty())
    return Error{"weight_map names no tensor"};
  return shards;
}

/// By tensor, the name of its shard.
static Expected<std::map<std::string, std::string>> readIndex(const std::string &path) {
  Expected<InputFile> file = InputFile::open(path);
  if (!file)
    return file.error();
  if (MaybeError error = refuseForeignFormat(*file))
    return *error;
  Expected<std::string> text = readText(path);
  if (!text)
    return text.error();
  auto shards = parseIndex(*text);
  if (!shards)
    return shards.error().inContext(path);
  return shards;
}

static std::string besideIndex(const std::string &index, const std::string &shard) {
  return (fs::path(index).parent_path() / shard).string();
}

MaybeError WeightsFileShards::add(SafetensorsFile shard) {
  for (const auto &[name, entry] : shard.tensors()) {
    auto [other, isNew] = shardOf.try_emplace(name, shards.size());
    if (!isNew)
      return Error{fmt::format("tensor \"{}\" is in two shards, {} and {}", name,
                               shards[other->second].path(), shard.path())};
    entries.emplace(name, entry);
  }
  shards.push_back(std::move(shard));
  return std::nullopt;
}

Expected<WeightsFileShards> WeightsFileShards::open(const std::string &path) {
  Expected<std::string> found = findWeights(path);
  if (!found)
    return found.error();
  WeightsFileShards result(path);
  if (!isIndex(*found)) {
    Expected<SafetensorsFile> file = SafetensorsFile::open(*found);
    if (!file)
      return file.error();
    if (MaybeError error = result.add(std::move(*file)))
      return *error;
    return result;
  }
  auto shardNames = readIndex(*found);
  if (!shardNames)
    return shardNames.error();
  std::map<std::string, std::vector<std::string>> tensorsOf;
  for (const auto &[tensor, shard] : *shardNames)
    tensorsOf[shard].push_back(tensor);
  for (const auto &[shard, tensors] : tensorsOf) {
    Expected<SafetensorsFile> file = SafetensorsFile::open(besideIndex(*found, shard));
    if (!file)
      return file.error().inContext(fmt::format("{}: the shard of \"{}\" and {} more tensors",
                                                *found, tensors.front(), tensors.size() - 1));
    for (const std::string &tensor : tensors)
      if (!file->tensors().count(tensor))
        return Error{fmt::format("{}: tensor \"{}\" should be in {}, which does not have it",
                                 *found, tensor, file->path())};
    if (MaybeError error = result.add(std::move(*file)))
      return error->inContext(*found);
  }
  return result;
}

Expected<std::vector<std::string>> safetensorsFilesOf(const std::string &path) {
  Expected<std::string> found = findWeights(path);
  if (!found)
    return found.error();
  std::vector<std::string> files = {*found};
  if (!isIndex(*found))
    return files;
  auto shardNames = readIndex(*found);
  if (!shardNames)
    return shardNames.error();
  std::set<std::string> names;
  for (const auto &[tensor, shard] : *shardNames)
    if (names.insert(shard).second)
      files.push_back(besideIndex(*found, shard));
  return files;
}

WeightsFileShards WeightsFileShards::ofMemory(std::string name,
                                              std::map<std::string, TensorInMemory> tensors) {
  WeightsFileShards result(std::move(name));
  for (const auto &[tensor, value] : tensors)
    result.entries[tensor] = SafetensorsEntry{value.dtype, value.shape, 0, value.bytes.size()};
  result.inMemory = std::move(tensors);
  return result;
}

MaybeError WeightsFileShards::read(const std::string &name, int64_t begin, int64_t count,
                                   DType dtype, std::byte *out) const {
  auto tensor = inMemory.find(name);
  if (tensor == inMemory.end())
    return shards[shardOf.at(name)].read(name, begin, count, dtype, out);
  size_t width = fileElementWidth(tensor->second.dtype);
  MaybeError error =
      convertElements(tensor->second.dtype,
                      tensor->second.bytes.subspan(static_cast<size_t>(begin) * width,
                                                   static_cast<size_t>(count) * width),
                      begin, dtype, out);
  return error ? error->inContext(fmt::format("{}: tensor \"{}\"", givenPath, name)) : error;
}

Expected<HostTensor> WeightsFileShards::read(const std::string &name, DType dtype) const {
  HostTensor tensor(TensorType{dtype, entries.at(name).shape});
  if (MaybeError error = read(name, 0, tensor.type.numElements(), dtype, tensor.bytes.data()))
    return *error;
  return tensor;
}

} // namespace dtc::runtime
