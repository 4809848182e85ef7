//===- ChunkAttribute.h - Collectives of chunks ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DIST_CHUNKATTRIBUTE_H
#define DTC_DIALECTS_DIST_CHUNKATTRIBUTE_H

#include "llvm/ADT/StringRef.h"

namespace dtc::dist {

/// On a collective that moves one chunk of a value (i64): the number of the chunk.
/// dtc-chunk-collectives sets it. Collectives of different chunks share no bucket, as one is to run
/// while another chunk is computed.
inline constexpr llvm::StringLiteral kChunkAttrName = "dist.chunk";

} // namespace dtc::dist

#endif // DTC_DIALECTS_DIST_CHUNKATTRIBUTE_H
