//===- Fiber.h - Coroutines with stacks of their own ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A fiber runs a function until that switches back; the next switch goes on there. All fibers of a
// thread belong to it. The address and the thread sanitizer are told of each switch.
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
  /// `function` never returns: it switches back, and may never be gone on with.
  explicit Fiber(std::function<void()> function);
  ~Fiber();
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  /// From the thread's own stack to the fiber.
  void resume();
  /// From the fiber to where resume() was called.
  void suspend();

  /// Whether `address` is in the guard page below the stack, which cannot be accessed.
  bool isBelowStack(const void *address) const;

private:
  static void enter(Fiber *self);
  void switchTo(bool inside);

  std::function<void()> function;
  std::byte *mapping;
#if defined(__x86_64__)
  void *inner = nullptr, *outer = nullptr;
#else
  ucontext_t inner, outer;
#endif
  // What the sanitizers know of the two stacks.
  void *fakeStack = nullptr, *outerFakeStack = nullptr;
  const void *outerBottom = nullptr;
  size_t outerBytes = 0;
  void *threadFiber = nullptr, *outerThreadFiber = nullptr;
};

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_FIBER_H
