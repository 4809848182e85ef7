//===- ThreadTeam.h - The threads that share the parts of a kernel --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The thread that runs a kernel has a team: workers of its own, which wait for work. Part i is
// meant for worker i, so that one core reads what it wrote in the kernel before; a thread that is
// done takes parts that nobody has begun. So the caller never waits for a worker that the operating
// system has not given a core, only for one that has begun its part. Threads that wait spin for a
// moment, and then sleep: on a machine with other work they leave it their cores.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_THREADTEAM_H
#define DTC_RUNTIME_BACKENDS_CPU_THREADTEAM_H

#include "support/Error.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace dtc::runtime::cpu {

/// The workers of one thread, the caller. Only the caller calls its functions.
class ThreadTeam {
public:
  /// Runs part `part` of what `context` describes.
  using Body = void (*)(const void *context, int part);

  /// The team of the calling thread, at first without workers. It ends with the thread.
  static ThreadTeam &ofThisThread();

  /// Makes a team without workers, which grows to at most `mostWorkers`.
  explicit ThreadTeam(int mostWorkers = 1023) : numSlots(mostWorkers + 1) {}
  ThreadTeam(const ThreadTeam &) = delete;
  ThreadTeam &operator=(const ThreadTeam &) = delete;
  ~ThreadTeam();

  /// Starts workers until there are `count`, or as many as the team may have. The error says that
  /// the process may not have that many threads; the workers that did start stay.
  MaybeError grow(int count);

  /// Runs body(context, part) for each part below `parts` once, on the caller and on workers.
  /// Starts up to parts - 1 workers if the team has fewer and the process may start them. A call
  /// within a part runs its parts one after the other. An exception in a part ends the process.
  void run(int parts, Body body, const void *context);

private:
  struct Worker {
    /// Changes when there is work, or the end. Alone in its cache line.
    alignas(64) std::atomic<uint32_t> bell{0};
    std::thread thread;
  };

  void work(const std::atomic<uint32_t> &bell, int index);
  void runUnclaimed(uint64_t job, int first, int parts, Body body, const void *context) noexcept;

  std::vector<std::unique_ptr<Worker>> workers; // worker i - 1 is meant for slot i
  int wanted = 0;                               // workers that run() has asked for

  // The job, which the workers read. `sequence` is odd while the caller describes a job, which is
  // then the even number that follows: a worker that reads the same even number before and after
  // the rest has read one job.
  alignas(64) std::atomic<uint64_t> sequence{0};
  std::atomic<Body> jobBody{nullptr};
  std::atomic<const void *> jobContext{nullptr};
  std::atomic<int> jobParts{0};
  std::atomic<bool> ends{false};
  /// How many slots have been run in all, modulo 2^32.
  alignas(64) std::atomic<uint32_t> finished{0};

  /// By slot: the last job in which a thread has taken it. Slot i has the parts i, i + numSlots,
  /// ...
  struct alignas(64) Claim {
    std::atomic<uint64_t> job{0};
  };
  const int numSlots;
  std::unique_ptr<Claim[]> claims; // there are none before the first worker
};

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_THREADTEAM_H
