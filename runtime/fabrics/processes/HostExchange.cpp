//===- HostExchange.cpp - Chunks that processes of a host exchange ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/HostExchange.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace dtc::runtime {

/// The bytes that a process gives the others at a time. The larger it is, the less often processes
/// wait for each other, which takes long where others use the cores too; the smaller it is, the
/// more of it stays in the caches.
static constexpr size_t kChunkBytes = 1024 * 1024;

/// The least bytes that one process has for another.
static constexpr size_t kLeastPairBytes = 4096;

namespace {

/// A number that only grows, and that other processes wait for. It wraps.
struct Counter {
  std::atomic<uint32_t> value;
  std::atomic<uint32_t> sleepers;

  bool hasReached(uint32_t target) const {
    return static_cast<int32_t>(value.load(std::memory_order_acquire) - target) >= 0;
  }
  void set(uint32_t to) {
    value.store(to, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) > 0)
      syscall(SYS_futex, &value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  /// Sleeps until the number changes, or for a while.
  void sleep(uint32_t target) {
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    uint32_t seen = value.load(std::memory_order_seq_cst);
    timespec longest = {0, 50'000'000};
    if (static_cast<int32_t>(seen - target) < 0)
      syscall(SYS_futex, &value, FUTEX_WAIT, seen, &longest, nullptr, 0);
    sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }
};
static_assert(std::atomic<uint32_t>::is_always_lock_free, "shared between processes");

void pauseBriefly() {
#ifdef __SSE2__
  _mm_pause();
#endif
}

} // namespace

/// The progress of one process, which it writes and the others read. Values that others wait for at
/// different times are in cache lines of their own.
struct HostExchange::Progress {
  struct alignas(64) Published {
    Counter count;
    std::atomic<uint64_t> fingerprints[2]; // of the last two

    void publish(uint32_t number, uint64_t fingerprint) {
      fingerprints[number % 2].store(fingerprint, std::memory_order_relaxed);
      count.set(number + 1);
    }
    bool isOf(uint32_t number, uint64_t fingerprint) const {
      return fingerprints[number % 2].load(std::memory_order_relaxed) == fingerprint;
    }
  };
  Published smallExchanges, chunks;
  alignas(64) Counter taken; // chunks
};

/// Processes that do the same arrive within some microseconds. A process that gives way to many
/// other threads may get its core back milliseconds later. So it gives way only where processes
/// share cores, or after it has waited for a while; then it sleeps.
template <typename Counter>
static MaybeError await(Counter &counter, uint32_t target, const Messages &messages) {
  using namespace std::chrono;
  static const int64_t cores = std::thread::hardware_concurrency();
  const microseconds busy(messages.processesOnHost() <= cores ? 50 : 0), awake(500);
  steady_clock::time_point begin;
  for (int64_t round = 0; !counter.hasReached(target); ++round) {
    if (round % 64 != 63) {
      pauseBriefly();
      continue;
    }
    if (MaybeError error = messages.failure())
      return error;
    steady_clock::time_point now = steady_clock::now();
    if (begin == steady_clock::time_point())
      begin = now;
    if (now - begin >= awake)
      counter.sleep(target);
    else if (now - begin >= busy)
      std::this_thread::yield();
  }
  return std::nullopt;
}

Expected<std::unique_ptr<HostExchange>> HostExchange::open(Messages &messages,
                                                           const ProcessGroup &group, int64_t tag) {
  size_t processes = group.numProcesses();
  std::unique_ptr<HostExchange> exchange(new HostExchange(messages, group));
  exchange->pair = std::max(kChunkBytes / (processes - 1) / 64 * 64, kLeastPairBytes);
  size_t bytes = processes * (sizeof(Progress) +
                              2 * (smallBytes() + exchange->allBytes() + exchange->pairBytes()));
  auto memory = HostMemory::open(messages, group, tag, bytes);
  if (!memory)
    return memory.error();
  if (!*memory)
    return std::unique_ptr<HostExchange>();
  exchange->memory = std::move(*memory);
  return exchange;
}

HostExchange::Progress &HostExchange::progressOf(size_t process) const {
  // Memory of zeros is a Progress at its beginning.
  return reinterpret_cast<Progress *>(memory->data())[process];
}

std::byte *HostExchange::smallOf(size_t process, uint32_t number) const {
  return memory->data() + group.numProcesses() * sizeof(Progress) +
         (2 * process + number % 2) * smallBytes();
}

std::byte *HostExchange::chunkOf(size_t process, uint32_t chunk) const {
  return smallOf(group.numProcesses(), 0) + (2 * process + chunk % 2) * (allBytes() + pairBytes());
}

Error HostExchange::otherCollective(size_t process) const {
  return Error{fmt::format("process {} runs another collective than process {}: the members of the "
                           "group called different collectives",
                           group.processes[process], group.processes[group.own])};
}

/// A process that publishes the next exchange has read this one, so the data of the exchange before
/// may be overwritten.
MaybeError HostExchange::awaitSmall(uint64_t fingerprint) {
  progressOf(group.own).smallExchanges.publish(smallExchanges, fingerprint);
  for (size_t process = 0; process < group.numProcesses(); ++process) {
    Progress::Published &others = progressOf(process).smallExchanges;
    if (MaybeError error = await(others.count, smallExchanges + 1, messages))
      return error;
    if (!others.isOf(smallExchanges, fingerprint))
      return otherCollective(process);
  }
  ++smallExchanges;
  return std::nullopt;
}

std::byte *HostExchange::outgoing(size_t to) const { return forAll() + placeOf(group.own, to); }

const std::byte *HostExchange::incoming(size_t from) const {
  return fromAll(from) + placeOf(from, group.own);
}

MaybeError HostExchange::startChunk() {
  for (size_t process = 0; process < group.numProcesses(); ++process)
    if (MaybeError error = await(progressOf(process).taken, published - 1, messages))
      return error;
  return std::nullopt;
}

void HostExchange::publishChunk(uint64_t fingerprint) {
  progressOf(group.own).chunks.publish(published++, fingerprint);
}

MaybeError HostExchange::awaitChunk(uint64_t fingerprint) {
  for (size_t process = 0; process < group.numProcesses(); ++process) {
    Progress::Published &others = progressOf(process).chunks;
    if (MaybeError error = await(others.count, taken + 1, messages))
      return error;
    if (!others.isOf(taken, fingerprint))
      return otherCollective(process);
  }
  return std::nullopt;
}

void HostExchange::takeChunk() { progressOf(group.own).taken.set(++taken); }

MaybeError HostExchange::awaitResults() {
  for (size_t process = 0; process < group.numProcesses(); ++process)
    if (MaybeError error = await(progressOf(process).taken, taken, messages))
      return error;
  return std::nullopt;
}

} // namespace dtc::runtime
