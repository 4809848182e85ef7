//===- CudaDevice.cpp - A GPU as a device of the executor -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CudaDevice.h"

#include "runtime/backends/cuda/CublasLt.h"
#include "runtime/backends/cuda/CudaBackend.h"
#include "runtime/backends/cuda/CudaError.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/shared/QueueFailure.h"
#include "support/GpuMemory.h"

#include <fmt/format.h>
#include <utility>

namespace dtc::runtime::cuda {

namespace {

class GpuMemory final : public DeviceMemory {
public:
  GpuMemory(int ordinal, void *begin, size_t size) : ordinal(ordinal), begin(begin), size(size) {}
  ~GpuMemory() override {
    if (begin && cudaSetDevice(ordinal) == cudaSuccess)
      (void)cudaFree(begin);
  }
  std::byte *data() const override { return static_cast<std::byte *>(begin); }
  size_t bytes() const override { return size; }

private:
  int ordinal;
  void *begin;
  size_t size;
};

/// Memory of the host that is pinned, so that copies from and to it need no copy in between.
class PinnedMemory final : public DeviceMemory {
public:
  PinnedMemory(int ordinal, void *begin, size_t size)
      : ordinal(ordinal), begin(begin), size(size) {}
  ~PinnedMemory() override {
    if (begin && cudaSetDevice(ordinal) == cudaSuccess)
      (void)cudaFreeHost(begin);
  }
  std::byte *data() const override { return static_cast<std::byte *>(begin); }
  size_t bytes() const override { return size; }

private:
  int ordinal;
  void *begin;
  size_t size;
};

/// The data of a call of the host, which deletes it when its turn has come.
struct HostCall {
  HostWork *work;
  std::shared_ptr<QueueFailure> failure;
};

} // namespace

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

CudaEvent::CudaEvent(CudaDevice &device, cudaEvent_t event, bool timed)
    : device(device), event(event), timed(timed) {}

CudaEvent::~CudaEvent() {
  if (!device.activate())
    (void)cudaEventDestroy(event);
}

std::shared_ptr<QueueFailure> CudaEvent::failureOfQueue() const {
  std::lock_guard lock(mutex);
  return failure;
}

MaybeError CudaEvent::check(cudaError_t status, const char *what) const {
  MaybeError error = checkCuda(status, fmt::format("cuda {}: {}", device.ordinal(), what));
  std::shared_ptr<QueueFailure> recorder = failureOfQueue();
  return error && recorder ? MaybeError(recorder->set(*error)) : error;
}

Expected<bool> CudaEvent::isDone() const {
  if (std::shared_ptr<QueueFailure> recorder = failureOfQueue())
    if (MaybeError error = recorder->get())
      return *error;
  // Any thread may ask. One without a GPU of its own would make a context on GPU 0.
  if (MaybeError error = device.activate())
    return *error;
  cudaError_t status = cudaEventQuery(event);
  if (status == cudaErrorNotReady)
    return false;
  if (MaybeError error = check(status, "the work of a queue failed"))
    return *error;
  return true;
}

MaybeError CudaEvent::wait() const {
  if (MaybeError error = device.activate())
    return error;
  cudaError_t status = cudaEventSynchronize(event);
  if (std::shared_ptr<QueueFailure> recorder = failureOfQueue())
    if (MaybeError error = recorder->get())
      return error;
  return check(status, "the work of a queue failed");
}

Expected<Event::TimePoint> CudaEvent::time() const {
  if (!timed)
    return Error{fmt::format("cuda {}: the event was created without timing", device.ordinal())};
  return device.timeOf(event);
}

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

CudaQueue::CudaQueue(CudaDevice &device, cudaStream_t stream)
    : device(device), handle(stream), failure(std::make_shared<QueueFailure>()) {}

CudaQueue::~CudaQueue() {
  if (device.activate())
    return;
  if (!held.empty())
    (void)begin();
  // Work that is still held may use what its caller frees next.
  (void)cudaStreamSynchronize(handle);
  {
    CudnnHandle &cudnn = device.cudnn();
    std::lock_guard lock(cudnn.mutex);
    if (cudnn.stream == handle)
      cudnn.context.reset();
  }
  (void)cudaStreamDestroy(handle);
}

MaybeError CudaQueue::activate() const {
  if (MaybeError error = failure->get())
    return error;
  return device.activate();
}

MaybeError CudaQueue::begin() {
  if (MaybeError error = activate())
    return error;
  if (MaybeError error = held.enqueue(*this))
    return failure->set(error->inContext(fmt::format("cuda {}", device.ordinal())));
  return std::nullopt;
}

MaybeError CudaQueue::hold(const std::string &kernel, HeldCall call) {
  held.add(kernel, std::move(call));
  return std::nullopt;
}

MaybeError CudaQueue::check(cudaError_t status, const char *what) const {
  MaybeError error = checkCuda(status, fmt::format("cuda {}: {}", device.ordinal(), what));
  return error ? MaybeError(failure->set(*error)) : std::nullopt;
}

MaybeError CudaQueue::enqueue(const Kernel &kernel, const KernelArguments &arguments) {
  const auto &ours = static_cast<const CudaKernel &>(kernel);
  if (MaybeError error = ours.sharesLaunches() ? activate() : begin())
    return error;
  if (MaybeError error = ours.enqueue(*this, arguments))
    return failure->set(
        error->inContext(fmt::format("kernel '{}' on cuda {}", ours.name(), device.ordinal())));
  return std::nullopt;
}

MaybeError CudaQueue::prepare(const Kernel &kernel, const KernelArguments &arguments) {
  if (MaybeError error = begin())
    return error;
  const auto &ours = static_cast<const CudaKernel &>(kernel);
  prepares = true;
  MaybeError error = ours.enqueue(*this, arguments);
  if (!error)
    error = held.enqueue(*this);
  prepares = false;
  if (!error)
    return std::nullopt;
  return failure->set(error->inContext(
      fmt::format("preparing kernel '{}' on cuda {}", ours.name(), device.ordinal())));
}

MaybeError CudaQueue::copy(std::byte *to, const std::byte *from, size_t bytes) {
  if (MaybeError error = begin())
    return error;
  if (bytes == 0)
    return std::nullopt;
  return check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, handle), "cannot copy memory");
}

MaybeError CudaQueue::clear(std::byte *at, size_t bytes) {
  if (MaybeError error = begin())
    return error;
  if (bytes == 0)
    return std::nullopt;
  return check(cudaMemsetAsync(at, 0, bytes, handle), "cannot set memory to zero");
}

MaybeError CudaQueue::call(HostWork &work) {
  if (MaybeError error = begin())
    return error;
  if (captures) // each launch of the graph would call it
    return failure->set(
        Error{fmt::format("cuda {}: a graph has no work of the host", device.ordinal())});
  auto run = [](void *pointer) {
    std::unique_ptr<HostCall> call(static_cast<HostCall *>(pointer));
    if (call->failure->get())
      return;
    if (MaybeError error = call->work->run())
      (void)call->failure->set(*error);
  };
  auto pending = std::make_unique<HostCall>(HostCall{&work, failure});
  MaybeError error =
      check(cudaLaunchHostFunc(handle, run, pending.get()), "cannot enqueue work of the host");
  if (!error)
    (void)pending.release();
  return error;
}

MaybeError CudaQueue::record(Event &event) {
  auto &ours = static_cast<CudaEvent &>(event);
  {
    std::lock_guard lock(ours.mutex);
    ours.failure = failure;
  }
  if (MaybeError error = begin())
    return error;
  return check(cudaEventRecord(ours.event, handle), "cannot record an event");
}

MaybeError CudaQueue::wait(const Event &event) {
  if (MaybeError error = begin())
    return error;
  const auto &ours = static_cast<const CudaEvent &>(event);
  if (std::shared_ptr<QueueFailure> recorder = ours.failureOfQueue())
    if (MaybeError error = recorder->get())
      return failure->set(*error);
  return check(cudaStreamWaitEvent(handle, ours.event, 0), "cannot wait for an event");
}

MaybeError CudaQueue::finish() {
  if (MaybeError error = begin())
    return error;
  cudaError_t status = cudaStreamSynchronize(handle);
  if (MaybeError error = failure->get()) // of work of the host
    return error;
  return check(status, "the work of a queue failed");
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

CudaGraph::~CudaGraph() {
  if (!device.activate())
    (void)cudaGraphExecDestroy(executable);
}

MaybeError CudaQueue::beginCapture() {
  if (MaybeError error = begin())
    return error;
  MaybeError error = check(cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal),
                           "cannot begin to capture a graph");
  captures = !error;
  return error;
}

Expected<std::unique_ptr<Graph>> CudaQueue::endCapture() {
  MaybeError error = begin();
  captures = false;
  // In any case: a capture that goes on would make every later call fail.
  cudaGraph_t captured = nullptr;
  cudaError_t status = cudaStreamEndCapture(handle, &captured);
  Expected<cudaGraphExec_t> executable = nullptr;
  if (!error)
    error = check(status, "cannot capture a graph");
  if (!error)
    executable = instantiate(captured);
  if (captured)
    (void)cudaGraphDestroy(captured);
  if (error || !executable)
    return error ? *error : executable.error();
  return std::unique_ptr<Graph>(std::make_unique<CudaGraph>(device, *executable));
}

Expected<cudaGraphExec_t> CudaQueue::instantiate(cudaGraph_t graph) const {
  // Nodes keep the priority of the queue that they were captured from.
  cudaGraphExec_t executable = nullptr;
  if (MaybeError error =
          check(cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagUseNodePriority),
                "cannot instantiate a graph"))
    return *error;
  // Else the first launch would do it, for which it may have to allocate memory.
  if (MaybeError error = check(cudaGraphUpload(executable, handle), "cannot upload a graph")) {
    (void)cudaGraphExecDestroy(executable);
    return *error;
  }
  return executable;
}

MaybeError CudaQueue::enqueue(const Graph &graph) {
  if (MaybeError error = begin())
    return error;
  return check(cudaGraphLaunch(static_cast<const CudaGraph &>(graph).executable, handle),
               "cannot launch a graph");
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<CudaDevice>>
CudaDevice::open(int ordinal, std::shared_ptr<AlgorithmCache> algorithms, bool usesTf32) {
  std::unique_ptr<CudaDevice> device(new CudaDevice(ordinal, std::move(algorithms), usesTf32));
  if (MaybeError error = device->initialize())
    return *error;
  return device;
}

CudaDevice::~CudaDevice() {
  if (activate())
    return;
  cudnnHandle.context.reset();
  if (anchor)
    (void)cudaEventDestroy(anchor);
  if (anchorStream)
    (void)cudaStreamDestroy(anchorStream);
  if (handle)
    if (auto library = loadCublasLt())
      (void)(*library)->destroy(handle);
}

std::string CudaDevice::place() const { return fmt::format("cuda {}", number); }

MaybeError CudaDevice::activate() const {
  return checkCuda(cudaSetDevice(number), place() + ": cannot use the GPU");
}

MaybeError CudaDevice::initialize() {
  if (MaybeError error = activate())
    return error;
  cudaDeviceProp properties;
  if (MaybeError error = checkCuda(cudaGetDeviceProperties(&properties, number),
                                   place() + ": cannot read the GPU's properties"))
    return error;
  driverName = properties.name;
  name = fmt::format("{} (cuda {})", driverName, number);
  numMultiprocessors = properties.multiProcessorCount;
  capability = 10 * properties.major + properties.minor;
  if (properties.major < 8)
    return Error{fmt::format("{} has compute capability {}.{}, expected 8.0 (Ampere) or newer",
                             name, properties.major, properties.minor)};
  if (MaybeError error =
          checkCuda(cudaStreamCreateWithPriority(&anchorStream, cudaStreamNonBlocking, 0),
                    place() + ": cannot open a queue"))
    return error;
  if (MaybeError error = checkCuda(cudaEventCreateWithFlags(&anchor, cudaEventBlockingSync),
                                   place() + ": cannot create an event"))
    return error;
  return setAnchor();
}

MaybeError CudaDevice::setAnchor() {
  cudaError_t status = cudaEventRecord(anchor, anchorStream);
  if (status == cudaSuccess)
    status = cudaEventSynchronize(anchor);
  anchorTime = std::chrono::steady_clock::now();
  return checkCuda(status, place() + ": cannot read the GPU's clock");
}

Expected<Event::TimePoint> CudaDevice::timeOf(cudaEvent_t event) {
  // A float holds milliseconds: after longer than this they would be coarser than two microseconds.
  constexpr float longestMilliseconds = 16384;
  std::lock_guard lock(mutex);
  if (MaybeError error = activate())
    return *error;
  float milliseconds = 0;
  if (MaybeError error = checkCuda(cudaEventElapsedTime(&milliseconds, anchor, event),
                                   place() + ": cannot read the time of an event"))
    return *error;
  auto elapsed = std::chrono::duration<double, std::milli>(milliseconds);
  Event::TimePoint time =
      anchorTime + std::chrono::duration_cast<Event::TimePoint::duration>(elapsed);
  if (milliseconds > longestMilliseconds) {
    if (MaybeError error = setAnchor())
      return *error;
  }
  return time;
}

Expected<Device::FreeMemory> CudaDevice::freeMemory() const {
  if (MaybeError error = activate())
    return *error;
  size_t free = 0, total = 0;
  if (MaybeError error =
          checkCuda(cudaMemGetInfo(&free, &total), place() + ": cannot ask for the free memory"))
    return *error;
  Expected<std::string> identity = identityOfGpu(number);
  if (!identity)
    return identity.error();
  return FreeMemory{free, place(), std::move(*identity), kGpuLibraryBytes, total};
}

Expected<std::unique_ptr<DeviceMemory>> CudaDevice::allocate(size_t bytes) {
  if (MaybeError error = activate())
    return *error;
  void *begin = nullptr;
  if (bytes > 0)
    if (cudaError_t status = cudaMalloc(&begin, bytes); status != cudaSuccess) {
      Expected<FreeMemory> free = freeMemory();
      std::string has = free ? fmt::format(", which has {} bytes free", free->bytes) : "";
      return errorOfCuda(status, fmt::format("cannot allocate {} bytes on {}{}", bytes, name, has));
    }
  return std::unique_ptr<DeviceMemory>(std::make_unique<GpuMemory>(number, begin, bytes));
}

Expected<std::unique_ptr<DeviceMemory>> CudaDevice::allocateStaging(size_t bytes) {
  if (MaybeError error = activate())
    return *error;
  void *begin = nullptr;
  if (bytes > 0)
    if (cudaError_t status = cudaHostAlloc(&begin, bytes, cudaHostAllocPortable);
        status != cudaSuccess)
      return errorOfCuda(
          status,
          fmt::format("cannot allocate {} bytes of pinned host memory for {}", bytes, name));
  return std::unique_ptr<DeviceMemory>(std::make_unique<PinnedMemory>(number, begin, bytes));
}

Expected<std::unique_ptr<Queue>> CudaDevice::openQueue(QueueKind kind) {
  if (MaybeError error = activate())
    return *error;
  // Communication first: who waits for it is another device too.
  int lowest = 0, highest = 0;
  cudaStream_t stream = nullptr;
  cudaError_t status = cudaDeviceGetStreamPriorityRange(&lowest, &highest);
  if (status == cudaSuccess)
    status = cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                          kind == QueueKind::Compute ? lowest : highest);
  if (MaybeError error = checkCuda(status, place() + ": cannot open a queue"))
    return *error;
  return std::unique_ptr<Queue>(std::make_unique<CudaQueue>(*this, stream));
}

Expected<std::unique_ptr<Event>> CudaDevice::createEvent(bool timed) {
  if (MaybeError error = activate())
    return *error;
  cudaEvent_t event = nullptr;
  // A host that waits sleeps: its cores have the next batches to prepare.
  unsigned flags = cudaEventBlockingSync | (timed ? 0u : unsigned{cudaEventDisableTiming});
  if (MaybeError error =
          checkCuda(cudaEventCreateWithFlags(&event, flags), place() + ": cannot create an event"))
    return *error;
  return std::unique_ptr<Event>(std::make_unique<CudaEvent>(*this, event, timed));
}

Expected<cublasLtHandle_t> CudaDevice::cublasLt() {
  Expected<const CublasLt *> library = loadCublasLt();
  if (!library)
    return library.error();
  std::lock_guard lock(mutex);
  if (!handle) {
    if (MaybeError error = activate())
      return *error;
    if (cublasStatus_t status = (*library)->create(&handle); status != CUBLAS_STATUS_SUCCESS) {
      handle = nullptr;
      return Error{fmt::format("{}: cannot open cuBLASLt: {}", place(),
                               (*library)->getStatusString(status))};
    }
  }
  return handle;
}

} // namespace dtc::runtime::cuda
