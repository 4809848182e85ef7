//===- KernelLimits.h - Times of kernels beside what the machine allows ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_KERNELLIMITS_H
#define DTC_BENCHMARKS_KERNELLIMITS_H

#include "plan/plan.pb.h"
#include "runtime/executor/Session.h"

#include <map>
#include <string>
#include <vector>

namespace dtc::benchmarks {

/// The bytes that the kernels of a step read and write, by kernel: of the plan of one device, whose
/// tasks each run once a step. A call counts as kernelBytes() says.
std::map<std::string, double> bytesByKernel(const plan::Plan &plan);

/// Takes the time of copies from one array to another, by threads that have a part each.
class CopyRate {
public:
  explicit CopyRate(int threads);

  /// The bytes that are read and written a second: the median of `count` copies.
  double measure(int count);

private:
  int threads;
  std::vector<char> from, to;
};

/// The rates of a machine in one element type.
struct MachineRates {
  double flops = 0; // of products, a second
  double bytes = 0; // read and written, a second
};

/// A table of the kernels of `steps` steps: the bytes of a step, the rate at which they move, the
/// milliseconds that the machine would take, and which part of the kernel's time that is. A
/// contraction (with FLOPs in `contractions`, of a step) takes the longer of its operations and its
/// bytes, all others their bytes. Operands that are in a cache move faster than copies, so that a
/// part may exceed 100%.
std::string formatLimits(const std::vector<runtime::ProfileEntry> &profile, int steps,
                         const std::map<std::string, double> &bytes,
                         const std::map<std::string, double> &contractions,
                         const MachineRates &rates);

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_KERNELLIMITS_H
