//===- Api.h - The frame of the functions of CUDA ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_API_H
#define DTC_TEST_STANDIN_CUDA_API_H

#include "test/standin/cuda/Engine.h"

namespace dtc::standin {

/// The device of the calling thread.
int &currentDevice();

/// The error that the call has before it does anything: of a fault, of no device, of a lost one.
cudaError_t beginCall(Engine &engine, Lock &lock, const char *function);
/// Remembers the error for cudaGetLastError(); gives it.
cudaError_t endCall(cudaError_t error);

/// Calls body(engine, lock).
template <typename Body> cudaError_t call(const char *function, const Body &body) {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  cudaError_t error = beginCall(engine, lock, function);
  if (error == cudaSuccess)
    error = body(engine, lock);
  return endCall(error);
}

/// The stream or event of a handle; an error for the default stream, for what was destroyed, and
/// for what belongs to a lost device.
cudaError_t findStream(Engine &engine, cudaStream_t handle, const char *function,
                       std::shared_ptr<Stream> &stream);
cudaError_t findEvent(Engine &engine, cudaEvent_t handle, const char *function,
                      std::shared_ptr<Event> &event);

/// A violation, and the error that the function returns where violations are collected.
cudaError_t violation(Engine &engine, const std::string &message,
                      cudaError_t error = cudaErrorInvalidValue);

/// A call that may wait for all that a device does: a violation while a kernel of NCCL runs there,
/// which ends when other members have come, who may wait for this thread.
/// Calls of `group` do not count.
cudaError_t mayWaitForDevice(Engine &engine, const std::string &what, int device,
                             const void *group = nullptr);
/// The same for a call that frees or destroys, as a run that has failed does while its
/// communicators are being aborted: it waits, and is a violation if it does so for longer than
/// Settings::patience.
cudaError_t waitForDevice(Engine &engine, Lock &lock, const std::string &what, int device);
/// The same for the first use of code on a device, which loads it.
cudaError_t loadAtFirstUse(Engine &engine, const std::string &what, int device, uint64_t code);
/// Waits, as a launch does, while the stream has as many operations as the device takes.
void waitForPlace(Engine &engine, Lock &lock, const std::shared_ptr<Stream> &stream);

/// The positions at which all that the streams of the device have got is done.
std::vector<Position> allWork(Engine &engine, int device);

/// An address that no other handle of the process ever has.
template <typename Handle> Handle makeHandle() {
  static uintptr_t last = 0x1000;
  last += 16;
  return reinterpret_cast<Handle>(last); // NOLINT(performance-no-int-to-ptr): not followed
}

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_API_H
