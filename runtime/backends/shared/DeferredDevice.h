//===- DeferredDevice.h - Host work that waits for other devices ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The functions of the host that a GPU calls may share one thread, and then must not wait for each
// other; a queue of a GPU can wait only for work that it already holds. Here such a function runs
// on a thread of its queue, which holds back what comes later: kernels, copies, records and waits
// go to the queue of the device once it has run. As long as a queue holds nothing back, all that it
// gets goes there at once, in the thread that enqueues it.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_SHARED_DEFERREDDEVICE_H
#define DTC_RUNTIME_BACKENDS_SHARED_DEFERREDDEVICE_H

#include "runtime/backends/Device.h"

#include <memory>

namespace dtc::runtime {

/// The device, whose queues do not let host work wait, as one whose queues do (HostWork::mayWait).
std::unique_ptr<Device> deferWaitingWork(std::unique_ptr<Device> device);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_BACKENDS_SHARED_DEFERREDDEVICE_H
