//===- ChainPlan.cpp - A pipeline of any length ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/plans/ChainPlan.h"

#include "runtime/backends/Device.h"
#include "runtime/backends/cpu/CpuKernel.h"

#include "test/lib/plans/PlanBuilder.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace dtc::runtime::testing {

namespace {

class ChainPlanBuilder : public PlanBuilder {
public:
  explicit ChainPlanBuilder(const ChainStrategy &strategy)
      : strategy(strategy), stages(static_cast<uint32_t>(strategy.stages)),
        microbatches(static_cast<uint32_t>(strategy.microbatches)) {
    pipelineAxis("pp", strategy.stages);
    axis("dp", strategy.dp);
    axis("micro", strategy.microbatches, /*temporal=*/true);
    plan.set_model("a chain");
    plan.mutable_pipeline()->set_schedule("1f1b");
    plan.mutable_pipeline()->set_stages(stages);
    plan.add_locations("chain.forward (chain.mlir:1:1)");
    for (uint32_t stage = 0; stage < stages; ++stage) {
      inProgram(static_cast<int>(stage));
      addStage(stage);
    }
  }

private:
  /// A transfer with the tasks that start and finish it, and how far it has come.
  struct End {
    uint32_t transfer = 0, startTask = 0, finishTask = 0, slots = 0;
    uint32_t started = 0, finished = 0; // microbatches
  };

  End addReceive(const std::string &name, uint32_t peer, uint32_t channel, uint32_t buffer) {
    End end;
    end.transfer = transfer(plan::Transfer::RECEIVE, peer, channel, {buffer});
    end.startTask = task("receive." + name);
    startTransfer(end.transfer);
    return end;
  }
  End addSend(const std::string &name, uint32_t peer, uint32_t channel, uint32_t buffer,
              uint32_t slots) {
    End end;
    end.transfer = transfer(plan::Transfer::SEND, peer, channel, {buffer});
    end.finishTask = task("sent." + name);
    finishTransfer(end.transfer);
    end.slots = slots;
    return end;
  }
  /// Starts to receive that microbatch and the one after it.
  void receiveAhead(End &end, uint32_t microbatch) {
    for (; end.started < std::min(microbatch + 2, microbatches); ++end.started)
      schedule(end.startTask, end.started);
  }
  void finishSends(End &end, uint32_t until) {
    for (; end.finished < until; ++end.finished)
      schedule(end.finishTask, end.finished);
  }
  /// Makes room for the copy of that microbatch.
  void makeRoom(End &end, uint32_t microbatch) {
    if (microbatch >= end.slots)
      finishSends(end, microbatch - end.slots + 1);
  }

  void addStage(uint32_t stage) {
    bool isFirst = stage == 0, isLast = stage + 1 == stages;
    uint32_t ahead =
        std::min(stages - 1 - stage, microbatches); // forward before the first backward
    // A verifier takes at most as many copies as microbatches.
    uint32_t slots = std::min(ahead + 2, microbatches), two = std::min(2u, microbatches);
    uint32_t in = slotted(DType::F32, {3}, slots), h = slotted(DType::F32, {3}, slots);
    uint32_t back = slotted(DType::F32, {3}, two), gradient = slotted(DType::F32, {3}, two);
    End receive, send, receiveBack, sendBack;
    if (!isFirst)
      receive = addReceive("forward", stage - 1, 2 * stage, in);
    if (!isLast)
      send = addSend("forward", stage + 1, 2 * (stage + 1), h, slots);
    if (!isLast)
      receiveBack = addReceive("backward", stage + 1, 2 * (stage + 1) + 1, back);
    if (!isFirst)
      sendBack = addSend("backward", stage - 1, 2 * stage + 1, gradient, two);

    uint32_t forward = task("forward." + std::to_string(stage), plan::Task::FORWARD, stage);
    if (isFirst) {
      uint32_t position = buffer(DType::I32, {3});
      kernel("test_position", {}, {position});
      kernel("convert", {position}, {h});
      setLocation();
    } else {
      finishTransfer(receive.transfer);
      kernel("add", {in, in}, {h});
      setLocation();
    }
    if (isLast && !strategy.extraKernel.empty())
      kernel(strategy.extraKernel, {}, {});
    if (!isLast)
      startTransfer(send.transfer);

    uint32_t backward = task("backward." + std::to_string(stage), plan::Task::BACKWARD, stage);
    if (isLast) {
      kernel("copy", {h}, {gradient});
    } else {
      finishTransfer(receiveBack.transfer);
      kernel("add", {back, h}, {gradient});
    }
    if (isFirst) {
      uint32_t sum = buffer(DType::F32, {3}, plan::Buffer::OUTPUT);
      (*kernel("accumulate", {gradient}, {sum}).mutable_attributes())["axis"] =
          stringAttribute("micro");
      output("sum", DType::F32, {3 * strategy.dp}, {{"dp"}}, sum);
    } else {
      startTransfer(sendBack.transfer);
    }

    auto runForward = [&](uint32_t microbatch) {
      if (!isFirst)
        receiveAhead(receive, microbatch);
      if (!isLast)
        makeRoom(send, microbatch);
      schedule(forward, microbatch);
    };
    auto runBackward = [&](uint32_t microbatch) {
      if (!isLast)
        receiveAhead(receiveBack, microbatch);
      if (!isFirst)
        makeRoom(sendBack, microbatch);
      schedule(backward, microbatch);
    };
    for (uint32_t m = 0; m < ahead; ++m)
      runForward(m);
    for (uint32_t m = 0; m < microbatches; ++m) {
      if (m + ahead < microbatches)
        runForward(m + ahead);
      runBackward(m);
    }
    if (!isLast)
      finishSends(send, microbatches);
    if (!isFirst)
      finishSends(sendBack, microbatches);
  }

  void setLocation() {
    plan::Task *last = program().mutable_tasks(program().tasks_size() - 1);
    last->mutable_instructions(last->instructions_size() - 1)->set_location(1);
  }

  ChainStrategy strategy;
  uint32_t stages, microbatches;
};

/// Runs a kernel of the CPU.
class JitterKernel final : public cpu::CpuKernel {
public:
  explicit JitterKernel(std::unique_ptr<Kernel> kernel)
      : kernel(static_cast<CpuKernel *>(kernel.release())) {}
  size_t workspaceBytesFor(int) const override { return kernel->workspaceBytes(); }
  void run(const cpu::CpuArguments &args) const override {
    static std::atomic<uint64_t> calls = 0;
    uint64_t random = (++calls * 0x9E3779B97F4A7C15) >> 40;
    if (random % 4 == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(random / 4 % 500));
    kernel->runPrepared(args);
  }

private:
  std::unique_ptr<CpuKernel> kernel;
};

class JitterBackend final : public Backend {
public:
  explicit JitterBackend(std::shared_ptr<const Backend> backend) : backend(std::move(backend)) {}
  std::string name() const override { return backend->name(); }
  Expected<std::unique_ptr<Kernel>> prepare(const KernelSignature &signature) const override {
    Expected<std::unique_ptr<Kernel>> kernel = backend->prepare(signature);
    if (!kernel)
      return kernel.error();
    return std::unique_ptr<Kernel>(std::make_unique<JitterKernel>(std::move(*kernel)));
  }
  Expected<std::unique_ptr<Device>> openDevice(int64_t index) const override {
    return backend->openDevice(index);
  }
  std::shared_ptr<const Backend> withThreads(int threads) const override {
    std::shared_ptr<const Backend> threaded = backend->withThreads(threads);
    return threaded ? std::make_shared<JitterBackend>(std::move(threaded)) : nullptr;
  }

private:
  std::shared_ptr<const Backend> backend;
};

} // namespace

std::shared_ptr<plan::Plan> chainPlan(const ChainStrategy &strategy) {
  return ChainPlanBuilder(strategy).build();
}

std::vector<float> chainSum(const ChainStrategy &strategy) {
  // x of (0, d, m), doubled and doubled again: (2^stages - 1) x comes back.
  double factor = static_cast<double>((int64_t{1} << strategy.stages) - 1);
  auto count = static_cast<double>(strategy.microbatches);
  std::vector<float> sum;
  for (int64_t d = 0; d < strategy.dp; ++d) {
    sum.push_back(0);
    sum.push_back(static_cast<float>(factor * count * static_cast<double>(d)));
    sum.push_back(static_cast<float>(factor * count * (count - 1) / 2));
  }
  return sum;
}

std::shared_ptr<const Backend> createJitterBackend(std::shared_ptr<const Backend> backend) {
  return std::make_shared<JitterBackend>(std::move(backend));
}

} // namespace dtc::runtime::testing
