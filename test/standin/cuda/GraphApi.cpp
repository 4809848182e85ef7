//===- GraphApi.cpp - Capture of streams and graphs of CUDA --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/Api.h"
#include "test/standin/cuda/Capture.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace dtc::standin {

namespace {

/// Ends the capture of all its streams; whether what they have got comes before the end.
bool endStreams(Engine &engine, const std::shared_ptr<Capture> &capture) {
  std::set<size_t> before; // the end
  std::vector<size_t> left = capture->origin->captured.after;
  while (!left.empty()) {
    size_t node = left.back();
    left.pop_back();
    if (before.insert(node).second)
      left.insert(left.end(), capture->nodes[node].after.begin(), capture->nodes[node].after.end());
  }
  bool isJoined = true;
  for (auto &[handle, stream] : engine.streams) {
    if (stream->captured.capture != capture)
      continue;
    for (size_t node : stream->captured.after)
      isJoined &= before.count(node) > 0;
    stream->captured = {};
  }
  std::erase(engine.captures, capture);
  return isJoined;
}

/// A capture ends also where its end is an error, as that of a lost device.
void endFailed(cudaStream_t handle) {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  auto found = engine.streams.find(handle);
  if (found == engine.streams.end())
    return;
  std::shared_ptr<Capture> capture = found->second->captured.capture;
  if (capture && capture->origin == found->second && capture->thread == std::this_thread::get_id())
    (void)endStreams(engine, capture);
}

} // namespace

} // namespace dtc::standin

using namespace dtc::standin;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [&](Engine &engine, Lock &) {
    std::shared_ptr<Stream> stream;
    if (cudaError_t error = findStream(engine, handle, "cudaStreamBeginCapture", stream))
      return error;
    if (mode != cudaStreamCaptureModeThreadLocal)
      return violation(engine, fmt::format("cudaStreamBeginCapture in mode {}, expected "
                                           "cudaStreamCaptureModeThreadLocal: other threads go on",
                                           int(mode)));
    if (stream->captured.capture)
      return cudaErrorStreamCaptureUnsupported;
    auto capture = std::make_shared<Capture>();
    capture->origin = stream;
    capture->thread = std::this_thread::get_id();
    stream->captured = {capture, {}};
    engine.captures.push_back(std::move(capture));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph) {
  *graph = nullptr;
  cudaError_t error = call("cudaStreamEndCapture", [&](Engine &engine, Lock &) {
    std::shared_ptr<Stream> stream;
    if (cudaError_t error = findStream(engine, handle, "cudaStreamEndCapture", stream))
      return error;
    std::shared_ptr<Capture> capture = stream->captured.capture;
    if (!capture)
      return cudaErrorInvalidValue;
    if (capture->origin != stream)
      return cudaErrorStreamCaptureUnmatched;
    if (capture->thread != std::this_thread::get_id())
      return cudaErrorStreamCaptureWrongThread;
    bool isJoined = endStreams(engine, capture);
    if (capture->isInvalid)
      return cudaErrorStreamCaptureInvalidated;
    if (!isJoined)
      return cudaErrorStreamCaptureUnjoined;
    *graph = makeHandle<cudaGraph_t>();
    engine.graphs[*graph] = capture;
    return cudaSuccess;
  });
  if (error != cudaSuccess)
    endFailed(handle);
  return error;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status) {
  return call("cudaStreamIsCapturing", [&](Engine &engine, Lock &) {
    std::shared_ptr<Stream> stream;
    if (cudaError_t error = findStream(engine, handle, "cudaStreamIsCapturing", stream))
      return error;
    const std::shared_ptr<Capture> &capture = stream->captured.capture;
    *status = !capture             ? cudaStreamCaptureStatusNone
              : capture->isInvalid ? cudaStreamCaptureStatusInvalidated
                                   : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = nullptr;
  return call("cudaGraphInstantiate", [&](Engine &engine, Lock &) {
    auto found = engine.graphs.find(graph);
    if (found == engine.graphs.end())
      return violation(engine, "cudaGraphInstantiate of a graph that does not exist");
    if (cudaError_t error = mayWaitForDevice(engine, "cudaGraphInstantiate", currentDevice()))
      return error;
    *executable = makeHandle<cudaGraphExec_t>();
    engine.executables[*executable] = found->second;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t handle) {
  return call("cudaGraphUpload", [&](Engine &engine, Lock &) {
    std::shared_ptr<Stream> stream;
    if (cudaError_t error = findStream(engine, handle, "cudaGraphUpload", stream))
      return error;
    if (!engine.executables.contains(executable))
      return violation(engine, "cudaGraphUpload of a graph that does not exist");
    return loadAtFirstUse(engine, "cudaGraphUpload", stream->device,
                          reinterpret_cast<uint64_t>(executable));
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  return call("cudaGraphLaunch", [&](Engine &engine, Lock &lock) {
    std::shared_ptr<Stream> stream;
    if (cudaError_t error = findStream(engine, handle, "cudaGraphLaunch", stream))
      return error;
    auto found = engine.executables.find(executable);
    if (found == engine.executables.end())
      return violation(engine, "cudaGraphLaunch of a graph that does not exist");
    if (stream->captured.capture)
      return violation(engine, "cudaGraphLaunch on a stream that is captured, which the stand-in "
                               "does not have");
    if (cudaError_t error =
            loadAtFirstUse(engine, "the first launch of a graph that was not uploaded",
                           stream->device, reinterpret_cast<uint64_t>(executable)))
      return error;
    ++engine.counts.graphLaunches;
    launchGraph(engine, stream, *found->second);
    waitForPlace(engine, lock, stream);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call("cudaGraphDestroy", [&](Engine &engine, Lock &) {
    return engine.graphs.erase(graph)
               ? cudaSuccess
               : violation(engine, "cudaGraphDestroy of a graph that does not exist");
  });
}

// Its launches go on without it.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return call("cudaGraphExecDestroy", [&](Engine &engine, Lock &lock) {
    if (cudaError_t error = waitForDevice(engine, lock, "cudaGraphExecDestroy", currentDevice()))
      return error;
    return engine.executables.erase(executable)
               ? cudaSuccess
               : violation(engine, "cudaGraphExecDestroy of a graph that does not exist");
  });
}

} // extern "C"
