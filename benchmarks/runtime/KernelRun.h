//===- KernelRun.h - A kernel with operands, ready to run -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_RUNTIME_KERNELRUN_H
#define DTC_BENCHMARKS_RUNTIME_KERNELRUN_H

#include "runtime/backends/cpu/CpuBackend.h"

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dtc::benchmarks {

/// A prepared kernel on one thread, with operands on [-1, 1].
class KernelRun {
public:
  explicit KernelRun(const runtime::KernelSignature &signature) : inputs(signature.inputs.size()) {
    auto prepared = runtime::createCpuBackend()->prepare(signature);
    if (!prepared) {
      message = prepared.error().message;
      return;
    }
    kernel = std::move(*prepared);
    for (const auto *types : {&signature.inputs, &signature.outputs})
      for (const runtime::TensorType &type : *types) {
        runtime::HostTensor &tensor = tensors.emplace_back(type);
        for (int64_t i = 0; i < type.numElements(); ++i)
          runtime::setElement(tensor, i, std::sin(static_cast<double>(i)));
      }
    for (runtime::HostTensor &tensor : tensors) {
      operands.push_back(tensor.bytes.data());
      operandBytes += static_cast<int64_t>(tensor.bytes.size());
    }
    workspace.resize(kernel->workspaceBytes(1) + 64);
    aligned = workspace.data() + (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64) % 64;
  }

  /// Why the kernel cannot run; empty if it can.
  const std::string &error() const { return message; }
  /// Of all operands.
  int64_t bytes() const { return operandBytes; }
  void run() {
    std::span<void *const> all(operands);
    kernel->run({all.first(inputs), all.subspan(inputs), {}, aligned, 1});
  }

private:
  size_t inputs;
  std::string message;
  std::unique_ptr<runtime::Kernel> kernel;
  std::vector<runtime::HostTensor> tensors;
  std::vector<void *> operands;
  int64_t operandBytes = 0;
  std::vector<std::byte> workspace;
  void *aligned = nullptr;
};

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_RUNTIME_KERNELRUN_H
