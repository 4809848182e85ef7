//===- Bf16Matmul.h - Products of bf16 by oneDNN --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_BF16MATMUL_H
#define DTC_RUNTIME_BACKENDS_CPU_BF16MATMUL_H

#include "runtime/backends/cpu/Gemm.h"
#include "support/Float16.h"

#include <cstddef>
#include <memory>

namespace dtc::runtime::cpu {

/// A product of bf16 matrices, accumulated in f32 and rounded once, by one thread. Immutable: one
/// object may run in many threads at once.
class Bf16Matmul {
public:
  /// The result is f32 if `wideResult`, else bf16, and has a column stride of 1 or one column. Null
  /// if the library cannot do it.
  static std::unique_ptr<const Bf16Matmul> create(const GemmShape &shape, bool wideResult);
  ~Bf16Matmul();

  /// Workspace of a run.
  size_t workspaceBytes() const { return scratchBytes; }
  /// c = a b. False if the library fails for want of memory; c then has no meaning.
  bool run(const BFloat16 *a, const BFloat16 *b, void *c, void *workspace) const;

private:
  struct Library;
  explicit Bf16Matmul(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library;
  size_t scratchBytes = 0;
};

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_BF16MATMUL_H
