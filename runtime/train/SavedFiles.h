//===- SavedFiles.h - Files written at the end of a run -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_SAVEDFILES_H
#define DTC_RUNTIME_TRAIN_SAVEDFILES_H

#include "runtime/executor/Session.h"
#include "runtime/train/Adapters.h"
#include "runtime/train/SavedWeights.h"
#include "runtime/train/TrainOptions.h"

#include <optional>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The weights, the adapters and the merged weights that a run is to save at its end. Each is
/// written whole or not at all.
class SavedFiles {
public:
  /// None.
  SavedFiles() = default;
  /// Takes the places and the room on the disk, and leaves existing files as they are. An error is
  /// one that save() would have. Of several processes the first one writes; all call save().
  static Expected<SavedFiles> create(const plan::Plan &plan, const TrainOptions &options);

  const std::vector<std::string> &paths() const { return allPaths; }
  /// Writes the states of a session of the plan, each file although another one fails. To be called
  /// once. Returns the paths that were written; `error` gets the first error.
  std::vector<std::string> save(const Session &session, MaybeError &error);

private:
  /// A file that this process writes, or takes part in writing.
  struct File {
    std::string path;
    SavedWeights content;
    std::optional<AtomicFile> file;
    std::optional<AdapterFolder> adapters;
    MaybeError save(const Session &session);
  };
  static Expected<File> open(const plan::Plan &plan, const std::string &path, SavedContent content,
                             bool isWriter);

  std::vector<std::string> allPaths;
  std::vector<File> files;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_SAVEDFILES_H
