//===- CheckpointSaverTest.cpp - Tests of asynchronous checkpoints --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/CheckpointSaver.h"

#include "runtime/checkpoint/PositionedFile.h"
#include "test/lib/fabrics/ThreadMessages.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/TempDir.h"
#include "test/lib/plans/TestPlans.h"

#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits>
#include <sys/resource.h>
#include <thread>

namespace checkpointSaverTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

class Saver : public ::testing::Test {
protected:
  Saver() {
    auto opened = CheckpointFolder::open(dir.path("ckpt"));
    EXPECT_OK(opened);
    folder.emplace(std::move(*opened));
  }

  static std::unique_ptr<Session> open(const TrainingStrategy &layout) {
    auto session = Session::create(trainingPlan(layout), createFakeBackend());
    EXPECT_OK(session);
    EXPECT_OK((*session)->initializeStates(7));
    return std::move(*session);
  }

  MaybeError save(CheckpointSaver &saver, int64_t step) {
    if (auto wait = saver.copy(); !wait)
      return wait.error();
    CheckpointManifest manifest;
    manifest.position.step = step;
    saver.write(std::move(manifest));
    return std::nullopt;
  }

  TempDir dir;
  std::optional<CheckpointFolder> folder;
};

} // namespace

TEST_F(Saver, WritesTheStatesOfAnyLayoutToTheSameFiles) {
  std::map<std::string, std::string> first;
  int64_t step = 0;
  for (const TrainingStrategy &layout :
       {TrainingStrategy{1, 1, 1}, {2, 1, 1}, {1, 2, 2}, {2, 4, 2}, {4, 2, 1}}) {
    auto session = open(layout);
    auto saver = CheckpointSaver::create(*session, *folder, 0);
    ASSERT_OK(saver);
    uint64_t states = 2 * 64 * sizeof(float) + 2 * sizeof(int32_t);
    EXPECT_GE(CheckpointSaver::copyBytes(session->plan()), states);
    EXPECT_LT(CheckpointSaver::copyBytes(session->plan()), states + PositionedFile::kBlockBytes);
    // The header of the only file is shorter than a block, and the copy has its place.
    EXPECT_EQ(CheckpointSaver::copyBytes(session->plan()), (*saver)->fileBytes());
    ASSERT_OK(save(**saver, ++step));
    ASSERT_OK((*saver)->finish());
    EXPECT_EQ((*saver)->lastStep(), step);
    auto checkpoint = Checkpoint::open(folder->pathOf(step));
    ASSERT_OK(checkpoint);
    EXPECT_OK(checkpoint->verify());
    EXPECT_EQ(checkpoint->manifest().tensors.at("w").type, (TensorType{DType::F32, {64}}));
    EXPECT_EQ(checkpoint->manifest().tensors.at("w.momentum").parameter, "w");
    EXPECT_EQ(checkpoint->manifest().model, "a square");
    EXPECT_EQ(checkpoint->read("w")->bytes, session->getState("w")->bytes);
    std::string name = "ckpt/" + checkpointName(step) + "/state-00001-of-00001.safetensors";
    EXPECT_EQ(first.try_emplace("file", dir.read(name)).first->second, dir.read(name));
  }
}

TEST_F(Saver, SavesWhatWasCopiedAndKeepsTheNewest) {
  auto session = open({2, 2, 1});
  auto saver = CheckpointSaver::create(*session, *folder, 2);
  ASSERT_OK(saver);
  for (int64_t step : {1, 2, 3}) {
    HostTensor value(TensorType{DType::F32, {64}});
    std::fill_n(value.as<float>(), 64, float(step));
    ASSERT_OK(session->setState("w", value));
    ASSERT_OK(save(**saver, step));
    // The copy is what is written, whatever becomes of the states.
    std::fill_n(value.as<float>(), 64, -1.0f);
    ASSERT_OK(session->setState("w", value));
  }
  ASSERT_OK((*saver)->finish());
  EXPECT_EQ(*checkpointSteps(folder->path()), (std::vector<int64_t>{2, 3}));
  for (int64_t step : {2, 3}) {
    auto value = Checkpoint::open(folder->pathOf(step))->read("w");
    ASSERT_OK(value);
    for (int64_t i = 0; i < 64; ++i)
      EXPECT_EQ(value->as<float>()[i], float(step));
  }
}

TEST_F(Saver, AFullDiskIsAnErrorThatLeavesTheOthers) {
  auto session = open({2, 2, 1});
  auto saver = CheckpointSaver::create(*session, *folder, 1);
  ASSERT_OK(saver);
  ASSERT_OK(save(**saver, 1));
  ASSERT_OK((*saver)->finish());
  signal(SIGXFSZ, SIG_IGN);
  rlimit before, small;
  getrlimit(RLIMIT_FSIZE, &before);
  small = before;
  small.rlim_cur = 100;
  setrlimit(RLIMIT_FSIZE, &small);
  MaybeError error = save(**saver, 2);
  MaybeError finished = (*saver)->finish();
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_OK(error);
  EXPECT_ERROR(finished, "the checkpoint of step 2 is not complete: ");
  EXPECT_ERROR(finished, "there is no room for its");
  EXPECT_TRUE((*saver)->hasFailed());
  EXPECT_EQ((*saver)->lastStep(), 1);
  // And nothing more is saved.
  EXPECT_ERROR(save(**saver, 3), "the checkpoint of step 2 is not complete");
  EXPECT_EQ(*checkpointSteps(folder->path()), std::vector<int64_t>{1});
  // The room is free again.
  EXPECT_FALSE(std::filesystem::exists(folder->temporaryPath(2)));
}

TEST_F(Saver, WeightsThatAreNotFiniteReplaceNothing) {
  for (int64_t keep : {1, 2})
    for (float value :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      std::filesystem::remove_all(folder->pathOf(1));
      auto session = open({2, 2, 1});
      auto saver = CheckpointSaver::create(*session, *folder, keep);
      ASSERT_OK(saver);
      ASSERT_OK(save(**saver, 1));
      HostTensor w(TensorType{DType::F32, {64}});
      w.as<float>()[63] = value;
      ASSERT_OK(session->setState("w", w));
      ASSERT_OK(save(**saver, 2));
      EXPECT_ERROR((*saver)->finish(),
                   fmt::format("the checkpoint of step 2 is not complete: parameter \"w\" has {}: "
                               "weights that are not finite are not saved; lower the learning rate",
                               std::isnan(value) ? "nan" : "-inf"));
      EXPECT_TRUE((*saver)->hasFailed());
      EXPECT_EQ(*checkpointSteps(folder->path()), std::vector<int64_t>{1});
      EXPECT_OK(Checkpoint::open(folder->pathOf(1))->verify());
      EXPECT_FALSE(std::filesystem::exists(folder->temporaryPath(2)));
    }
}

TEST_F(Saver, OptimizerStateNeedNotBeFinite) {
  auto session = open({1, 1, 1});
  auto saver = CheckpointSaver::create(*session, *folder, 1);
  ASSERT_OK(saver);
  HostTensor momentum(TensorType{DType::F32, {16, 4}});
  momentum.as<float>()[0] = std::numeric_limits<float>::infinity();
  ASSERT_OK(session->setState("w.momentum", momentum));
  ASSERT_OK(save(**saver, 1));
  EXPECT_OK((*saver)->finish());
}

/// Each of two processes has a half of the parameter.
TEST_F(Saver, AllProcessesNameTheErrorOfTheOne) {
  for (int64_t bad : {0, 1}) {
    auto messages = openThreadMessages(2);
    std::vector<std::string> errors(2);
    std::vector<std::jthread> threads;
    for (int64_t process : {0, 1})
      threads.emplace_back([&, process] {
        Processes processes(messages[size_t(process)], HostSharing::Messages);
        CheckpointFolder own = CheckpointFolder::follow(folder->path());
        SessionOptions options;
        options.openFabric = [&](const Mesh &mesh) { return processes.openFabric(mesh); };
        auto session = Session::create(trainingPlan({1, 2, 1}), createFakeBackend(), options);
        ASSERT_OK(session);
        ASSERT_OK((*session)->initializeStates(7));
        auto saver = CheckpointSaver::create(**session, own, 0, processes);
        ASSERT_OK(saver);
        int64_t step = 1 + 2 * bad;
        ASSERT_OK(save(**saver, step));
        ASSERT_OK((*saver)->finish());
        HostTensor w(TensorType{DType::F32, {64}});
        w.as<float>()[63 * bad] = std::numeric_limits<float>::quiet_NaN();
        ASSERT_OK((*session)->setState("w", w));
        ASSERT_OK(save(**saver, step + 1));
        errors[size_t(process)] = messageOf((*saver)->finish());
      });
    threads.clear();
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_TRUE(contains(errors[0], fmt::format("of step {} is not complete: process {}: parameter "
                                                "\"w\" has nan: ",
                                                2 + 2 * bad, bad)))
        << errors[0];
    EXPECT_FALSE(std::filesystem::exists(folder->temporaryPath(2 + 2 * bad)));
  }
  EXPECT_EQ(*checkpointSteps(folder->path()), (std::vector<int64_t>{1, 3}));
}

} // namespace checkpointSaverTest
