//===- RandomModel.cpp - Small random models that may mix samples ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/random/RandomModel.h"

#include "test/random/Generator.h"

#include <algorithm>

using namespace dtc::test;

RandomModel Generator::runModel() {
  forPipeline = mixesSamples = true;
  batch = pick(2, 8);
  argument({batch, randomSize()});
  if (chance(60))
    argument({batch, randomSize(), pick(1, 4)});
  argument(randomShape(2));
  // Ops that cut and join samples often work on the data themselves.
  static const std::vector<Step> onData = {&Generator::sliceOrPad, &Generator::concat};
  for (int64_t count = pick(0, 2); count > 0; --count)
    (this->*oneOf(onData))();
  for (int64_t count = pick(3, 10); count > 0; --count)
    (this->*oneOf(allSteps()))();
  // Every input is read.
  for (size_t index = 0, count = values.size(); index < count; ++index)
    if (Value value = values[index]; !value.used && value.name[1] == 'a')
      append("dtc.tanh " + use(index) + "@ : " + type(value.shape), {value.shape});
  finish();
  makeFunctions();
  RandomModel model;
  model.loss = graph.shardedLoss;
  model.indexLimits = graph.indexLimits;

  // One microbatch, where every op may mix samples, and more, where none may.
  static const std::vector<std::string> strategies = {
      "accumulate",
      "accumulate recompute=full",
      "recompute=full",
      "recompute=selective",
      "pp=1 accumulate",
      "pp=2",
      "pp=2 accumulate",
      "pp=2 recompute=full",
      "pp=2 schedule=zb-h1",
      "pp=2 schedule=zb-v chunks=2",
      "pp=2 schedule=interleaved chunks=2 accumulate",
      "pp=3 schedule=gpipe recompute=selective",
      "dp=2",
      "dp=2 recompute=full",
      "dp=2 zero=3 recompute=full",
      "dp=2 accumulate",
      "dp=2 zero=1 accumulate",
      "dp=2 zero=2 accumulate recompute=full",
      "dp=2 zero=3 accumulate",
      "dp=2,pp=2 zero=1",
      "dp=2,pp=2 zero=2 accumulate",
      "tp=2 shard:wide=tp accumulate",
      "tp=2 shard:wide=tp recompute=full",
      "tp=2,pp=2 shard:wide=tp",
      "m=2",
      "m=2 accumulate recompute=selective",
      "dp=2 m=2",
      "pp=2 m=2",
  };
  while (model.strategies.size() < 4) {
    const std::string &text = oneOf(strategies);
    bool fits =
        text.find("wide") == std::string::npos || model.loss.find("\"wide\"") != std::string::npos;
    if (fits && !std::count(model.strategies.begin(), model.strategies.end(), text))
      model.strategies.push_back(text);
  }
  return model;
}

RandomModel dtc::test::makeRandomModel(uint64_t seed) { return Generator(seed).runModel(); }
