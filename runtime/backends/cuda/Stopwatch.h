//===- Stopwatch.h - Time of work in a queue ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_STOPWATCH_H
#define DTC_RUNTIME_BACKENDS_CUDA_STOPWATCH_H

#include "runtime/backends/cuda/CudaDevice.h"
#include "runtime/backends/cuda/CudaError.h"

#include <memory>

namespace dtc::runtime::cuda {

/// Waits for the queue at each measurement.
class Stopwatch {
public:
  static Expected<std::unique_ptr<Stopwatch>> create(CudaQueue &queue) {
    std::unique_ptr<Stopwatch> stopwatch(new Stopwatch(queue));
    for (cudaEvent_t *event : {&stopwatch->begin, &stopwatch->end})
      if (MaybeError error = checkCuda(cudaEventCreateWithFlags(event, cudaEventBlockingSync),
                                       "cannot create an event"))
        return *error;
    return stopwatch;
  }
  ~Stopwatch() {
    for (cudaEvent_t event : {begin, end})
      if (event)
        (void)cudaEventDestroy(event);
  }

  /// Sets `milliseconds` to what passed on the GPU between the begin and the end of the work that
  /// enqueue() gives the queue.
  template <typename Enqueue> MaybeError measure(float &milliseconds, const Enqueue &enqueue) {
    if (MaybeError error = checkCuda(cudaEventRecord(begin, queue.stream()), kWhat))
      return error;
    if (MaybeError error = enqueue())
      return error;
    cudaError_t status = cudaEventRecord(end, queue.stream());
    if (status == cudaSuccess)
      status = cudaEventSynchronize(end);
    if (status == cudaSuccess)
      status = cudaEventElapsedTime(&milliseconds, begin, end);
    return checkCuda(status, kWhat);
  }

private:
  static constexpr const char *kWhat = "cannot measure the time of the queue's work";

  explicit Stopwatch(CudaQueue &queue) : queue(queue) {}

  CudaQueue &queue;
  cudaEvent_t begin = nullptr, end = nullptr;
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_STOPWATCH_H
