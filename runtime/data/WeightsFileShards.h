//===- WeightsFileShards.h - Weights files in several parts ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_WEIGHTSFILESHARDS_H
#define DTC_RUNTIME_DATA_WEIGHTSFILESHARDS_H

#include "runtime/data/Safetensors.h"

#include <map>
#include <span>
#include <string>
#include <vector>

namespace dtc::runtime {

/// A tensor whose elements are in memory that somebody else owns, dense and in row-major order. Its
/// element type is one of safetensors: "F32", "I64".
struct TensorInMemory {
  std::string dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Weights as Hugging Face lays them out. A path is one of
///  * a .safetensors file;
///  * an index, model.safetensors.index.json, whose weight_map says which file of the same folder
///    (a shard) each tensor is in;
///  * a folder with model.safetensors, or else with such an index, or else with PEFT's
///    adapter_model.safetensors.
class WeightsFileShards {
public:
  /// Opens all shards and checks them against the index: every tensor is in the shard that the
  /// index names, and in no other. The error begins with the path.
  static Expected<WeightsFileShards> open(const std::string &path);
  /// Weights that are in memory, which must stay. Messages call them `name`.
  static WeightsFileShards ofMemory(std::string name,
                                    std::map<std::string, TensorInMemory> tensors);

  const std::string &path() const { return givenPath; }
  /// The tensors of all shards.
  const std::map<std::string, SafetensorsEntry> &tensors() const { return entries; }
  /// See SafetensorsFile. The error names the shard.
  Expected<HostTensor> read(const std::string &name, DType dtype) const;
  MaybeError read(const std::string &name, int64_t begin, int64_t count, DType dtype,
                  std::byte *out) const;

private:
  explicit WeightsFileShards(std::string path) : givenPath(std::move(path)) {}
  MaybeError add(SafetensorsFile shard);

  std::string givenPath;
  std::vector<SafetensorsFile> shards;
  std::map<std::string, SafetensorsEntry> entries;
  std::map<std::string, size_t> shardOf;          // by tensor
  std::map<std::string, TensorInMemory> inMemory; // instead of shards
};

/// The files that WeightsFileShards::open reads, an index among them.
Expected<std::vector<std::string>> safetensorsFilesOf(const std::string &path);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_WEIGHTSFILESHARDS_H
