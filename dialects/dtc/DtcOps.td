//===- DtcOps.td - All ops of the dialect ---------------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_DTCOPS_TD
#define DTC_DIALECTS_DTC_DTCOPS_TD

include "dialects/dtc/DtcSliceOps.td"
include "dialects/dtc/DtcCacheOps.td"
include "dialects/dtc/DtcContractionOps.td"
include "dialects/dtc/DtcElementwiseOps.td"
include "dialects/dtc/DtcFusedOps.td"
include "dialects/dtc/DtcIndexOps.td"
include "dialects/dtc/DtcNormOps.td"
include "dialects/dtc/DtcOptimizerOps.td"
include "dialects/dtc/DtcRandomOps.td"
include "dialects/dtc/DtcShapeOps.td"
include "dialects/dtc/DtcWindowOps.td"

#endif // DTC_DIALECTS_DTC_DTCOPS_TD
