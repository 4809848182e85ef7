//===- PredictedStrategies.cpp - Predicted and measured strategies --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/PredictedStrategies.h"

#include <utility>

using namespace dtc;
using namespace dtc::benchmarks;

namespace {

using MeshAxes = std::vector<std::pair<std::string, int64_t>>;

/// The options of a strategy beside its mesh.
struct SearchedOptions {
  int64_t microbatches = 1, zero = 0;
  bool sequence = false;
  const char *schedule = "1f1b";
  Recompute recompute = Recompute::None;
};

} // namespace

std::vector<PredictedModel> benchmarks::predictedModels() {
  return {{"gpt2", "gpt2-tiny", 16, 128}, {"llama", "llama-tiny", 16, 128}};
}

std::vector<CompileOptions> benchmarks::predictedStrategies() {
  std::vector<CompileOptions> all;
  auto add = [&](MeshAxes mesh, const SearchedOptions &searched) {
    CompileOptions &options = all.emplace_back();
    for (const auto &[name, size] : mesh)
      if (name == "fsdp")
        options.zeroAxes = {name};
    options.mesh = std::move(mesh);
    options.microbatches = searched.microbatches;
    options.zero = searched.zero;
    options.sequenceParallel = searched.sequence;
    options.schedule = searched.schedule;
    options.recompute = searched.recompute;
  };
  add({}, {});
  add({}, {.microbatches = 2});
  add({}, {.recompute = Recompute::Selective});
  add({}, {.recompute = Recompute::Full});
  add({{"dp", 2}}, {});
  add({{"dp", 2}}, {.zero = 1});
  add({{"dp", 2}}, {.microbatches = 2, .zero = 2});
  add({{"dp", 2}}, {.zero = 3});
  add({{"dp", 2}}, {.recompute = Recompute::Full});
  add({{"tp", 2}}, {});
  add({{"tp", 2}}, {.sequence = true});
  add({{"tp", 2}}, {.sequence = true, .recompute = Recompute::Selective});
  for (int64_t microbatches : {1, 2, 4, 8})
    add({{"pp", 2}}, {.microbatches = microbatches});
  for (const char *schedule : {"naive", "gpipe", "interleaved", "zb-h1"})
    add({{"pp", 2}}, {.microbatches = 4, .schedule = schedule});
  add({{"pp", 2}}, {.microbatches = 4, .recompute = Recompute::Full});
  add({{"dp", 4}}, {});
  add({{"dp", 4}}, {.zero = 1});
  add({{"dp", 4}}, {.zero = 3});
  add({{"dp", 4}}, {.recompute = Recompute::Full});
  add({{"dp", 2}, {"fsdp", 2}}, {.zero = 3});
  add({{"tp", 4}}, {});
  add({{"dp", 2}, {"tp", 2}}, {});
  add({{"pp", 2}, {"dp", 2}}, {.microbatches = 4});
  add({{"pp", 2}, {"tp", 2}}, {.microbatches = 2});
  add({{"pp", 4}}, {.microbatches = 4});
  add({{"pp", 4}}, {.microbatches = 8});
  add({{"dp", 8}}, {});
  add({{"dp", 4}, {"tp", 2}}, {.zero = 1});
  add({{"pp", 2}, {"dp", 2}, {"tp", 2}}, {.microbatches = 2, .zero = 1});
  add({{"pp", 4}, {"dp", 2}}, {.microbatches = 4});
  return all;
}
