//===- Standin.cpp - Control of the stand-in of CUDA ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/Standin.h"

#include "test/standin/cuda/Api.h"
#include "test/standin/cuda/Symbols.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace dtc::standin {

Settings::Settings() : seed(1), trace(std::getenv("DTC_CUDA_STANDIN_TRACE")) {
  if (const char *text = std::getenv("DTC_CUDA_STANDIN_SEED")) {
    const char *end = text + std::strlen(text);
    auto [read, error] = std::from_chars(text, end, seed);
    if (error != std::errc() || read != end) {
      std::fprintf(stderr, "error: DTC_CUDA_STANDIN_SEED is \"%s\", expected a number below 2^64\n",
                   text);
      std::exit(1);
    }
  }
}

void reset(const Settings &settings) {
  Engine &engine = Engine::get();
  {
    Lock lock(engine.mutex);
    engine.reset(lock, settings);
  }
  currentDevice() = 0;
  (void)cudaGetLastError();
}

Counts counts() {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  Counts counts = engine.counts;
  counts.allocations = engine.memory.count();
  counts.streams = engine.streams.size();
  counts.events = engine.events.size();
  counts.graphs = engine.graphs.size() + engine.executables.size();
  return counts;
}

std::map<std::string, uint64_t> launchesByKernel() {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  std::map<std::string, uint64_t> counts;
  for (auto [kernel, count] : engine.launches)
    counts[kernel ? functionName(kernel) : "cublasLtMatmul"] += count;
  return counts;
}

void failCall(uint64_t n, cudaError_t error, std::string function) {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  engine.callFaults.push_back({n, error, std::move(function)});
}

void failWork(uint64_t n, cudaError_t error) {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  engine.workFaults.push_back({n, error, {}});
}

static void addFault(std::vector<Engine::Fault> Engine::*faults, uint64_t n,
                     const std::string &function, int device, cudaError_t error = cudaSuccess) {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  (engine.*faults).push_back({n, error, Engine::placeOf(function, device)});
}

void loseDeviceAt(uint64_t n, int device, cudaError_t error) {
  addFault(&Engine::workFaults, n, "work", device, error);
}

void stallWork(uint64_t n, int device) { addFault(&Engine::workStalls, n, "work", device); }

void stallCollective(uint64_t n, int device) {
  addFault(&Engine::collectiveStalls, n, "collective", device);
}

void stallCall(uint64_t n, const std::string &function, int device) {
  addFault(&Engine::callStalls, n, function, device);
}

void endStalls() {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  engine.endStalls();
}

uint64_t workOf(int device) {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  return engine.workOf[device];
}

uint64_t collectivesOf(int device) {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  return engine.collectivesOf[device];
}

void loseDevice(int device, cudaError_t error) {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  engine.loseDevice(device, error);
}

void ignoreRecord(uint64_t n) {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  engine.recordFaults.push_back({n, cudaSuccess, {}});
}

void ignoreWait(uint64_t n) {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  engine.waitFaults.push_back({n, cudaSuccess, {}});
}

void collectViolations(std::function<void(const std::string &)> collector) {
  Engine &engine = Engine::get();
  Lock lock(engine.mutex);
  engine.collector = std::move(collector);
}

} // namespace dtc::standin
