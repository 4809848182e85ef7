//===- ProgressReport.h - Progress lines of a run -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_PROGRESSREPORT_H
#define DTC_RUNTIME_TRAIN_PROGRESSREPORT_H

#include "runtime/executor/Session.h"
#include "runtime/executor/TracedCommunication.h"
#include "runtime/metrics/StepMetrics.h"
#include "support/Tensor.h"

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace dtc::runtime {

/// Reports on steps: one line that is overwritten on a terminal, plain lines elsewhere.
class ProgressReport {
public:
  /// `unit` is what tokensPerSecond counts. Off a terminal, every `logEvery`-th step has a line,
  /// and so have the first and the last.
  /// `firstStep` is the first that the process runs; `isTerminal` says what `out` is where it
  /// cannot be asked.
  ProgressReport(std::FILE *out, int64_t totalSteps, int64_t logEvery, std::string unit,
                 int64_t firstStep = 1, std::optional<bool> isTerminal = {});
  ~ProgressReport() { finish(); }

  void step(const StepMetrics &metrics);
  /// After step(), a line of its own for a loss on held-out data.
  void evaluation(const StepMetrics &metrics);
  /// Ends the line that is being overwritten.
  void finish();

private:
  std::string lineFor(const StepMetrics &metrics) const;

  std::FILE *out;
  int64_t totalSteps;
  int64_t firstStep;
  int64_t logEvery;
  std::string unit;
  bool isTerminal;
  std::string lastLine; // on a terminal: what is shown, or would be
  bool lineIsOpen = false;
  std::chrono::steady_clock::time_point lastShown;
  double smoothedSeconds = 0;
};

/// A table of the profile; see Session::profile().
std::string formatProfile(const std::vector<ProfileEntry> &profile);

/// A table of the communication in the traced steps; empty if there was none.
std::string formatTracedCommunication(const std::vector<CommunicationTime> &times);

/// "collectives: 0.123 s, 64% overlapped with computation"; empty if there were none.
std::string formatMeasuredCollectives(const MeasuredCollectives &time);

/// "transfers: 0.123 s, 64% overlapped with computation; devices waited 0.456 s for them"; empty if
/// there were none.
std::string formatTransferTime(const TransferTime &time);

/// "pipeline bubble: 12.3% measured, 11.1% predicted"; empty without a pipeline. `predictedShare`
/// is that of a simulation of the plan, from 0 to 1; nullopt where there is none.
std::string formatPipelineTime(const PipelineTime &time, std::optional<double> predictedShare);

/// A tensor in a line or two: all elements of a small one, statistics of a large one.
std::string formatTensor(const std::string &name, const HostTensor &tensor);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_PROGRESSREPORT_H
