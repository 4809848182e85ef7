//===- CheckpointFileMap.h - Files and offsets of checkpointed tensors -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CHECKPOINT_CHECKPOINTFILEMAP_H
#define DTC_RUNTIME_CHECKPOINT_CHECKPOINTFILEMAP_H

#include "support/Tensor.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The safetensors files of a checkpoint before there is one: which tensor is in which file, and
/// where. It follows from the tensors' names and types alone, so that writers that hold different
/// parts of them need not agree on anything. Tensors are sorted by name; a file ends before the
/// tensor with which it would be larger than `maxFileBytes`, but has at least one.
class CheckpointFileMap {
public:
  static constexpr uint64_t kMaxFileBytes = uint64_t{4} << 30;

  struct File {
    std::string name;   // "state-00001-of-00002.safetensors"
    std::string header; // all bytes before the tensors
    uint64_t bytes = 0; // with the header
  };
  struct Place {
    size_t file = 0;
    uint64_t offset = 0; // bytes from the start of the file
    /// Bytes from the start of a copy of all tensors: one after the other as in the files, and
    /// congruent to `offset` modulo PositionedFile::kBlockBytes.
    uint64_t copyOffset = 0;
  };

  explicit CheckpointFileMap(std::map<std::string, TensorType> tensors,
                             uint64_t maxFileBytes = kMaxFileBytes);

  const std::map<std::string, TensorType> &tensors() const { return types; }
  const std::vector<File> &files() const { return allFiles; }
  const Place &placeOf(const std::string &tensor) const { return places.at(tensor); }
  /// The bytes of all files.
  uint64_t fileBytes() const;
  /// The bytes of the copy (Place::copyOffset).
  uint64_t copyBytes() const { return endOfCopy; }

private:
  std::map<std::string, TensorType> types;
  std::vector<File> allFiles;
  std::map<std::string, Place> places;
  uint64_t endOfCopy = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CHECKPOINT_CHECKPOINTFILEMAP_H
