//===- BesideTest.cpp - Entry points that run beside the others -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/executor/Session.h"
#include "runtime/fabrics/local/LocalFabric.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace besideTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

/// What holds back the collectives of lanes other than 0.
struct Gate {
  std::atomic<bool> isOpen = false;
  std::atomic<int> waiting = 0;
};

/// The local fabric's communicator, whose collectives begin when the gate is open.
class HeldCommunicator final : public Communicator {
public:
  HeldCommunicator(std::unique_ptr<Communicator> inner, Gate *gate)
      : inner(std::move(inner)), gate(gate) {}

  Expected<Group> openGroup(const std::vector<std::string> &axes) override {
    return inner->openGroup(axes);
  }
  MaybeError prepare(Queue &queue, Group group, std::span<const CollectiveSpec> specs) override {
    return inner->prepare(queue, group, specs);
  }

protected:
  MaybeError doEnqueue(Queue &queue, Group group, std::span<const CollectiveSpec> specs,
                       std::span<const CollectiveOperands> operands) override {
    ++gate->waiting;
    while (!gate->isOpen)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return inner->enqueue(queue, group, specs, operands);
  }

private:
  std::unique_ptr<Communicator> inner;
  Gate *gate;
};

class HeldFabric final : public Fabric {
public:
  HeldFabric(std::shared_ptr<Fabric> local, Gate *gate)
      : Fabric(local->mesh(), {local->devices().begin(), local->devices().end()}),
        local(std::move(local)), gate(gate) {}

  Expected<std::unique_ptr<Communicator>> openCommunicator(int64_t device, int64_t lane,
                                                           Device &memory) override {
    auto inner = local->openCommunicator(device, lane, memory);
    if (!inner || lane == 0)
      return inner;
    return std::unique_ptr<Communicator>(
        std::make_unique<HeldCommunicator>(std::move(*inner), gate));
  }
  Expected<std::unique_ptr<Transfers>> openTransfers(int64_t device, Device &memory) override {
    return local->openTransfers(device, memory);
  }
  Expected<int64_t> agree(ReductionKind reduction, int64_t value) override {
    return local->agree(reduction, value);
  }
  Expected<std::string> broadcast(int64_t from, std::string bytes) override {
    return local->broadcast(from, std::move(bytes));
  }
  void abort(const Error &reason) override { local->abort(reason); }

private:
  std::shared_ptr<Fabric> local;
  Gate *gate;
};

/// An entry point of a plan of 2 replicas of 2 devices, whose step adds to `w` the sum of its input
/// over the devices of a replica; "take" copies `w` to `p`, and "send" sums that over the replicas.
static plan::Plan planOf(const std::string &entry) {
  PlanBuilder builder;
  builder.axis("dp", 2);
  builder.axis("tp", 2);
  uint32_t w = builder.state("w", DType::F32, {4}, {{}}).buffer();
  plan::State &pending = builder.state("p", DType::F32, {4}, {{}});
  pending.set_kind(plan::State::OPTIMIZER);
  pending.set_parameter("w");
  uint32_t p = pending.buffer();
  builder.plan.set_entry(entry);
  uint32_t one = 0;
  if (entry.empty())
    one = builder.input("x", DType::F32, {4}, {{}}).buffer();
  if (entry.starts_with("outer_send"))
    builder.program().set_arena_bytes(4096);
  uint32_t sum = builder.buffer(DType::F32, {4});
  builder.task("task");
  if (entry.empty()) {
    builder.collective(plan::Collective::ALL_REDUCE, {"tp"}, one, sum);
    builder.kernel("add", {w, sum}, {w});
  } else if (entry.starts_with("outer_take")) {
    builder.kernel("copy", {w}, {p});
  } else if (entry.starts_with("outer_send")) {
    builder.collective(plan::Collective::ALL_REDUCE, {"dp"}, p, sum);
    builder.kernel("copy", {sum}, {p});
  } else {
    builder.kernel("add", {w, p}, {w});
  }
  builder.schedule(0);
  return *builder.build();
}

static double first(Session &session, const std::string &state) {
  Expected<HostTensor> value = session.getState(state);
  EXPECT_OK(value);
  return value ? elementAt(*value, 0) : 0;
}

TEST(Beside, StepsGoOnWhileAFragmentIsSent) {
  auto plan = std::make_shared<plan::Plan>(planOf(""));
  for (const char *entry : {"outer_take.0", "outer_send.0", "outer_apply.0.after.2"})
    *plan->add_entry_points() = planOf(entry);
  Gate gate;
  SessionOptions options;
  options.openFabric = [&](const Mesh &mesh) -> Expected<std::shared_ptr<Fabric>> {
    auto local = openLocalFabric(mesh);
    if (!local)
      return local.error();
    return std::shared_ptr<Fabric>(std::make_shared<HeldFabric>(std::move(*local), &gate));
  };
  auto session = Session::create(plan, createCpuBackend(), options);
  ASSERT_OK(session);
  HostTensor ones(TensorType{DType::F32, {4}});
  for (int64_t i = 0; i < 4; ++i)
    setElement(ones, i, 1);
  ASSERT_OK((*session)->setInput("x", ones));
  ASSERT_OK((*session)->step()); // w is 2
  ASSERT_OK((*session)->findEntry("outer_take.0")->step());
  MaybeError sent;
  std::atomic<bool> hasEnded = false;
  std::thread sender([&] {
    sent = (*session)->findEntry("outer_send.0")->step();
    hasEnded = true;
  });
  while (gate.waiting < 4 && !hasEnded)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(gate.waiting, 4);
  // The collective of a step is not held back by that of the other lane.
  for (int step = 0; step < 3; ++step)
    EXPECT_OK((*session)->step());
  EXPECT_EQ(first(**session, "w"), 8);
  gate.isOpen = true;
  sender.join();
  EXPECT_OK(sent);
  EXPECT_EQ(first(**session, "p"), 4);
  EXPECT_OK((*session)->findEntry("outer_apply.0.after.2")->step());
  EXPECT_EQ(first(**session, "w"), 12);
}

} // namespace besideTest
