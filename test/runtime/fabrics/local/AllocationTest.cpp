//===- AllocationTest.cpp - Collectives allocate nothing ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/CommunicationStream.h"
#include "test/runtime/fabrics/local/Network.h"

#include <cstdlib>
#include <new>

using namespace dtc::runtime;
using namespace dtc::runtime::testing;

/// What this thread has allocated.
static thread_local int allocations = 0;

// Replaces the functions of the whole test program. The address sanitizer has its own.
#ifndef __SANITIZE_ADDRESS__
void *operator new(size_t bytes) {
  ++allocations;
  if (void *memory = std::malloc(bytes > 0 ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
#endif

TEST(Allocation, CollectivesAllocateNothing) {
  Mesh mesh({{"a", 4, false}});
  Network network(mesh);
  for (auto &end : network.ends)
    (void)end->openGroup({"a"});
  auto sources = std::make_shared<const std::vector<int64_t>>(std::vector<int64_t>{2, 3, 1, 0});
  for (int64_t size : {4, 4000})
    for (CollectiveKind kind : allCollectiveKinds) {
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
        int before = allocations;
        MaybeError failed = network.ends[device]->run(0, specs, operands[device]);
        if (!failed && allocations != before)
          return Error{"allocated"};
        return failed;
      });
      EXPECT_OK(error);
    }
}

TEST(Allocation, QueueingAllocatesNothing) {
  int onStream = 0;
  CommunicationStream stream(3, [&](size_t) -> MaybeError {
    onStream = allocations;
    return std::nullopt;
  });
  EXPECT_OK(stream.wait(stream.queue(0)));
  int here = allocations, there = onStream;
  for (size_t i = 0; i < 100; ++i) {
    stream.queue(i);
    MaybeError error = stream.wait(stream.queue(i + 1));
    ASSERT_FALSE(error);
  }
  EXPECT_EQ(allocations, here);
  EXPECT_EQ(onStream, there);
}
