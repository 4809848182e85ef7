//===- FusionBytes.cpp - Bytes of a step beside those of perfect fusion ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Counts the bytes that a step's launches other than products and attention read and write on a
// GPU, and those that a perfect fusion of the same calls would.
//
// A launch, the calls that the CUDA backend computes together or a single call, reads each operand
// once and writes its results; its workspace is written and read once. Of a product with an
// epilogue only the further operands of the epilogue count, for both numbers alike. For the
// gradient of a bias that is an epilogue, cuBLASLt launches a kernel of its own, which reads an
// operand of the product once more: these are counted by themselves, and in `total` only.
//
// Perfect fusion: products (with the epilogues that the backend gives them), attention and
// instructions that are no kernels end a cluster, and so does a result that is not there before all
// rows are: sums over rows or over a whole tensor, largest magnitudes, the gradients of a norm's
// weights, and what a table's rows or their gradient are gathered from. All other calls that are
// connected by a value, and have the same number of such ends before them, are one cluster. A call
// that clusters after it alone read is as late as they allow. A cluster reads each value from
// outside once, and writes those that are read outside of it.
//
//===----------------------------------------------------------------------===//

#include "calls/fusion/CallGroups.h"
#include "calls/fusion/Fusions.h"
#include "plan/KernelTable.h"
#include "plan/PlanReader.h"
#include "plan/PlanTypes.h"
#include "runtime/backends/cuda/CudaBackend.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <set>

using namespace dtc;
using namespace dtc::runtime;

namespace {

/// A launch, or an instruction that is no kernel.
struct Node {
  std::vector<int> calls; // by their numbers in the task
  int place = 0;
  bool endsCluster = false;
  size_t workspace = 0;
  int level = 0;
};

using Bytes = std::map<uint32_t, int64_t>; // by value

class Step {
public:
  Step(const plan::Program &program, const plan::Task &task, const Backend &backend)
      : program(program), task(task), backend(backend), readers(program) {
    findNodes();
    findLevels();
    findClusters();
  }

  void print() const {
    int64_t moved = 0, perfect = 0, epilogues = 0;
    std::map<std::string, std::pair<int64_t, int>> excess;
    std::map<size_t, std::vector<size_t>> members;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].endsCluster)
        epilogues += epilogueBytes(nodes[i]);
      else
        members[cluster[i]].push_back(i);
    for (const auto &[first, parts] : members) {
      int64_t own = 0;
      std::vector<int> calls;
      std::map<std::string, int> names;
      for (size_t part : parts) {
        own += traffic(nodes[part].calls, true) + 2 * static_cast<int64_t>(nodes[part].workspace);
        calls.insert(calls.end(), nodes[part].calls.begin(), nodes[part].calls.end());
        for (int call : nodes[part].calls)
          ++names[kernel(call).kernel()];
      }
      int64_t best = traffic(calls, false);
      moved += own;
      perfect += best;
      std::string name;
      for (const auto &[kernel, count] : names)
        name += fmt::format(" {}x{}", count, kernel);
      auto &[bytes, count] = excess[fmt::format("{} -> {}{}", own, best, name)];
      bytes += own - best;
      ++count;
    }
    std::vector<std::pair<int64_t, std::string>> worst;
    for (const auto &[name, sum] : excess)
      worst.emplace_back(sum.first, fmt::format("{} clusters of {}", sum.second, name));
    std::ranges::sort(worst, std::greater());
    for (size_t i = 0; i < worst.size() && worst[i].first > 0; ++i)
      fmt::print("{} more bytes than perfect fusion: {}\n", worst[i].first, worst[i].second);
    fmt::print("epilogues {} bytes\nlaunches {} bytes\nperfect fusion {} bytes\nratio {:.3f}\n",
               epilogues, moved + epilogues, perfect + epilogues,
               static_cast<double>(moved + epilogues) / static_cast<double>(perfect + epilogues));
    fmt::print("sums beside products {} kernels, {} bytes\ntotal {} bytes\n", sums, sumBytes,
               moved + epilogues + sumBytes);
  }

private:
  const plan::KernelCall &kernel(int call) const { return task.instructions(call).kernel(); }
  TensorType type(uint32_t buffer) const {
    return typeOf(program.buffers(static_cast<int>(buffer)));
  }

  KernelSignature signatureOf(int call) const {
    return dtc::signatureOf(program, kernel(call), {});
  }

  void findNodes() {
    FusionRules rules{mayHaveFusion, [&](const std::vector<int> &, const FusedCalls &calls) {
                        return backend.prepareFused(calls) != nullptr;
                      }};
    CallGroups groups = groupCalls(program, task, readers, {}, rules);
    for (const CallGroup &group : groups.groups)
      if (int64_t own = traffic(group.calls, true), simulated = bytesOf(group.fused);
          own != simulated) {
        fmt::print(stderr, "error: a launch of {} calls moves {} bytes, and is simulated with {}\n",
                   group.calls.size(), own, simulated);
        std::exit(1);
      }
    for (const CallGroup &group : groups.groups)
      countSum(group.fused);
    for (const CallGroup &group : groups.groups)
      addNode(group.calls, group.place, backend.prepareFused(group.fused)->workspaceBytes());
    for (int i = 0; i < task.instructions_size(); ++i)
      if (!groups.groupOf[static_cast<size_t>(i)]) {
        size_t workspace = 0;
        if (task.instructions(i).has_kernel())
          if (auto single = backend.prepare(signatureOf(i)))
            workspace = (*single)->workspaceBytes();
        addNode({i}, i, workspace);
      }
    std::ranges::sort(nodes, {}, &Node::place);
  }

  /// Counts the kernel of a bias gradient that cuBLASLt launches beside a product.
  void countSum(const FusedCalls &calls) {
    std::optional<Fusion> fusion = findFusion(calls);
    const auto *product = fusion ? std::get_if<FusedProduct>(&*fusion) : nullptr;
    if (!product || !product->biasGrad)
      return;
    ++sums;
    for (const FusedCalls::Call &call : calls.calls)
      if (call.signature.kernel == "reduce")
        sumBytes += static_cast<int64_t>(call.signature.inputs[0].numBytes() +
                                         call.signature.outputs[0].numBytes());
  }

  void addNode(const std::vector<int> &calls, int place, size_t workspace) {
    bool ends = std::ranges::any_of(calls, [&](int call) {
      KernelClass kind = classOf(kernel(call).kernel());
      return !task.instructions(call).has_kernel() || kind == KernelClass::Product ||
             kind == KernelClass::Attention;
    });
    nodes.push_back({calls, place, ends, workspace});
  }

  /// Whether an output is complete only after all rows of the call.
  bool isAcrossRows(int call, int output) const {
    const std::string &name = kernel(call).kernel();
    if (name == "layer_norm_grad" || name == "rms_norm_grad")
      return output > 0;
    if (name == "largest_magnitude")
      return true;
    if (name != "reduce")
      return false;
    const auto &dims = kernel(call).attributes().at("dims").ints().values();
    TensorType in = type(kernel(call).inputs(0));
    auto rank = static_cast<int64_t>(in.shape.size());
    return dims.size() == rank ||
           std::ranges::any_of(dims, [&](int64_t dim) { return dim < rank - dims.size(); });
  }
  bool isGathered(int call, int input) const {
    const std::string &name = kernel(call).kernel();
    return (name == "embedding" && input == 0) || name == "embedding_grad";
  }

  /// Calls f(maker, reader, isCut) for each value that a node before another one makes.
  template <typename F> void forEachEdge(F f) const {
    std::map<uint32_t, std::pair<size_t, bool>> makers;
    for (size_t node = 0; node < nodes.size(); ++node) {
      for (int call : nodes[node].calls)
        for (int i = 0; i < kernel(call).inputs_size(); ++i)
          if (auto made = makers.find(readers.valueOf(kernel(call).inputs(i)));
              made != makers.end() && made->second.first != node)
            f(made->second.first, node, made->second.second || isGathered(call, i));
      for (int call : nodes[node].calls)
        for (int i = 0; i < kernel(call).outputs_size(); ++i)
          makers[readers.valueOf(kernel(call).outputs(i))] = {node, isAcrossRows(call, i)};
    }
  }
  bool cuts(size_t maker, size_t reader, bool isCut) const {
    return isCut || nodes[maker].endsCluster || nodes[reader].endsCluster;
  }

  void findLevels() {
    forEachEdge([&](size_t maker, size_t reader, bool isCut) {
      nodes[reader].level =
          std::max(nodes[reader].level, nodes[maker].level + (cuts(maker, reader, isCut) ? 1 : 0));
    });
    std::vector<std::vector<std::pair<size_t, bool>>> edges(nodes.size());
    forEachEdge([&](size_t maker, size_t reader, bool isCut) {
      edges[maker].emplace_back(reader, cuts(maker, reader, isCut));
    });
    for (size_t i = nodes.size(); i-- > 0;) {
      if (nodes[i].endsCluster || edges[i].empty() ||
          std::ranges::any_of(edges[i], [](const auto &edge) { return edge.second; }))
        continue;
      int latest = nodes[edges[i][0].first].level;
      for (const auto &[reader, isCut] : edges[i])
        latest = std::min(latest, nodes[reader].level);
      nodes[i].level = latest;
    }
  }

  void findClusters() {
    cluster.resize(nodes.size());
    std::iota(cluster.begin(), cluster.end(), size_t{0});
    auto find = [&](size_t i) {
      while (cluster[i] != i)
        i = cluster[i] = cluster[cluster[i]];
      return i;
    };
    std::map<std::pair<uint32_t, int>, size_t> known; // by value and level
    for (size_t node = 0; node < nodes.size(); ++node) {
      if (nodes[node].endsCluster)
        continue;
      for (int call : nodes[node].calls)
        for (const auto *operands : {&kernel(call).inputs(), &kernel(call).outputs()})
          for (uint32_t buffer : *operands) {
            auto [at, isNew] =
                known.try_emplace({readers.valueOf(buffer), nodes[node].level}, node);
            if (!isNew)
              cluster[find(node)] = find(at->second);
          }
    }
    for (size_t i = 0; i < nodes.size(); ++i)
      cluster[i] = find(i);
  }

  /// The bytes that the calls read but do not make, and those that they make for others; for a
  /// launch also those that nobody reads.
  int64_t traffic(const std::vector<int> &calls, bool isLaunch) const {
    std::set<uint32_t> made;
    std::map<uint32_t, size_t> reads;
    Bytes read;
    int64_t bytes = 0;
    for (int call : calls)
      for (uint32_t output : kernel(call).outputs())
        made.insert(readers.valueOf(output));
    for (int call : calls)
      for (int i = 0; i < kernel(call).inputs_size(); ++i) {
        uint32_t value = readers.valueOf(kernel(call).inputs(i));
        ++reads[value];
        bool isPart = i == 0 && findKernel(kernel(call).kernel()).traffic == KernelTraffic::Rows;
        auto size = static_cast<int64_t>(
            type(isPart ? kernel(call).outputs(0) : kernel(call).inputs(i)).numBytes());
        // Several parts of a value are at most the whole of it.
        if (!made.count(value))
          read[value] =
              isPart ? std::min(read[value] + size, static_cast<int64_t>(type(value).numBytes()))
                     : std::max(read[value], size);
      }
    for (const auto &[value, size] : read)
      bytes += size;
    // A launch of several calls has its own copy of a slice or a broadcast, which it does not
    // write.
    for (int call : calls)
      if (isLaunch && calls.size() > 1 &&
          (kernel(call).kernel() == "slice" || kernel(call).kernel() == "broadcast"))
        made.erase(readers.valueOf(kernel(call).outputs(0)));
    for (uint32_t value : made)
      if (readers.count(value) > reads[value] || (isLaunch && reads[value] == 0))
        bytes += static_cast<int64_t>(type(value).numBytes());
    return bytes;
  }

  /// The bytes that an epilogue reads and writes besides the product's operands and result.
  int64_t epilogueBytes(const Node &node) const {
    if (node.calls.size() < 2)
      return 0;
    int64_t bytes = traffic(node.calls, true);
    for (int call : node.calls)
      if (classOf(kernel(call).kernel()) == KernelClass::Product) {
        // Slices of operands are read as far as the product reads them.
        std::set<uint32_t> operands(kernel(call).inputs().begin(), kernel(call).inputs().end());
        for (uint32_t operand : operands)
          bytes -= static_cast<int64_t>(type(operand).numBytes());
        bytes -= static_cast<int64_t>(type(kernel(call).outputs(0)).numBytes());
      }
    return bytes;
  }

  const plan::Program &program;
  const plan::Task &task;
  const Backend &backend;
  ValueReaders readers;
  int sums = 0; // kernels that cuBLASLt launches for gradients of biases
  int64_t sumBytes = 0;
  std::vector<Node> nodes;     // in the order in which they are computed
  std::vector<size_t> cluster; // by node: the first of its cluster
};

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: dtc-fusion-bytes PLAN\n");
    return 2;
  }
  auto plan = readPlan(argv[1]);
  if (!plan) {
    fmt::print(stderr, "error: {}\n", plan.error().message);
    return 1;
  }
  std::unique_ptr<Backend> backend = createCudaBackend();
  const plan::Program &program = (*plan)->programs(0);
  if (program.tasks_size() != 1) {
    fmt::print(stderr,
               "error: {}: found {} tasks, expected the one of a step without microbatches\n",
               argv[1], program.tasks_size());
    return 1;
  }
  Step(program, program.tasks(0), *backend).print();
}
