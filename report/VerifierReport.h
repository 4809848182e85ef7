//===- VerifierReport.h - Report of the verifier -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_VERIFIERREPORT_H
#define DTC_REPORT_VERIFIERREPORT_H

#include "plan/PlanVerifier.h"

#include <string>

namespace dtc {

/// A few lines of text, each with its end of line.
std::string formatVerifierResult(const VerifierResult &facts);

/// One JSON object and an end of line. Sizes are bytes, counts are of one step of one device.
std::string verifierResultToJson(const VerifierResult &facts);

} // namespace dtc

#endif // DTC_REPORT_VERIFIERREPORT_H
