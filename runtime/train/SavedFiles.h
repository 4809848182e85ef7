//===- SavedFiles.h - Files written at the end of a run -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_SAVEDFILES_H
#define DTC_RUNTIME_TRAIN_SAVEDFILES_H

#include "runtime/executor/Session.h"
#include "runtime/train/Adapters.h"
#include "runtime/train/TrainOptions.h"
#include "runtime/train/Weights.h"

#include <optional>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The weights and the adapters that a run is to save at its end. Each is written whole or not at
/// all.
class SavedFiles {
public:
  /// None.
  SavedFiles() = default;
  /// Takes the places and the room on the disk, and leaves what is there as it is. An error is one
  /// that save() would have. Of several processes the first one writes; all call save().
  static Expected<SavedFiles> create(const plan::Plan &plan, const TrainOptions &options);

  const std::vector<std::string> &paths() const { return allPaths; }
  /// Writes the states of a session of the plan, each file although another one fails. To be called
  /// once. Returns the paths that were written; `error` gets the first error.
  std::vector<std::string> save(const Session &session, MaybeError &error);

private:
  struct Weights {
    AtomicFile file;
    SavedWeights content;
    MaybeError save(const Session &session);
  };

  std::vector<std::string> allPaths;
  std::optional<Weights> weights;
  std::optional<AdapterFolder> adapters;
  std::vector<SavedWeights> written; // by the first process, where that is not this one
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_SAVEDFILES_H
