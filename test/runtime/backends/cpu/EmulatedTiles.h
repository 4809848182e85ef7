//===- EmulatedTiles.h - Tiles for processors that have none --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RUNTIME_BACKENDS_CPU_EMULATEDTILES_H
#define DTC_TEST_RUNTIME_BACKENDS_CPU_EMULATEDTILES_H

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

/// Instructions that were emulated since the program began.
long emulatedInstructions();

} // namespace dtc::runtime::test

#endif // DTC_TEST_RUNTIME_BACKENDS_CPU_EMULATEDTILES_H
