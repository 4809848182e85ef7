//===- LossScale.cpp - What the loss is multiplied by ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/LossScale.h"

#include <algorithm>

namespace dtc::runtime {

void LossScale::stepDone(bool skipped) {
  if (skipped) {
    scale = std::max(scale / 2, lowest);
    goodSteps = 0;
  } else if (++goodSteps >= growthInterval) {
    scale = std::min(scale * 2, highest);
    goodSteps = 0;
  }
}

} // namespace dtc::runtime
