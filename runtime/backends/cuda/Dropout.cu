//===- Dropout.cu - Elements left out at random ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/DeviceLoops.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/Launch.h"
#include "runtime/backends/shared/RowCalls.h"

namespace dtc::runtime::cuda {

namespace {

/// The words of four elements; that of element e is word e mod 4 of block e / 4.
struct MaskBlock {
  uint32_t words[4];
};

/// Philox4x32-10, as support/Philox.h has it for the host: Salmon et al., "Parallel Random Numbers:
/// As Easy as 1, 2, 3" (SC 2011).
__device__ MaskBlock maskBlockAt(const MaskWords &mask, uint64_t block) {
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

inline constexpr int elementsPerThread = 4;

/// A thread has neighbouring elements, which mostly have one block of words. `loops` lead from the
/// elements of the device's block to those of the whole tensor, whose first is `origin`; the key
/// holds the seed and the iteration of the step's first batch, from which `mask` counts. y may be
/// x.
template <typename F>
__global__ void __launch_bounds__(256)
    dropoutKernel(const __grid_constant__ DeviceLoops<1> loops, MaskWords mask, int64_t origin,
                  const int32_t *key, const F *x, F *y, Wide<F> scale) {
  mask.seed = static_cast<uint32_t>(key[0]);
  mask.iteration += static_cast<uint32_t>(key[1]);
  int64_t step = int64_t{gridDim.x} * blockDim.x * elementsPerThread;
  int64_t first = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * elementsPerThread;
  for (; first < loops.count; first += step) {
    int64_t last =
        first + elementsPerThread < loops.count ? first + elementsPerThread : loops.count;
    uint64_t known = ~uint64_t{0};
    MaskBlock block = {};
    for (int64_t i = first; i < last; ++i) {
      int64_t offset[1];
      loops.offsetsAt(i, offset);
      uint64_t element = static_cast<uint64_t>(origin + offset[0]);
      if (element / 4 != known) {
        known = element / 4;
        block = maskBlockAt(mask, known);
      }
      unsigned lane = static_cast<unsigned>(element % 4);
      uint32_t word = lane == 0   ? block.words[0]
                      : lane == 1 ? block.words[1]
                      : lane == 2 ? block.words[2]
                                  : block.words[3];
      bool keeps = mask.all != 0 || word > mask.limit;
      // What is left out is zero, also where it is no finite number.
      y[i] = narrow<F>(keeps ? widen(x[i]) * scale : Wide<F>(0));
    }
  }
}

PrepareResult prepareDropout(const KernelSignature &signature) {
  Expected<DropoutCall> checked = checkDropout(signature);
  if (!checked)
    return checked.error();
  // The seed and the iteration are read on the GPU.
  static constexpr int32_t noKey[2] = {};
  Expected<DeviceLoops<1>> loops = DeviceLoops<1>::from(*checked->mask.at({}, noKey).nest);
  if (!loops)
    return loops.error();
  return withFloatType(checked->type.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using F = typename decltype(identity)::type;
    return makeKernel([mask = std::move(checked->mask),
                       loops = *loops](CudaQueue &queue, const KernelArguments &args) {
      LocalMask local = mask.at(args.position, noKey);
      int64_t threads = (loops.count + elementsPerThread - 1) / elementsPerThread;
      return launch(queue, gridStride(queue, threads), dropoutKernel<F>, loops, local.words,
                    local.origin, input<int32_t>(args, 1), input<F>(args, 0), output<F>(args, 0),
                    static_cast<Wide<F>>(mask.scale()));
    });
  });
}

} // namespace

std::span<const KernelEntry> dropoutKernels() {
  static constexpr KernelEntry entries[] = {{"dropout", prepareDropout}};
  return entries;
}

} // namespace dtc::runtime::cuda
