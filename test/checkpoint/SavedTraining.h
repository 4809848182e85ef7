//===- SavedTraining.h - Small models whose training is saved -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_CHECKPOINT_SAVEDTRAINING_H
#define DTC_TEST_CHECKPOINT_SAVEDTRAINING_H

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/train/TrainLoop.h"
#include "test/lib/compile/CompileAndRun.h"
#include "test/lib/plans/TempDir.h"

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dtc::test {

/// A model, and what is trained of it.
struct SavedModel {
  const char *config; ///< of Hugging Face
  int64_t batch = 8, seq = 8;
  std::optional<LoraOptions> lora = {}; ///< adapters, which alone train
  std::vector<std::string> freeze = {}; ///< patterns of parameters that do not train
  bool isDouble = false;                ///< see toDouble()
  std::function<void(CompileOptions &)> change = nullptr; ///< of how it is compiled
};

/// Words of the vocabulary in the data, the fewest that a SavedModel may have.
inline constexpr int kWords = 16;

/// One training of one model, in parts that may have different plans, by runtime::train(). The
/// files of its runs are in a folder of its own.
class SavedTraining {
public:
  /// With a text to train on and another one to evaluate on; one thread a device.
  SavedTraining();

  /// Compiles the plan of the next runs; test failures, and false, if that is impossible. `text` as
  /// of strategy().
  bool compile(const SavedModel &model, const std::string &text);

  /// The options of the next runs. The checkpoints are in "ckpt", the metrics in "m.jsonl", and the
  /// weights in "w.safetensors".
  runtime::TrainOptions options;
  runtime::testing::TempDir dir;

  Expected<runtime::TrainResult> run();
  /// Runs until the step is done, as one that a signal ends.
  Expected<runtime::TrainResult> runUntil(int64_t step);
  /// The notes of the last run, and its output.
  std::string notes() const { return dir.read("notes.log"); }
  std::string output() const { return dir.read("out.log"); }

  /// The metrics of all steps, without those that depend on the clock.
  std::vector<nlohmann::json> metrics() const;
  /// The losses of the steps from `first` to `last`.
  std::vector<double> losses(int64_t first, int64_t last) const;

  Expected<runtime::Checkpoint> checkpointOf(int64_t step) const;
  /// Expects the files of two checkpoints of a step to have the same bytes and the same position.
  void expectSameCheckpoint(const SavedTraining &other, int64_t step) const;
  /// Loads the checkpoint of the step into the plan, and expects each state of the session to have
  /// the bits that are in the checkpoint; of a parameter with master weights, what these round to.
  void expectLoadedAsSaved(int64_t step);
  /// Takes over the checkpoints and the metrics of another training.
  void copyFrom(const SavedTraining &other);
};

} // namespace dtc::test

#endif // DTC_TEST_CHECKPOINT_SAVEDTRAINING_H
