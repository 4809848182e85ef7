//===- FileTensorsTest.cpp - Names of parameters in weights files ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/FileTensors.h"

#include "plan/PlanFileTensors.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"

#include <gtest/gtest.h>

using namespace dtc;
using namespace dtc::runtime::testing;

using Names = std::vector<std::string>;

TEST(FileTensors, StacksHaveATensorForEachNumber) {
  EXPECT_EQ(fileTensorNames("experts[0:3].up.weight"),
            (Names{"experts.0.up.weight", "experts.1.up.weight", "experts.2.up.weight"}));
  EXPECT_EQ(fileTensorNames("layers.3.mlp.experts[8:10].w"),
            (Names{"layers.3.mlp.experts.8.w", "layers.3.mlp.experts.9.w"}));
  EXPECT_EQ(fileTensorNames("e[7:8].w"), Names{"e.7.w"});
  // The last range is that of the stack.
  EXPECT_EQ(fileTensorNames("a[0:2].b[1:2].c"), Names{"a[0:2].b.1.c"});
  std::optional<FileStack> stack = fileStackOf("layers.3.mlp.experts[8:10].up.weight");
  ASSERT_TRUE(stack);
  EXPECT_EQ(stack->before, "layers.3.mlp.experts");
  EXPECT_EQ(stack->begin, 8);
  EXPECT_EQ(stack->end, 10);
  EXPECT_EQ(stack->after, "up.weight");
  EXPECT_EQ(stack->name(), "layers.3.mlp.experts[8:10].up.weight");
  EXPECT_EQ(stack->tensor(9), "layers.3.mlp.experts.9.up.weight");
  EXPECT_EQ(fileTensorNames("e[0:65536].w").size(), 65536u);
}

TEST(FileTensors, OtherNamesAreNoStacks) {
  for (const char *name :
       {"", "w", "e.0.w", "[0:2].w", "e[0:2]", "e[0:2].", "e[0:2]w", "e[2].w", "e[2:2].w",
        "e[3:2].w", "e[-1:2].w", "e[+0:2].w", "e[00:2].w", "e[0:02].w", "e[0: 2].w", "e[0:2:3].w",
        "e[:2].w", "e[0:].w", "e[:].w", "e[].w", "e[a:b].w", "e]0:2[.w", "e].w", "e0:2].w",
        "e[0:2.w", "].w", "[.w",
        // A stack has at most 65536 tensors, and a number fits 64 bits.
        "e[0:65537].w", "e[0:99999999999999999999].w", "e[0:9223372036854775807].w"}) {
    EXPECT_FALSE(fileStackOf(name)) << name;
    EXPECT_EQ(fileTensorNames(name),
              Names{std::string(name) == "e[0:2]" ? std::string("e") : std::string(name)})
        << name;
  }
}

TEST(FileTensors, RowsOfATensorAreOneName) {
  std::optional<FileRows> rows = fileRowsOf("qkv.weight[16:24]");
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->tensor, "qkv.weight");
  EXPECT_EQ(rows->begin, 16);
  EXPECT_EQ(rows->end, 24);
  EXPECT_EQ(fileTensorNames("qkv.weight[16:24]"), Names{"qkv.weight"});
  EXPECT_FALSE(fileStackOf("qkv.weight[16:24]"));
  EXPECT_FALSE(fileRowsOf("experts[0:3].up.weight"));
  EXPECT_EQ(rows->dim, 0);
  EXPECT_EQ(rows->name(), "qkv.weight[16:24]");
  // A name that could be both is of rows, whose tensor has the other range in its name.
  EXPECT_EQ(fileTensorNames("e[0:2].w[0:4]"), Names{"e[0:2].w"});
  EXPECT_FALSE(fileStackOf("e[0:2].w[0:4]"));
}

TEST(FileTensors, RowsMayBeAlongAnyDimension) {
  for (int64_t dim : {1, 3}) {
    std::string name = dim == 1 ? "up[:,4:8]" : "up[:,:,:,4:8]";
    std::optional<FileRows> rows = fileRowsOf(name);
    ASSERT_TRUE(rows) << name;
    EXPECT_EQ(rows->dim, dim);
    EXPECT_EQ(rows->begin, 4);
    EXPECT_EQ(rows->end, 8);
    EXPECT_EQ(rows->name(), name);
    EXPECT_EQ(fileTensorNames(name), Names{"up"});
  }
  for (const char *name : {"up[:4:8]", "up[,4:8]", "up[::4:8]", "up[:,]", "up[4:8,:]"})
    EXPECT_FALSE(fileRowsOf(name)) << name;
}

TEST(FileTensors, OfAPlan) {
  PlanBuilder builder;
  builder.state("e[0:2].w", DType::F32, {2, 5, 3}, {{}, {}, {}});
  builder.state("e[2:3].w", DType::F16, {1, 5, 3}, {{}, {}, {}});
  builder.state("e[0:2].b", DType::F32, {2}, {{}});
  builder.state("t[2:5]", DType::F32, {3, 4}, {{}, {}});
  builder.state("t[0:2]", DType::F32, {2, 4}, {{}, {}});
  builder.state("g[:,0:3]", DType::F32, {2, 3, 4}, {{}, {}, {}});
  builder.state("g[:,3:4]", DType::F32, {2, 1, 4}, {{}, {}, {}});
  builder.state("u", DType::F32, {7}, {{}});
  builder.state("s[0:2].w[0:4]", DType::F32, {4, 3}, {{}, {}});
  std::shared_ptr<plan::Plan> plan = builder.build();
  auto tensors = fileTensorsOf(*plan);
  ASSERT_OK(tensors);
  std::map<std::string, std::string> found;
  for (const auto &[name, tensor] : *tensors) {
    found[name] = tensor.type.str();
    for (const auto &[begin, part] : tensor.parts)
      found[name] += " " + part->name();
    if (tensor.element)
      found[name] += " " + std::to_string(*tensor.element);
  }
  std::map<std::string, std::string> expected = {
      {"e.0.w", "f32[5,3] e[0:2].w 0"},      {"e.1.w", "f32[5,3] e[0:2].w 1"},
      {"e.2.w", "f16[5,3] e[2:3].w 0"},      {"e.0.b", "f32[] e[0:2].b 0"},
      {"e.1.b", "f32[] e[0:2].b 1"},         {"t", "f32[5,4] t[0:2] t[2:5]"},
      {"g", "f32[2,4,4] g[:,0:3] g[:,3:4]"}, {"u", "f32[7] u"},
      {"s[0:2].w", "f32[4,3] s[0:2].w[0:4]"}};
  EXPECT_EQ(found, expected);
}
