//===- train-gpt2.cpp - Training speed of one device ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Trains GPT-2 on random tokens and compares the rate of its floating point operations with what
// oneDNN's own sgemm reaches in the same process, before and after. Counted are the operations of
// the plan's contractions: einsum, attention and attention_grad, a multiplication and an addition
// each. Everything else (norms, activations, the loss, the optimizer) takes time and counts for
// nothing. A table has each kernel's time beside that which its bytes, at the rate of a copy, or
// its operations, at the rate of the products, would take.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/GemmRate.h"
#include "benchmarks/ImportAndCompile.h"
#include "benchmarks/KernelLimits.h"
#include "benchmarks/Median.h"
#include "benchmarks/RandomTokens.h"
#include "benchmarks/TrainingArguments.h"
#include "plan/PlanSummary.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/executor/Session.h"
#include "runtime/train/ProgressReport.h"
#include "support/Format.h"
#include "test/lib/files/SourcePath.h"
#include "tools/CommandLine.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <map>
#include <random>

using namespace dtc;
using namespace dtc::runtime;

static constexpr int64_t kGemmSize = 2048;
static constexpr int kGemmSamples = 7; // before the training, and again after it

/// The operations of the kernels that count, by kernel.
static std::map<std::string, double> contractionFlops(const PlanSummary &summary) {
  std::map<std::string, double> flops;
  for (const KernelSummary &kernel : summary.kernels)
    if (kernel.kernel == "einsum" || kernel.kernel.ends_with("attention") ||
        kernel.kernel.ends_with("attention_grad"))
      flops[kernel.kernel] += kernel.flops;
  return flops;
}

/// The entries of `after` less those of `before`.
static std::vector<ProfileEntry> difference(std::vector<ProfileEntry> after,
                                            const std::vector<ProfileEntry> &before) {
  for (ProfileEntry &entry : after)
    for (const ProfileEntry &old : before)
      if (old.name == entry.name) {
        entry.calls -= old.calls;
        entry.seconds -= old.seconds;
        entry.flops -= old.flops;
      }
  std::sort(after.begin(), after.end(),
            [](const ProfileEntry &a, const ProfileEntry &b) { return a.seconds > b.seconds; });
  return after;
}

namespace {
struct Training {
  std::vector<double> seconds;               // of each step
  std::vector<benchmarks::GemmRates> around; // before each step, and after the last
  std::vector<double> copies;                // the rate of copies, as often
  std::vector<ProfileEntry> profile;
};
} // namespace

/// Runs the steps, after one that does not count: it is the first to touch the memory.
static Expected<Training> trainSteps(Session &session, int steps, benchmarks::GemmRate &gemm,
                                     benchmarks::CopyRate &copy) {
  std::mt19937_64 random(1);
  Training result;
  std::vector<ProfileEntry> firstStep;
  for (int step = 0; step <= steps; ++step) {
    if (MaybeError error = benchmarks::setRandomTokens(session, random))
      return *error;
    const double rate[] = {1e-4};
    if (MaybeError error = session.setLearningRates(step, rate))
      return *error;
    auto begin = std::chrono::steady_clock::now();
    if (MaybeError error = session.step())
      return *error;
    std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    Expected<HostTensor> loss = session.getOutput("loss");
    if (!loss)
      return loss.error();
    fmt::print("step {:>3}  {:8.1f} ms  loss {:.4f}{}\n", step, taken.count() * 1e3,
               *loss->as<float>(), step == 0 ? "  (not counted)" : "");
    std::fflush(stdout);
    if (step > 0)
      result.seconds.push_back(taken.count());
    else
      firstStep = session.profile();
    result.around.push_back(gemm.measure(1));
    result.copies.push_back(copy.measure(1));
  }
  result.profile = difference(session.profile(), firstStep);
  return result;
}

/// The median of the steps' ratios to the products around them.
static double ratioOf(const Training &training, double flops, double benchmarks::GemmRates::*kind) {
  std::vector<double> ratios;
  for (size_t i = 0; i < training.seconds.size(); ++i) {
    double around = (training.around[i].*kind + training.around[i + 1].*kind) / 2;
    ratios.push_back(flops / training.seconds[i] / around);
  }
  return benchmarks::median(std::move(ratios));
}

static void printGemm(const char *name, double before, double after, double ratio) {
  fmt::print("{:<17}{} cubed {:9.1f} GFLOP/s before, {:.1f} after; training reaches {:.1f}%\n",
             name, kGemmSize, before * 1e-9, after * 1e-9, 100 * ratio);
}

/// The rates beside which the steps ran: those of the faster of both kinds of products.
static benchmarks::MachineRates ratesOf(const Training &training) {
  std::vector<double> products;
  for (const benchmarks::GemmRates &rates : training.around)
    products.push_back(std::max(rates.sgemm, rates.matmul));
  return {benchmarks::median(std::move(products)), benchmarks::median(training.copies)};
}

static MaybeError run(const benchmarks::TrainingArguments &args, const std::string &dtype) {
  ImportOptions importOptions;
  importOptions.batch = args.batch;
  importOptions.seq = args.seq;
  CompileOptions compileOptions;
  compileOptions.dtype = *valueOf<ComputeType>(dtype);
  auto model = benchmarks::importAndCompile(args.config, importOptions, compileOptions);
  if (!model)
    return model.error();
  PlanSummary summary = summarizePlan(*model->plan);
  std::map<std::string, double> contractions = contractionFlops(summary);
  double flops = 0;
  for (const auto &[kernel, operations] : contractions)
    flops += operations;
  fmt::print("{}: {:.1f} million parameters, batch {}, sequence {}, {}, {} threads, arena {}\n",
             summary.model, static_cast<double>(summary.parameterElements) * 1e-6, args.batch,
             args.seq, dtype, args.threads, formatBytes(summary.arenaBytes));

  benchmarks::GemmRate gemm(kGemmSize, args.threads);
  benchmarks::CopyRate copy(args.threads);
  benchmarks::GemmRates before = gemm.measure(kGemmSamples);
  SessionOptions sessionOptions;
  sessionOptions.threadsPerDevice = args.threads;
  sessionOptions.profile = true;
  auto session = Session::create(model->plan, createCpuBackend(), sessionOptions);
  if (!session)
    return session.error();
  if (MaybeError error = (*session)->initializeStates(1))
    return error;
  Expected<Training> training = trainSteps(**session, args.steps, gemm, copy);
  if (!training)
    return training.error();
  benchmarks::GemmRates after = gemm.measure(kGemmSamples);

  double step = benchmarks::median(training->seconds), rate = flops / step;
  benchmarks::MachineRates rates = ratesOf(*training);
  fmt::print("\n{}\n", formatProfile(training->profile));
  fmt::print("limits: products {:.1f} GFLOP/s in f32, copies {:.2f} GB/s read and written\n{}\n",
             rates.flops * 1e-9, rates.bytes * 1e-9,
             benchmarks::formatLimits(training->profile, args.steps,
                                      benchmarks::bytesByKernel(*model->plan), contractions,
                                      rates));
  fmt::print("model operations of a step  {:9.1f} GFLOP (einsum and attention of the plan)\n",
             flops * 1e-9);
  fmt::print("median step                 {:9.1f} ms, {:.0f} tokens/s\n", step * 1e3,
             static_cast<double>(args.batch * args.seq) / step);
  fmt::print("training                    {:9.1f} GFLOP/s\n", rate * 1e-9);
  printGemm("dnnl_sgemm", before.sgemm, after.sgemm,
            ratioOf(*training, flops, &benchmarks::GemmRates::sgemm));
  printGemm("matmul primitive", before.matmul, after.matmul,
            ratioOf(*training, flops, &benchmarks::GemmRates::matmul));
  return std::nullopt;
}

static int runMain(int argc, char **argv) {
  CLI::App app("Trains GPT-2 on random tokens on one device, and compares its rate with sgemm.",
               "dtc-benchmark-train-gpt2");
  benchmarks::TrainingArguments args{dtc::test::sourcePath("examples/gpt2-124m/config.json"), 4,
                                     64};
  args.addTo(app, "Threads of the device, of sgemm and of copies");
  std::string dtype = "f32";
  app.add_option("--dtype", dtype, "The element type of the model's computations")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}))
      ->capture_default_str();
  if (auto status = parseCommandLine(app, argc, argv))
    return *status;
  if (MaybeError error = run(args, dtype))
    return fail(error->message);
  return 0;
}

int main(int argc, char **argv) { return runTool(runMain, argc, argv); }
