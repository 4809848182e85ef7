//===- CheckpointSaver.h - Asynchronous writing of checkpoints ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CHECKPOINT_CHECKPOINTSAVER_H
#define DTC_RUNTIME_CHECKPOINT_CHECKPOINTSAVER_H

#include "runtime/checkpoint/CheckpointFileMap.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/CheckpointWriter.h"
#include "runtime/checkpoint/SavedStates.h"
#include "runtime/executor/Session.h"
#include "runtime/fabrics/processes/Processes.h"
#include "support/Error.h"
#include "support/Memory.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace dtc::runtime {

/// Writes the states of a session to checkpoints from a copy in host memory, on a thread of its
/// own, one checkpoint at a time. Not thread-safe.
class CheckpointSaver {
public:
  /// How long copy() made the step wait, for the checkpoint before to be written and for the copy.
  struct Wait {
    double earlierSeconds = 0;
    double copySeconds = 0;
  };

  /// The newest `keep` checkpoints are kept, or all where it is 0. Session and folder must stay.
  /// Allocates the memory for the copy: copyBytes() of the plan, or what the devices of this
  /// process have of it; a thread populates it, so that the first copy is as fast as others.
  /// Several processes call all functions together, and write to one folder that all of them see.
  static Expected<std::unique_ptr<CheckpointSaver>>
  create(Session &session, const CheckpointFolder &folder, int64_t keep, Processes processes = {});
  /// Waits for the checkpoint that is being written.
  ~CheckpointSaver();

  /// The host memory that saving a plan takes beside the plan's own: its states, once each, and up
  /// to PositionedFile::kBlockBytes for each file.
  static uint64_t copyBytes(const plan::Plan &plan);
  /// The bytes of a checkpoint on the disk, without its manifest.
  uint64_t fileBytes() const { return fileMap.fileBytes(); }

  /// The memory of the copy in this process.
  uint64_t memoryBytes() const { return memory.size(); }

  /// Copies the states as they are now, when the copy before has been written. An error is one of
  /// that, after which nothing more can be saved.
  Expected<Wait> copy();
  /// Begins to write what copy() has copied; the manifest lacks the files and the tensors. Weights
  /// that are not finite are an error, and nothing of them is written or takes the place of an
  /// older checkpoint.
  void write(CheckpointManifest manifest);

  /// The error of a checkpoint that has been written in the meantime. Does not wait.
  MaybeError poll();
  /// Whether poll() has to ask the other processes: one is being written, as far as all know.
  bool isUnderWay() const { return thread.joinable(); }
  /// Waits until everything is written.
  MaybeError finish();
  /// The step of the last checkpoint that is complete; 0 before the first.
  int64_t lastStep() const { return savedStep; }
  bool hasFailed() const { return failure.has_value(); }

private:
  CheckpointSaver(Session &session, const CheckpointFolder &folder, int64_t keep,
                  Processes processes);
  MaybeError planPieces();
  void startPopulating();
  MaybeError finishPopulating();
  MaybeError checkWeights() const;
  MaybeError writeNow();
  MaybeError removeOld() const;
  MaybeError commitTogether();
  MaybeError commitFirst(const std::vector<std::string> &texts) const;
  MaybeError endTogether();

  Session &session;
  const CheckpointFolder &folder;
  int64_t keep;
  std::map<std::string, SavedState> states;
  CheckpointFileMap fileMap;
  PageMemory memory;                   // the copy
  std::vector<CheckpointPiece> pieces; // in it
  std::vector<HostShard> shards;       // what fills it

  Processes processes;

  std::thread populating; // the memory, from the start to the first copy
  std::atomic<bool> stopsPopulating = false;
  MaybeError populated; // of that thread, once it is done

  std::thread thread;          // of the checkpoint that is being written
  CheckpointManifest manifest; // of that, without files and regions
  std::atomic<bool> isDone = true;
  // The results of the thread, once it is done:
  MaybeError outcome;
  CheckpointRegions written;
  MaybeError failure; // the first
  int64_t savedStep = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CHECKPOINT_CHECKPOINTSAVER_H
