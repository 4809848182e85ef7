//===- KernelCases.h - Calls of kernels as plans have them ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CALIBRATE_KERNELCASES_H
#define DTC_RUNTIME_CALIBRATE_KERNELCASES_H

#include "runtime/backends/Kernel.h"

#include <cstdint>
#include <span>
#include <vector>

namespace dtc::runtime {

/// How the calls of one kernel are made.
struct KernelCase {
  const char *name;
  /// The calls of the kernel on `x`, [rows, width], as training has them. Several where plans call
  /// it in several ways; its time is the mean of theirs.
  std::vector<KernelSignature> (*calls)(const char *name, const TensorType &x);
  /// Whether plans that compute in 16 bits call it with operands of 16 bits.
  bool in16Bits = false;
  /// Whether plans let outputs lie in place of inputs. They keep the inputs of activation
  /// functions, which the backward pass needs.
  bool inPlace = true;
  /// Indices among its operands lie on [0, indices).
  int64_t indices = 256;
};

/// Kernels of whose time the bytes say enough: all of docs/kernels.md but products and
/// convolutions, attention, attention_grad, and constant and shard_offset, which are nearly
/// nothing.
std::span<const KernelCase> elementwiseCases();
std::span<const KernelCase> movementCases();
std::span<const KernelCase> fusedCases();
/// Those of all three, in this order.
std::vector<KernelCase> kernelCases();

/// The calls of a case with operands of about `bytes` bytes (kernelBytes()), or of as few as it can
/// have. Rows have 512 elements, fewer where that is more than the bytes.
std::vector<KernelSignature> callsOfSize(const KernelCase &kernel, DType dtype, int64_t bytes);

struct AttentionCase {
  int64_t batch = 1, heads = 1, positions = 1, headSize = 1;
};

/// Causal attention, or its gradient.
KernelSignature attentionCall(bool grad, DType dtype, const AttentionCase &shape);
/// The FLOPs of that call as plans count them: those of two products with the scores, or of five.
/// The mask leaves one half of them.
double attentionFlops(bool grad, const AttentionCase &shape);

/// The mean of kernelBytes() of the calls.
double meanBytes(const std::vector<KernelSignature> &calls);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CALIBRATE_KERNELCASES_H
