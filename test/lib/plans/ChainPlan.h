//===- ChainPlan.h - A pipeline of any length -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_PLANS_CHAINPLAN_H
#define DTC_TEST_LIB_PLANS_CHAINPLAN_H

#include "plan/plan.pb.h"
#include "runtime/backends/Kernel.h"

#include <memory>
#include <string>
#include <vector>

namespace dtc::runtime::testing {

struct ChainStrategy {
  int64_t stages = 2; // at least 2
  int64_t dp = 1;
  int64_t microbatches = 4;
  /// A kernel without operands that the last stage calls in each forward task; empty: none.
  std::string extraKernel;
};

/// A plan in the order of 1F1B, with receives that are started a microbatch ahead and sends that
/// are finished before their copy is written again. The first stage makes x = its coordinates on
/// (pp, dp, micro) as f32[3]; each later stage doubles its input; the result of a stage is its h.
/// The last one sends its h back; every other adds its own h to the tensor that comes back. The
/// first stage adds up the sums over the microbatches: output "sum", f32[3 * dp].
std::shared_ptr<plan::Plan> chainPlan(const ChainStrategy &strategy);

/// The expected output "sum" of that plan.
std::vector<float> chainSum(const ChainStrategy &strategy);

/// The kernels of a backend; many of them sleep for a random part of a millisecond first.
std::shared_ptr<const Backend> createJitterBackend(std::shared_ptr<const Backend> backend);

} // namespace dtc::runtime::testing

#endif // DTC_TEST_LIB_PLANS_CHAINPLAN_H
