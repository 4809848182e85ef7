//===- Bf16Unit.h - The unit of a processor that multiplies bf16 ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CPU_BF16UNIT_H
#define DTC_RUNTIME_BACKENDS_CPU_BF16UNIT_H

#include <optional>

namespace dtc::runtime::cpu {

/// The unit that multiplies bf16 faster than f32.
enum class Bf16Unit {
  None,
  /// The dot products of AVX-512 (AVX512_BF16), on processors of AMD: from Zen 4 on a core begins
  /// as many of them in a cycle as multiplications of f32, and reaches twice the rate of f32.
  /// Intel's begin half as many, and reach two thirds of it.
  DotProducts,
  Tiles, // of AMX
};

/// The unit of this processor that the system lets this process use. The environment variable
/// DNNL_MAX_CPU_ISA, which keeps oneDNN from using a unit, does so here as well.
Bf16Unit bf16Unit();
/// For tests: bf16Unit() is `unit`, or again what the processor has.
void assumeBf16Unit(std::optional<Bf16Unit> unit);

} // namespace dtc::runtime::cpu

#endif // DTC_RUNTIME_BACKENDS_CPU_BF16UNIT_H
