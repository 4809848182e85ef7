//===- CudaDevice.h - A GPU as a device of the executor -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Queues are streams and events are events of CUDA. All that a queue gets is asynchronous; errors
// of work that the GPU finds later fail the queue, as Device.h says. Since an error of a kernel
// makes the whole context of CUDA useless, such an error reaches every queue of the process.
//
// A capture is a thread's own: other threads go on as if there was none.
//
// Work of the host must not wait for other work here: CUDA may call all of it on one thread.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_CUDADEVICE_H
#define DTC_RUNTIME_BACKENDS_CUDA_CUDADEVICE_H

#include "runtime/backends/Device.h"
#include "runtime/backends/cuda/HeldLaunches.h"

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

struct cudnnContext;

namespace dtc::runtime {
class QueueFailure;
} // namespace dtc::runtime

namespace dtc::runtime::cuda {

class AlgorithmCache;

class CudaEvent final : public Event {
public:
  CudaEvent(class CudaDevice &device, cudaEvent_t event, bool timed);
  ~CudaEvent() override;
  Expected<bool> isDone() const override;
  MaybeError wait() const override;
  Expected<TimePoint> time() const override;

private:
  friend class CudaQueue;
  /// The failure of the queue that recorded the event last; null before.
  std::shared_ptr<QueueFailure> failureOfQueue() const;
  MaybeError check(cudaError_t status, const char *what) const;

  class CudaDevice &device;
  cudaEvent_t event;
  bool timed;
  mutable std::mutex mutex;
  std::shared_ptr<QueueFailure> failure;
};

class CudaGraph final : public Graph {
public:
  CudaGraph(class CudaDevice &device, cudaGraphExec_t executable)
      : device(device), executable(executable) {}
  ~CudaGraph() override;

private:
  friend class CudaQueue;
  class CudaDevice &device;
  cudaGraphExec_t executable;
};

class CudaQueue final : public Queue {
public:
  CudaQueue(class CudaDevice &device, cudaStream_t stream);
  ~CudaQueue() override;

  MaybeError enqueue(const Kernel &kernel, const KernelArguments &arguments) override;
  /// Loads dtc's own kernels, which it does not launch, and runs products of cuBLASLt and attention
  /// of cuDNN, which have no other way to load theirs.
  MaybeError prepare(const Kernel &kernel, const KernelArguments &arguments) override;
  MaybeError copy(std::byte *to, const std::byte *from, size_t bytes) override;
  MaybeError clear(std::byte *at, size_t bytes) override;
  MaybeError call(HostWork &work) override;
  MaybeError record(Event &event) override;
  MaybeError wait(const Event &event) override;
  MaybeError finish() override;
  MaybeError beginCapture() override;
  Expected<std::unique_ptr<Graph>> endCapture() override;
  MaybeError enqueue(const Graph &graph) override;

  /// Enqueues a call of `kernel` that may share a launch with the next ones.
  MaybeError hold(const std::string &kernel, HeldCall call);

  class CudaDevice &owner() const {
    return device;
  }
  cudaStream_t stream() const { return handle; }
  /// Between beginCapture() and endCapture().
  bool isCapturing() const { return captures; }
  /// Whether prepare() calls: kernels are loaded, not launched.
  bool isPreparing() const { return prepares; }
  /// The error of the queue, which others may set from any thread.
  const std::shared_ptr<QueueFailure> &failureState() const { return failure; }

private:
  /// Makes the GPU the one of the calling thread; gives the error of a queue that has failed.
  MaybeError activate() const;
  /// The same before work that comes after all that is held.
  MaybeError begin();
  MaybeError check(cudaError_t status, const char *what) const;
  Expected<cudaGraphExec_t> instantiate(cudaGraph_t graph) const;

  class CudaDevice &device;
  cudaStream_t handle;
  bool captures = false, prepares = false;
  std::shared_ptr<QueueFailure> failure;
  HeldLaunches held;
};

/// cuDNN's handle for a GPU; null until a kernel needs one (CudnnAttention.h). The queues of a
/// device share it. Who uses it holds the mutex.
struct CudnnHandle {
  std::mutex mutex;
  std::shared_ptr<cudnnContext> context;
  cudaStream_t stream = nullptr; // that the handle is set to
};

class CudaDevice final : public Device {
public:
  /// The GPU of number `ordinal`, as the calls of CUDA count; the errors name it "cuda <ordinal>".
  /// `algorithms`: see getAlgorithms(); `usesTf32`: see CudaOptions.
  static Expected<std::unique_ptr<CudaDevice>>
  open(int ordinal, std::shared_ptr<AlgorithmCache> algorithms = {}, bool usesTf32 = false);
  ~CudaDevice() override;

  std::string describe() const override { return name; }
  std::string model() const override { return modelName(); }
  bool isHostMemory() const override { return false; }
  size_t alignment() const override { return 256; }
  Expected<FreeMemory> freeMemory() const override;
  Expected<std::unique_ptr<DeviceMemory>> allocate(size_t bytes) override;
  Expected<std::unique_ptr<DeviceMemory>> allocateStaging(size_t bytes) override;
  Expected<std::unique_ptr<Queue>> openQueue(QueueKind kind) override;
  Expected<std::unique_ptr<Event>> createEvent(bool timed) override;
  bool capturesGraphs() const override { return true; }

  int ordinal() const { return number; }
  /// Where the fastest algorithms of products are; null: nothing is timed.
  AlgorithmCache *getAlgorithms() const { return algorithms.get(); }
  bool roundsToTf32() const { return usesTf32; }
  /// As the driver tells it: "NVIDIA H100 80GB HBM3".
  const std::string &modelName() const { return driverName; }
  int multiprocessors() const { return numMultiprocessors; }
  /// 90: 9.0.
  int computeCapability() const { return capability; }
  MaybeError activate() const;
  /// The handle of cuBLASLt for this GPU, which lives as long as the device.
  Expected<cublasLtHandle_t> cublasLt();
  CudnnHandle &cudnn() { return cudnnHandle; }
  /// When an event came that was created with timing and is done.
  Expected<Event::TimePoint> timeOf(cudaEvent_t event);

private:
  CudaDevice(int number, std::shared_ptr<AlgorithmCache> algorithms, bool usesTf32)
      : number(number), algorithms(std::move(algorithms)), usesTf32(usesTf32) {}
  MaybeError initialize();
  /// Relates the clock of the GPU to the host's from now on.
  MaybeError setAnchor();
  std::string place() const;

  int number;
  int numMultiprocessors = 1, capability = 0;
  std::shared_ptr<AlgorithmCache> algorithms;
  const bool usesTf32;
  std::string driverName, name;
  std::mutex mutex; // of what follows
  cublasLtHandle_t handle = nullptr;
  CudnnHandle cudnnHandle;
  cudaStream_t anchorStream = nullptr;
  cudaEvent_t anchor = nullptr;
  Event::TimePoint anchorTime;
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_CUDADEVICE_H
