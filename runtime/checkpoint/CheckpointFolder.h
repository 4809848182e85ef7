//===- CheckpointFolder.h - The checkpoints of a run ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CHECKPOINT_CHECKPOINTFOLDER_H
#define DTC_RUNTIME_CHECKPOINT_CHECKPOINTFOLDER_H

#include "runtime/checkpoint/Checkpoint.h"
#include "support/Error.h"
#include "support/LockedFile.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The names that a folder of checkpoints has: step-0000012 for the one after step 12. All others
/// are left alone, but for those that begin with ".tmp-", which killed runs leave.
std::string checkpointName(int64_t step);
/// The steps that have checkpoints, complete or not, in their order. A folder that does not exist
/// has none.
Expected<std::vector<int64_t>> checkpointSteps(const std::string &folder);

/// A folder of checkpoints that this run alone writes to. All errors begin with a path in it.
class CheckpointFolder {
public:
  /// Makes the folder if there is none, keeps other runs from writing to it, and removes what
  /// killed runs have left.
  static Expected<CheckpointFolder> open(const std::string &path);
  /// For the other processes of a run, whose first one has opened the folder: they write to files
  /// of checkpoints that it begins and commits.
  static CheckpointFolder follow(const std::string &path);

  const std::string &path() const { return folder; }
  std::string pathOf(int64_t step) const { return folder + "/" + checkpointName(step); }

  /// The newest checkpoint that is complete and whose checksums are right; none if there is none at
  /// all. Each one that is refused adds to `refused` which and why. An error if all are refused.
  Expected<std::optional<Checkpoint>> newest(std::vector<std::string> &refused);

  /// Makes a folder for the files of a checkpoint, which is no checkpoint until commit().
  MaybeError begin(int64_t step) const;
  /// Its path.
  std::string temporaryPath(int64_t step) const;
  /// Makes it the checkpoint of the step. A refused one is replaced.
  MaybeError commit(int64_t step) const;
  /// Removes the folder of begin(), as a disk may be full: nobody writes to it any more. Files that
  /// cannot be removed are left to open() of the next run.
  void discard(int64_t step) const;
  /// Removes all checkpoints but the newest `count` of those up to `step` that were not refused.
  MaybeError keepNewest(int64_t step, int64_t count) const;

private:
  explicit CheckpointFolder(std::string path, std::optional<LockedFile> lock)
      : folder(std::move(path)), lock(std::move(lock)) {}
  MaybeError remove(int64_t step) const;

  std::string folder;
  std::optional<LockedFile> lock;
  std::set<int64_t> refusedSteps;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CHECKPOINT_CHECKPOINTFOLDER_H
