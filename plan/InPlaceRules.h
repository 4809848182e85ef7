//===- InPlaceRules.h - Which operands of a kernel may share memory -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_INPLACERULES_H
#define DTC_PLAN_INPLACERULES_H

#include <string_view>

namespace dtc::runtime {

/// Whether docs/kernels.md lets output `output` of the kernel lie in the same bytes as its input
/// `input`. The two must also have the same type.
bool mayRunInPlace(std::string_view kernel, int input, int output);

/// Whether the kernel reads what its output held before (`accumulate`, after the first microbatch).
bool readsOwnOutput(std::string_view kernel);

} // namespace dtc::runtime

#endif // DTC_PLAN_INPLACERULES_H
