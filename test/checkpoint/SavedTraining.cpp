//===- SavedTraining.cpp - Small models whose training is saved -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/checkpoint/SavedTraining.h"

#include "plan/PlanReader.h"
#include "plan/PlanTypes.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/LoadCheckpoint.h"
#include "runtime/checkpoint/SavedStates.h"
#include "runtime/train/OpenSession.h"
#include "test/lib/plans/Expect.h"

#include <atomic>
#include <filesystem>
#include <gtest/gtest.h>
#include <random>
#include <sstream>

using namespace dtc;
using namespace dtc::test;
namespace fs = std::filesystem;

/// A text of bytes below kWords, where each byte often follows the one below it.
static std::string makeText(uint64_t seed, int size) {
  std::mt19937_64 random(seed);
  std::string text;
  for (int i = 0, word = 0; i < size; ++i) {
    word = random() % 4 ? (word + 1) % kWords : int(random() % kWords);
    text += char(word);
  }
  return text;
}

SavedTraining::SavedTraining() {
  options.planPath = dir.path("m.plan");
  options.dataPaths = {dir.write("text.txt", makeText(1, 1000))};
  options.metricsPath = dir.path("m.jsonl");
  options.savePath = dir.path("w.safetensors");
  options.checkpointPath = dir.path("ckpt");
  options.checkpointEvery = {3, 0};
  options.keepCheckpoints = 0;
  options.learningRate = 1e-2;
  options.seed = 7;
  options.threadsPerDevice = {1};
  dir.write("eval.txt", makeText(2, 300));
}

bool SavedTraining::compile(const SavedModel &model, const std::string &text) {
  Compiler compiler;
  ImportOptions import;
  import.lora = model.lora;
  auto module = compiler.importText(model.config, "config.json", model.batch, model.seq, import);
  EXPECT_TRUE(module) << compiler.diagnostics();
  if (!module)
    return false;
  if (model.isDouble)
    toDouble(*module);
  CompileOptions compileOptions = strategy(text);
  compileOptions.freeze = model.freeze;
  // AdamW divides by the root of the second moment: with this, less is made of gradients that are
  // all rounding.
  compileOptions.eps = 1e-4;
  if (model.change)
    model.change(compileOptions);
  std::shared_ptr<plan::Plan> plan = compiler.compileCopy(*module, compileOptions);
  EXPECT_TRUE(plan) << text << ": " << compiler.diagnostics();
  if (!plan)
    return false;
  MaybeError error = writePlan(*plan, options.planPath);
  EXPECT_OK(error);
  return !error;
}

namespace {

/// A file that asks a run to stop when a text appears in it.
struct WatchedFile {
  std::FILE *file;
  std::string text; // empty: none
  std::atomic<bool> stop = false;
  std::string written;

  static ssize_t write(void *self, const char *data, size_t size) {
    auto *watched = static_cast<WatchedFile *>(self);
    watched->written.append(data, size);
    if (!watched->text.empty() && watched->written.find(watched->text) != std::string::npos)
      watched->stop = true;
    return ssize_t(std::fwrite(data, 1, size, watched->file));
  }
};

} // namespace

static Expected<runtime::TrainResult> runWatched(const SavedTraining &training,
                                                 const std::string &text) {
  std::FILE *notes = std::fopen(training.dir.path("notes.log").c_str(), "w");
  WatchedFile watched{std::fopen(training.dir.path("out.log").c_str(), "w"), text};
  std::FILE *out = fopencookie(&watched, "w", {nullptr, &WatchedFile::write, nullptr, nullptr});
  auto result =
      runtime::train(training.options, runtime::createCpuBackend(), out, notes, watched.stop);
  for (std::FILE *file : {out, watched.file, notes})
    std::fclose(file);
  return result;
}

Expected<runtime::TrainResult> SavedTraining::run() { return runWatched(*this, ""); }

Expected<runtime::TrainResult> SavedTraining::runUntil(int64_t step) {
  return runWatched(*this, "step " + std::to_string(step) + "/");
}

std::vector<nlohmann::json> SavedTraining::metrics() const {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(dir.read("m.jsonl"));
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(nlohmann::json::parse(line));
    for (const char *clock : {"step_seconds", "tokens_per_second", "checkpoint_wait_seconds",
                              "checkpoint_copy_seconds"})
      lines.back().erase(clock);
  }
  return lines;
}

std::vector<double> SavedTraining::losses(int64_t first, int64_t last) const {
  std::vector<double> losses;
  for (const nlohmann::json &line : metrics())
    if (int64_t step = line["step"]; step >= first && step <= last)
      losses.push_back(line["loss"]);
  return losses;
}

Expected<runtime::Checkpoint> SavedTraining::checkpointOf(int64_t step) const {
  return runtime::Checkpoint::open(dir.path("ckpt/" + runtime::checkpointName(step)));
}

void SavedTraining::expectSameCheckpoint(const SavedTraining &other, int64_t step) const {
  auto own = checkpointOf(step), others = other.checkpointOf(step);
  ASSERT_OK(own);
  ASSERT_OK(others);
  ASSERT_OK(own->verify());
  const runtime::CheckpointManifest &a = own->manifest(), &b = others->manifest();
  ASSERT_EQ(a.files.size(), b.files.size());
  for (const runtime::CheckpointFile &file : a.files) {
    std::string name = "ckpt/" + runtime::checkpointName(step) + "/" + file.name;
    EXPECT_TRUE(dir.read(name) == other.dir.read(name)) << name << " has other bytes";
  }
  EXPECT_EQ(a.position.step, b.position.step);
  EXPECT_EQ(a.position.skippedInARow, b.position.skippedInARow);
  EXPECT_EQ(a.position.lastFiniteStep, b.position.lastFiniteStep);
  EXPECT_EQ(a.position.nextBatch, b.position.nextBatch);
}

/// The tensor in another type of floats.
static HostTensor rounded(const HostTensor &tensor, DType dtype) {
  HostTensor result(TensorType{dtype, tensor.type.shape});
  for (int64_t i = 0, n = tensor.type.numElements(); i < n; ++i)
    setElement(result, i, elementAt(tensor, i));
  return result;
}

void SavedTraining::expectLoadedAsSaved(int64_t step) {
  auto checkpoint = checkpointOf(step);
  ASSERT_OK(checkpoint);
  auto plan = readPlan(options.planPath);
  ASSERT_OK(plan);
  auto opened = runtime::openSession(*plan, runtime::createCpuBackend(), options);
  ASSERT_OK(opened);
  runtime::Session &session = **opened;
  // Values that the checkpoint does not have.
  ASSERT_OK(session.initializeStates(options.seed + 1));
  auto notes = runtime::loadCheckpoint(session, *checkpoint, /*allowModelChange=*/false);
  ASSERT_OK(notes);
  EXPECT_TRUE(notes->empty()) << notes->front();
  std::map<std::string, runtime::SavedState> states = runtime::savedStatesOf(**plan);
  EXPECT_EQ(states.size(), checkpoint->manifest().tensors.size());
  for (const auto &[name, saved] : states) {
    auto tensor = checkpoint->read(name);
    ASSERT_OK(tensor);
    for (const plan::State *state : {saved.state, saved.rounded}) {
      if (!state)
        continue;
      auto value = session.getState(state->name());
      ASSERT_OK(value);
      if (value->type.dtype != tensor->type.dtype)
        *tensor = rounded(*tensor, value->type.dtype);
      EXPECT_EQ(value->type, tensor->type) << state->name();
      EXPECT_TRUE(value->bytes == tensor->bytes)
          << state->name() << ": relative difference " << relativeDifference(*tensor, *value);
    }
  }
}

void SavedTraining::copyFrom(const SavedTraining &other) {
  fs::copy(other.dir.path("ckpt"), dir.path("ckpt"), fs::copy_options::recursive);
  fs::copy_file(other.dir.path("m.jsonl"), dir.path("m.jsonl"));
}
