//===- SharedLaunches.cpp - Calls that may share a launch -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/fusion/SharedLaunches.h"

#include "calls/EinsumLowering.h"
#include "calls/OptimizerCalls.h"

namespace dtc {

bool mayShareLaunch(const KernelSignature &signature) {
  const std::string &kernel = signature.kernel;
  if (kernel == "einsum" && signature.outputs[0].numElements() == 1) {
    Expected<EinsumLowering> lowering = planEinsum(signature);
    return lowering && lengthOfDenseDot(*lowering) > 0;
  }
  return kernel == "convert" || kernel == "adamw" || kernel == "adam" || kernel == "sgd" ||
         kernel == "lion";
}

} // namespace dtc
