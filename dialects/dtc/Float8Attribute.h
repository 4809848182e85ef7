//===- Float8Attribute.h - Products whose operands may have 8 bits --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_FLOAT8ATTRIBUTE_H
#define DTC_DIALECTS_DTC_FLOAT8ATTRIBUTE_H

#include "llvm/ADT/StringRef.h"

namespace dtc {

/// On a dtc.einsum (an array of two types): its operands may be rounded to these types of 8 bits,
/// with a scale for each tensor. dtc-mark-layer-products sets it, the gradients of the einsum have
/// it with f8E5M2 for the gradient that they multiply, and dtc-scale-products removes it.
inline constexpr llvm::StringLiteral kFloat8AttrName = "dtc.float8";

} // namespace dtc

#endif // DTC_DIALECTS_DTC_FLOAT8ATTRIBUTE_H
