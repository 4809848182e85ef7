//===- ShardsAttribute.h - Over how many shards an op is to decompose -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_SHARDSATTRIBUTE_H
#define DTC_DIALECTS_DTC_SHARDSATTRIBUTE_H

#include "llvm/ADT/StringRef.h"

namespace dtc {

/// An i64 attribute that an op may have while ShardingRuleOpInterface::decompose() replaces it:
/// over how many shards its whole factor is split. An op that can combine results of shards
/// computes each with its own kernel; without the attribute, or where the shards would be of
/// unequal sizes, it decomposes into ops whose factors may be split in any way.
inline constexpr llvm::StringLiteral kShardsAttrName = "dtc.shards";

} // namespace dtc

#endif // DTC_DIALECTS_DTC_SHARDSATTRIBUTE_H
