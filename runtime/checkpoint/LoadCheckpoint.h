//===- LoadCheckpoint.h - States from a checkpoint ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CHECKPOINT_LOADCHECKPOINT_H
#define DTC_RUNTIME_CHECKPOINT_LOADCHECKPOINT_H

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/executor/Session.h"
#include "support/Error.h"

#include <string>
#include <vector>

namespace dtc::runtime {

/// Sets the states of a session from a checkpoint with any layout and element types; a value is
/// rounded where the plan has a narrower type. A parameter that has master weights is what these
/// round to.
///
/// An adapter, or a part of the optimizer's state, that the checkpoint lacks is not set, so that
/// Session::initializeOtherStates() gives it its initial value, and one that the plan lacks is not
/// used. A note names each, by how many and which. Other parameters that one of the two lacks, and
/// shapes that differ, are an error, which changes nothing; with `allowModelChange` parameters that
/// are missing or extra are notes too. Returns the notes.
Expected<std::vector<std::string>> loadCheckpoint(Session &session, const Checkpoint &checkpoint,
                                                  bool allowModelChange);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CHECKPOINT_LOADCHECKPOINT_H
