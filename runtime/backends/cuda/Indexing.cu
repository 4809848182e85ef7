//===- Indexing.cu - Kernels that look elements up ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/Launch.h"
#include "calls/IndexingCalls.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace dtc::runtime::cuda {

namespace {

__device__ __forceinline__ bool inRange(int32_t id, int64_t size) { return id >= 0 && id < size; }

// embedding, pick and pick_grad move elements, whatever they mean: T is an unsigned integer.

/// A block for each index.
template <typename T>
__global__ void __launch_bounds__(kMaxBlockThreads)
    embeddingKernel(const T *table, const int32_t *ids, T *out, int64_t vocabulary, int64_t width,
                    int64_t count) {
  for (int64_t i = blockIdx.x; i < count; i += gridDim.x) {
    int32_t id = ids[i];
    bool known = inRange(id, vocabulary);
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
      out[i * width + c] = known ? table[int64_t{id} * width + c] : T(0);
  }
}

inline constexpr unsigned kGradThreads = 256;
inline constexpr unsigned kGradColumns = 4; // of a thread

/// A block for each row of the table and `gradThreads * gradColumns` columns. It reads all indices,
/// a tile at a time, and adds the rows of dy that have its own, in the order of the indices; so the
/// result does not depend on timing. For `count` indices that is vocabulary * count / 256 steps.
/// `added` is added to the sums, unless it is null; the result may lie in its place.
template <typename F>
__global__ void __launch_bounds__(kGradThreads)
    embeddingGradKernel(const int32_t *ids, const F *dy, const Wide<F> *added, Wide<F> *out,
                        int64_t vocabulary, int64_t width, int64_t count) {
  using W = Wide<F>;
  __shared__ unsigned hits[kGradThreads / kWarpThreads];
  int64_t firstColumn = int64_t{blockIdx.y} * kGradThreads * kGradColumns + threadIdx.x;
  for (int64_t row = blockIdx.x; row < vocabulary; row += gridDim.x) {
    W sums[kGradColumns] = {};
    for (int64_t begin = 0; begin < count; begin += kGradThreads) {
      int64_t i = begin + threadIdx.x;
      unsigned mask = __ballot_sync(0xFFFFFFFFu, i < count && ids[i] == row);
      __syncthreads(); // the tile before has been added
      if (threadIdx.x % kWarpThreads == 0)
        hits[threadIdx.x / kWarpThreads] = mask;
      __syncthreads();
      for (unsigned warp = 0; warp < kGradThreads / kWarpThreads; ++warp)
        for (unsigned rest = hits[warp]; rest != 0; rest &= rest - 1) {
          int64_t found = begin + warp * kWarpThreads + static_cast<unsigned>(__ffs(rest)) - 1;
#pragma unroll
          for (unsigned c = 0; c < kGradColumns; ++c) {
            int64_t column = firstColumn + c * kGradThreads;
            if (column < width)
              sums[c] += widen(dy[found * width + column]);
          }
        }
    }
#pragma unroll
    for (unsigned c = 0; c < kGradColumns; ++c) {
      int64_t column = firstColumn + c * kGradThreads;
      int64_t at = row * width + column;
      if (column < width)
        out[at] = added ? added[at] + sums[c] : sums[c];
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(256)
    pickKernel(const T *x, const int32_t *ids, T *out, int64_t rows, int64_t width) {
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows; i += step)
    out[i] = inRange(ids[i], width) ? x[i * width + ids[i]] : T(0);
}

template <typename T>
__global__ void __launch_bounds__(kMaxBlockThreads)
    pickGradKernel(const int32_t *ids, const T *dy, T *out, int64_t rows, int64_t width) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    int64_t id = ids[row];
    T value = dy[row];
    for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
      out[row * width + c] = c == id ? value : T(0);
  }
}

PrepareResult prepareEmbedding(const KernelSignature &signature) {
  Expected<EmbeddingCall> checked = checkEmbedding(signature);
  if (!checked)
    return checked.error();
  return withElementBits(checked->dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using T = typename decltype(identity)::type;
    return makeKernel([call = *checked](CudaQueue &queue, const KernelArguments &args) {
      return launch(queue, blockPerRow(call.count, call.width), embeddingKernel<T>,
                    input<T>(args, 0), input<int32_t>(args, 1), output<T>(args, 0), call.vocabulary,
                    call.width, call.count);
    });
  });
}

/// Operands are given as which of the inputs, or of the outputs, they are; `added` may be none.
template <typename F>
std::unique_ptr<CudaKernel> makeEmbeddingGrad(const EmbeddingCall &call, size_t ids, size_t dy,
                                              std::optional<size_t> added, size_t out) {
  return makeKernel([=](CudaQueue &queue, const KernelArguments &args) {
    int64_t tile = kGradThreads * kGradColumns;
    LaunchShape shape;
    shape.blocksX = static_cast<unsigned>(std::min<int64_t>(call.vocabulary, 1 << 20));
    shape.blocksY = static_cast<unsigned>((call.width + tile - 1) / tile);
    shape.threads = kGradThreads;
    return launch(queue, shape, embeddingGradKernel<F>, input<int32_t>(args, ids),
                  input<F>(args, dy), added ? input<Wide<F>>(args, *added) : nullptr,
                  output<Wide<F>>(args, out), call.vocabulary, call.width, call.count);
  });
}

PrepareResult prepareEmbeddingGrad(const KernelSignature &signature) {
  Expected<EmbeddingCall> checked = checkEmbeddingGrad(signature);
  if (!checked)
    return checked.error();
  return withFloatType(checked->dtype, [&](auto identity) {
    return makeEmbeddingGrad<typename decltype(identity)::type>(*checked, 0, 1, std::nullopt, 0);
  });
}

PrepareResult preparePick(const KernelSignature &signature) {
  Expected<PickCall> checked = checkPick(signature);
  if (!checked)
    return checked.error();
  return withElementBits(checked->dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using T = typename decltype(identity)::type;
    return makeKernel([call = *checked](CudaQueue &queue, const KernelArguments &args) {
      return launch(queue, gridStride(queue, call.rows), pickKernel<T>, input<T>(args, 0),
                    input<int32_t>(args, 1), output<T>(args, 0), call.rows, call.width);
    });
  });
}

PrepareResult preparePickGrad(const KernelSignature &signature) {
  Expected<PickCall> checked = checkPickGrad(signature);
  if (!checked)
    return checked.error();
  return withElementBits(checked->dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using T = typename decltype(identity)::type;
    return makeKernel([call = *checked](CudaQueue &queue, const KernelArguments &args) {
      return launch(queue, blockPerRow(call.rows, call.width), pickGradKernel<T>,
                    input<int32_t>(args, 0), input<T>(args, 1), output<T>(args, 0), call.rows,
                    call.width);
    });
  });
}

} // namespace

PrepareResult prepareAddedEmbeddingGrad(const FusedCalls &calls, const AddedGradient &match) {
  const FusedCalls::Call &grad = *match.grad;
  Expected<EmbeddingCall> checked = checkEmbeddingGrad(grad.signature);
  if (!checked)
    return checked.error();
  std::vector<size_t> index = calls.operandIndices();
  return withFloatType(checked->dtype, [&](auto identity) {
    return makeEmbeddingGrad<typename decltype(identity)::type>(
        *checked, index[grad.inputs[0]], index[grad.inputs[1]], index[match.added],
        index[match.sum]);
  });
}

std::span<const KernelEntry> indexingKernels() {
  static constexpr KernelEntry entries[] = {
      {"embedding", prepareEmbedding},
      {"embedding_grad", prepareEmbeddingGrad},
      {"pick", preparePick},
      {"pick_grad", preparePickGrad},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
