//===- CheckpointWriter.h - Writing the files of a checkpoint -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CHECKPOINT_CHECKPOINTWRITER_H
#define DTC_RUNTIME_CHECKPOINT_CHECKPOINTWRITER_H

#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/CheckpointLayout.h"
#include "runtime/checkpoint/Manifest.h"

#include <cstddef>
#include <string>
#include <vector>

namespace dtc::runtime {

/// A box of a tensor in memory, dense and row-major. `shape` is that of the tensor or of a reshape
/// of it.
struct CheckpointPiece {
  std::string tensor;
  std::vector<int64_t> shape, offset, size;
  const std::byte *data = nullptr;
};

/// Writes a checkpoint of manifest.position.step, whole or not at all: the pieces, which are
/// disjoint and make up all tensors, at their places in the files; then the manifest with the files
/// and the checksums added; everything is on the disk before the folder has its name.
MaybeError writeCheckpoint(const CheckpointFolder &folder, const CheckpointLayout &layout,
                           const std::vector<CheckpointPiece> &pieces, CheckpointManifest manifest);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CHECKPOINT_CHECKPOINTWRITER_H
