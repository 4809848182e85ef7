//===- DtcOps.cpp - The generated definitions of the ops ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/DtcOps.h"

#define GET_OP_CLASSES
#include "dialects/dtc/DtcOps.cpp.inc"
