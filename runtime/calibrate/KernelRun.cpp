//===- KernelRun.cpp - A kernel with operands, ready to run ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/KernelRun.h"

#include "plan/KernelTable.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <optional>

namespace dtc::runtime {

static constexpr size_t kMaxSets = 1024;

static size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Some elements, which are repeated to fill an operand. Their number is odd, so that rows differ.
static HostTensor patternOf(DType dtype, int64_t indices) {
  HostTensor pattern(TensorType{dtype, {1021}});
  for (int64_t i = 0; i < pattern.type.numElements(); ++i) {
    double value = std::cos(static_cast<double>(i));
    if (dtype == DType::I32)
      value = static_cast<double>(i * 97 % indices);
    else if (dtype == DType::Bool)
      value = i % 2 == 0;
    setElement(pattern, i, value);
  }
  return pattern;
}

static void fill(std::byte *to, size_t bytes, const HostTensor &pattern) {
  for (size_t offset = 0; offset < bytes; offset += pattern.bytes.size())
    std::memcpy(to + offset, pattern.bytes.data(), std::min(bytes - offset, pattern.bytes.size()));
}

/// For each output the input in whose place it lies, if any.
static std::vector<std::optional<size_t>> placesOf(const KernelSignature &signature, bool inPlace) {
  std::vector<std::optional<size_t>> places(signature.outputs.size());
  if (!inPlace)
    return places;
  for (size_t out = 0; out < places.size(); ++out)
    for (size_t in = 0; in < signature.inputs.size() && !places[out]; ++in)
      if (mayRunInPlace(signature.kernel, static_cast<int>(in), static_cast<int>(out)) &&
          signature.inputs[in] == signature.outputs[out])
        places[out] = in;
  return places;
}

Expected<KernelRun> KernelRun::create(const Backend &backend, const KernelSignature &signature,
                                      const KernelRunOptions &options) {
  KernelRun run;
  run.backend = backend.withThreads(options.threads);
  const Backend &threaded = run.backend ? *run.backend : backend;
  Expected<std::unique_ptr<Kernel>> prepared = threaded.prepare(signature);
  if (!prepared)
    return prepared.error();
  run.kernel = std::move(*prepared);
  if (MaybeError error = run.openQueue(threaded))
    return *error;
  run.position = signature.mesh;
  run.inputs = signature.inputs.size();
  run.operandsPerSet = run.inputs + signature.outputs.size();

  std::vector<std::optional<size_t>> places = placesOf(signature, options.inPlace);
  size_t setBytes = 0;
  for (const TensorType &type : signature.inputs)
    setBytes += aligned(type.numBytes());
  for (size_t out = 0; out < places.size(); ++out)
    if (!places[out])
      setBytes += aligned(signature.outputs[out].numBytes());
  for (const auto *types : {&signature.inputs, &signature.outputs})
    for (const TensorType &type : *types)
      run.operandBytes += static_cast<int64_t>(type.numBytes());
  size_t sets =
      std::clamp<size_t>(options.workingSetBytes / std::max<size_t>(setBytes, 1), 1, kMaxSets);

  run.memory = options.memory ? options.memory : std::make_shared<OperandMemory>();
  Expected<std::byte *> memory = run.memory->take(sets * setBytes + run.kernel->workspaceBytes());
  if (!memory)
    return memory.error();
  std::map<DType, HostTensor> patterns;
  std::byte *next = *memory;
  auto place = [&](const TensorType &type) {
    auto pattern = patterns.find(type.dtype);
    if (pattern == patterns.end())
      pattern = patterns.emplace(type.dtype, patternOf(type.dtype, options.indices)).first;
    fill(next, type.numBytes(), pattern->second);
    run.operands.push_back(next);
    next += aligned(type.numBytes());
  };
  for (size_t set = 0; set < sets; ++set) {
    size_t first = run.operands.size();
    for (const TensorType &type : signature.inputs)
      place(type);
    for (size_t out = 0; out < places.size(); ++out)
      if (places[out])
        run.operands.push_back(run.operands[first + *places[out]]);
      else
        place(signature.outputs[out]);
  }
  run.workspace = next;
  return run;
}

MaybeError KernelRun::openQueue(const Backend &backend) {
  Expected<std::unique_ptr<Device>> opened = backend.openDevice(0);
  if (!opened)
    return opened.error();
  device = std::move(*opened);
  if (!device->isHostMemory())
    return Error{fmt::format("kernels are measured in the memory of the host, but {} has a memory "
                             "of its own",
                             device->describe())};
  Expected<std::unique_ptr<Queue>> compute = device->openQueue(QueueKind::Compute);
  if (!compute)
    return compute.error();
  queue = std::move(*compute);
  return std::nullopt;
}

void KernelRun::run() {
  std::span<void *const> set(operands.data() + nextSet, operandsPerSet);
  // A queue whose kernels cannot fail, and run at once.
  (void)queue->enqueue(*kernel, {set.first(inputs), set.subspan(inputs), position, workspace});
  nextSet += operandsPerSet;
  if (nextSet >= operands.size())
    nextSet = 0;
}

} // namespace dtc::runtime
