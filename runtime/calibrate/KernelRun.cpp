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
#include <map>
#include <optional>

namespace dtc::runtime {

static constexpr size_t maxSets = 1024;

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
  Expected<std::unique_ptr<Kernel>> prepared = backend.prepare(signature);
  if (!prepared)
    return prepared.error();
  KernelRun run;
  run.kernel = std::move(*prepared);
  run.position = signature.mesh;
  run.threads = options.threads;
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
      std::clamp<size_t>(options.workingSetBytes / std::max<size_t>(setBytes, 1), 1, maxSets);

  run.memory = options.memory ? options.memory : std::make_shared<OperandMemory>();
  Expected<std::byte *> memory =
      run.memory->take(sets * setBytes + run.kernel->workspaceBytes(options.threads));
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

void KernelRun::run() {
  std::span<void *const> set(operands.data() + nextSet, operandsPerSet);
  kernel->run({set.first(inputs), set.subspan(inputs), position, workspace, threads});
  nextSet += operandsPerSet;
  if (nextSet >= operands.size())
    nextSet = 0;
}

} // namespace dtc::runtime
