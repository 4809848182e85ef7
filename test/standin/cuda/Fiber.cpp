//===- Fiber.cpp - Coroutines with stacks of their own -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/Fiber.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>

#if defined(DTC_STANDIN_ADDRESS)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(DTC_STANDIN_THREAD)
#include <sanitizer/tsan_interface.h>
#endif

namespace dtc::standin {

namespace {

constexpr size_t kStackGuardBytes = 4096, kCacheLineBytes = 64, kMostOffset = 4096;
// The address sanitizer puts red zones between all variables.
#if defined(DTC_STANDIN_ADDRESS)
constexpr size_t kStackBytes = 256 * 1024;
#else
constexpr size_t kStackBytes = 64 * 1024;
#endif

} // namespace

#if defined(__x86_64__)
// swapcontext() of the C library makes a system call for the mask of signals, which takes a hundred
// times as long as the switch. This one keeps what the System V ABI says a function has to keep,
// but for the control words of floating-point arithmetic, which kernels do not change.
extern "C" void dtcStandinSwitch(void **from, void *to);
asm(R"(
.text
.type dtcStandinSwitch, @function
dtcStandinSwitch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size dtcStandinSwitch, .-dtcStandinSwitch
.type dtcStandinEnter, @function
dtcStandinEnter:
  movq %r12, %rdi
  callq *%r13
  ud2
.size dtcStandinEnter, .-dtcStandinEnter
)");
extern "C" void dtcStandinEnter();
#endif

Fiber::Fiber(std::function<void()> function) : function(std::move(function)) {
  void *memory = mmap(nullptr, kStackGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kStackGuardBytes, PROT_NONE)) {
    std::perror("cuda stand-in: the stack of a thread of a kernel");
    std::abort();
  }
  mapping = static_cast<std::byte *>(memory);
  stackBottom = mapping + kStackGuardBytes;
  stackBytes = kStackBytes;
#if defined(__x86_64__)
  // The values that dtcStandinSwitch pops; the stack is aligned to 16 bytes before
  // dtcStandinEnter's call. Stacks begin in different lines of a page, or all would share the few
  // lines of the cache that are for one of them.
  static std::atomic<unsigned> number = 0;
  size_t line = number++ % (kMostOffset / kCacheLineBytes) * kCacheLineBytes;
  auto *top = reinterpret_cast<uint64_t *>(mapping + kStackGuardBytes + kStackBytes - line) - 2;
  *--top = reinterpret_cast<uint64_t>(&dtcStandinEnter);
  *--top = 0;                                         // rbp
  *--top = 0;                                         // rbx
  *--top = reinterpret_cast<uint64_t>(this);          // r12
  *--top = reinterpret_cast<uint64_t>(&Fiber::enter); // r13
  *--top = 0;                                         // r14
  *--top = 0;                                         // r15
  context = top;
#else
  getcontext(&context);
  context.uc_stack.ss_sp = mapping + kStackGuardBytes;
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, reinterpret_cast<void (*)()>(+[](unsigned high, unsigned low) {
    enter(reinterpret_cast<Fiber *>((uintptr_t(high) << 32) | low));
  }),
              2, unsigned(reinterpret_cast<uintptr_t>(this) >> 32),
              unsigned(reinterpret_cast<uintptr_t>(this)));
#endif
#if defined(DTC_STANDIN_THREAD)
  threadFiber = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
  if (!mapping)
    return;
#if defined(DTC_STANDIN_THREAD)
  __tsan_destroy_fiber(threadFiber);
#elif defined(DTC_STANDIN_ADDRESS)
  // Of frames that were given up.
  __asan_unpoison_memory_region(mapping, kStackGuardBytes + kStackBytes);
#endif
  munmap(mapping, kStackGuardBytes + kStackBytes);
}

bool Fiber::isBelowStack(const void *address) const {
  return mapping && address >= mapping && address < mapping + kStackGuardBytes;
}

void Fiber::enter(Fiber *self) {
  self->arrive();
  self->function();
  std::abort();
}

/// The work of the first lines after a switch to this fiber.
void Fiber::arrive() {
#if defined(DTC_STANDIN_ADDRESS)
  __sanitizer_finish_switch_fiber(fakeStack, &previous->stackBottom, &previous->stackBytes);
#endif
}

void Fiber::switchTo(Fiber &other) {
  other.previous = this;
#if defined(DTC_STANDIN_ADDRESS)
  __sanitizer_start_switch_fiber(&fakeStack, other.stackBottom, other.stackBytes);
#elif defined(DTC_STANDIN_THREAD)
  if (!threadFiber)
    threadFiber = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(other.threadFiber, 0);
#endif
#if defined(__x86_64__)
  dtcStandinSwitch(&context, other.context);
#else
  swapcontext(&context, &other.context);
#endif
  arrive();
}

} // namespace dtc::standin
