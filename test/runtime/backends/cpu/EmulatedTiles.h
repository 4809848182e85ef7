//===- EmulatedTiles.h - Tiles for processors that have none --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RUNTIME_BACKENDS_CPU_EMULATEDTILES_H
#define DTC_TEST_RUNTIME_BACKENDS_CPU_EMULATEDTILES_H

#include "runtime/backends/cpu/Bf16Unit.h"

#include <optional>

namespace dtc::runtime::test {

/// While it lives, kernels use the tiles of AMX: those of the processor, or else the instructions
/// raise a signal, whose handler does what they do. So the code that tests run is that of a
/// processor with tiles.
class EmulatedTiles {
public:
  EmulatedTiles();
  ~EmulatedTiles();
  EmulatedTiles(const EmulatedTiles &) = delete;
  EmulatedTiles &operator=(const EmulatedTiles &) = delete;
};

/// While it lives, kernels multiply by this unit, or by what stands for it on this processor.
class AssumedUnit {
public:
  explicit AssumedUnit(cpu::Bf16Unit unit) {
    if (unit == cpu::Bf16Unit::Tiles)
      tiles.emplace();
    else
      cpu::assumeBf16Unit(unit);
  }
  ~AssumedUnit() { cpu::assumeBf16Unit(std::nullopt); }
  AssumedUnit(const AssumedUnit &) = delete;
  AssumedUnit &operator=(const AssumedUnit &) = delete;

private:
  std::optional<EmulatedTiles> tiles;
};

inline constexpr cpu::Bf16Unit kBf16Units[] = {cpu::Bf16Unit::DotProducts, cpu::Bf16Unit::Tiles};

/// Instructions that were emulated since the program began.
long emulatedInstructions();

} // namespace dtc::runtime::test

#endif // DTC_TEST_RUNTIME_BACKENDS_CPU_EMULATEDTILES_H
