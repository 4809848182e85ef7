//===- CheckpointListing.h - Listing of a folder of checkpoints -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CHECKPOINT_CHECKPOINTLISTING_H
#define DTC_RUNTIME_CHECKPOINT_CHECKPOINTLISTING_H

#include "support/Error.h"

#include <string>

namespace dtc::runtime {

/// Reads all checkpoints of a folder and describes each: its step, tensors, bytes, and whether all
/// of it is as it was written, or what is wrong. As a table, or as one JSON object. An error only
/// where the folder cannot be read or has none.
Expected<std::string> listCheckpoints(const std::string &folder, bool asJson);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CHECKPOINT_CHECKPOINTLISTING_H
