//===- ThreadTeam.cpp - The threads that share the parts of a kernel ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/ThreadTeam.h"

#include "support/StartThread.h"

#include <algorithm>
#include <chrono>
#include <omp.h>

namespace dtc::runtime::cpu {

namespace {

/// How long a thread spins before it sleeps: longer than the gaps between most kernels, and than it
/// takes to wake a thread.
constexpr std::chrono::microseconds kSpinTime{50};

/// Set on a worker, and on a caller while it runs a job.
thread_local bool isInJob = false;

void pauseCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Returns when `value` is no longer `old`.
void waitWhile(const std::atomic<uint32_t> &value, uint32_t old) {
  constexpr int pauses = 32; // between two looks at the clock
  auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < pauses; ++i) {
      if (value.load(std::memory_order_acquire) != old)
        return;
      pauseCore();
    }
  } while (std::chrono::steady_clock::now() < end);
  value.wait(old, std::memory_order_acquire);
}

} // namespace

ThreadTeam &ThreadTeam::ofThisThread() {
  static thread_local ThreadTeam team;
  return team;
}

ThreadTeam::~ThreadTeam() {
  ends.store(true, std::memory_order_release);
  for (const std::unique_ptr<Worker> &worker : workers) {
    worker->bell.fetch_add(1, std::memory_order_release);
    worker->bell.notify_one();
    worker->thread.join();
  }
}

MaybeError ThreadTeam::grow(int count) {
  if (!claims)
    claims = std::make_unique<Claim[]>(static_cast<size_t>(numSlots));
  try {
    while (static_cast<int>(workers.size()) < std::min(count, numSlots - 1)) {
      auto worker = std::make_unique<Worker>();
      int index = static_cast<int>(workers.size()) + 1;
      worker->thread =
          startThread("kernels", [this, index, &bell = worker->bell] { work(bell, index); });
      workers.push_back(std::move(worker));
    }
  } catch (const ThreadStartError &error) {
    return Error{error.what()};
  }
  return std::nullopt;
}

void ThreadTeam::run(int parts, Body body, const void *context) {
  if (parts - 1 > wanted && !isInJob) {
    wanted = parts - 1;
    (void)grow(wanted);
  }
  if (isInJob || workers.empty() || parts <= 1) {
    for (int part = 0; part < parts; ++part)
      body(context, part);
    return;
  }
  isInJob = true;
  uint64_t job = sequence.load(std::memory_order_relaxed) + 2;
  sequence.store(job - 1, std::memory_order_relaxed);
  jobBody.store(body, std::memory_order_release);
  jobContext.store(context, std::memory_order_release);
  jobParts.store(parts, std::memory_order_release);
  sequence.store(job, std::memory_order_release);
  int slots = std::min(parts, numSlots);
  uint32_t end = finished.load(std::memory_order_relaxed) + static_cast<uint32_t>(slots);
  size_t helpers = std::min(workers.size(), static_cast<size_t>(slots - 1));
  for (size_t i = 0; i < helpers; ++i) {
    workers[i]->bell.fetch_add(1, std::memory_order_release);
    workers[i]->bell.notify_one();
  }
  runUnclaimed(job, 0, parts, body, context);
  for (uint32_t now; (now = finished.load(std::memory_order_acquire)) != end;)
    waitWhile(finished, now);
  isInJob = false;
}

void ThreadTeam::work(const std::atomic<uint32_t> &bell, int index) {
  // The library of products starts no threads for a product that is called here.
  omp_set_num_threads(1);
  isInJob = true;
  for (uint32_t heard = 0;;) {
    waitWhile(bell, heard);
    heard = bell.load(std::memory_order_acquire);
    if (ends.load(std::memory_order_acquire))
      return;
    uint64_t job = sequence.load(std::memory_order_acquire);
    Body body = jobBody.load(std::memory_order_acquire);
    const void *context = jobContext.load(std::memory_order_acquire);
    int parts = jobParts.load(std::memory_order_acquire);
    // Otherwise the job of the bell is done, and the bell rings again for the next.
    if (job % 2 == 0 && sequence.load(std::memory_order_relaxed) == job)
      runUnclaimed(job, index, parts, body, context);
  }
}

/// Takes the slots of a job that no thread has taken, beginning with `first`. A job in which one is
/// left is not over: its context is there.
void ThreadTeam::runUnclaimed(uint64_t job, int first, int parts, Body body,
                              const void *context) noexcept {
  int slots = std::min(parts, numSlots);
  for (int i = 0; i < slots; ++i) {
    int slot = (first + i) % slots;
    std::atomic<uint64_t> &claim = claims[static_cast<size_t>(slot)].job;
    uint64_t last = claim.load(std::memory_order_relaxed);
    if (last >= job || !claim.compare_exchange_strong(last, job, std::memory_order_acq_rel))
      continue;
    for (int part = slot; part < parts; part += numSlots)
      body(context, part);
    finished.fetch_add(1, std::memory_order_release);
    finished.notify_one();
  }
}

} // namespace dtc::runtime::cpu
