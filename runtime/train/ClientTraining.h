//===- ClientTraining.h - Rounds of federated learning -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_CLIENTTRAINING_H
#define DTC_RUNTIME_TRAIN_CLIENTTRAINING_H

#include "runtime/data/ClientsSource.h"
#include "runtime/executor/Session.h"
#include "runtime/metrics/StepMetrics.h"
#include "support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtc::runtime {

/// Whether the update of a client is used, and why not.
enum class UpdateState {
  Taken,
  NotFinite, // the change of its parameters has no finite norm
  NoStep,    // all its steps were skipped
};

/// The weights of the clients of a round: their samples, over those of all that are taken. All are
/// 0 where none is.
std::vector<double> clientWeights(const std::vector<double> &samples,
                                  const std::vector<UpdateState> &states);

/// How a round hides the change of a single client (DP-FedAvg; McMahan et al. 2018, "Learning
/// differentially private recurrent language models", algorithm 1, with a fixed denominator and all
/// clients of equal weight). Each client's change is scaled to a norm of `clip` at most, and normal
/// noise with the standard deviation `multiplier` * `clip` is added to the sum over them.
struct ClientNoise {
  double clip = 1;
  double multiplier = 0;
  uint64_t seed = 0;
};

/// The weights of clients whose changes have these norms: each is that of the clipped change, over
/// the number of clients; 0 for one that is not taken.
std::vector<double> clippedWeights(const std::vector<double> &norms,
                                   const std::vector<UpdateState> &states, double clip);

/// The rounds of a run whose replicas train for clients. A round ends with an outer step.
class ClientTraining {
public:
  ClientTraining(const ClientsSource &source, Session &session, std::optional<ClientNoise> noise)
      : source(source), session(session), noise(noise) {}

  /// Says to the session which replicas take the step: those whose clients are not done.
  MaybeError giveActive(int64_t step);
  /// Takes in the losses of the replicas in a step that is over. Returns the mean of those that
  /// took it and are finite: NaN where none is finite, nothing where none took it.
  Expected<std::optional<double>> addStep(int64_t step);
  /// Takes the outer step after the last step of a round, and puts the round into the metrics.
  MaybeError takeOuterStep(Session &outer, StepMetrics &metrics);

  /// "round 3: north loss 0.51 weight 0.25, south loss 0.48 weight 0.75", for people.
  static std::string describe(const StepMetrics &metrics);
  /// Which clients of the last round were left out, and why; empty: none.
  const std::vector<std::string> &leftOut() const { return left; }

private:
  int64_t roundOf(int64_t step) const { return (step - 1) / source.stepsOfRound(); }
  /// Whether the replica's client is not done before the step.
  bool takes(size_t replica, int64_t step) const;
  size_t numReplicas() const { return source.getRounds().numReplicas(); }
  struct Updates {
    std::vector<UpdateState> states; // of each replica
    std::vector<double> squares;     // of the changes of all its parameters, added up
  };
  /// The state of each replica's update, from the measurements of the plan.
  Expected<Updates> checkUpdates();
  std::vector<double> weightsOf(const Updates &updates, int64_t round) const;
  MaybeError drawNoise(int64_t round);
  MaybeError giveNoise(Session &outer, int64_t round);

  const ClientsSource &source;
  Session &session;
  std::optional<ClientNoise> noise;
  std::vector<double> losses; // of each replica: the sum over its steps of the round so far
  std::vector<int64_t> steps; // in these
  std::vector<std::string> left;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_CLIENTTRAINING_H
