//===- StreamApi.cpp - Streams and events of CUDA ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/Api.h"
#include "test/standin/cuda/Capture.h"

#include <fmt/format.h>

namespace dtc::standin {

cudaError_t findStream(Engine &engine, cudaStream_t handle, const char *function,
                       std::shared_ptr<Stream> &stream) {
  if (!handle)
    return violation(engine,
                     fmt::format("{} uses the default stream, which orders all others", function),
                     cudaErrorInvalidResourceHandle);
  auto found = engine.streams.find(handle);
  if (found == engine.streams.end())
    return violation(engine, fmt::format("{} uses a stream that does not exist", function),
                     cudaErrorInvalidResourceHandle);
  stream = found->second;
  return engine.errorOf(stream->device);
}

cudaError_t findEvent(Engine &engine, cudaEvent_t handle, const char *function,
                      std::shared_ptr<Event> &event) {
  auto found = engine.events.find(handle);
  if (found == engine.events.end())
    return violation(engine, fmt::format("{} uses an event that does not exist", function),
                     cudaErrorInvalidResourceHandle);
  event = found->second;
  return engine.errorOf(event->device);
}

namespace {

cudaError_t createStream(const char *function, cudaStream_t *handle, unsigned flags) {
  return call(function, [&](Engine &engine, Lock &) {
    if (flags != cudaStreamNonBlocking)
      return violation(engine,
                       fmt::format("{} with flags {}, expected cudaStreamNonBlocking: other "
                                   "streams wait for the default stream",
                                   function, flags));
    *handle = makeHandle<cudaStream_t>();
    auto stream = std::make_shared<Stream>();
    stream->device = currentDevice();
    stream->number = engine.nextStream++;
    engine.streams[*handle] = stream;
    return cudaSuccess;
  });
}

/// Calls body(engine, lock, stream) for a handle that is valid.
template <typename Body>
cudaError_t callStream(const char *function, cudaStream_t handle, Body body) {
  return call(function, [&](Engine &engine, Lock &lock) {
    std::shared_ptr<Stream> stream;
    if (cudaError_t error = findStream(engine, handle, function, stream))
      return error;
    return body(engine, lock, stream);
  });
}

template <typename Body>
cudaError_t callEvent(const char *function, cudaEvent_t handle, Body body) {
  return call(function, [&](Engine &engine, Lock &lock) {
    std::shared_ptr<Event> event;
    if (cudaError_t error = findEvent(engine, handle, function, event))
      return error;
    return body(engine, lock, *event);
  });
}

std::vector<Position> positionOf(const Moment &moment) {
  return {{moment.stream, moment.position}};
}

} // namespace

} // namespace dtc::standin

using namespace dtc::standin;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  return createStream("cudaStreamCreateWithFlags", stream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int) {
  return createStream("cudaStreamCreateWithPriority", stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  return call("cudaDeviceGetStreamPriorityRange", [&](Engine &, Lock &) {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
  });
}

// Its work goes on without it.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return callStream("cudaStreamDestroy", handle,
                    [&](Engine &engine, Lock &, const std::shared_ptr<Stream> &) {
                      engine.streams.erase(handle);
                      return cudaSuccess;
                    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return callStream("cudaStreamSynchronize", handle,
                    [](Engine &engine, Lock &lock, const std::shared_ptr<Stream> &stream) {
                      if (cudaError_t error = checkNotCaptured(*stream))
                        return error;
                      engine.waitFor(lock, {{stream, stream->given}});
                      return engine.errorOf(stream->device);
                    });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return callStream("cudaStreamQuery", handle,
                    [](Engine &engine, Lock &lock, const std::shared_ptr<Stream> &stream) {
                      if (cudaError_t error = checkNotCaptured(*stream))
                        return error;
                      uint64_t given = stream->given;
                      engine.poll(lock, {{stream, given}});
                      if (cudaError_t error = engine.errorOf(stream->device))
                        return error;
                      return stream->done >= given ? cudaSuccess : cudaErrorNotReady;
                    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t eventHandle, unsigned) {
  return callStream("cudaStreamWaitEvent", handle,
                    [&](Engine &engine, Lock &, const std::shared_ptr<Stream> &stream) {
                      std::shared_ptr<Event> event;
                      if (cudaError_t error =
                              findEvent(engine, eventHandle, "cudaStreamWaitEvent", event))
                        return error;
                      ++engine.counts.waits;
                      if (Engine::takeFault(engine.waitFaults))
                        return cudaSuccess;
                      if (stream->captured.capture || event->captured.capture)
                        return joinCapture(*stream, event->captured);
                      if (!event->moment)
                        return cudaSuccess;
                      Operation wait{Operation::Kind::Wait, nullptr, nullptr, event->moment};
                      wait.describe = [moment = event->moment] {
                        return fmt::format("wait for operation {} of stream {}", moment->position,
                                           moment->stream->number);
                      };
                      engine.enqueue(stream, std::move(wait));
                      return cudaSuccess;
                    });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *userData) {
  return callStream("cudaLaunchHostFunc", handle,
                    [&](Engine &engine, Lock &, const std::shared_ptr<Stream> &stream) {
                      if (!function)
                        return cudaErrorInvalidValue;
                      Operation operation{Operation::Kind::HostFunction,
                                          [] { return std::string("host function"); },
                                          [=]() -> std::optional<Failure> {
                                            function(userData);
                                            return std::nullopt;
                                          },
                                          nullptr};
                      engine.enqueue(stream, std::move(operation));
                      return cudaSuccess;
                    });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *handle, unsigned flags) {
  return call("cudaEventCreateWithFlags", [&](Engine &engine, Lock &) {
    *handle = makeHandle<cudaEvent_t>();
    engine.events[*handle] =
        std::make_shared<Event>(Event{currentDevice(), !(flags & cudaEventDisableTiming), nullptr});
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t *handle) {
  return cudaEventCreateWithFlags(handle, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return callEvent("cudaEventDestroy", handle, [&](Engine &engine, Lock &, Event &) {
    engine.events.erase(handle);
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t streamHandle) {
  return callEvent("cudaEventRecord", handle, [&](Engine &engine, Lock &, Event &event) {
    std::shared_ptr<Stream> stream;
    if (cudaError_t error = findStream(engine, streamHandle, "cudaEventRecord", stream))
      return error;
    if (stream->device != event.device)
      return violation(engine,
                       fmt::format("cudaEventRecord of an event of device {} on a stream of device "
                                   "{}",
                                   event.device, stream->device),
                       cudaErrorInvalidResourceHandle);
    ++engine.counts.records;
    if (Engine::takeFault(engine.recordFaults))
      return cudaSuccess;
    event.captured = stream->captured;
    if (stream->captured.capture)
      return cudaSuccess;
    event.moment = std::make_shared<Moment>();
    engine.enqueue(stream, {Operation::Kind::Record, [] { return std::string("record"); }, nullptr,
                            event.moment});
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return callEvent("cudaEventQuery", handle, [](Engine &engine, Lock &lock, Event &event) {
    std::shared_ptr<Moment> moment = event.moment;
    int device = event.device;
    if (event.captured.capture)
      return cudaErrorCapturedEvent;
    if (!moment)
      return cudaSuccess;
    engine.poll(lock, positionOf(*moment));
    if (cudaError_t error = engine.errorOf(device))
      return error;
    return moment->done ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return callEvent("cudaEventSynchronize", handle, [](Engine &engine, Lock &lock, Event &event) {
    int device = event.device;
    if (event.captured.capture)
      return cudaErrorCapturedEvent;
    if (event.moment)
      engine.waitFor(lock, positionOf(*event.moment));
    return engine.errorOf(device);
  });
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return callEvent("cudaEventElapsedTime", start, [&](Engine &engine, Lock &, Event &first) {
    std::shared_ptr<Event> last;
    if (cudaError_t error = findEvent(engine, end, "cudaEventElapsedTime", last))
      return error;
    if (!first.timed || !last->timed || !first.moment || !last->moment ||
        first.device != last->device)
      return cudaErrorInvalidResourceHandle;
    if (!first.moment->done || !last->moment->done)
      return cudaErrorNotReady;
    *milliseconds =
        std::chrono::duration<float, std::milli>(last->moment->time - first.moment->time).count();
    return cudaSuccess;
  });
}

} // extern "C"
