//===- AgreedAttribute.h - Values that are identical on all devices -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_AGREEDATTRIBUTE_H
#define DTC_DIALECTS_DTC_AGREEDATTRIBUTE_H

#include "llvm/ADT/StringRef.h"

namespace dtc {

/// On an op outside the microbatches (a unit): all devices go on with the same results of it, also
/// if one of them computed others. A result is the maximum of its copies, NaN if one of these is,
/// and in a pipeline one stage computes it for all. So devices decide alike, also after an error of
/// one of them.
inline constexpr llvm::StringLiteral kAgreedAttrName = "dtc.agreed";

} // namespace dtc

#endif // DTC_DIALECTS_DTC_AGREEDATTRIBUTE_H
