//===- GridRunner.h - Execution of a kernel's grid -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The blocks of a grid are executed one after the other, in an order that is drawn, and so are the
// threads of a block. A thread that has to wait for others is suspended, and a new coroutine goes
// on with the threads that have not begun. A kernel without barriers thus is one loop in one
// coroutine.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_GRIDRUNNER_H
#define DTC_TEST_STANDIN_CUDA_GRIDRUNNER_H

#include "test/standin/cuda/Fiber.h"
#include "test/standin/cuda/KernelLanguage.h"
#include "test/standin/cuda/Launch.h"

#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace dtc::standin {

/// The most bytes of shared memory that a launch can ask for, if the kernel allows it, and that are
/// for all blocks of a multiprocessor: less than rows of logits need, which are tested with less.
inline constexpr int kMaxSharedBytes = 99 * 1024, kMultiprocessorSharedBytes = 164 * 1024;

class GridRunner {
public:
  /// Executes all threads. An error names the kernel, the block and the thread: a barrier that some
  /// threads do not reach, or a function of a warp that some lanes of its mask do not.
  std::optional<std::string> run(const Launch &launch, uint64_t seed);

  /// "kernel f, block (0, 0, 0), thread (1, 0, 0)"; none between two launches.
  std::optional<std::string> describeThread() const;
  /// Whether `address` is just below the stack of a thread of a kernel.
  bool isBelowStack(const void *address) const;

  // Functions that threads of kernels call.
  void barrier(Place place);
  uint64_t exchange(unsigned mask, uint64_t bits, unsigned source, const char *function,
                    Place place);
  unsigned ballot(unsigned mask, bool value, const char *function, Place place);
  unsigned lane() const { return current % 32; }
  std::byte *sharedArray() const { return array.data(); }

private:
  enum class State : uint8_t { NotBegun, Running, AtBarrier, InWarp, Left };
  /// Why a block cannot go on.
  enum class Problem { None, Stuck, TwoBarriers, SelfNotInMask, SourceNotInMask };
  /// The event that a thread waits for.
  struct Wait {
    Fiber *fiber;
    const char *function;
    Place place;
    unsigned mask, source;
    uint64_t bits, result;
  };

  std::optional<std::string> runBlock();
  void runThreads();
  Fiber &next();
  void goOn();
  void setThread(unsigned index);
  /// Suspends the current thread until another makes it ready.
  void suspend(State state);
  [[noreturn]] void fail(Problem found, unsigned other);
  std::string describeProblem() const;
  void arriveInWarp();
  bool sameWait(unsigned a, unsigned b) const;
  std::string stuckMessage() const;
  std::string describe(unsigned index) const;
  std::string doing(unsigned index) const;
  std::string calls(unsigned index) const;
  void poisonShared();
  void findSharedOfKernel();
  void placeArray(size_t bytes);
  unsigned permuted(unsigned index) const;
  Fiber *idleFiber();

  const Launch *launch = nullptr;
  std::minstd_rand random;
  std::vector<std::span<std::byte>> shared;                                     // of all kernels
  std::unordered_map<const void *, std::vector<std::span<std::byte>>> sharedOf; // of each kernel
  std::span<const std::span<std::byte>> poisoned; // those that this launch poisons
  std::span<std::byte> array;                     // what the launch asked for
  std::span<std::byte> arrayMemory; // the most of it, before a page that cannot be accessed

  // Of the block.
  unsigned threads = 0, begun = 0, left = 0, atBarrier = 0, current = 0;
  unsigned factor = 1, shift = 0; // the order of threads: index * factor + shift, modulo threads
  std::vector<State> states;
  std::vector<Wait> waits;
  std::vector<uint3> places; ///< threadIdx of each thread
  std::vector<unsigned> ready;
  std::vector<unsigned> awaited; ///< of each warp, a lane that was found not to wait with others
  Problem problem = Problem::None;
  unsigned problemOther = 0; // another thread, or a lane

  Fiber own;                // the stack of runBlock()
  Fiber *running = nullptr; // a coroutine, or none
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber *> idle;
};

/// The one that works for all devices, in the thread that does.
GridRunner &gridRunner();

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_GRIDRUNNER_H
