//===- StrategyTest.cpp - The text form of strategies ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/Strategy.h"

#include "test/lib/RandomCases.h"
#include "test/lib/compile/PlannerCases.h"

#include <gtest/gtest.h>

#include <random>

namespace strategyTest {

using namespace dtc;
using namespace dtc::test;

namespace {

/// Options in which no field that a strategy has is at its default.
CompileOptions fullOptions() {
  CompileOptions options;
  options.mesh = {{"pp", 2}, {"dp", 3}, {"tp", 4}};
  options.shard = {"batch=dp", "heads=tp+dp"};
  options.microbatches = 5;
  options.accumulates = true;
  options.zero = 2;
  options.zeroAxes = {"dp"};
  options.sequenceParallel = true;
  options.bucketBytes = 12345;
  options.noOverlap = true;
  options.prefetch = 3;
  options.schedule = "interleaved";
  options.chunks = 2;
  options.stages = "h.0|h.1|h.2|h.3";
  options.recompute = Recompute::Auto;
  options.memoryLimit = int64_t(1) << 40;
  options.dtype = ComputeType::BF16;
  options.gradReduceDtype = ComputeType::BF16;
  options.links["pp"] = {1.5e9, 2.5e-6};
  options.deviceFlops = 3e12;
  options.deviceBandwidth = 4e11;
  return options;
}

CompileOptions parsed(const std::string &text, CompileOptions options = {}) {
  auto error = parseStrategy(text, options);
  EXPECT_FALSE(error) << error->message << "\n" << text;
  return options;
}

std::string errorOf(const std::string &text) {
  CompileOptions options;
  auto error = parseStrategy(text, options);
  return error ? error->message : "";
}

TEST(Strategy, EveryFieldComesBack) {
  CompileOptions options = fullOptions(), read = parsed(formatStrategy(options));
  EXPECT_EQ(read.mesh, options.mesh);
  EXPECT_EQ(read.shard, options.shard);
  EXPECT_EQ(read.microbatches, options.microbatches);
  EXPECT_EQ(read.accumulates, options.accumulates);
  EXPECT_EQ(read.zero, options.zero);
  EXPECT_EQ(read.zeroAxes, options.zeroAxes);
  EXPECT_EQ(read.sequenceParallel, options.sequenceParallel);
  EXPECT_EQ(read.bucketBytes, options.bucketBytes);
  EXPECT_EQ(read.noOverlap, options.noOverlap);
  EXPECT_EQ(read.prefetch, options.prefetch);
  EXPECT_EQ(read.schedule, options.schedule);
  EXPECT_EQ(read.chunks, options.chunks);
  EXPECT_EQ(read.stages, options.stages);
  EXPECT_EQ(read.recompute, options.recompute);
  EXPECT_EQ(read.memoryLimit, options.memoryLimit);
  EXPECT_EQ(read.dtype, options.dtype);
  EXPECT_EQ(read.gradReduceDtype, options.gradReduceDtype);
  EXPECT_EQ(read.links, options.links);
  EXPECT_EQ(read.deviceFlops, options.deviceFlops);
  EXPECT_EQ(read.deviceBandwidth, options.deviceBandwidth);
  EXPECT_EQ(formatStrategy(read), formatStrategy(options));
}

/// A field that the schema has and formatStrategy() leaves out would be lost.
TEST(Strategy, EveryFieldIsWritten) {
  std::string text = formatStrategy(fullOptions());
  for (const char *field : {"mesh",
                            "shard",
                            "microbatches",
                            "accumulate",
                            "zero",
                            "zero_axes",
                            "sequence_parallel",
                            "bucket_bytes",
                            "no_overlap",
                            "prefetch",
                            "schedule",
                            "chunks",
                            "stages",
                            "recompute",
                            "memory_limit",
                            "dtype",
                            "grad_reduce_dtype",
                            "link",
                            "device_flops",
                            "device_bandwidth"}) {
    EXPECT_NE(text.find(std::string("\n") + field), std::string::npos) << field;
    EXPECT_EQ(errorOf(std::string(field) + ": @").find("has no field"), std::string::npos) << field;
  }
  // Defaults are written too.
  EXPECT_NE(formatStrategy({}).find("bucket_bytes: 26214400\n"), std::string::npos);
}

/// Fields that a strategy leaves out get their defaults, whatever they were before; the rest is
/// left alone.
TEST(Strategy, WhatIsLeftOutHasItsDefault) {
  CompileOptions before = fullOptions();
  before.optimizer = Optimizer::Lion;
  before.links["dp"] = {1, 2};
  CompileOptions read = parsed("", before);
  EXPECT_EQ(formatStrategy(read), formatStrategy({}));
  EXPECT_EQ(read.optimizer, Optimizer::Lion);
  EXPECT_TRUE(read.links.empty());
  EXPECT_EQ(parsed("# nothing but this\nzero: 3 mesh { name: \"dp\" size: 2 }").zero, 3);
}

TEST(Strategy, BadFieldsAreNamed) {
  const std::string dp = "mesh { name: \"dp\" size: 2 } ";
  const std::pair<std::string, std::string> cases[] = {
      {"mesh { size: 2 }", "mesh[0].name is \"\", expected letters, digits and _"},
      {"mesh { name: \"a b\" size: 2 }", "mesh[0].name is \"a b\""},
      {"mesh { name: \"micro\" size: 2 }", "another name than micro"},
      {dp + dp, "mesh[1].name is \"dp\", as of an axis before it"},
      {dp + "mesh { name: \"tp\" }", "mesh[1].size is 0, expected 1 to 2147483648"},
      {"mesh { name: \"dp\" size: -1 }", "mesh[0].size is -1"},
      {dp + "mesh { name: \"tp\" size: 2147483648 }", "mesh has more than 2147483648 devices"},
      {"microbatches: 0", "microbatches is 0, expected 1 to 1048576"},
      {"microbatches: 1048577", "microbatches is 1048577"},
      {"zero: 4", "zero is 4, expected 0 to 3"},
      {"zero: -1", "zero is -1"},
      {"zero: 1 zero_axes: \"dp\"", "zero_axes has \"dp\", which is no axis of the mesh"},
      {dp + "zero_axes: \"dp\"", "zero_axes is given, but zero is 0"},
      {"mesh { name: \"pp\" size: 2 } zero: 1 zero_axes: \"pp\"", "zero_axes has \"pp\""},
      {dp + "sequence_parallel: true",
       "sequence_parallel is true, but the mesh has no axis \"tp\""},
      {"bucket_bytes: -1", "bucket_bytes is -1"},
      {"prefetch: 1001", "prefetch is 1001"},
      {"schedule: \"2f2b\"", "schedule is \"2f2b\", expected one of auto, naive, gpipe"},
      {"schedule: \"1f\\n1b\"", "schedule is \"1f\\n1b\", expected one of"},
      {dp + "chunks: 2", "chunks is given, but the mesh has no axis \"pp\""},
      {"chunks: 2000", "chunks is 2000"},
      {"stages: \"h.0\"", "stages is given, but the mesh has no axis \"pp\""},
      {"recompute: \"some\"",
       "recompute is \"some\", expected one of none, gathers, elementwise, selective, full, auto"},
      {"recompute: \"auto\"", "recompute is \"auto\", which needs a memory_limit"},
      {"memory_limit: -8", "memory_limit is -8"},
      {"dtype: \"f64\"", "dtype is \"f64\", expected one of f32, bf16, f16"},
      {"dtype: \"f16\" grad_reduce_dtype: \"bf16\"",
       "grad_reduce_dtype is \"bf16\", expected one of f32, f16"},
      {"link { axis: \"dp\" bandwidth: 1 }",
       "link[0].axis is \"dp\", which is no axis of the mesh"},
      {dp + "link { axis: \"dp\" bandwidth: 1 } link { axis: \"dp\" bandwidth: 1 }",
       "link[1].axis is \"dp\", as of a link before it"},
      {dp + "link { axis: \"dp\" }", "link[0].bandwidth is 0, expected bytes a second"},
      {dp + "link { axis: \"dp\" bandwidth: inf }", "link[0].bandwidth is inf"},
      {dp + "link { axis: \"dp\" bandwidth: 1 latency: -1 }", "link[0].latency is -1"},
      {"device_flops: 0", "device_flops is 0, expected a finite number of more than 0"},
      {"device_bandwidth: nan", "device_bandwidth is nan"},
  };
  for (const auto &[text, message] : cases)
    EXPECT_NE(errorOf(text).find(message), std::string::npos)
        << text << "\nfound: " << errorOf(text) << "\nexpected: " << message;
}

TEST(Strategy, ErrorsOfTheTextSayWhere) {
  EXPECT_EQ(errorOf("zero: 1\nmicrobatches: many\n"),
            "line 2, column 15: Expected integer, got: many");
  EXPECT_EQ(
      errorOf("zero: 1\n\n  sero: 2\n")
          .find("line 3, column 3: a Strategy has no field \"sero\"; did you mean \"zero\"? Its "
                "fields are \"mesh\""),
      0u)
      << errorOf("zero: 1\n\n  sero: 2\n");
  EXPECT_NE(errorOf("zero: 1\nzero: 2\n").find("line 2, column"), std::string::npos);
  EXPECT_NE(errorOf("mesh {\n").find("line 2, column 1"), std::string::npos) << errorOf("mesh {\n");
  EXPECT_NE(errorOf("mesh { name: 3 }").find("line 1, column 14"), std::string::npos);
  EXPECT_NE(errorOf("microbatches: 99999999999999999999").find("line 1"), std::string::npos);
}

TEST(Strategy, AFileThatIsNotThereIsNamed) {
  CompileOptions options;
  auto error = readStrategy("/nowhere/s.textproto", options);
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("/nowhere/s.textproto"), std::string::npos) << error->message;
}

TEST(Strategy, OneLineForTables) {
  EXPECT_EQ(describeStrategy({}), "one device");
  EXPECT_EQ(describeStrategy(fullOptions()),
            "pp=2 dp=3 tp=4 sp zero=2 m=5 interleaved v=2 recompute=auto bucket=0MiB "
            "shard=batch=dp,heads=tp+dp");
}

class StrategyCheck : public testing::Test {
protected:
  StrategyCheck() : model(importCase(compiler, {.name = "gpt2", .layers = 2, .batch = 16})) {}
  std::string check(const std::string &text, const cluster::Cluster *cluster = nullptr) {
    auto error = checkStrategy(parsed(text), *model, cluster);
    return error ? error->message : "";
  }

  PlannerContext compiler;
  mlir::OwningOpRef<mlir::ModuleOp> model;
};

TEST_F(StrategyCheck, WhatTheClusterDoesNotHave) {
  cluster::Cluster eight = smallCluster(2, 4);
  EXPECT_EQ(check("mesh { name: \"dp\" size: 4 } mesh { name: \"tp\" size: 4 }", &eight),
            "mesh has 16 devices, the cluster \"small\" has 8");
  EXPECT_EQ(check("mesh { name: \"dp\" size: 2 } mesh { name: \"tp\" size: 4 }", &eight), "");
  EXPECT_EQ(check("mesh { name: \"dp\" size: 4 } mesh { name: \"tp\" size: 4 }"), "");
}

TEST_F(StrategyCheck, WhatTheModelDoesNotHave) {
  EXPECT_EQ(check("mesh { name: \"dp\" size: 16 }"), "");
  EXPECT_EQ(check("mesh { name: \"dp\" size: 4 } mesh { name: \"fsdp\" size: 8 }")
                .find("mesh splits the batch into 32 parts, but the model has 16 samples"),
            0u);
  EXPECT_EQ(check("mesh { name: \"x\" size: 32 } shard: \"batch=x\"")
                .find("mesh splits the batch into 32 parts"),
            0u);
  EXPECT_EQ(check("mesh { name: \"dp\" size: 32 } shard: \"batch=\""), "");
  EXPECT_EQ(check("mesh { name: \"dp\" size: 8 } microbatches: 2"), "");
  EXPECT_EQ(check("mesh { name: \"dp\" size: 8 } microbatches: 3"),
            "microbatches is 3, but a device has 2 of the 16 samples; choose at most 2, or import "
            "the model with a larger --batch");
  EXPECT_EQ(check("mesh { name: \"pp\" size: 100000 }").find("mesh and chunks make 100000 stages"),
            0u);
  EXPECT_EQ(check("mesh { name: \"tp\" size: 2 } sequence_parallel: true"), "");
  model = compiler.parse(R"(func.func @loss(%x: tensor<4xf32> {dtc.input = "x"}) -> tensor<f32> {
    %s = dtc.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
    return %s : tensor<f32>
  })");
  ASSERT_TRUE(model) << compiler.diagnostics();
  EXPECT_EQ(check("mesh { name: \"tp\" size: 2 } sequence_parallel: true")
                .find("sequence_parallel is true, but the model names no dimension"),
            0u);
}

/// Texts that are nearly strategies: bytes changed, removed, repeated. A strategy that was read is
/// written as the same text.
TEST(Strategy, NoTextCrashes) {
  const uint64_t rounds = randomCases(3000), seed = randomSeed();
  SCOPED_TRACE("DTC_RANDOM_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const std::string whole = formatStrategy(fullOptions());
  const std::string alphabet = "{}[]:\"\\#\n\t -0123456789.eaxz\xff";
  uint64_t accepted = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    std::string text = whole;
    for (uint64_t change = 0, count = random() % 4; change < count && !text.empty(); ++change) {
      size_t at = random() % text.size(), length = random() % 12;
      switch (random() % 4) {
      case 0:
        text[at] = alphabet[random() % alphabet.size()];
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(random() % text.size(), length));
        break;
      default:
        text.insert(at, 1, char(random()));
      }
    }
    CompileOptions options;
    if (auto error = parseStrategy(text, options)) {
      EXPECT_FALSE(error->message.empty()) << text;
      EXPECT_EQ(error->message.find('\n'), std::string::npos) << error->message;
      continue;
    }
    ++accepted;
    CompileOptions again;
    auto error = parseStrategy(formatStrategy(options), again);
    ASSERT_FALSE(error) << error->message << "\n" << text;
    ASSERT_EQ(formatStrategy(again), formatStrategy(options));
  }
  EXPECT_GT(accepted, rounds / 10) << "texts without changes are among them";
}

} // namespace

} // namespace strategyTest
