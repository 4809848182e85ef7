//===- Fiber.cpp - Coroutines with stacks of their own -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/standin/cuda/Fiber.h"

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

constexpr size_t kStackGuardBytes = 4096;
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
#if defined(__x86_64__)
  // What dtcStandinSwitch pops; the stack is aligned to 16 bytes before dtcStandinEnter's call.
  auto *top = reinterpret_cast<uint64_t *>(mapping + kStackGuardBytes + kStackBytes) - 2;
  *--top = reinterpret_cast<uint64_t>(&dtcStandinEnter);
  *--top = 0;                                         // rbp
  *--top = 0;                                         // rbx
  *--top = reinterpret_cast<uint64_t>(this);          // r12
  *--top = reinterpret_cast<uint64_t>(&Fiber::enter); // r13
  *--top = 0;                                         // r14
  *--top = 0;                                         // r15
  inner = top;
#else
  getcontext(&inner);
  inner.uc_stack.ss_sp = mapping + kStackGuardBytes;
  inner.uc_stack.ss_size = kStackBytes;
  inner.uc_link = nullptr;
  makecontext(&inner, reinterpret_cast<void (*)()>(+[](unsigned high, unsigned low) {
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
#if defined(DTC_STANDIN_THREAD)
  __tsan_destroy_fiber(threadFiber);
#elif defined(DTC_STANDIN_ADDRESS)
  // Of frames that were given up.
  __asan_unpoison_memory_region(mapping, kStackGuardBytes + kStackBytes);
#endif
  munmap(mapping, kStackGuardBytes + kStackBytes);
}

bool Fiber::isBelowStack(const void *address) const {
  return address >= mapping && address < mapping + kStackGuardBytes;
}

void Fiber::enter(Fiber *self) {
#if defined(DTC_STANDIN_ADDRESS)
  __sanitizer_finish_switch_fiber(self->fakeStack, &self->outerBottom, &self->outerBytes);
#endif
  self->function();
  std::abort();
}

void Fiber::resume() {
#if defined(DTC_STANDIN_ADDRESS)
  __sanitizer_start_switch_fiber(&outerFakeStack, mapping + kStackGuardBytes, kStackBytes);
#elif defined(DTC_STANDIN_THREAD)
  outerThreadFiber = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(threadFiber, 0);
#endif
  switchTo(/*inside=*/true);
#if defined(DTC_STANDIN_ADDRESS)
  __sanitizer_finish_switch_fiber(outerFakeStack, nullptr, nullptr);
#endif
}

void Fiber::suspend() {
#if defined(DTC_STANDIN_ADDRESS)
  __sanitizer_start_switch_fiber(&fakeStack, outerBottom, outerBytes);
#elif defined(DTC_STANDIN_THREAD)
  __tsan_switch_to_fiber(outerThreadFiber, 0);
#endif
  switchTo(/*inside=*/false);
#if defined(DTC_STANDIN_ADDRESS)
  __sanitizer_finish_switch_fiber(fakeStack, &outerBottom, &outerBytes);
#endif
}

void Fiber::switchTo(bool inside) {
#if defined(__x86_64__)
  if (inside)
    dtcStandinSwitch(&outer, inner);
  else
    dtcStandinSwitch(&inner, outer);
#else
  if (inside)
    swapcontext(&outer, &inner);
  else
    swapcontext(&inner, &outer);
#endif
}

} // namespace dtc::standin
