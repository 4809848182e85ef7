//===- Engine.cpp - Streams, events and the order of their work ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/Engine.h"

#include "test/standin/cuda/Capture.h"
#include "test/standin/cuda/Crash.h"
#include "test/standin/cuda/GridRunner.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <thread>

namespace dtc::standin {

namespace {

// Not local to a function, as the shared memory of kernels is.
thread_local bool hostFunction = false;

/// Of the engine's thread.
const Operation *currentOperation = nullptr;

/// The order of execution does not depend on the time of short host functions.
constexpr auto kHostFunctionGrace = std::chrono::milliseconds(5);

} // namespace

bool inHostFunction() { return hostFunction; }

std::string describeCurrentWork() {
  if (std::optional<std::string> thread = gridRunner().describeThread())
    return *thread;
  return currentOperation ? currentOperation->describe() : "";
}

Engine &Engine::get() {
  // Lives until the process ends, as its threads do.
  static Engine &engine = *new Engine;
  return engine;
}

Engine::Engine() {
  random.seed(settings.seed);
  std::thread([this] { work(); }).detach();
}

void Engine::reset(Lock &lock, const Settings &given) {
  for (auto &stream : active)
    while (stream->operations.size() > (stream->busy ? 1 : 0))
      stream->operations.pop_back();
  quiet.wait(lock, [&] {
    return std::none_of(active.begin(), active.end(),
                        [](const auto &stream) { return stream->busy; });
  });
  settings = given;
  random.seed(settings.seed);
  counts = {};
  launches.clear();
  loaded.clear();
  pendingCalls.clear();
  active.clear();
  streams.clear();
  events.clear();
  captures.clear();
  graphs.clear();
  executables.clear();
  lost.clear();
  for (std::vector<Fault> *faults : {&callFaults, &workFaults, &recordFaults, &waitFaults,
                                     &workStalls, &collectiveStalls, &callStalls})
    faults->clear();
  workOf.clear();
  collectivesOf.clear();
  stalls.clear();
  collector = nullptr;
  memory.freeAll();
}

cudaError_t Engine::errorOf(int device) const {
  auto found = lost.find(device);
  return found == lost.end() ? cudaSuccess : found->second;
}

std::optional<cudaError_t> Engine::takeFault(std::vector<Fault> &faults,
                                             const std::string &function) {
  std::optional<cudaError_t> taken;
  std::erase_if(faults, [&](Fault &fault) {
    if (!fault.function.empty() && fault.function != function)
      return false;
    if (fault.left--)
      return false;
    taken = fault.error;
    return true;
  });
  return taken;
}

std::optional<std::string> Engine::waitsForOthers(int device, const void *group) {
  std::erase_if(pendingCalls, [&](const PendingCall &call) {
    std::shared_ptr<const std::atomic<bool>> aborted = call.aborted.lock();
    return call.stream->done >= call.position || !aborted || *aborted;
  });
  if (errorOf(device) || !settings.refusesWaits)
    return std::nullopt;
  for (const PendingCall &call : pendingCalls)
    if (call.stream->device == device && (!group || call.group != group))
      return call.name;
  return std::nullopt;
}

void Engine::violate(const std::string &message) {
  if (collector)
    collector(message);
  else
    crash(message, settings.seed);
}

void Engine::enqueue(const std::shared_ptr<Stream> &stream, Operation operation) {
  if (stream->captured.capture) {
    addToCapture(*stream, std::move(operation));
    return;
  }
  if (operation.moment && operation.kind == Operation::Kind::Record) {
    operation.moment->stream = stream;
    operation.moment->position = stream->given + 1;
  }
  stream->operations.push_back(std::move(operation));
  ++stream->given;
  if (std::find(active.begin(), active.end(), stream) == active.end()) {
    stream->priority = random();
    active.push_back(stream);
  }
  // Else the engine wakes by itself, or is awake.
  if (!demands.empty() || sleepsForever)
    wake.notify_one();
}

void Engine::complete(Moment &moment) {
  moment.done = true;
  wake.notify_one();
}

std::shared_ptr<Moment> Engine::stall() {
  auto moment = std::make_shared<Moment>();
  stalls.push_back(moment);
  return moment;
}

void Engine::stallCaller(Lock &lock) {
  stallsEnd.wait(lock, [this, before = endedStalls] { return endedStalls != before; });
}

void Engine::endStalls() {
  for (std::vector<Fault> *faults : {&workStalls, &collectiveStalls, &callStalls})
    faults->clear();
  for (const std::weak_ptr<Moment> &stalled : std::exchange(stalls, {}))
    if (std::shared_ptr<Moment> moment = stalled.lock())
      complete(*moment);
  ++endedStalls;
  stallsEnd.notify_all();
}

void Engine::waitFor(Lock &lock, std::vector<Position> positions) {
  Demand demand{std::move(positions), Order(random() % 3), std::nullopt};
  await(lock, demand);
}

void Engine::poll(Lock &lock, std::vector<Position> positions) {
  // None half of the time, and seldom many.
  uint64_t count = 0;
  while (random() % 2)
    count = 2 * count + 1;
  Demand demand{std::move(positions), Order(random() % 3), count};
  await(lock, demand);
}

void Engine::await(Lock &lock, Demand &demand) {
  drawPriorities();
  if (isMet(demand))
    return;
  demands.push_back(&demand);
  wake.notify_one();
  met.wait(lock, [&] { return demand.met; });
}

bool Engine::isMet(const Demand &demand) const {
  if (demand.operations && *demand.operations == 0)
    return true;
  return std::all_of(demand.positions.begin(), demand.positions.end(), [&](const Position &at) {
    return at.stream->done >= at.position || errorOf(at.stream->device);
  });
}

void Engine::drawPriorities() {
  for (auto &stream : active)
    stream->priority = random();
}

bool Engine::canRun(const Stream &stream) {
  if (stream.busy || stream.operations.empty())
    return false;
  const Operation &first = stream.operations.front();
  if (first.stall && !first.stall->done)
    return false;
  return first.kind != Operation::Kind::Wait || first.moment->done;
}

/// The streams whose first operation can be executed now and has to be, before `position`.
void Engine::findNeeded(const Position &position, std::vector<std::shared_ptr<Stream>> &found,
                        std::vector<const Stream *> &seen) {
  const auto &stream = position.stream;
  if (stream->done >= position.position || stream->operations.empty() ||
      std::find(seen.begin(), seen.end(), stream.get()) != seen.end())
    return;
  seen.push_back(stream.get());
  const Operation &first = stream->operations.front();
  if (canRun(*stream))
    found.push_back(stream);
  else if (!stream->busy && first.moment && first.moment->stream)
    findNeeded({first.moment->stream, first.moment->position}, found, seen);
}

/// PCT's priorities: Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of
/// Finding Bugs" (ASPLOS 2010).
std::shared_ptr<Stream> Engine::choose(const Demand *demand) {
  std::vector<std::shared_ptr<Stream>> found;
  Order order = demand ? demand->order : Order::Any;
  if (order == Order::Needed) {
    std::vector<const Stream *> seen;
    for (const Position &position : demand->positions)
      findNeeded(position, found, seen);
  } else {
    std::copy_if(active.begin(), active.end(), std::back_inserter(found),
                 [](const auto &stream) { return canRun(*stream); });
  }
  if (found.empty())
    return nullptr;
  if (order != Order::Priorities)
    return found[random() % found.size()];
  auto highest = *std::max_element(found.begin(), found.end(), [](const auto &a, const auto &b) {
    return a->priority < b->priority;
  });
  if (random() % 16 == 0)
    highest->priority = random() / 2;
  return highest;
}

std::shared_ptr<Stream> Engine::chooseForAll(bool isIdle) {
  for (Demand *demand : demands) {
    if (std::shared_ptr<Stream> stream = choose(demand))
      return stream;
    // A poll does not wait for host functions.
    if (demand->operations)
      demand->operations = 0;
  }
  // Host functions may wait for others.
  bool blocked =
      std::any_of(active.begin(), active.end(), [](auto &stream) { return stream->busy; });
  return isIdle || blocked ? choose(nullptr) : nullptr;
}

void Engine::work() {
  installCrashHandler();
  Lock lock(mutex);
  for (;;) {
    finishDemands();
    bool pending = std::any_of(active.begin(), active.end(),
                               [](const auto &stream) { return !stream->operations.empty(); });
    Clock::time_point idleAt = lastCall + settings.idle;
    bool isIdle = pending && Clock::now() >= idleAt;
    if (std::shared_ptr<Stream> stream = chooseForAll(isIdle)) {
      execute(lock, stream);
      continue;
    }
    memory.open(kPinned, kPinned);
    if (std::any_of(demands.begin(), demands.end(), [&](auto *demand) { return isMet(*demand); }))
      continue;
    if (pending && !isIdle) {
      wake.wait_until(lock, idleAt);
    } else {
      sleepsForever = true;
      wake.wait(lock);
      sleepsForever = false;
    }
  }
}

void Engine::finishDemands() {
  bool any = false;
  demands.remove_if([&](Demand *demand) {
    if (!isMet(*demand))
      return false;
    demand->met = true;
    return any = true;
  });
  if (any) {
    // Host threads find the memory of devices closed.
    if (demands.empty())
      memory.open(kPinned, kPinned);
    met.notify_all();
  }
}

void Engine::execute(Lock &lock, const std::shared_ptr<Stream> &stream) {
  Operation &operation = stream->operations.front();
  stream->busy = true;
  if (settings.trace)
    fmt::print(stderr, "cuda stand-in: device {}, stream {}: {}\n", stream->device, stream->number,
               operation.describe());
  for (Demand *demand : demands)
    if (demand->operations && *demand->operations)
      --*demand->operations;
  switch (operation.kind) {
  case Operation::Kind::Wait:
    return finish(*stream, std::nullopt);
  case Operation::Kind::Record:
    operation.moment->time = Clock::now();
    operation.moment->done = true;
    return finish(*stream, std::nullopt);
  case Operation::Kind::Work:
    return executeWork(lock, *stream, operation);
  case Operation::Kind::HostFunction:
    auto &thread = hostThreads[stream->device];
    if (!thread) {
      thread = std::make_unique<HostThread>();
      std::thread([this, &own = *thread] { workForHost(own); }).detach();
    }
    thread->streams.push_back(stream);
    thread->wake.notify_one();
    wake.wait_for(lock, kHostFunctionGrace, [&] { return !stream->busy; });
  }
}

void Engine::executeWork(Lock &lock, Stream &stream, Operation &operation) {
  if (takeFault(workStalls, placeOf("work", stream.device))) {
    operation.stall = stall();
    stream.busy = false;
    return;
  }
  memory.open(stream.device, operation.otherDevice);
  std::optional<Failure> failure;
  if (std::optional<cudaError_t> fault = takeFault(workFaults, placeOf("work", stream.device))) {
    failure = Failure{*fault, ""};
  } else {
    currentOperation = &operation;
    lock.unlock();
    failure = operation.run();
    lock.lock();
    if (std::optional<std::string> damage = memory.findDamage(); damage && !failure)
      failure = Failure{cudaErrorIllegalAddress,
                        fmt::format("{}: wrote {}", operation.describe(), *damage)};
    currentOperation = nullptr;
  }
  ++counts.work;
  ++workOf[stream.device];
  finish(stream, std::move(failure));
}

void Engine::workForHost(HostThread &own) {
  hostFunction = true;
  Lock lock(mutex);
  for (;;) {
    own.wake.wait(lock, [&] { return !own.streams.empty(); });
    std::shared_ptr<Stream> stream = std::move(own.streams.front());
    own.streams.pop_front();
    std::optional<Failure> failure;
    if (std::optional<cudaError_t> fault = takeFault(workFaults))
      failure = Failure{*fault, ""};
    // A device that was lost meanwhile does not call the function.
    if (!failure && !errorOf(stream->device)) {
      Operation &operation = stream->operations.front();
      lock.unlock();
      failure = operation.run();
      lock.lock();
    }
    ++counts.work;
    finish(*stream, std::move(failure));
  }
}

void Engine::finish(Stream &stream, std::optional<Failure> failure) {
  stream.busy = false;
  stream.operations.pop_front();
  stream.done = stream.given - stream.operations.size();
  if (failure) {
    if (!failure->violation.empty())
      violate(failure->violation);
    loseDevice(stream.device, failure->error);
  }
  std::erase_if(active, [](const auto &other) { return other->operations.empty(); });
  wake.notify_one();
  quiet.notify_all();
}

void Engine::loseDevice(int device, cudaError_t error) {
  lost.emplace(device, error);
  for (auto &stream : active) {
    if (stream->device != device)
      continue;
    // The operation that is being executed ends in finish().
    while (stream->operations.size() > (stream->busy ? 1 : 0)) {
      if (stream->operations.back().kind == Operation::Kind::Record)
        stream->operations.back().moment->done = true;
      stream->operations.pop_back();
    }
    stream->done = stream->given - stream->operations.size();
  }
  wake.notify_one();
}

} // namespace dtc::standin
