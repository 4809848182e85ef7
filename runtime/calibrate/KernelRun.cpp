//===- KernelRun.cpp - A kernel with operands, ready to run ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/KernelRun.h"

#include "plan/KernelTable.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>

namespace dtc::runtime {

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
  run.queue = options.queue;
  if (!run.queue)
    if (MaybeError error = run.openQueue(threaded))
      return *error;
  run.position = signature.mesh;
  if (MaybeError error = run.placeOperands(signature, options))
    return *error;
  return run;
}

MaybeError KernelRun::placeOperands(const KernelSignature &signature,
                                    const KernelRunOptions &options) {
  inputs = signature.inputs.size();
  operandsPerSet = inputs + signature.outputs.size();
  memory = options.memory ? options.memory : std::make_shared<HostOperandMemory>();
  std::vector<std::optional<size_t>> places = placesOf(signature, options.inPlace);
  size_t setBytes = 0;
  for (const TensorType &type : signature.inputs)
    setBytes += memory->aligned(type.numBytes());
  for (size_t out = 0; out < places.size(); ++out)
    if (!places[out])
      setBytes += memory->aligned(signature.outputs[out].numBytes());
  for (const auto *types : {&signature.inputs, &signature.outputs})
    for (const TensorType &type : *types)
      operandBytes += static_cast<int64_t>(type.numBytes());
  size_t sets = std::clamp<size_t>(options.workingSetBytes / std::max<size_t>(setBytes, 1), 1,
                                   options.mostSets);

  Expected<std::byte *> taken = memory->take(sets * setBytes + kernel->workspaceBytes());
  if (!taken)
    return taken.error();
  std::map<DType, HostTensor> patterns;
  std::byte *next = *taken;
  auto place = [&](const TensorType &type) -> MaybeError {
    auto pattern = patterns.find(type.dtype);
    if (pattern == patterns.end())
      pattern = patterns.emplace(type.dtype, patternOf(type.dtype, options.indices)).first;
    operands.push_back(next);
    next += memory->aligned(type.numBytes());
    return memory->fill(static_cast<std::byte *>(operands.back()), type.numBytes(),
                        pattern->second);
  };
  for (size_t set = 0; set < sets; ++set) {
    size_t first = operands.size();
    for (const TensorType &type : signature.inputs)
      if (MaybeError error = place(type))
        return error;
    for (size_t out = 0; out < places.size(); ++out)
      if (places[out])
        operands.push_back(operands[first + *places[out]]);
      else if (MaybeError error = place(signature.outputs[out]))
        return error;
  }
  workspace = next;
  return std::nullopt;
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
  ownQueue = std::move(*compute);
  queue = ownQueue.get();
  return std::nullopt;
}

MaybeError KernelRun::enqueue() {
  std::span<void *const> set(operands.data() + nextSet, operandsPerSet);
  nextSet += operandsPerSet;
  if (nextSet >= operands.size())
    nextSet = 0;
  return queue->enqueue(*kernel, {set.first(inputs), set.subspan(inputs), position, workspace});
}

} // namespace dtc::runtime
