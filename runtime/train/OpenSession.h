//===- OpenSession.h - From options to a session with its weights ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_OPENSESSION_H
#define DTC_RUNTIME_TRAIN_OPENSESSION_H

#include "runtime/executor/Session.h"
#include "runtime/train/TrainOptions.h"

#include <cstdio>

namespace dtc::runtime {

/// A session for a plan, without weights yet, whose first step is that of the run.  Where the
/// options leave the threads to be chosen, the devices share the machine's cores.
Expected<std::unique_ptr<Session>> openSession(std::shared_ptr<const plan::Plan> plan,
                                               std::shared_ptr<const Backend> backend,
                                               const TrainOptions &options, int64_t firstStep = 1);

/// Sets the parameters that the files of --init have. Notes go to `notes`.
MaybeError loadInitialWeights(Session &session, const TrainOptions &options, std::FILE *notes);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_OPENSESSION_H
