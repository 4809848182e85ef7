//===- Training.h - Small models, trained with any strategy ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_EQUIVALENCE_TRAINING_H
#define DTC_TEST_EQUIVALENCE_TRAINING_H

#include "test/lib/compile/CompileAndRun.h"

#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace dtc::test {

/// The bound that the project guarantees for losses and parameters after kSteps steps, and that in
/// f64, where a real error stands out from rounding.
inline constexpr int kSteps = 10;
inline constexpr double kTolerance = 1e-4;
inline constexpr double kF64Tolerance = 1e-9;

/// With 8 bits of precision each activation is rounded by up to 2^-9 of itself, and a strategy
/// rounds elsewhere: sums over devices are rounded once before they are added. The errors of the
/// many elements that a loss or a norm is made of are independent, and average out; a few parts in
/// 2^9 are left.
inline constexpr double kBf16Tolerance = 1.0 / 128;

/// Strategies for settings that each should work with.
inline constexpr const char *kSettingStrategies[] = {
    "m=4",
    "dp=2",
    "dp=3 m=2",
    "tp=2",
    "tp=4 sp",
    "dp=2,tp=2 m=2 zero=1",
    "dp=4 zero=2 m=2",
    "fsdp=2,tp=2 zero=3 m=2",
    "pp=2 m=4",
    "dp=2,tp=2,pp=2 m=4 zero=1",
    "dp=2,pp=2 m=4 schedule=zb-h1 zero=2",
    "pp=2 m=4 schedule=interleaved chunks=2 recompute=full",
    "dp=2,tp=2 m=2 recompute=full",
    "tp=2,pp=2 m=2 recompute=selective sp",
    "cp=2 context_exchange=all-gather",
    "dp=2,cp=2 m=2 zero=1 context_exchange=all-to-all",
};

struct Model {
  const char *name;
  const char *config; ///< of Hugging Face
  int64_t batch, seq;
  double eps = CompileOptions().eps; ///< of AdamW
  /// Smoothed labels, a z-loss, and labels that do not count, most of them in the first samples.
  bool losses = false;
  std::vector<std::string> freeze = {}; ///< patterns of parameters that do not train
  std::optional<LoraOptions> lora = {}; ///< adapters, which alone train
  AttentionKind attention = AttentionKind::Fused;
  /// Samples of several documents, and most of them with padding; see setPackedInputs().
  bool packed = false;
  bool f64 = false; ///< tensors of f32 become f64
};

/// For messages of GoogleTest, which would print bytes.
void PrintTo(const Model &model, std::ostream *os);

struct TrainingRun {
  std::vector<double> losses, norms;
  std::map<std::string, HostTensor> parameters;
};

/// Sets the inputs of packed documents: of random lengths, without a label for the last token of
/// each nor for those of its first half, and padding at the end of all samples but each third.
MaybeError setPackedInputs(runtime::Session &session, const Model &model, uint64_t seed);

/// Trains for kSteps steps on tokens and from parameters that do not depend on the strategy; an
/// unfinished run, with test failures, if that is impossible.
TrainingRun train(const Model &model, const CompileOptions &options);

/// The run of a model on a strategy, computed once. The empty strategy is one device.
const TrainingRun &trainOnce(const Model &model, const std::string &text);

/// The model in f64 with AdamW's usual eps, and in f32 with a larger one. AdamW divides by the root
/// of the second moment and makes whole steps of gradients that are all rounding, in f32 too large
/// for kTolerance.
std::vector<Model> inBothPrecisions(Model model);

/// Losses and parameters within kTolerance of those of one device, in f64 within kF64Tolerance.
void expectClose(const TrainingRun &expected, const TrainingRun &actual);
/// The same of a model on a strategy, in both precisions; `settings` are part of both strategies.
void expectEqualsOneDevice(const Model &model, const std::string &mesh,
                           const std::string &settings = "");
/// Losses within `tolerance` (relative) of those of another run, and the norm of the first step's
/// gradient: AdamW makes full steps of gradients that are all rounding, so later norms differ more.
void expectLossesNear(const TrainingRun &expected, const TrainingRun &actual, double tolerance);
/// The same bits in all losses, norms and parameters.
void expectSameBits(const TrainingRun &expected, const TrainingRun &actual);

/// "dp=2,tp=2 m=2" -> "dp2_tp2_m2", for names of tests.
std::string strategyName(const std::string &text);

} // namespace dtc::test

#endif // DTC_TEST_EQUIVALENCE_TRAINING_H
