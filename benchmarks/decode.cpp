//===- decode.cpp - Time of a generated token -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Decodes tokens after prompts of several lengths, which take turns, and separates the time of
// attention, which has more to read the more there is before the token, from that of all else.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/ImportAndCompile.h"
#include "benchmarks/Median.h"
#include "plan/PlanTypes.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/executor/Session.h"
#include "test/lib/files/SourcePath.h"
#include "tools/CommandLine.h"

#include <chrono>
#include <fmt/format.h>

using namespace dtc;
using namespace dtc::runtime;

namespace {
struct Arguments {
  std::string config = dtc::test::sourcePath("examples/gpt2-124m/config.json");
  std::string dtype = "f32";
  int64_t batch = 1, seq = 1024, tokens = 16, tp = 1;
  int threads = 1;
};

/// Medians are over tokens.
struct Times {
  int64_t position = 0;
  std::vector<double> all, attention; // seconds of each token
};
} // namespace

static double attentionSeconds(const Session &session) {
  for (const ProfileEntry &entry : session.profile())
    if (entry.name == "cached_attention")
      return entry.seconds / static_cast<double>(session.numDevices());
  return 0;
}

/// Decodes one token of each sample, with `position` tokens before it.
static MaybeError decodeAt(Session &decode, int64_t position, Times *times) {
  for (const plan::Input *input : distinctInputs(decode.plan())) {
    HostTensor values(typeOf(*input));
    for (int64_t i = 0; i < values.type.numElements(); ++i)
      values.as<int32_t>()[i] = input->name() == "positions" ? static_cast<int32_t>(position) : 1;
    if (MaybeError error = decode.setInput(input->name(), std::move(values)))
      return error;
  }
  double before = attentionSeconds(decode);
  auto begin = std::chrono::steady_clock::now();
  if (MaybeError error = decode.step())
    return error;
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (times) {
    times->all.push_back(seconds.count());
    times->attention.push_back(attentionSeconds(decode) - before);
  }
  return std::nullopt;
}

static MaybeError run(const Arguments &args) {
  ImportOptions importOptions;
  importOptions.batch = args.batch;
  importOptions.seq = args.seq;
  CompileOptions options;
  options.mode = CompileMode::Generate;
  options.dtype = *valueOf<ComputeType>(args.dtype);
  if (args.tp > 1)
    options.mesh = {{"tp", args.tp}};
  auto model = benchmarks::importAndCompile(args.config, importOptions, options);
  if (!model)
    return model.error();
  SessionOptions sessionOptions;
  sessionOptions.profile = true;
  sessionOptions.threadsPerDevice = args.threads;
  auto session = Session::create(model->plan, createCpuBackend(), sessionOptions);
  if (!session)
    return session.error();
  if (MaybeError error = (*session)->initializeStates(1))
    return error;
  Session &decode = *(*session)->findEntry("decode");
  std::vector<Times> rows;
  for (int64_t position = 15; position < args.seq; position = position * 4 + 3)
    rows.push_back({position, {}, {}});
  if (rows.empty() || rows.back().position != args.seq - 1)
    rows.push_back({args.seq - 1, {}, {}});
  for (int64_t token = -2; token < args.tokens; ++token)
    for (Times &row : rows)
      if (MaybeError error = decodeAt(decode, row.position, token < 0 ? nullptr : &row))
        return error;
  fmt::print("{}, batch {}, {} device{} with {} thread{}, medians of {} tokens\n", args.config,
             args.batch, args.tp, args.tp == 1 ? "" : "s", args.threads,
             args.threads == 1 ? "" : "s", args.tokens);
  fmt::print("{:>14}{:>14}{:>14}{:>14}{:>22}\n", "tokens before", "ms a token", "attention",
             "the rest", "rest, of the shortest");
  double shortest = 0;
  for (const Times &row : rows) {
    std::vector<double> rest;
    for (size_t i = 0; i < row.all.size(); ++i)
      rest.push_back(row.all[i] - row.attention[i]);
    double middle = benchmarks::median(rest);
    if (shortest == 0)
      shortest = middle;
    fmt::print("{:>14}{:>14.3f}{:>14.3f}{:>14.3f}{:>22.3f}\n", row.position,
               1e3 * benchmarks::median(row.all), 1e3 * benchmarks::median(row.attention),
               1e3 * middle, middle / shortest);
  }
  return std::nullopt;
}

static int runMain(int argc, char **argv) {
  CLI::App app("Times the decoding of a token after prompts of several lengths.",
               "dtc-benchmark-decode");
  Arguments args;
  app.add_option("--config", args.config, "A Hugging Face configuration")->capture_default_str();
  app.add_option("--batch", args.batch)->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_option("--seq", args.seq, "The most tokens")
      ->check(CLI::Range(16, 1 << 20))
      ->capture_default_str();
  app.add_option("--tokens", args.tokens, "Tokens at each length")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--tp", args.tp, "Tensor parallel devices")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--threads", args.threads, "Of each device")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--dtype", args.dtype)
      ->check(CLI::IsMember({"f32", "bf16", "f16"}))
      ->capture_default_str();
  if (auto status = parseCommandLine(app, argc, argv))
    return *status;
  MaybeError error = run(args);
  return error ? fail(error->message) : 0;
}

int main(int argc, char **argv) { return runTool(runMain, argc, argv); }
