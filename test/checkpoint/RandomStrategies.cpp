//===- RandomStrategies.cpp - Random models with random strategies --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/checkpoint/RandomStrategies.h"

#include "compiler/analysis/PipelineSchedule.h"
#include "test/checkpoint/SavedTraining.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

using namespace dtc;
using namespace dtc::test;

/// A number from `least` to `most`.
static int64_t number(std::mt19937_64 &random, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(random);
}

std::string dtc::test::randomConfig(std::mt19937_64 &random) {
  int64_t words = number(random, kWords, kWords + 8), layers = number(random, 2, 3);
  int64_t width = number(random, 9, 21);
  const char *tied = number(random, 0, 1) ? "true" : "false";
  if (number(random, 0, 1)) {
    int64_t heads = number(random, 2, 6);
    return fmt::format(
        R"({{"model_type": "gpt2", "vocab_size": {}, "n_positions": 9, "n_embd": {}, "n_head": {},
        "n_layer": {}, "n_inner": {}, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0,
        "tie_word_embeddings": {}}})",
        words, heads * number(random, 2, 4), heads, layers, width, tied);
  }
  int64_t groups = number(random, 1, 3), heads = groups * number(random, 1, 3);
  return fmt::format(
      R"({{"model_type": "llama", "vocab_size": {}, "hidden_size": {}, "intermediate_size": {},
      "num_hidden_layers": {}, "num_attention_heads": {}, "num_key_value_heads": {},
      "max_position_embeddings": 9, "rms_norm_eps": 1e-5, "tie_word_embeddings": {}}})",
      words, heads * 4, width, layers, heads, groups, tied);
}

std::string dtc::test::randomStrategy(std::mt19937_64 &random, int64_t batch) {
  struct Axis {
    const char *name;
    int64_t most, size = 1;
  };
  std::vector<Axis> axes = {{"dp", 7}, {"fsdp", 4}, {"tp", 5}, {"pp", 3}};
  std::shuffle(axes.begin(), axes.end(), random);
  int64_t devices = 1, data = 1, tensor = 1, pipeline = 1;
  std::string mesh, options;
  for (Axis &axis : axes) {
    // Each axis is there in half of the strategies.
    if (int64_t most = std::min(axis.most, 16 / devices); most > 1 && number(random, 0, 1))
      axis.size = number(random, 2, most);
    devices *= axis.size;
    std::string name = axis.name;
    (name == "tp" ? tensor : name == "pp" ? pipeline : data) *= axis.size;
    if (axis.size > 1)
      mesh += fmt::format("{}{}={}", mesh.empty() ? "" : ",", name, axis.size);
  }
  if (data > 1)
    options += fmt::format(" zero={}", number(random, 0, 3));
  if (tensor > 1 && number(random, 0, 1))
    options += " sp";
  if (pipeline > 1) {
    llvm::ArrayRef<ScheduleRule> rules = getScheduleRules();
    const ScheduleRule &rule = rules[size_t(number(random, 0, int64_t(rules.size()) - 1))];
    options += fmt::format(" schedule={}", rule.name.str());
    if (rule.minChunks > 1)
      options += fmt::format(" chunks={}", rule.minChunks);
  }
  options += fmt::format(" m={}", number(random, 1, std::clamp<int64_t>(batch / data, 1, 4)));
  options += fmt::format(" recompute={}", std::vector<const char *>{"none", "selective",
                                                                    "full"}[number(random, 0, 2)]);
  if (number(random, 0, 1))
    options += " bucket=512";
  return mesh + options;
}
