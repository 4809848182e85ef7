//===- AllocationTest.cpp - Collectives allocate nothing ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/CpuQueue.h"
#include "runtime/fabrics/local/WorkPool.h"
#include "test/lib/files/Sanitizer.h"
#include "test/runtime/fabrics/Network.h"

#include <cstdlib>
#include <new>

/// The number of allocations of this thread.
static thread_local int allocations = 0;

// Replaces the functions of the whole test program. The address sanitizer has its own.
#if !DTC_SANITIZE_ADDRESS
void *operator new(size_t bytes) {
  ++allocations;
  if (void *memory = std::malloc(bytes > 0 ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
#endif

namespace allocationTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

TEST(Allocation, CollectivesAllocateNothing) {
  Mesh mesh({{"a", 4, false}});
  Network network(mesh);
  for (auto &end : network.ends)
    (void)end->openGroup({"a"});
  auto sources = std::make_shared<const std::vector<int64_t>>(std::vector<int64_t>{2, 3, 1, 0});
  for (int64_t size : {4, 4000})
    for (CollectiveKind kind : kAllCollectiveKinds) {
      CollectiveSpec spec = makeSpec(kind, {DType::F32, {size, 4}}, 0, 0);
      spec.members = 4;
      spec.sources = sources;
      if (kind == CollectiveKind::AllToAll)
        spec.splitDim = 1;
      std::vector<CollectiveSpec> specs(3, spec);
      std::vector<HostTensor> inputs(12, HostTensor(spec.input)),
          outputs(12, HostTensor(spec.output()));
      std::vector<std::vector<CollectiveOperands>> operands(4);
      for (size_t i = 0; i < 12; ++i)
        operands[i / 3].push_back({inputs[i].bytes.data(), outputs[i].bytes.data()});
      MaybeError error = network.threads.run([&](size_t device) -> MaybeError {
        auto run = [&] {
          return network.ends[device]->enqueue(*network.queues[device], 0, specs, operands[device]);
        };
        // The first of a size may.
        MaybeError failed = run();
        int before = allocations;
        if (!failed)
          failed = run();
        if (!failed && allocations != before)
          return Error{"allocated"};
        return failed;
      });
      EXPECT_OK(error);
    }
}

TEST(Allocation, EnqueuingAllocatesNothing) {
  int onQueue = 0;
  WorkPool<size_t> calls([&](size_t) -> MaybeError {
    onQueue = allocations;
    return std::nullopt;
  });
  cpu::ThreadQueue queue;
  auto enqueue = [&](size_t value) {
    return calls.enqueue(queue, [&](size_t &argument) { argument = value; });
  };
  // As many as are ever there at once.
  for (size_t i = 0; i < 3; ++i)
    ASSERT_OK(enqueue(i));
  ASSERT_OK(queue.finish());
  int here = allocations, there = onQueue;
  for (size_t i = 0; i < 100; ++i) {
    MaybeError first = enqueue(i), second = enqueue(i + 1), end = queue.finish();
    ASSERT_FALSE(first || second || end);
  }
  EXPECT_EQ(allocations, here);
  EXPECT_EQ(onQueue, there);
}

} // namespace allocationTest
