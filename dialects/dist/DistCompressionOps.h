//===- DistCompressionOps.h - Ops of compressed gradients -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DIST_DISTCOMPRESSIONOPS_H
#define DTC_DIALECTS_DIST_DISTCOMPRESSIONOPS_H

#include "dialects/dist/Dist.h"

#define GET_OP_CLASSES
#include "dialects/dist/DistCompressionOps.h.inc"

#endif // DTC_DIALECTS_DIST_DISTCOMPRESSIONOPS_H
