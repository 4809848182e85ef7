//===- GpuProductBenchmark.cpp - Speed of a plan's products on a GPU ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
//   GpuProductBenchmark [--benchmark_...] PLAN...
//
// Times each kind of matrix product in the steps of the plans on GPU 0, where a kind is a shape
// with the calls that its epilogue computes: by the algorithm that cuBLASLt proposes first (first),
// by the fastest of its proposals (timed), and as a product without epilogue and a kernel for each
// further call (apart). The counter `calls` is how often a step has the kind, for all
// microbatches of one device.
//
//===----------------------------------------------------------------------===//

#include "benchmarks/runtime/GpuTiming.h"
#include "calls/EinsumLowering.h"
#include "calls/fusion/CallGroups.h"
#include "calls/fusion/Fusions.h"
#include "plan/PlanReader.h"
#include "plan/PlanTypes.h"
#include "runtime/backends/cuda/CudaBackend.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>
#include <string>
#include <vector>

using namespace dtc;
using namespace dtc::runtime;

namespace {

struct ProductKind {
  FusedCalls calls; // one call, or those that one kernel computes
  int64_t flops = 0, count = 0;
};
using ProductKinds = std::map<std::string, ProductKind>; // by name

std::string nameOf(const FusedCalls &calls) {
  std::string product, others;
  for (const FusedCalls::Call &call : calls.calls) {
    const KernelSignature &signature = call.signature;
    if (signature.kernel != "einsum") {
      others += fmt::format("+{}", signature.kernel);
      continue;
    }
    const TensorType &a = signature.inputs[0], &b = signature.inputs[1];
    product = fmt::format("{}[{}]x[{}],{}->{}",
                          std::get<std::string>(signature.attributes.at("equation")),
                          fmt::join(a.shape, "."), fmt::join(b.shape, "."), name(a.dtype),
                          name(signature.outputs[0].dtype));
  }
  return product + others;
}

FusedCalls single(const KernelSignature &signature) {
  FusedCalls calls;
  FusedCalls::Call &call = calls.calls.emplace_back();
  call.signature = signature;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    call.inputs.push_back(calls.values.size());
    calls.values.emplace_back();
  }
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    call.outputs.push_back(calls.values.size());
    calls.values.push_back({0, true});
  }
  return calls;
}

void findProducts(const plan::Program &program, const plan::Task &task, int64_t runs,
                  const std::vector<AxisCoordinate> &axes, const Backend &backend,
                  ProductKinds &kinds) {
  auto add = [&](const FusedCalls &calls, int64_t flops) {
    ProductKind &kind = kinds.try_emplace(nameOf(calls), ProductKind{calls, flops}).first->second;
    kind.count += runs;
  };
  auto isProduct = [&](int call) {
    const plan::Instruction &instruction = task.instructions(call);
    if (!instruction.has_kernel() || instruction.kernel().kernel() != "einsum")
      return false;
    auto lowering = planEinsum(signatureOf(program, instruction.kernel(), axes));
    return lowering && lowering->kind == EinsumLowering::Kind::Gemm &&
           lowering->gemm.m * lowering->gemm.n > 1;
  };
  ValueReaders readers(program);
  FusionRules rules{mayHaveFusion, [&](const std::vector<int> &, const FusedCalls &calls) {
                      return backend.prepareFused(calls) != nullptr;
                    }};
  CallGroups groups = groupCalls(program, task, readers, axes, rules);
  for (const CallGroup &group : groups.groups)
    if (auto product = std::ranges::find_if(group.calls, isProduct); product != group.calls.end())
      add(group.fused, task.instructions(*product).flops());
  for (int i = 0; i < task.instructions_size(); ++i)
    if (isProduct(i) && !groups.groupOf[static_cast<size_t>(i)])
      add(single(signatureOf(program, task.instructions(i).kernel(), axes)),
          task.instructions(i).flops());
}

/// The products in a step of the devices with the first pipeline coordinate.
ProductKinds productsOf(const plan::Plan &plan, const Backend &backend) {
  ProductKinds kinds;
  std::vector<AxisCoordinate> axes;
  for (const plan::Axis &axis : plan.axes())
    axes.push_back({axis.name(), axis.size(), 0, axis.temporal()});
  const plan::Program &program = plan.programs(0);
  std::map<uint32_t, int64_t> runs; // by task
  for (const plan::ScheduleEntry &entry : program.schedule())
    ++runs[entry.task()];
  for (auto [task, count] : runs)
    findProducts(program, program.tasks(static_cast<int>(task)), count, axes, backend, kinds);
  return kinds;
}

/// Kernels in the memory of the values of their calls.
class PlacedKernels {
public:
  static Expected<PlacedKernels> create(const FusedCalls &calls, const Backend &backend,
                                        bool isTogether, GpuTiming &timing) {
    PlacedKernels result;
    std::vector<void *> memory(calls.values.size());
    for (const FusedCalls::Call &call : calls.calls)
      for (bool isInput : {true, false}) {
        const auto &types = isInput ? call.signature.inputs : call.signature.outputs;
        const auto &values = isInput ? call.inputs : call.outputs;
        for (size_t i = 0; i < values.size(); ++i)
          if (!memory[values[i]]) {
            Expected<void *> data = timing.place(types[i], GpuTiming::Contents::Random);
            if (!data)
              return data.error();
            memory[values[i]] = *data;
          }
      }
    if (MaybeError error = isTogether ? result.addFused(calls, backend, memory)
                                      : result.addSingles(calls, backend, memory))
      return *error;
    size_t bytes = 0;
    for (const Call &call : result.kernels)
      bytes = std::max(bytes, call.kernel->workspaceBytes());
    Expected<void *> workspace = timing.placeBytes(bytes);
    if (!workspace)
      return workspace.error();
    result.workspace = *workspace;
    for (const AxisCoordinate &axis : calls.calls.front().signature.mesh)
      result.position.push_back({axis.name, axis.size, axis.size - 1, axis.temporal});
    return result;
  }

  MaybeError enqueue(Queue &queue) const {
    for (const Call &call : kernels)
      if (MaybeError error =
              queue.enqueue(*call.kernel, {call.inputs, call.outputs, position, workspace}))
        return error;
    return std::nullopt;
  }

private:
  struct Call {
    std::unique_ptr<Kernel> kernel;
    std::vector<void *> inputs, outputs;
  };

  MaybeError addFused(const FusedCalls &calls, const Backend &backend,
                      const std::vector<void *> &memory) {
    if (calls.calls.size() == 1)
      return addSingles(calls, backend, memory);
    Call call{backend.prepareFused(calls), {}, {}};
    if (!call.kernel)
      return Error{"there is no kernel for the calls together"};
    for (size_t value = 0; value < memory.size(); ++value)
      (calls.values[value].maker ? call.outputs : call.inputs).push_back(memory[value]);
    kernels.push_back(std::move(call));
    return std::nullopt;
  }

  MaybeError addSingles(const FusedCalls &calls, const Backend &backend,
                        const std::vector<void *> &memory) {
    for (const FusedCalls::Call &each : calls.calls) {
      auto kernel = backend.prepare(each.signature);
      if (!kernel)
        return kernel.error();
      Call call{std::move(*kernel), {}, {}};
      for (size_t value : each.inputs)
        call.inputs.push_back(memory[value]);
      for (size_t value : each.outputs)
        call.outputs.push_back(memory[value]);
      kernels.push_back(std::move(call));
    }
    return std::nullopt;
  }

  std::vector<Call> kernels;
  std::vector<AxisCoordinate> position; // the last microbatch, which adds to the earlier ones
  void *workspace = nullptr;
};

void runOnGpu(benchmark::State &state, const ProductKind &kind, bool isTimed, bool isTogether) {
  CudaOptions options;
  options.timesProducts = isTimed;
  std::unique_ptr<Backend> backend = createCudaBackend(options);
  auto timing = GpuTiming::create(*backend);
  if (!timing)
    return state.SkipWithError(timing.error().message.c_str());
  auto kernels = PlacedKernels::create(kind.calls, *backend, isTogether, **timing);
  if (!kernels)
    return state.SkipWithError(kernels.error().message.c_str());
  (*timing)->run(state, [&](Queue &queue) { return kernels->enqueue(queue); });
  state.counters["FLOP/s"] = benchmark::Counter(static_cast<double>(kind.flops),
                                                benchmark::Counter::kIsIterationInvariantRate);
  state.counters["calls"] = static_cast<double>(kind.count);
}

/// Registers each kind of product by each way, those with the most operations in a step first.
MaybeError registerPlan(const std::string &path, const Backend &backend) {
  auto plan = readPlan(path);
  if (!plan)
    return plan.error();
  ProductKinds kinds = productsOf(**plan, backend);
  if (kinds.empty())
    return Error{fmt::format("{}: found no matrix product in the step", path)};
  std::vector<std::pair<std::string, ProductKind>> sorted(kinds.begin(), kinds.end());
  std::ranges::stable_sort(sorted, std::greater(), [](const auto &entry) {
    return entry.second.flops * entry.second.count;
  });
  std::string file = path.substr(path.find_last_of('/') + 1);
  for (const auto &[name, kind] : sorted) {
    auto add = [&](const char *way, bool isTimed, bool isTogether) {
      benchmark::RegisterBenchmark(fmt::format("{}/{}/{}", file, name, way).c_str(), runOnGpu, kind,
                                   isTimed, isTogether)
          ->UseManualTime();
    };
    add("first", false, true);
    add("timed", true, true);
    if (kind.calls.calls.size() > 1)
      add("apart", false, false);
  }
  return std::nullopt;
}

} // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  if (argc < 2) {
    fmt::print(stderr, "usage: GpuProductBenchmark [--benchmark_...] PLAN...\n");
    return 2;
  }
  std::unique_ptr<Backend> backend = createCudaBackend();
  for (int i = 1; i < argc; ++i)
    if (MaybeError error = registerPlan(argv[i], *backend)) {
      fmt::print(stderr, "error: {}\n", error->message);
      return 1;
    }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
