//===- Bf16Unit.cpp - The unit of a processor that multiplies bf16 --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/Bf16Unit.h"

#include "runtime/backends/cpu/Tiles.h"

#include <atomic>
#include <oneapi/dnnl/dnnl.h>

#if DTC_TILES
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace dtc::runtime::cpu {

namespace {

constexpr int kNoAssumption = -1;
std::atomic<int> assumed = kNoAssumption;

/// Whether oneDNN uses these instructions. The values of dnnl_cpu_isa_t contain the bits of the
/// instruction sets they build on.
bool mayUse(dnnl_cpu_isa_t instructions) {
  return (dnnl_get_effective_cpu_isa() & instructions) == instructions;
}

Bf16Unit findUnit() {
#if DTC_TILES
  // The system gives the tiles to processes that ask for them.
  constexpr long requestPermission = 0x1023, tileData = 18; // of arch_prctl, of XCR0
  if (mayUse(dnnl_cpu_isa_avx512_core_amx) &&
      syscall(SYS_arch_prctl, requestPermission, tileData) == 0)
    return Bf16Unit::Tiles;
  __builtin_cpu_init();
  if (mayUse(dnnl_cpu_isa_avx512_core_bf16) && __builtin_cpu_is("amd"))
    return Bf16Unit::DotProducts;
#endif
  return Bf16Unit::None;
}

} // namespace

Bf16Unit bf16Unit() {
  static const Bf16Unit found = findUnit();
  int assumption = assumed;
  return assumption == kNoAssumption ? found : static_cast<Bf16Unit>(assumption);
}

void assumeBf16Unit(std::optional<Bf16Unit> unit) {
  assumed = unit ? static_cast<int>(*unit) : kNoAssumption;
}

} // namespace dtc::runtime::cpu
