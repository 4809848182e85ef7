//===- Capture.cpp - Captured work of streams ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/Capture.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::standin {

void addToCapture(Stream &stream, Operation operation) {
  Capture &capture = *stream.captured.capture;
  capture.nodes.push_back({std::move(operation), stream.device, std::move(stream.captured.after)});
  stream.captured.after = {capture.nodes.size() - 1};
}

cudaError_t joinCapture(Stream &stream, const CapturedMoment &moment) {
  std::shared_ptr<Capture> &own = stream.captured.capture;
  if (own && own != moment.capture) {
    own->isInvalid = true;
    if (!moment.capture)
      return cudaErrorStreamCaptureIsolation;
    moment.capture->isInvalid = true;
    return cudaErrorStreamCaptureMerge;
  }
  own = moment.capture;
  std::vector<size_t> &after = stream.captured.after;
  for (size_t node : moment.after)
    if (std::find(after.begin(), after.end(), node) == after.end())
      after.push_back(node);
  return cudaSuccess;
}

cudaError_t checkNotCapturing(Engine &engine) {
  cudaError_t error = cudaSuccess;
  for (const std::shared_ptr<Capture> &capture : engine.captures)
    if (capture->thread == std::this_thread::get_id()) {
      capture->isInvalid = true;
      error = cudaErrorStreamCaptureUnsupported;
    }
  return error;
}

cudaError_t checkNotCaptured(const Stream &stream) {
  if (!stream.captured.capture)
    return cudaSuccess;
  stream.captured.capture->isInvalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

namespace {

/// A launch of a graph. A chain is a node, the only one that comes after it and after nothing else,
/// and so on.
class GraphLaunch {
public:
  GraphLaunch(Engine &engine, const Capture &graph)
      : engine(engine), nodes(graph.nodes), chains(nodes.size()), moments(nodes.size()),
        successors(nodes.size()) {
    for (const Capture::Node &node : nodes)
      for (size_t before : node.after)
        ++successors[before];
  }

  void run(const std::shared_ptr<Stream> &stream) {
    begin = record(stream, "a graph begins");
    for (size_t i = 0; i < nodes.size(); ++i)
      enqueueNode(i);
    for (size_t i = 0; i < nodes.size(); ++i)
      if (successors[i] == 0)
        wait(stream, moments[i]);
  }

private:
  bool continuesChain(size_t i) const {
    const std::vector<size_t> &after = nodes[i].after;
    return after.size() == 1 && successors[after.front()] == 1 &&
           nodes[after.front()].device == nodes[i].device;
  }

  void enqueueNode(size_t i) {
    const Capture::Node &node = nodes[i];
    if (continuesChain(i)) {
      chains[i] = chains[node.after.front()];
    } else {
      chains[i] = std::make_shared<Stream>();
      chains[i]->device = node.device;
      chains[i]->number = engine.nextStream++;
      if (node.after.empty())
        wait(chains[i], begin);
      for (size_t before : node.after)
        wait(chains[i], moments[before]);
    }
    if (node.operation.expand)
      node.operation.expand(engine, chains[i]);
    else
      engine.enqueue(chains[i], node.operation);
    moments[i] = record(chains[i], "a node of a graph is done");
  }

  std::shared_ptr<Moment> record(const std::shared_ptr<Stream> &stream, const char *what) {
    auto moment = std::make_shared<Moment>();
    engine.enqueue(
        stream, {Operation::Kind::Record, [what] { return std::string(what); }, nullptr, moment});
    return moment;
  }

  void wait(const std::shared_ptr<Stream> &stream, const std::shared_ptr<Moment> &moment) {
    engine.enqueue(stream, {Operation::Kind::Wait, [] { return std::string("an edge of a graph"); },
                            nullptr, moment});
  }

  Engine &engine;
  const std::vector<Capture::Node> &nodes;
  std::vector<std::shared_ptr<Stream>> chains;
  std::vector<std::shared_ptr<Moment>> moments;
  std::vector<size_t> successors; // how many nodes come after each
  std::shared_ptr<Moment> begin;
};

} // namespace

void launchGraph(Engine &engine, const std::shared_ptr<Stream> &stream, const Capture &graph) {
  GraphLaunch(engine, graph).run(stream);
}

} // namespace dtc::standin
