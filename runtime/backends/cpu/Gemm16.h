//===- Gemm16.h - Products of matrices of 16-bit numbers ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Sums are those of f32, and an element of the result is rounded once. bf16 goes to the library
// where that is faster than f32 (Bf16Unit.h). For AMX tiles a transposed left operand is
// turned round first, which the library does so slowly that products take twice as long. All else
// is widened, a block at a time, and multiplied in f32. Products of a few rows are those of
// FewRows.h.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_GEMM16_H
#define DTC_RUNTIME_BACKENDS_CPU_GEMM16_H

#include "runtime/backends/cpu/Bf16Matmul.h"
#include "runtime/backends/cpu/Gemm.h"
#include "support/Float16.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace dtc::runtime::cpu {

/// c = a * b, prepared for a number of threads. F is BFloat16 or Float16, R is F or float. In a
/// parallel region `threads` must be 1. Immutable: one object may run in many threads at once.
template <typename F, typename R> class Gemm16 {
public:
  Gemm16(const GemmShape &shape, int threads);

  /// Workspace of a run, in whole cache lines.
  size_t workspaceBytes() const { return parts.size() * partBytes; }
  /// `workspace` is aligned to 64 bytes.
  void run(const F *a, const F *b, R *c, void *workspace) const;

private:
  /// A block of the result, with the offsets of its operands.
  struct BlockProduct {
    GemmShape shape;
    int64_t a, b, c;
    std::shared_ptr<const Bf16Matmul> matmul; // null: widened
    bool transposes;                          // the left operand, before the library gets it
  };
  void runBlock(const BlockProduct &part, const F *a, const F *b, R *c, void *workspace) const;

  std::optional<std::pair<GemmShape, int>> fewRows; // and threads, if not by parts
  bool swapped;                                     // computes the transposed product
  std::vector<BlockProduct> parts;
  size_t partBytes = 0;
};

extern template class Gemm16<BFloat16, BFloat16>;
extern template class Gemm16<BFloat16, float>;
extern template class Gemm16<Float16, Float16>;
extern template class Gemm16<Float16, float>;

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_GEMM16_H
