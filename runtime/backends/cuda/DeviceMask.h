//===- DeviceMask.h - Random masks on a GPU -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_DEVICEMASK_H
#define DTC_RUNTIME_BACKENDS_CUDA_DEVICEMASK_H

#include "calls/RandomMask.h"

#include <cstdint>
#include <cuda_runtime.h>

namespace dtc::runtime::cuda {

/// The words of four elements; that of element e is word e mod 4 of block e / 4.
struct MaskBlock {
  uint32_t words[4];
};

/// Philox4x32-10, as support/Philox.h has it for the host: Salmon et al., "Parallel Random Numbers:
/// As Easy as 1, 2, 3" (SC 2011).
__device__ __forceinline__ MaskBlock maskBlockAt(const MaskWords &mask, uint64_t block) {
  uint32_t a = static_cast<uint32_t>(block), b = static_cast<uint32_t>(block >> 32);
  uint32_t c = mask.iteration, d = 0, key0 = mask.seed, key1 = mask.op;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    uint64_t product0 = uint64_t{0xD2511F53} * a, product1 = uint64_t{0xCD9E8D57} * c;
    a = static_cast<uint32_t>(product1 >> 32) ^ b ^ key0;
    b = static_cast<uint32_t>(product1);
    c = static_cast<uint32_t>(product0 >> 32) ^ d ^ key1;
    d = static_cast<uint32_t>(product0);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return {{a, b, c, d}};
}

/// Says of elements of the whole tensor whether they are kept. It is fastest where neighbours are
/// asked for one after the other.
class MaskReader {
public:
  /// The key holds the seed and the iteration of the step's first batch, from which `mask` counts.
  __device__ __forceinline__ MaskReader(const MaskWords &mask, const int32_t *key) : mask(mask) {
    this->mask.seed = static_cast<uint32_t>(key[0]);
    this->mask.iteration += static_cast<uint32_t>(key[1]);
  }

  /// The random word of an element.
  __device__ __forceinline__ uint32_t wordOf(int64_t element) {
    uint64_t index = static_cast<uint64_t>(element);
    if (index / 4 != known) {
      known = index / 4;
      block = maskBlockAt(mask, known);
    }
    unsigned number = static_cast<unsigned>(index % 4);
    return number == 0   ? block.words[0]
           : number == 1 ? block.words[1]
           : number == 2 ? block.words[2]
                         : block.words[3];
  }
  __device__ __forceinline__ bool keeps(int64_t element) {
    uint32_t word = wordOf(element);
    return mask.all != 0 || word > mask.limit;
  }

private:
  MaskWords mask;
  uint64_t known = ~uint64_t{0}; // the number of `block`
  MaskBlock block = {};
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_DEVICEMASK_H
