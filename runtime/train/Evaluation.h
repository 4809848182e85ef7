//===- Evaluation.h - The loss on held-out data ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_EVALUATION_H
#define DTC_RUNTIME_TRAIN_EVALUATION_H

#include "runtime/data/BatchLoader.h"
#include "runtime/data/DataSource.h"
#include "runtime/executor/Session.h"
#include "runtime/train/TrainOptions.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace dtc::runtime {

/// What an evaluation finds.
struct EvaluationResult {
  std::optional<double> loss; // the mean over the labels that count; absent where none does
};

/// Computes the loss on a held-out data set by the plan's entry point "evaluate": the forward pass
/// alone, without dropout, with the parameters as they are.
class Evaluation {
public:
  /// Null where the options name no data for it. An error names what the plan or the file lacks.
  static Expected<std::unique_ptr<Evaluation>> open(const Session &session,
                                                    const TrainOptions &options);

  const DataSource &getData() const { return *data; }

  /// Whether it is due after that step of a run of `steps`.
  bool isDue(int64_t step, int64_t steps) const { return step == steps || step % every == 0; }

  /// Takes the same batches each time. nullopt if stops(), which is called before each, was true.
  Expected<std::optional<EvaluationResult>> run(const std::function<Expected<bool>()> &stops);

  /// "val.txt: 1000 bytes of text, 7 batches every 10 steps".
  std::string describe() const;

private:
  Evaluation(Session &session, std::unique_ptr<DataSource> data)
      : session(session), data(std::move(data)) {}

  Session &session; // of the entry point
  std::unique_ptr<DataSource> data;
  std::unique_ptr<BatchLoader> loader; // of the data
  int64_t batches = 0;
  int64_t every = 1;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_EVALUATION_H
