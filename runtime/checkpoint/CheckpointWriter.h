//===- CheckpointWriter.h - Writing the files of a checkpoint -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CHECKPOINT_CHECKPOINTWRITER_H
#define DTC_RUNTIME_CHECKPOINT_CHECKPOINTWRITER_H

#include "runtime/checkpoint/CheckpointFileMap.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/Manifest.h"

#include <cstddef>
#include <cstdint>
#include <map>
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

/// The regions of each tensor that a process has written, with checksums.
using CheckpointRegions = std::map<std::string, std::vector<CheckpointRegion>>;

/// Begins a checkpoint: makes its files, with room for all that they will have. One process of a
/// run does this, then all write, then the one ends it.
MaybeError beginCheckpoint(const CheckpointFolder &folder, const CheckpointFileMap &fileMap,
                           int64_t step);
/// Writes pieces at their places in the files, and flushes them to the disk. Those of all processes
/// are disjoint and make up all tensors.
Expected<CheckpointRegions> writePieces(const CheckpointFolder &folder,
                                        const CheckpointFileMap &fileMap,
                                        const std::vector<CheckpointPiece> &pieces, int64_t step);
/// Makes a checkpoint of manifest.position.step of what all processes have written: adds the files
/// and the regions to the manifest and writes it; then the folder gets its name.
MaybeError commitCheckpoint(const CheckpointFolder &folder, const CheckpointFileMap &fileMap,
                            const CheckpointRegions &regions, CheckpointManifest manifest);

/// All of it, by one process: the pieces make up all tensors.
MaybeError writeCheckpoint(const CheckpointFolder &folder, const CheckpointFileMap &fileMap,
                           const std::vector<CheckpointPiece> &pieces, CheckpointManifest manifest);

std::string toJson(const CheckpointRegions &regions);
/// The error says what is wrong with the text.
Expected<CheckpointRegions> parseRegions(const std::string &text);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CHECKPOINT_CHECKPOINTWRITER_H
