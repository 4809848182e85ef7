//===- MutatePlan.h - Random mutation of plans ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_PLANS_MUTATEPLAN_H
#define DTC_TEST_LIB_PLANS_MUTATEPLAN_H

#include "plan/plan.pb.h"

#include <random>
#include <string>

namespace dtc::runtime::testing {

/// One to four changes of a file: another byte, another bit, a byte less, a byte more, a cut.
std::string mutateBytes(std::string bytes, std::mt19937_64 &random);

/// One or two changes that keep the file a plan in form.
std::string mutateFields(plan::Plan plan, std::mt19937_64 &random);

} // namespace dtc::runtime::testing

#endif // DTC_TEST_LIB_PLANS_MUTATEPLAN_H
