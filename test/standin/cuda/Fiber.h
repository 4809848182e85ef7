//===- Fiber.h - Coroutines with stacks of their own ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A fiber runs a function until that switches to another fiber; the next switch to it goes on
// there. All fibers of a thread belong to it. The address and the thread sanitizer are told of each
// switch.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_FIBER_H
#define DTC_TEST_STANDIN_CUDA_FIBER_H

#include <cstddef>
#include <functional>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace dtc::standin {

class Fiber {
public:
  /// The thread's own stack: that of the thread which first switches from it.
  Fiber() = default;
  /// `function` never returns: it switches to another fiber, and may never be gone on with.
  explicit Fiber(std::function<void()> function);
  ~Fiber();
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  /// From this fiber, which runs, to another one. Returns when something switches to this one.
  void switchTo(Fiber &other);

  /// Whether `address` is in the guard page below the stack, which cannot be accessed.
  bool isBelowStack(const void *address) const;

private:
  static void enter(Fiber *self);
  void arrive();

  std::function<void()> function;
  std::byte *mapping = nullptr; // none of the thread's own stack
#if defined(__x86_64__)
  void *context = nullptr;
#else
  ucontext_t context;
#endif
  Fiber *previous = nullptr; // the one that switched to this one last
  // The sanitizers' state of the stack.
  void *fakeStack = nullptr;
  const void *stackBottom = nullptr;
  size_t stackBytes = 0;
  void *threadFiber = nullptr;
};

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_FIBER_H
