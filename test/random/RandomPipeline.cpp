//===- RandomPipeline.cpp - Small random models in stages -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/random/RandomPipeline.h"

#include "compiler/analysis/PipelineSchedule.h"
#include "test/random/Generator.h"

#include <algorithm>
#include <cmath>
#include <sstream>

using namespace dtc;
using namespace dtc::test;

/// Names the batch, and often one other dimension that tensor parallelism may split.
std::string Generator::logicalAxes(const Shape &shape) {
  if (shape.empty())
    return "";
  std::string text;
  size_t wide = chance(50) ? size_t(pick(0, int64_t(shape.size()) - 1)) : shape.size();
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    bool isSamples = mixesSamples ? dim == 0 && isData(shape) : isBatch(shape[dim]);
    const char *name = isSamples ? "batch" : "";
    if (dim == wide && !isSamples && shape[dim] > 1)
      name = "wide";
    text += std::string(dim ? ", \"" : "\"") + name + "\"";
  }
  return "dtc.axes = [" + text + "]";
}

int64_t Generator::makePipeline(RandomPipeline &pipeline) {
  CompileOptions &options = pipeline.options;
  llvm::ArrayRef<ScheduleRule> rules = getScheduleRules();
  const ScheduleRule &rule = rules[pick(0, int64_t(rules.size()) - 1)];
  options.schedule = rule.name.str();
  options.chunks = pick(rule.minChunks, std::min(rule.maxChunks, 4));
  options.microbatches = chance(70) ? pick(1, 8) : pick(1, 16);
  int64_t devices = chance(60) ? pick(2, 4) : pick(2, 8), others = 1;
  options.mesh.push_back({kPipelineAxis, devices});
  if (devices <= 4 && chance(50)) {
    others = 2;
    bool data = chance(60);
    std::pair<std::string, int64_t> axis = {data ? "dp" : "tp", others};
    options.mesh.insert(options.mesh.begin() + pick(0, 1), axis);
    if (data)
      options.zero = pick(0, 3);
    else
      options.shard = {"wide=tp"};
  }
  // Slow links make receives early and stages few values wide; slow devices the other way round.
  auto order = [&](double low, double high) {
    return low * std::pow(high / low, double(pick(0, 8)) / 8);
  };
  for (const auto &[name, size] : options.mesh)
    if (chance(80))
      options.links[name] = {order(1e5, 1e12), order(1e-9, 1e-2)};
  if (chance(60))
    options.deviceFlops = order(1e6, 1e14);
  if (chance(60))
    options.deviceBandwidth = order(1e6, 1e13);
  // As large as no other dimension is, and large enough for all shards.
  batch = std::max<int64_t>(13, others * options.microbatches) + pick(0, 12);
  return devices * options.chunks;
}

void Generator::growModel(int64_t steps) {
  using Step = void (Generator::*)();
  static const std::vector<Step> all = {
      &Generator::elementwise, &Generator::elementwise, &Generator::einsum,
      &Generator::einsum,      &Generator::einsum,      &Generator::select,
      &Generator::reduce,      &Generator::reshape,     &Generator::transpose,
      &Generator::broadcast,   &Generator::sliceOrPad,  &Generator::concat,
      &Generator::layerNorm,   &Generator::layerNorm,   &Generator::rmsNorm,
      &Generator::softmax,     &Generator::indexed,     &Generator::crossEntropy,
      &Generator::attention};
  argument({batch, randomSize()});
  argument({batch, randomSize(), randomSize()});
  argument(randomShape(2));
  while (steps-- > 0) {
    (this->*oneOf(all))();
    // Many layers on top of each other must not grow without bounds.
    if (Value last = values.back(); last.name[1] != 'a' && chance(50)) {
      values.back().used = true;
      append("dtc.tanh " + last.name + "@ : " + type(last.shape), {last.shape});
    }
  }
}

RandomPipeline Generator::runPipeline() {
  forPipeline = true;
  RandomPipeline pipeline;
  int64_t stages = makePipeline(pipeline);
  growModel(stages + pick(3, 12));
  finish();
  makeFunctions();
  pipeline.loss = graph.shardedLoss;
  pipeline.indexLimits = graph.indexLimits;
  if (pipeline.loss.find("\"wide\"") == std::string::npos)
    pipeline.options.shard.clear();
  return pipeline;
}

RandomPipeline dtc::test::makeRandomPipeline(uint64_t seed) {
  return Generator(seed).runPipeline();
}

std::string RandomPipeline::describe() const {
  std::ostringstream os;
  for (const auto &[name, size] : options.mesh)
    os << (name == options.mesh.front().first ? "" : ",") << name << "=" << size;
  os << " m=" << options.microbatches << " zero=" << options.zero
     << " schedule=" << options.schedule << " chunks=" << options.chunks;
  for (const std::string &entry : options.shard)
    os << " shard:" << entry;
  for (const auto &[name, link] : options.links)
    os << " link " << name << " " << link.first << " B/s " << link.second << " s";
  os << ", device " << options.deviceFlops.value_or(0) << " flop/s "
     << options.deviceBandwidth.value_or(0) << " B/s";
  return os.str();
}
