//===- Einsum.cu - Contractions -------------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/DotProducts.h"
#include "runtime/backends/cuda/Elementwise.h"
#include "runtime/backends/cuda/Matmul.h"
#include "runtime/backends/cuda/StridedCopy.h"
#include "runtime/backends/shared/EinsumLowering.h"
#include "runtime/backends/shared/ShardingCalls.h"

#include <optional>

namespace dtc::runtime::cuda {

namespace {

struct Multiply {
  template <typename W> __device__ W operator()(int64_t, W a, W b) const { return a * b; }
};

/// For batch index i and chunk c of the `length` elements that are summed, the dot product of the
/// chunk, at index c * (batch) + i of `sums`.
template <typename F>
__global__ void __launch_bounds__(256)
    dotKernel(const __grid_constant__ DeviceLoops<3> batch, const F *lhs, const F *rhs,
              Wide<F> *sums, int64_t length, int64_t chunk) {
  int64_t begin = int64_t{blockIdx.y} * chunk;
  int64_t end = begin + chunk < length ? begin + chunk : length;
  for (int64_t i = blockIdx.x; i < batch.count; i += gridDim.x) {
    int64_t offsets[3];
    batch.offsetsAt(i, offsets);
    const F *a = lhs + offsets[0], *b = rhs + offsets[1];
    Wide<F> sum = 0;
    for (int64_t k = begin + threadIdx.x; k < end; k += blockDim.x)
      sum += widen(a[k]) * widen(b[k]);
    sum = reduceBlock<SumOf>(sum);
    if (threadIdx.x == 0)
      sums[int64_t{blockIdx.y} * batch.count + i] = sum;
  }
}

/// Adds the chunks of each dot product in order.
template <typename R, typename W>
__global__ void __launch_bounds__(256) addChunksKernel(const __grid_constant__ DeviceLoops<3> batch,
                                                       const W *sums, int64_t chunks, R *out) {
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < batch.count; i += step) {
    W sum = 0;
    for (int64_t c = 0; c < chunks; ++c)
      sum += sums[c * batch.count + i];
    int64_t offsets[3];
    batch.offsetsAt(i, offsets);
    out[offsets[2]] = narrow<R>(sum);
  }
}

/// Where the parts of the workspace begin.
struct Workspace {
  size_t bytes = 0;
  size_t take(size_t size) {
    size_t begin = bytes;
    bytes += (size + 255) / 256 * 256;
    return begin;
  }
};

/// R is F, or float where F has 16 bits.
template <typename F, typename R> class EinsumKernel final : public CudaKernel {
public:
  /// `sum`: the product is added to the output, as the kernel accumulate would.
  static PrepareResult create(const EinsumLowering &plan, DType in, DType out,
                              std::optional<AccumulateCall> sum = std::nullopt) {
    std::unique_ptr<EinsumKernel> kernel(new EinsumKernel(plan, std::move(sum)));
    if (MaybeError error = kernel->prepare(in, out))
      return *error;
    return PrepareResult(std::move(kernel));
  }

  size_t workspaceBytes() const override { return workspace.bytes; }

  MaybeError enqueue(CudaQueue &queue, const KernelArguments &args) const override {
    auto *scratch = static_cast<std::byte *>(args.workspace);
    const void *operands[2] = {args.inputs[0], args.inputs[1]};
    for (size_t i = 0; i < 2; ++i)
      if (copies[i]) {
        if (MaybeError error =
                enqueueStridedCopy(queue, *copies[i], sizeof(F), scratch + copyAt[i], operands[i]))
          return error;
        operands[i] = scratch + copyAt[i];
      }
    const auto &copyBack = copies[EinsumLowering::Out];
    void *out = copyBack ? scratch + copyAt[EinsumLowering::Out] : args.outputs[0];
    bool adds = sum && !sum->isFirst(args.position);
    if (MaybeError error =
            compute(queue, static_cast<const F *>(operands[0]), static_cast<const F *>(operands[1]),
                    static_cast<R *>(out), scratch + scratchAt, adds))
      return error;
    return copyBack ? enqueueStridedCopy(queue, *copyBack, sizeof(R), args.outputs[0], out)
                    : std::nullopt;
  }

private:
  using W = Wide<F>;

  EinsumKernel(const EinsumLowering &plan, std::optional<AccumulateCall> sum)
      : plan(plan), sum(std::move(sum)) {}

  MaybeError prepare(DType in, DType out) {
    Expected<DeviceLoops<3>> batch = DeviceLoops<3>::from(plan.loops);
    if (!batch)
      return batch.error();
    loops = *batch;
    for (size_t i = 0; i < 3; ++i) {
      if (!plan.copies[i])
        continue;
      Expected<DeviceLoops<2>> copy = DeviceLoops<2>::from(*plan.copies[i]);
      if (!copy)
        return copy.error();
      copies[i] = *copy;
      copyAt[i] = workspace.take(static_cast<size_t>(plan.elements[i]) *
                                 (i == EinsumLowering::Out ? sizeof(R) : sizeof(F)));
    }
    if (plan.kind == EinsumLowering::Kind::Product)
      factors = *DeviceLoops<2>::from(plan.loops);
    if (plan.kind == EinsumLowering::Kind::Dot) {
      chunks = std::clamp<int64_t>(plan.gemm.k / 4096, 1, std::max<int64_t>(1024 / loops.count, 1));
      scratchAt = workspace.take(static_cast<size_t>(chunks * loops.count) * sizeof(W));
    }
    return plan.kind == EinsumLowering::Kind::Gemm ? prepareMatmul(in, out) : std::nullopt;
  }

  /// The longest loop over the batch is one call of cuBLASLt, the others are calls of their own.
  MaybeError prepareMatmul(DType in, DType out) {
    const auto &dims = plan.loops.dims();
    auto longest = std::max_element(dims.begin(), dims.end(),
                                    [](const auto &a, const auto &b) { return a.size < b.size; });
    MatmulBatch batch{longest->size, longest->strides[0], longest->strides[1], longest->strides[2]};
    std::vector<LoopNest<3>::Loop> others(dims.begin(), longest);
    others.insert(others.end(), longest + 1, dims.end());
    calls = LoopNest<3>(std::move(others));
    Expected<std::unique_ptr<Matmul>> created = Matmul::create(plan.gemm, batch, in, out);
    if (!created)
      return created.error();
    matmul = std::move(*created);
    scratchAt = workspace.take(matmul->workspaceBytes());
    return std::nullopt;
  }

  MaybeError compute(CudaQueue &queue, const F *lhs, const F *rhs, R *out, std::byte *scratch,
                     bool adds) const {
    switch (plan.kind) {
    case EinsumLowering::Kind::Zero:
      return queue.clear(reinterpret_cast<std::byte *>(out),
                         static_cast<size_t>(plan.outElements) * sizeof(R));
    case EinsumLowering::Kind::Product:
      return enqueueElementwise<R, F, F>(queue, factors, Multiply(), out, lhs, rhs);
    case EinsumLowering::Kind::Dot:
      return computeDots(queue, lhs, rhs, out, reinterpret_cast<W *>(scratch));
    case EinsumLowering::Kind::Gemm:
      break;
    }
    for (int64_t i = 0; i < calls.elements(); ++i) {
      auto offsets = calls.offsetsAt(i);
      if (MaybeError error = matmul->enqueue(queue, lhs + offsets[0], rhs + offsets[1],
                                             out + offsets[2], scratch, adds))
        return error;
    }
    return std::nullopt;
  }

  MaybeError computeDots(CudaQueue &queue, const F *lhs, const F *rhs, R *out, W *sums) const {
    int64_t length = plan.gemm.k, chunk = (length + chunks - 1) / chunks;
    LaunchShape shape = blockPerRow(loops.count, chunk / 4);
    shape.threads = std::min(shape.threads, 256u);
    shape.blocksY = static_cast<unsigned>(chunks);
    if (MaybeError error = launch(queue, shape, dotKernel<F>, loops, lhs, rhs, sums, length, chunk))
      return error;
    return launch(queue, gridStride(queue, loops.count), addChunksKernel<R, W>, loops,
                  static_cast<const W *>(sums), chunks, out);
  }

  EinsumLowering plan;
  std::optional<AccumulateCall> sum; // of a product of matrices
  DeviceLoops<3> loops;
  DeviceLoops<2> factors; // of a product of elements
  LoopNest<3> calls{{}, {}};
  std::array<std::optional<DeviceLoops<2>>, 3> copies;
  std::array<size_t, 3> copyAt{};
  std::unique_ptr<Matmul> matmul;
  int64_t chunks = 1;
  size_t scratchAt = 0;
  Workspace workspace;
};

/// The number of elements of a plan for one dot product of two dense arrays; 0 for other plans.
/// Where there is one element, nothing is summed and the plan has a product.
int64_t lengthOfDenseDot(const EinsumLowering &plan) {
  if (plan.outElements != 1 || plan.copies[EinsumLowering::Lhs] || plan.copies[EinsumLowering::Rhs] ||
      plan.copies[EinsumLowering::Out])
    return 0;
  if (plan.kind == EinsumLowering::Kind::Dot)
    return plan.gemm.k;
  return plan.kind == EinsumLowering::Kind::Product ? 1 : 0;
}

PrepareResult prepareEinsum(const KernelSignature &signature) {
  Expected<EinsumLowering> plan = planEinsum(signature);
  if (!plan)
    return plan.error();
  DType in = signature.inputs[0].dtype, out = signature.outputs[0].dtype;
  if (int64_t length = lengthOfDenseDot(*plan))
    return makeDotProduct(in, out, length);
  return withFloatType(in, [&](auto identity) -> PrepareResult {
    using F = typename decltype(identity)::type;
    if (out == in)
      return EinsumKernel<F, F>::create(*plan, in, out);
    return EinsumKernel<F, Wide<F>>::create(*plan, in, out);
  });
}

} // namespace

PrepareResult prepareEinsumSum(const KernelSignature &product, const KernelSignature &accumulate) {
  Expected<EinsumLowering> plan = planEinsum(product);
  if (!plan)
    return plan.error();
  Expected<AccumulateCall> sum = checkAccumulate(accumulate);
  if (!sum)
    return sum.error();
  if (plan->kind != EinsumLowering::Kind::Gemm || plan->copies[EinsumLowering::Out])
    return PrepareResult(nullptr);
  DType in = product.inputs[0].dtype, out = product.outputs[0].dtype;
  return withFloatType(in, [&](auto identity) -> PrepareResult {
    using F = typename decltype(identity)::type;
    if (out == in)
      return EinsumKernel<F, F>::create(*plan, in, out, std::move(*sum));
    return EinsumKernel<F, Wide<F>>::create(*plan, in, out, std::move(*sum));
  });
}

std::span<const KernelEntry> einsumKernels() {
  static constexpr KernelEntry entries[] = {{"einsum", prepareEinsum}};
  return entries;
}

} // namespace dtc::runtime::cuda
