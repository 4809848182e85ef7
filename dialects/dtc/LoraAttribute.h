//===- LoraAttribute.h - Attribute of LoRA adapters -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_LORAATTRIBUTE_H
#define DTC_DIALECTS_DTC_LORAATTRIBUTE_H

#include "llvm/ADT/StringRef.h"

namespace dtc {

/// The data of a file of adapters beside their tensors, on a module: {rank, alpha, dropout,
/// targets}, an integer, two 64-bit floats and an array of strings. It changes no computation.
inline constexpr llvm::StringLiteral kLoraAttrName = "dtc.lora";

} // namespace dtc

#endif // DTC_DIALECTS_DTC_LORAATTRIBUTE_H
