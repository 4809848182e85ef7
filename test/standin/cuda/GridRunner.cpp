//===- GridRunner.cpp - Execution of a kernel's grid ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/GridRunner.h"

#include "test/standin/cuda/Symbols.h"

#include <fmt/format.h>
#include <numeric>
#include <string_view>
#include <sys/mman.h>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace dtc::standin {

GridRunner &gridRunner() {
  static GridRunner &runner = *new GridRunner;
  return runner;
}

void blockBarrier(Place place) { gridRunner().barrier(place); }
uint64_t exchange(unsigned mask, uint64_t bits, unsigned source, const char *function,
                  Place place) {
  return gridRunner().exchange(mask, bits, source, function, place);
}
unsigned ballot(unsigned mask, bool value, const char *function, Place place) {
  return gridRunner().ballot(mask, value, function, place);
}
unsigned laneIndex() { return gridRunner().lane(); }
std::byte *sharedArray() { return gridRunner().sharedArray(); }

namespace {

/// Coordinates of an index, x first.
uint3 coordinates(uint64_t index, dim3 extents) {
  return {static_cast<unsigned>(index % extents.x),
          static_cast<unsigned>(index / extents.x % extents.y),
          static_cast<unsigned>(index / extents.x / extents.y)};
}

std::string text(uint3 at) { return fmt::format("({}, {}, {})", at.x, at.y, at.z); }

std::string text(Place place) {
  std::string_view file = place.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), place.line());
}

} // namespace

std::optional<std::string> GridRunner::run(const Launch &launched, uint64_t seed) {
  launch = &launched;
  random.seed(static_cast<unsigned>(seed ^ (seed >> 32)));
  if (shared.empty())
    shared = functionThreadLocals();
  placeArray(launch->sharedBytes);
  blockDim = launch->block;
  gridDim = launch->grid;
  threads = blockDim.x * blockDim.y * blockDim.z;
  states.resize(threads);
  waits.resize(threads);
  awaited.assign((threads + 31) / 32, 0);
  places.resize(threads);
  for (unsigned i = 0; i < threads; ++i)
    places[i] = coordinates(i, blockDim);
  uint64_t blocks = uint64_t(gridDim.x) * gridDim.y * gridDim.z;
  // From a random block upwards or downwards, around the end.
  uint64_t first = random() % blocks;
  bool down = random() % 2;
  auto known = sharedOf.find(launch->kernel);
  bool looks = known == sharedOf.end() || random() % 16 == 0;
  poisoned = looks ? shared : known->second;
  std::optional<std::string> error;
  for (uint64_t i = 0; i < blocks && !error; ++i) {
    blockIdx = coordinates((down ? first + blocks - i : first + i) % blocks, gridDim);
    if (i == 0 || random() % 8 == 0)
      poisonShared();
    error = runBlock();
  }
  if (looks && !error)
    findSharedOfKernel();
  launch = nullptr;
  return error;
}

/// A block finds no meaning in its shared memory. For speed not all blocks do: those in between
/// find what an earlier block left.
void GridRunner::poisonShared() {
  for (std::span<std::byte> variable : poisoned)
    std::memset(variable.data(), 0xFF, variable.size());
  if (!array.empty())
    std::memset(array.data(), 0xFF, array.size());
}

/// A kernel's variables are those that a launch has written after all were poisoned. Most launches
/// poison no others, since those of all kernels together are large; some poison all, since a launch
/// with other arguments may write more.
void GridRunner::findSharedOfKernel() {
  std::vector<std::span<std::byte>> &found = sharedOf[launch->kernel];
  for (std::span<std::byte> variable : shared) {
    // All bytes are equal where each is equal to the next. memcmp() is far faster than a loop.
    bool isWritten = variable[0] != std::byte{0xFF} ||
                     std::memcmp(variable.data(), variable.data() + 1, variable.size() - 1) != 0;
    bool isFound =
        std::ranges::any_of(found, [&](auto other) { return other.data() == variable.data(); });
    if (isWritten && !isFound)
      found.push_back(variable);
  }
}

/// At the end of the memory, so that an access after it is a crash.
void GridRunner::placeArray(size_t bytes) {
  if (bytes && arrayMemory.empty()) {
    constexpr size_t page = 4096, most = (kMaxSharedBytes + page - 1) / page * page;
    void *memory =
        mmap(nullptr, most + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(static_cast<std::byte *>(memory) + most, page, PROT_NONE))
      std::abort();
    arrayMemory = {static_cast<std::byte *>(memory), most};
  }
  array = arrayMemory.last((bytes + 15) / 16 * 16);
}

std::optional<std::string> GridRunner::runBlock() {
  begun = left = atBarrier = 0;
  std::fill(states.begin(), states.end(), State::NotBegun);
  // Ascending, descending or scattered.
  factor = 1;
  shift = 0;
  if (unsigned order = random() % 3; order == 1) {
    factor = threads - 1;
    shift = threads - 1;
  } else if (order == 2) {
    do
      factor = 1 + random() % threads;
    while (std::gcd(factor, threads) != 1);
    shift = random() % threads;
  }
  problem = Problem::None;
  running = &next();
  own.switchTo(*running);
  running = nullptr;
  if (problem == Problem::None)
    return std::nullopt;
  std::string message = describeProblem();
  // Coroutines that wait are given up.
  ready.clear();
  idle.clear();
  fibers.clear();
  return message;
}

Fiber *GridRunner::idleFiber() {
  if (idle.empty()) {
    fibers.push_back(std::make_unique<Fiber>([this] {
      for (;;) {
        runThreads();
        idle.push_back(running);
        goOn();
      }
    }));
    return fibers.back().get();
  }
  Fiber *fiber = idle.back();
  idle.pop_back();
  return fiber;
}

/// The coroutine that goes on: that of a thread which no longer waits, or one for threads that have
/// not begun. runBlock()'s own stack where none is left or none can.
Fiber &GridRunner::next() {
  bool canBegin = begun < threads;
  if (!ready.empty() && (!canBegin || random() % 2)) {
    std::swap(ready[random() % ready.size()], ready.back());
    unsigned thread = ready.back();
    ready.pop_back();
    setThread(thread);
    states[thread] = State::Running;
    return *waits[thread].fiber;
  }
  if (canBegin)
    return *idleFiber();
  if (left < threads)
    problem = Problem::Stuck;
  return own;
}

/// Leaves the coroutine that runs to another, until that or a later one comes back to it.
void GridRunner::goOn() {
  Fiber &self = *running, &other = next();
  if (&other == &self)
    return;
  running = &other;
  self.switchTo(other);
}

/// The body of a coroutine: executes threads until all have begun.
void GridRunner::runThreads() {
  while (begun < threads) {
    unsigned index = permuted(begun++);
    setThread(index);
    states[index] = State::Running;
    launch->thread();
    states[current] = State::Left;
    ++left;
  }
}

unsigned GridRunner::permuted(unsigned index) const {
  return static_cast<unsigned>((uint64_t(index) * factor + shift) % threads);
}

void GridRunner::setThread(unsigned index) {
  current = index;
  threadIdx = places[index];
}

void GridRunner::suspend(State state) {
  states[current] = state;
  waits[current].fiber = running;
  goOn();
}

/// The message is not made here: objects on the stack of a coroutine that is given up are not
/// destroyed.
void GridRunner::fail(Problem found, unsigned other) {
  problem = found;
  problemOther = other;
  running->switchTo(own);
  std::abort(); // nobody goes on with it
}

void GridRunner::barrier(Place place) {
  unsigned self = current;
  Wait &wait = waits[self];
  wait.function = "__syncthreads";
  wait.place = place;
  states[self] = State::AtBarrier;
  if (++atBarrier == threads) {
    for (unsigned i = 0; i < threads; ++i)
      if (!sameWait(i, self))
        fail(Problem::TwoBarriers, i);
    atBarrier = 0;
    for (unsigned i = 0; i < threads; ++i)
      ready.push_back(i);
  }
  suspend(State::AtBarrier);
}

/// Whether two literals are equal. A header that several objects include has an address in each.
static bool sameText(const char *a, const char *b) { return a == b || std::string_view(a) == b; }

bool GridRunner::sameWait(unsigned a, unsigned b) const {
  const Wait &x = waits[a], &y = waits[b];
  return states[a] == states[b] && x.place.line() == y.place.line() &&
         sameText(x.function, y.function) && sameText(x.place.file_name(), y.place.file_name()) &&
         (states[a] != State::InWarp || x.mask == y.mask);
}

uint64_t GridRunner::exchange(unsigned mask, uint64_t bits, unsigned source, const char *function,
                              Place place) {
  unsigned self = current;
  waits[self] = {running, function, place, mask, source, bits, 0};
  if (!(mask >> (source % 32) & 1))
    fail(Problem::SourceNotInMask, source);
  arriveInWarp();
  return waits[self].result;
}

unsigned GridRunner::ballot(unsigned mask, bool value, const char *function, Place place) {
  unsigned self = current;
  waits[self] = {running, function, place, mask, 32, value, 0};
  arriveInWarp();
  return static_cast<unsigned>(waits[self].result);
}

void GridRunner::arriveInWarp() {
  unsigned self = current, first = self & ~31u, mask = waits[self].mask;
  if (!(mask >> (self % 32) & 1))
    fail(Problem::SelfNotInMask, self);
  states[self] = State::InWarp;
  auto isMissing = [&](unsigned lane) {
    return (mask >> lane & 1) && !(first + lane < threads && sameWait(first + lane, self));
  };
  // The lane that the one before waited for comes first, so that not each looks at all.
  unsigned &missing = awaited[first / 32];
  bool complete = !isMissing(missing);
  for (unsigned lane = 0; lane < 32 && complete; ++lane)
    if (isMissing(lane)) {
      missing = lane;
      complete = false;
    }
  if (complete) {
    uint64_t votes = 0;
    for (unsigned lane = 0; lane < 32; ++lane)
      if (mask >> lane & 1)
        votes |= (waits[first + lane].bits & 1) << lane;
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (!(mask >> lane & 1))
        continue;
      Wait &wait = waits[first + lane];
      wait.result = wait.source < 32 ? waits[first + wait.source].bits : votes;
      if (first + lane != self) {
        states[first + lane] = State::Running;
        ready.push_back(first + lane);
      }
    }
    states[self] = State::Running;
    return;
  }
  suspend(State::InWarp);
}

std::string GridRunner::describe(unsigned index) const {
  return fmt::format("kernel {}, block {}, thread {}", functionName(launch->kernel), text(blockIdx),
                     text(coordinates(index, blockDim)));
}

std::optional<std::string> GridRunner::describeThread() const {
  if (!launch)
    return std::nullopt;
  return describe(current);
}

bool GridRunner::isBelowStack(const void *address) const {
  return running && running->isBelowStack(address);
}

std::string GridRunner::doing(unsigned index) const {
  switch (states[index]) {
  case State::Left:
    return "has left the kernel";
  case State::AtBarrier:
    return "waits in " + calls(index);
  default:
    return fmt::format("waits in {} with mask {:#010x}", calls(index), waits[index].mask);
  }
}

std::string GridRunner::calls(unsigned index) const {
  return fmt::format("{} ({})", waits[index].function, text(waits[index].place));
}

std::string GridRunner::describeProblem() const {
  switch (problem) {
  case Problem::TwoBarriers:
    return fmt::format("{} {}, but thread {} {}", describe(current), doing(current),
                       text(coordinates(problemOther, blockDim)), doing(problemOther));
  case Problem::SelfNotInMask:
    return fmt::format("{} calls {} with the mask {:#010x}, which does not have its lane {}",
                       describe(current), calls(current), waits[current].mask, current % 32);
  case Problem::SourceNotInMask:
    return fmt::format("{} calls {} and reads lane {}, which is not in the mask {:#010x}",
                       describe(current), calls(current), problemOther, waits[current].mask);
  default:
    return stuckMessage();
  }
}

/// All threads have begun and none can go on: names one that waits and one that it waits for.
std::string GridRunner::stuckMessage() const {
  unsigned self = 0;
  while (states[self] == State::Left)
    ++self;
  bool warp = states[self] == State::InWarp;
  unsigned first = warp ? self & ~31u : 0, end = warp ? first + 32 : threads;
  for (unsigned other = first; other < end; ++other) {
    if (warp && !(waits[self].mask >> (other % 32) & 1))
      continue;
    if (other >= threads)
      return fmt::format("{} {}, which names lane {}, but the block has no such thread",
                         describe(self), doing(self), other % 32);
    if (!sameWait(other, self))
      return fmt::format("{} {}, but thread {} {}", describe(self), doing(self),
                         text(coordinates(other, blockDim)), doing(other));
  }
  return fmt::format("{} {} forever", describe(self), doing(self));
}

} // namespace dtc::standin
