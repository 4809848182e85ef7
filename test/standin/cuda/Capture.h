//===- Capture.h - Captured work of streams ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Work that a stream gets while it is captured becomes a node of a graph, with edges from all that
// comes before it in its stream and at the events that the stream has waited for. A launch of the
// graph gives the engine chains of nodes as streams of their own, so that it executes them in any
// order that the edges allow.
//
// All with the engine's lock.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_CAPTURE_H
#define DTC_TEST_STANDIN_CUDA_CAPTURE_H

#include "test/standin/cuda/Engine.h"

#include <thread>

namespace dtc::standin {

struct Capture {
  struct Node {
    Operation operation;
    int device = 0;
    std::vector<size_t> after; // nodes, by number
  };

  std::shared_ptr<Stream> origin;
  std::thread::id thread; // that has begun it
  bool isInvalid = false;
  std::vector<Node> nodes; // each after those that it has to come after
};

/// The operation becomes a node of the stream's capture.
void addToCapture(Stream &stream, Operation operation);
/// The work that the stream gets comes after `moment` too. The stream becomes one of the capture.
cudaError_t joinCapture(Stream &stream, const CapturedMoment &moment);
/// The error of a call that the calling thread may not make while it captures, which ends the
/// capture; cudaSuccess where it does not capture.
cudaError_t checkNotCapturing(Engine &engine);
/// The error of a call that waits for a stream, or asks for the state of its work.
cudaError_t checkNotCaptured(const Stream &stream);
/// Enqueues all nodes, between what the stream holds and what it gets next.
void launchGraph(Engine &engine, const std::shared_ptr<Stream> &stream, const Capture &graph);

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_CAPTURE_H
