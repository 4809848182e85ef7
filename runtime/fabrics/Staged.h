//===- Staged.h - Fabrics of the host for devices with their own memory ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Fabrics that exchange data in the memory of the host serve other devices too: the data that a
// device gives is copied to staging memory first, and the data that it gets is copied from there
// afterwards, on the queue that the collective or the message is enqueued on.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_STAGED_H
#define DTC_RUNTIME_FABRICS_STAGED_H

#include "runtime/fabrics/Communicator.h"
#include "runtime/fabrics/Transfers.h"

#include <memory>

namespace dtc::runtime {

/// A communicator for tensors in the memory of `device`, which outlives it, on top of one for
/// tensors in the memory of the host; that one itself where both are the same memory.
std::unique_ptr<Communicator> stageCommunicator(std::unique_ptr<Communicator> host, Device &device);
/// The same for messages.
std::unique_ptr<Transfers> stageTransfers(std::unique_ptr<Transfers> host, Device &device);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_STAGED_H
