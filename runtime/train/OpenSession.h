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
#include <vector>

namespace dtc::runtime {

/// A session for a plan, without weights yet, whose first step is that of the run.  Where the
/// options leave the threads to be chosen, the devices share the machine's cores.
Expected<std::unique_ptr<Session>> openSession(std::shared_ptr<const plan::Plan> plan,
                                               std::shared_ptr<const Backend> backend,
                                               const TrainOptions &options, int64_t firstStep = 1);

/// Which process this is, of how many, how many of these are on its host, and the host's cores.
struct ProcessPlace {
  int64_t process = 0, processes = 1, onHost = 1, cores = 1;
};

/// The threads for the kernels of a device of a process: of `given`, which has none, one number for
/// all or one for each process, or without any the cores that are the device's share, at least 1.
/// `devices` is the number of all. An error if there are several numbers, and not one for each
/// process.
Expected<int> threadsOfDevice(const std::vector<int> &given, const ProcessPlace &place,
                              int64_t devices);

/// Sets the parameters that the files of --init have. Notes go to `notes`.
MaybeError loadInitialWeights(Session &session, const TrainOptions &options, std::FILE *notes);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_OPENSESSION_H
