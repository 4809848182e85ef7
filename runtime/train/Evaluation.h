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

/// The result of an evaluation.
struct EvaluationResult {
  std::optional<double> loss; // the mean over the labels that count; absent where none does
};

/// Computes the loss on a held-out data set with the parameters as they are: by the entry point
/// "evaluate" of a plan that trains, the forward pass alone, without dropout; by any other plan
/// itself.
class Evaluation {
public:
  /// Null where the options name no data for it. An error names what the plan or the file lacks.
  static Expected<std::unique_ptr<Evaluation>> open(Session &session, const TrainOptions &options,
                                                    int64_t steps);

  const DataSource &getData() const { return *data; }

  /// The samples that are left out because they fill no whole batch: "1 of 5 samples fills no batch
  /// of 2 and is left out; ..."; empty: nothing.
  std::string describeLeftOut() const;

  /// Whether it is due after that step of a run of `steps`.
  bool isDue(int64_t step, int64_t steps) const { return step == steps || step % every == 0; }

  /// Takes the same batches each time. nullopt if stops(), which is called before each, was true.
  Expected<std::optional<EvaluationResult>> run(const std::function<Expected<bool>()> &stops);

  /// Of a run of `steps`: "val.txt: 1000 bytes of text, 7 batches to evaluate on every 10 steps".
  std::string describe(int64_t steps) const;

private:
  Evaluation(Session &session, std::string loss, std::unique_ptr<DataSource> data)
      : session(session), loss(std::move(loss)), data(std::move(data)) {}

  Session &session; // of the entry point
  std::string loss; // the output
  std::unique_ptr<DataSource> data;
  std::unique_ptr<BatchLoader> loader; // of the data
  int64_t batches = 0;
  int64_t every = 1;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_EVALUATION_H
