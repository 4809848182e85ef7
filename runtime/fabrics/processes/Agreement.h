//===- Agreement.h - Small values of all processes -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_AGREEMENT_H
#define DTC_RUNTIME_FABRICS_PROCESSES_AGREEMENT_H

#include "runtime/fabrics/processes/Messages.h"
#include "support/Collective.h"

#include <string>
#include <vector>

namespace dtc::runtime {

/// The tags from 0 that agreements use.
inline constexpr int64_t kAgreementTags = 2;

/// Reduces the values of all processes along a binomial tree. All call it and the functions below
/// in the same order, each from one thread at a time. Sums wrap.
Expected<int64_t> agree(Messages &messages, ReductionKind reduction, int64_t value);
/// Returns in process 0 the values of all processes, in their order; in the others, which do not
/// wait for it, nothing. Along a binomial tree.
Expected<std::vector<double>> gather(Messages &messages, double value);
/// Returns the bytes of process `from`, along a binomial tree.
Expected<std::string> broadcast(Messages &messages, int64_t from, std::string bytes);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_AGREEMENT_H
