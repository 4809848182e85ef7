//===- WeightsTest.cpp - Tests of reading and writing parameters ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Weights.h"

#include "runtime/data/Safetensors.h"
#include "runtime/train/SavedWeights.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/FakeBackend.h"
#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TempDir.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits>

namespace weightsTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

namespace {

/// A session whose parameters have these names, f32[2,3] each, and one slot of an optimizer. The
/// parameters have shards on `devices` devices, with padding if there are not 1 or 3 of them.
std::unique_ptr<Session> sessionWith(const std::vector<std::string> &names, int64_t devices = 3) {
  PlanBuilder builder;
  builder.axis("a", devices);
  for (const std::string &name : names)
    builder.state(name, DType::F32, {2, 3}, {{}, {"a"}});
  dtc::plan::State &slot = builder.state("slot", DType::F32, {4}, {{}});
  slot.set_parameter(names.front());
  slot.set_kind(dtc::plan::State::OPTIMIZER);
  auto session = Session::create(builder.build(), createFakeBackend());
  EXPECT_OK(session);
  return std::move(*session);
}

HostTensor filled(float value, const Shape &shape = {2, 3}) {
  HostTensor tensor(TensorType{DType::F32, shape});
  for (int64_t i = 0; i < tensor.type.numElements(); ++i)
    tensor.as<float>()[i] = value + static_cast<float>(i);
  return tensor;
}

class Weights : public ::testing::Test {
protected:
  std::string file(const std::map<std::string, HostTensor> &tensors) {
    EXPECT_OK(writeSafetensors(dir.path("w.safetensors"), tensors));
    return dir.path("w.safetensors");
  }
  static float first(const Session &session, const std::string &name) {
    return *session.getState(name)->as<float>();
  }

  TempDir dir;
};

} // namespace

TEST_F(Weights, ComeBackAsTheyWereSaved) {
  auto session = sessionWith({"u", "v"});
  ASSERT_OK(session->setState("u", filled(1)));
  ASSERT_OK(session->setState("v", filled(10)));
  ASSERT_OK(saveWeights(*session, dir.path("out.safetensors")));
  auto saved = SafetensorsFile::open(dir.path("out.safetensors"));
  ASSERT_OK(saved);
  EXPECT_EQ(saved->tensors().size(), 2u); // parameters, no optimizer state
  auto other = sessionWith({"u", "v"});
  auto notes = loadWeights(*other, dir.path("out.safetensors"));
  ASSERT_OK(notes);
  EXPECT_TRUE(notes->empty());
  EXPECT_EQ(other->getState("u")->bytes, filled(1).bytes);
  EXPECT_EQ(other->getState("v")->bytes, filled(10).bytes);
}

TEST_F(Weights, FilesDoNotDependOnTheMesh) {
  for (int64_t devices : {1, 2, 3, 4, 5}) {
    auto session = sessionWith({"u", "v"}, devices);
    ASSERT_OK(loadWeights(*session, file({{"u", filled(1)}, {"v", filled(10)}})));
    EXPECT_EQ(session->getState("v")->bytes, filled(10).bytes);
    ASSERT_OK(saveWeights(*session, dir.path("out.safetensors")));
    auto other = sessionWith({"u", "v"}, 6 - devices);
    ASSERT_OK(loadWeights(*other, dir.path("out.safetensors")));
    EXPECT_EQ(other->getState("u")->bytes, filled(1).bytes);
    EXPECT_EQ(other->getState("v")->bytes, filled(10).bytes);
  }
}

TEST_F(Weights, SayWhatIsMissingOrOfAnotherShape) {
  auto session = sessionWith({"u", "v"});
  EXPECT_ERROR(loadWeights(*session, file({{"u", filled(1)}})),
               "w.safetensors: has no tensor \"v\" (expected f32[2,3])");
  EXPECT_ERROR(loadWeights(*session, file({{"u", filled(1)}, {"v", filled(1, {3, 2})}})),
               "tensor \"v\" is F32[3, 2], but the parameter \"v\" is f32[2,3]");
  EXPECT_EQ(first(*session, "u"), 0); // nothing was changed
  HostTensor ints(TensorType{DType::I32, {2, 3}});
  EXPECT_ERROR(loadWeights(*session, file({{"u", ints}, {"v", ints}})),
               "elements of type I32 cannot be read as f32");
}

TEST_F(Weights, NoteTensorsThatWereNotUsed) {
  auto session = sessionWith({"u"});
  auto notes =
      loadWeights(*session, file({{"u", filled(1)}, {"x", filled(1)}, {"y", filled(1, {1})}}));
  ASSERT_OK(notes);
  ASSERT_EQ(notes->size(), 1u);
  EXPECT_TRUE(contains((*notes)[0], "2 tensors are not parameters of the model"));
  EXPECT_TRUE(contains((*notes)[0], "x, y"));
}

TEST_F(Weights, APrefixMayLackOrBeThere) {
  auto lacks = sessionWith({"transformer.wte.weight", "model.norm.weight"});
  auto notes = loadWeights(*lacks, file({{"wte.weight", filled(3)}, {"norm.weight", filled(4)}}));
  ASSERT_OK(notes);
  EXPECT_TRUE(contains(notes->at(0), "transformer.wte.weight from wte.weight"));
  EXPECT_EQ(first(*lacks, "transformer.wte.weight"), 3);
  EXPECT_EQ(first(*lacks, "model.norm.weight"), 4);
  auto has = sessionWith({"wte.weight"});
  ASSERT_OK(loadWeights(*has, file({{"transformer.wte.weight", filled(5)}})));
  EXPECT_EQ(first(*has, "wte.weight"), 5);
}

TEST_F(Weights, NormsMayHaveTheirFirstNames) {
  auto session = sessionWith({"bert.LayerNorm.weight", "bert.LayerNorm.bias"});
  ASSERT_OK(loadWeights(
      *session, file({{"bert.LayerNorm.gamma", filled(3)}, {"bert.LayerNorm.beta", filled(4)}})));
  EXPECT_EQ(first(*session, "bert.LayerNorm.weight"), 3);
  EXPECT_EQ(first(*session, "bert.LayerNorm.bias"), 4);
}

TEST_F(Weights, TheExactNameWinsAndTwoOthersAreRefused) {
  auto session = sessionWith({"u"});
  ASSERT_OK(loadWeights(*session, file({{"u", filled(1)}, {"model.u", filled(2)}})));
  EXPECT_EQ(first(*session, "u"), 1);
  EXPECT_ERROR(loadWeights(*session, file({{"transformer.u", filled(1)}, {"model.u", filled(2)}})),
               "has no tensor \"u\", and more than one that could be it: transformer.u, model.u");
  // A tensor that is another parameter is not taken for this one.
  auto both = sessionWith({"u", "model.u"});
  EXPECT_ERROR(loadWeights(*both, file({{"u", filled(1)}})), "has no tensor \"model.u\"");
}

TEST_F(Weights, TheOutputProjectionMayBeTiedToTheEmbedding) {
  auto session = sessionWith({"transformer.wte.weight", "lm_head.weight"});
  auto notes = loadWeights(*session, file({{"wte.weight", filled(6)}}));
  ASSERT_OK(notes);
  EXPECT_EQ(first(*session, "lm_head.weight"), 6);
  EXPECT_TRUE(contains(notes->at(0), "lm_head.weight from wte.weight"));
}

TEST_F(Weights, TheLastFileThatHasATensorHolds) {
  auto session = sessionWith({"u", "v", "lm_head.weight"});
  std::string first = dir.path("first.safetensors"), second = dir.path("second.safetensors");
  ASSERT_OK(
      writeSafetensors(first, {{"u", filled(1)}, {"lm_head.weight", filled(2)}, {"x", filled(3)}}));
  // An embedding stands in for an output projection only where no file has one.
  ASSERT_OK(writeSafetensors(
      second, {{"u", filled(4)}, {"model.v", filled(5)}, {"wte.weight", filled(6)}}));
  auto notes = loadWeights(*session, {first, second});
  ASSERT_OK(notes);
  EXPECT_EQ(Weights::first(*session, "u"), 4);
  EXPECT_EQ(Weights::first(*session, "v"), 5);
  EXPECT_EQ(Weights::first(*session, "lm_head.weight"), 2);
  ASSERT_EQ(notes->size(), 2u);
  EXPECT_TRUE(contains((*notes)[0], "first.safetensors: 1 tensors are not parameters"));
  EXPECT_TRUE(contains((*notes)[1], "second.safetensors: 1 parameters have other names"));
  ASSERT_OK(loadWeights(*session, {second, first}));
  EXPECT_EQ(Weights::first(*session, "u"), 1);
  EXPECT_ERROR(loadWeights(*session, {first, first}),
               "first.safetensors, " + first + ": have no tensor \"v\" (expected f32[2,3])");
  EXPECT_ERROR(loadWeights(*session, {first, dir.path("none.safetensors")}), "none.safetensors");
}

TEST_F(Weights, AdaptersMayLackTogether) {
  const std::string a = "base_model.model.u.lora_A.weight", b = "base_model.model.u.lora_B.weight";
  auto session = sessionWith({"u", a, b});
  ASSERT_OK(session->setState(a, filled(7)));
  auto notes = loadWeights(*session, file({{"u", filled(1)}}));
  ASSERT_OK(notes);
  ASSERT_EQ(notes->size(), 1u);
  EXPECT_TRUE(contains((*notes)[0], "without adapters; the 2 of the model keep their initial"));
  EXPECT_EQ(first(*session, a), 7);
  EXPECT_EQ(first(*session, "u"), 1);
  EXPECT_ERROR(loadWeights(*session, file({{"u", filled(2)}, {b, filled(3)}})),
               "has no tensor \"" + a + "\", but other adapters; 1 of 2 adapters are missing");
  EXPECT_EQ(first(*session, "u"), 1); // nothing was changed
  EXPECT_ERROR(loadWeights(*session, file({{a, filled(2)}, {b, filled(3)}})),
               "has no tensor \"u\"");
}

TEST_F(Weights, AdaptersMayBeSavedAlone) {
  const std::string name = "base_model.model.u.lora_A.weight";
  auto session = sessionWith({"u", name});
  ASSERT_OK(session->setState(name, filled(10)));
  ASSERT_OK(saveWeights(*session, dir.path("out.safetensors"), SavedContent::Adapters));
  auto saved = SafetensorsFile::open(dir.path("out.safetensors"));
  ASSERT_OK(saved);
  ASSERT_EQ(saved->tensors().size(), 1u);
  EXPECT_EQ(saved->read(name, DType::F32)->bytes, filled(10).bytes);
}

/// A session with the weight "u.weight", f32[2,3] or its transpose, and its adapter of rank 2.
static std::unique_ptr<Session> sessionWithAdapter(bool isTransposed) {
  PlanBuilder builder;
  builder.axis("a", 2);
  Shape weight = isTransposed ? Shape{3, 2} : Shape{2, 3};
  builder.state("u.weight", DType::F32, weight, {{}, {}});
  builder.state("base_model.model.u.lora_A.weight", DType::F32, {2, 3}, {{}, {}});
  builder.state("base_model.model.u.lora_B.weight", DType::F32, {2, 2}, {{"a"}, {}});
  builder.state("v", DType::F32, {1}, {{}});
  auto plan = builder.build();
  plan->mutable_lora()->set_rank(2);
  plan->mutable_lora()->set_alpha(1);
  auto session = Session::create(plan, createFakeBackend());
  EXPECT_OK(session);
  EXPECT_OK((*session)->setState("u.weight", filled(10, weight)));
  EXPECT_OK((*session)->setState("base_model.model.u.lora_A.weight", filled(1)));
  EXPECT_OK((*session)->setState("base_model.model.u.lora_B.weight", filled(2, {2, 2})));
  return std::move(*session);
}

/// u + 1/2 [[2, 3], [4, 5]] [[1, 2, 3], [4, 5, 6]].
TEST_F(Weights, AdaptersMayBeMerged) {
  for (bool isTransposed : {false, true}) {
    auto session = sessionWithAdapter(isTransposed);
    ASSERT_FALSE(SavedWeights::checkMerging(session->plan()));
    ASSERT_OK(saveWeights(*session, dir.path("out.safetensors"), SavedContent::Merged));
    auto saved = SafetensorsFile::open(dir.path("out.safetensors"));
    ASSERT_OK(saved);
    EXPECT_EQ(saved->tensors().size(), 2u);
    auto tensor = saved->read("u.weight", DType::F32);
    ASSERT_OK(tensor);
    std::vector<float> expected = isTransposed ? std::vector<float>{17, 23, 21.5, 29.5, 26, 36}
                                               : std::vector<float>{17, 20.5, 24, 25, 30.5, 36};
    EXPECT_EQ(std::vector<float>(tensor->as<float>(), tensor->as<float>() + 6), expected);
  }
}

TEST_F(Weights, OnlyAdaptersWithAWeightAreMerged) {
  EXPECT_TRUE(contains(SavedWeights::checkMerging(sessionWith({"u"})->plan())->message,
                       "the plan has no adapters; import the model with --lora"));
  EXPECT_TRUE(contains(
      SavedWeights::checkMerging(sessionWith({"base_model.model.lm_head.lora_A.weight"})->plan())
          ->message,
      "the adapter \"base_model.model.lm_head.lora_A.weight\" has no weight "
      "\"lm_head.weight\" to be added to"));
}

/// A session whose parameters are rows 2 to 4 of "t", f32[5,3], and rows 0 and 1.
static std::unique_ptr<Session> sessionOfParts(DType second = DType::F32) {
  PlanBuilder builder;
  builder.axis("a", 2);
  builder.state("t[2:5]", second, {3, 3}, {{"a"}, {}});
  builder.state("t[0:2]", DType::F32, {2, 3}, {{}, {"a"}});
  auto session = Session::create(builder.build(), createFakeBackend());
  EXPECT_OK(session);
  return std::move(*session);
}

TEST_F(Weights, RowsOfATensorAreReadAndWrittenAsTheTensor) {
  for (DType second : {DType::F32, DType::F16}) {
    auto session = sessionOfParts(second);
    auto notes = loadWeights(*session, file({{"t", filled(10, {5, 3})}}));
    ASSERT_OK(notes);
    EXPECT_TRUE(notes->empty());
    std::vector<double> values;
    for (const char *name : {"t[0:2]", "t[2:5]"})
      for (int64_t i = 0; i < session->getState(name)->type.numElements(); ++i)
        values.push_back(elementAt(*session->getState(name), i));
    EXPECT_EQ(values,
              (std::vector<double>{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}));
    ASSERT_OK(saveWeights(*session, dir.path("out.safetensors")));
    auto saved = SafetensorsFile::open(dir.path("out.safetensors"));
    ASSERT_OK(saved);
    ASSERT_EQ(saved->tensors().size(), 1u);
    EXPECT_EQ(saved->tensors().at("t").str(), "F32[5, 3]");
    auto tensor = saved->read("t", DType::F32);
    ASSERT_OK(tensor);
    EXPECT_EQ(tensor->bytes, filled(10, {5, 3}).bytes);
  }
}

TEST_F(Weights, PartsAlongTheSecondDimensionAreReadAndWrittenAsTheTensor) {
  for (DType second : {DType::F32, DType::F16}) {
    PlanBuilder builder;
    builder.axis("a", 2);
    builder.state("t[:,1:3]", second, {2, 2, 2}, {{"a"}, {}, {}});
    builder.state("t[:,0:1]", DType::F32, {2, 1, 2}, {{}, {}, {"a"}});
    auto session = Session::create(builder.build(), createFakeBackend());
    ASSERT_OK(session);
    ASSERT_OK(loadWeights(**session, file({{"t", filled(10, {2, 3, 2})}})));
    auto valuesOf = [&](const char *name) {
      auto state = (*session)->getState(name);
      EXPECT_OK(state);
      std::vector<double> values;
      for (int64_t i = 0; i < state->type.numElements(); ++i)
        values.push_back(elementAt(*state, i));
      return values;
    };
    EXPECT_EQ(valuesOf("t[:,0:1]"), (std::vector<double>{10, 11, 16, 17}));
    EXPECT_EQ(valuesOf("t[:,1:3]"), (std::vector<double>{12, 13, 14, 15, 18, 19, 20, 21}));
    ASSERT_OK(saveWeights(**session, dir.path("out.safetensors")));
    auto saved = SafetensorsFile::open(dir.path("out.safetensors"));
    ASSERT_OK(saved);
    EXPECT_EQ(saved->tensors().at("t").str(), "F32[2, 3, 2]");
    auto tensor = saved->read("t", DType::F32);
    ASSERT_OK(tensor);
    EXPECT_EQ(tensor->bytes, filled(10, {2, 3, 2}).bytes);
  }
}

TEST_F(Weights, AMissingTensorIsNamedForItsRows) {
  auto session = sessionOfParts();
  EXPECT_ERROR(loadWeights(*session, file({{"u", filled(1)}})),
               "has no tensor \"t\" (expected f32[5,3])");
  EXPECT_ERROR(loadWeights(*session, file({{"t", filled(1)}})),
               "tensor \"t\" is F32[2, 3], but the parameter \"t\" is f32[5,3]");
}

//===----------------------------------------------------------------------===//
// Stacks: a tensor for each expert
//===----------------------------------------------------------------------===//

/// A session with the parameters "m.e[0:3].w" of two layers and "m.e[0:3].v" of the first, each
/// f32[3,2,2], and "u", f32[2,3]. With `isMixed`, parameters are f16 and the stacks have master
/// weights in f32. The stacks have shards on `devices` devices, with padding if there are not 1 or
/// 3 of them.
static std::unique_ptr<Session> sessionOfStacks(int64_t devices = 2, bool isMixed = false) {
  PlanBuilder builder;
  builder.axis("a", devices);
  for (const char *name : {"m.0.e[0:3].w", "m.0.e[0:3].v", "m.1.e[0:3].w"}) {
    builder.state(name, isMixed ? DType::F16 : DType::F32, {3, 2, 2}, {{"a"}, {}, {}});
    if (isMixed) {
      dtc::plan::State &master =
          builder.state(std::string(name) + ".master", DType::F32, {3, 2, 2}, {{}, {"a"}, {}});
      master.set_parameter(name);
      master.set_kind(dtc::plan::State::MASTER_WEIGHTS);
    }
  }
  builder.state("u", DType::F32, {2, 3}, {{}, {"a"}});
  auto session = Session::create(builder.build(), createFakeBackend());
  EXPECT_OK(session);
  return std::move(*session);
}

/// The tensors of a file for it; the values tell the experts, layers and tensors apart.
static std::map<std::string, HostTensor> tensorsOfStacks() {
  std::map<std::string, HostTensor> tensors = {{"u", filled(1)}};
  float value = 0;
  for (const char *layer : {"m.0.e.", "m.1.e."})
    for (const char *expert : {"0", "1", "2"})
      tensors.emplace(std::string(layer) + expert + ".w", filled(value += 10, {2, 2}));
  for (const char *expert : {"0", "1", "2"})
    tensors.emplace(std::string("m.0.e.") + expert + ".v", filled(value += 10, {2, 2}));
  return tensors;
}

static std::vector<double> elementsOf(const Session &session, const std::string &name) {
  std::vector<double> values;
  Expected<HostTensor> tensor = session.getState(name);
  for (int64_t i = 0; i < tensor->type.numElements(); ++i)
    values.push_back(elementAt(*tensor, i));
  return values;
}

TEST_F(Weights, AStackIsReadFromATensorForEachElement) {
  for (int64_t devices : {1, 2, 3, 4}) {
    auto session = sessionOfStacks(devices);
    auto notes = loadWeights(*session, file(tensorsOfStacks()));
    ASSERT_OK(notes);
    EXPECT_TRUE(notes->empty());
    EXPECT_EQ(elementsOf(*session, "m.0.e[0:3].w"),
              (std::vector<double>{10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33}));
    EXPECT_EQ(elementsOf(*session, "m.1.e[0:3].w"),
              (std::vector<double>{40, 41, 42, 43, 50, 51, 52, 53, 60, 61, 62, 63}));
    EXPECT_EQ(elementsOf(*session, "m.0.e[0:3].v"),
              (std::vector<double>{70, 71, 72, 73, 80, 81, 82, 83, 90, 91, 92, 93}));
    EXPECT_EQ(session->getState("u")->bytes, filled(1).bytes);
  }
}

TEST_F(Weights, AStackIsWrittenAsATensorForEachElement) {
  std::map<std::string, HostTensor> tensors = tensorsOfStacks();
  for (int64_t devices : {1, 2, 4}) {
    auto session = sessionOfStacks(devices);
    ASSERT_OK(loadWeights(*session, file(tensors)));
    ASSERT_OK(saveWeights(*session, dir.path("out.safetensors")));
    auto saved = SafetensorsFile::open(dir.path("out.safetensors"));
    ASSERT_OK(saved);
    EXPECT_EQ(saved->tensors().size(), tensors.size());
    for (const auto &[name, tensor] : tensors) {
      auto read = saved->read(name, DType::F32);
      ASSERT_OK(read);
      EXPECT_EQ(read->type, tensor.type) << name;
      EXPECT_EQ(read->bytes, tensor.bytes) << name;
    }
  }
}

TEST_F(Weights, AStackIsGatheredAnewForEachFile) {
  auto session = sessionWith({"e[0:2].w"}, 2);
  ASSERT_OK(session->setState("e[0:2].w", filled(1)));
  SavedWeights weights(session->plan());
  EXPECT_FALSE(weights.findNonfinite(*session)->has_value());
  HostTensor changed = filled(1);
  changed.as<float>()[5] = std::numeric_limits<float>::infinity();
  ASSERT_OK(session->setState("e[0:2].w", changed));
  EXPECT_EQ(weights.findNonfinite(*session)->value_or(""), "tensor \"e.1.w\" has inf at element 2");
}

TEST_F(Weights, SayWhatIsMissingOfAStack) {
  auto session = sessionOfStacks();
  std::map<std::string, HostTensor> tensors = tensorsOfStacks(), changed = tensors;
  changed.erase("m.1.e.2.w");
  EXPECT_ERROR(loadWeights(*session, file(changed)),
               "w.safetensors: has no tensor \"m.1.e.2.w\" (expected f32[2,2])");
  changed = tensors;
  changed.insert_or_assign("m.0.e.1.v", filled(1, {2, 3}));
  EXPECT_ERROR(loadWeights(*session, file(changed)),
               "tensor \"m.0.e.1.v\" is F32[2, 3], but the parameter \"m.0.e.1.v\" is "
               "f32[2,2]");
  changed = tensors;
  changed.insert_or_assign("m.0.e.0.w", filled(1, {3, 2, 2}));
  EXPECT_ERROR(loadWeights(*session, file(changed)), "tensor \"m.0.e.0.w\" is F32[3, 2, 2]");
  changed = tensors;
  changed.insert_or_assign("m.0.e.2.w", HostTensor(TensorType{DType::I32, {2, 2}}));
  EXPECT_ERROR(loadWeights(*session, file(changed)), "elements of type I32 cannot be read as f32");
  // A file with the stack as one tensor is of another program.
  changed = {{"u", filled(1)},
             {"m.0.e[0:3].w", filled(1, {3, 2, 2})},
             {"m.0.e[0:3].v", filled(1, {3, 2, 2})},
             {"m.1.e[0:3].w", filled(1, {3, 2, 2})}};
  EXPECT_ERROR(loadWeights(*session, file(changed)), "has no tensor \"m.0.e.0.w\"");
  EXPECT_EQ(elementsOf(*session, "m.1.e[0:3].w"), std::vector<double>(12)); // nothing was changed
  changed = tensors;
  changed.emplace("m.0.e.3.w", filled(1, {2, 2}));
  auto notes = loadWeights(*session, file(changed));
  ASSERT_OK(notes);
  ASSERT_EQ(notes->size(), 1u);
  EXPECT_TRUE(contains((*notes)[0], "1 tensors are not parameters of the model"));
  EXPECT_TRUE(contains((*notes)[0], "m.0.e.3.w"));
}

TEST_F(Weights, TheTensorsOfAStackMayBeInSeveralFilesAndHaveAPrefix) {
  auto session = sessionOfStacks();
  std::map<std::string, HostTensor> tensors = tensorsOfStacks(), second;
  second.insert(tensors.extract("m.0.e.1.w"));
  second.emplace("m.1.e.0.w", filled(500, {2, 2}));
  ASSERT_OK(writeSafetensors(dir.path("second.safetensors"), second));
  ASSERT_OK(loadWeights(*session, {file(tensors), dir.path("second.safetensors")}));
  EXPECT_EQ(elementsOf(*session, "m.0.e[0:3].w"),
            (std::vector<double>{10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33}));
  // The last file that has a tensor holds.
  EXPECT_EQ(elementsOf(*session, "m.1.e[0:3].w"),
            (std::vector<double>{500, 501, 502, 503, 50, 51, 52, 53, 60, 61, 62, 63}));

  std::map<std::string, HostTensor> prefixed;
  for (const auto &[name, tensor] : tensorsOfStacks())
    prefixed.emplace("model." + name, tensor);
  auto notes = loadWeights(*session, file(prefixed));
  ASSERT_OK(notes);
  ASSERT_EQ(notes->size(), 1u);
  EXPECT_TRUE(contains((*notes)[0], "4 parameters have other names in the file"));
  EXPECT_TRUE(contains((*notes)[0], "m.0.e[0:3].w from model.m.0.e.0.w"));
  EXPECT_EQ(elementsOf(*session, "m.1.e[0:3].w"),
            (std::vector<double>{40, 41, 42, 43, 50, 51, 52, 53, 60, 61, 62, 63}));
}

/// A session with the stack "e[0:2].w.weight", f32[2,2,3], and its adapters of rank 2.
static std::unique_ptr<Session> sessionWithAdaptersOfStack() {
  PlanBuilder builder;
  builder.axis("a", 2);
  builder.state("e[0:2].w.weight", DType::F32, {2, 2, 3}, {{"a"}, {}, {}});
  builder.state("base_model.model.e[0:2].w.lora_A.weight", DType::F32, {2, 2, 3}, {{"a"}, {}, {}});
  builder.state("base_model.model.e[0:2].w.lora_B.weight", DType::F32, {2, 2, 2}, {{}, {"a"}, {}});
  auto plan = builder.build();
  plan->mutable_lora()->set_rank(2);
  plan->mutable_lora()->set_alpha(1);
  auto session = Session::create(plan, createFakeBackend());
  EXPECT_OK(session);
  return std::move(*session);
}

/// Of expert 1 [[16, ...], ...] + 1/2 [[6, 7], [8, 9]] [[7, 8, 9], [10, 11, 12]].
TEST_F(Weights, AdaptersOfAStackAreMergedForEachElement) {
  auto session = sessionWithAdaptersOfStack();
  ASSERT_FALSE(SavedWeights::checkMerging(session->plan()));
  ASSERT_OK(session->setState("e[0:2].w.weight", filled(10, {2, 2, 3})));
  ASSERT_OK(session->setState("base_model.model.e[0:2].w.lora_A.weight", filled(1, {2, 2, 3})));
  ASSERT_OK(session->setState("base_model.model.e[0:2].w.lora_B.weight", filled(2, {2, 2, 2})));
  ASSERT_OK(saveWeights(*session, dir.path("out.safetensors"), SavedContent::Merged));
  auto saved = SafetensorsFile::open(dir.path("out.safetensors"));
  ASSERT_OK(saved);
  EXPECT_EQ(saved->tensors().size(), 2u);
  std::vector<float> expected[] = {{17, 20.5, 24, 25, 30.5, 36}, {72, 79.5, 87, 92, 101.5, 111}};
  for (int i : {0, 1}) {
    auto tensor = saved->read("e." + std::to_string(i) + ".w.weight", DType::F32);
    ASSERT_OK(tensor);
    EXPECT_EQ(tensor->type.shape, (Shape{2, 3}));
    EXPECT_EQ(std::vector<float>(tensor->as<float>(), tensor->as<float>() + 6), expected[i]);
  }
}

TEST_F(Weights, AdaptersOfAStackMayLackTogether) {
  auto session = sessionWithAdaptersOfStack();
  std::map<std::string, HostTensor> tensors = {{"e.0.w.weight", filled(1)},
                                               {"e.1.w.weight", filled(2)}};
  auto notes = loadWeights(*session, file(tensors));
  ASSERT_OK(notes);
  ASSERT_EQ(notes->size(), 1u);
  EXPECT_TRUE(contains((*notes)[0], "without adapters; the 4 of the model keep their initial"));
  for (const char *expert : {"0", "1"})
    for (const char *part : {"A", "B"})
      tensors.emplace(fmt::format("base_model.model.e.{}.w.lora_{}.weight", expert, part),
                      filled(1, {2, *part == 'A' ? 3 : 2}));
  ASSERT_OK(loadWeights(*session, file(tensors)));
  for (const char *expert : {"0", "1"}) {
    std::string name = fmt::format("base_model.model.e.{}.w.lora_A.weight", expert);
    auto lacks = tensors;
    lacks.erase(name);
    EXPECT_ERROR(loadWeights(*session, file(lacks)),
                 "has no tensor \"" + name + "\", but other adapters; 1 of 4 adapters are missing");
  }
}

TEST_F(Weights, AStackMayHaveMasterWeights) {
  // f16 rounds these values.
  std::map<std::string, HostTensor> tensors = tensorsOfStacks();
  for (auto &[name, tensor] : tensors)
    for (int64_t i = 0; i < tensor.type.numElements(); ++i)
      tensor.as<float>()[i] += 0x1p-13F;
  for (int64_t devices : {1, 2, 3}) {
    auto session = sessionOfStacks(devices, /*isMixed=*/true);
    auto notes = loadWeights(*session, file(tensors));
    ASSERT_OK(notes);
    EXPECT_TRUE(notes->empty());
    EXPECT_EQ(elementsOf(*session, "m.1.e[0:3].w"),
              (std::vector<double>{40, 41, 42, 43, 50, 51, 52, 53, 60, 61, 62, 63}));
    EXPECT_EQ(elementsOf(*session, "m.1.e[0:3].w.master")[5], 51 + 0x1p-13);
    ASSERT_OK(saveWeights(*session, dir.path("out.safetensors")));
    auto saved = SafetensorsFile::open(dir.path("out.safetensors"));
    ASSERT_OK(saved);
    EXPECT_EQ(saved->tensors().size(), tensors.size());
    EXPECT_EQ(saved->tensors().at("m.0.e.1.v").str(), "F32[2, 2]");
    for (const auto &[name, tensor] : tensors)
      EXPECT_EQ(saved->read(name, DType::F32)->bytes, tensor.bytes) << name;
  }
}
} // namespace weightsTest
