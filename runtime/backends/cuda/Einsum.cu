//===- Einsum.cu - Contractions -------------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/EinsumLowering.h"
#include "calls/GroupedProductCall.h"
#include "calls/fusion/FusedProduct.h"
#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/DotProducts.h"
#include "runtime/backends/cuda/Elementwise.h"
#include "runtime/backends/cuda/ProductKernel.h"
#include "runtime/backends/cuda/StridedCopy.h"

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
    dotKernel(const DeviceLoops<3> __grid_constant__ batch, const F *lhs, const F *rhs,
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
__global__ void __launch_bounds__(256) addChunksKernel(const DeviceLoops<3> __grid_constant__ batch,
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

/// The places where the parts of the workspace begin.
struct Workspace {
  size_t bytes = 0;
  size_t take(size_t size) {
    size_t begin = bytes;
    bytes += (size + 255) / 256 * 256;
    return begin;
  }
};

/// R is F, or float where F has 16 bits.
template <typename F, typename R> class EinsumKernel final : public ProductKernel {
public:
  static Expected<std::unique_ptr<ProductKernel>>
  create(const EinsumLowering &plan, DType in, DType out, const MatmulEpilogue &epilogue) {
    std::unique_ptr<EinsumKernel> kernel(new EinsumKernel(plan));
    if (MaybeError error = kernel->prepare(in, out, epilogue))
      return *error;
    return Expected<std::unique_ptr<ProductKernel>>(std::move(kernel));
  }

  size_t workspaceBytes() const override { return workspace.bytes; }

  MaybeError enqueue(CudaQueue &queue, const KernelArguments &args) const override {
    MatmulOperands operands;
    operands.a = args.inputs[0];
    operands.b = args.inputs[1];
    operands.c = args.outputs[0];
    operands.workspace = args.workspace;
    Expected<bool> done = enqueueProduct(queue, operands);
    return done ? std::nullopt : MaybeError(done.error());
  }

  Expected<bool> enqueueProduct(CudaQueue &queue, MatmulOperands operands) const override {
    auto *scratch = static_cast<std::byte *>(operands.workspace);
    const void **inputs[2] = {&operands.a, &operands.b};
    for (size_t i = 0; i < 2; ++i)
      if (copies[i]) {
        if (MaybeError error =
                enqueueStridedCopy(queue, *copies[i], sizeof(F), scratch + copyAt[i], *inputs[i]))
          return *error;
        *inputs[i] = scratch + copyAt[i];
      }
    const auto &copyBack = copies[EinsumLowering::Out];
    void *out = operands.c;
    if (copyBack)
      operands.c = scratch + copyAt[EinsumLowering::Out];
    operands.workspace = scratch + scratchAt;
    Expected<bool> done = compute(queue, operands);
    if (done && *done && copyBack)
      if (MaybeError error = enqueueStridedCopy(queue, *copyBack, sizeof(R), out, operands.c))
        return *error;
    return done;
  }

private:
  using W = Wide<F>;

  explicit EinsumKernel(const EinsumLowering &plan) : plan(plan) {}

  MaybeError prepare(DType in, DType out, const MatmulEpilogue &epilogue) {
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
    return plan.kind == EinsumLowering::Kind::Gemm ? prepareMatmul(in, out, epilogue)
                                                   : std::nullopt;
  }

  /// The longest loop over the batch is one call of cuBLASLt, the others are calls of their own.
  MaybeError prepareMatmul(DType in, DType out, const MatmulEpilogue &epilogue) {
    const auto &dims = plan.loops.dims();
    auto longest = std::max_element(dims.begin(), dims.end(),
                                    [](const auto &a, const auto &b) { return a.size < b.size; });
    MatmulBatch batch{longest->size, longest->strides[0], longest->strides[1], longest->strides[2]};
    std::vector<LoopNest<3>::Loop> others(dims.begin(), longest);
    others.insert(others.end(), longest + 1, dims.end());
    calls = LoopNest<3>(std::move(others));
    Expected<std::unique_ptr<Matmul>> created =
        Matmul::create(plan.gemm, batch, {in, in, out}, epilogue);
    if (!created)
      return created.error();
    matmul = std::move(*created);
    scratchAt = workspace.take(matmul->workspaceBytes());
    return std::nullopt;
  }

  Expected<bool> compute(CudaQueue &queue, const MatmulOperands &operands) const {
    const F *lhs = static_cast<const F *>(operands.a), *rhs = static_cast<const F *>(operands.b);
    R *out = static_cast<R *>(operands.c);
    auto done = [](const MaybeError &error) { return error ? Expected<bool>(*error) : true; };
    switch (plan.kind) {
    case EinsumLowering::Kind::Zero:
      return done(queue.clear(reinterpret_cast<std::byte *>(out),
                              static_cast<size_t>(plan.outElements) * sizeof(R)));
    case EinsumLowering::Kind::Product:
      return done(enqueueElementwise<R, F, F>(queue, factors, Multiply(), out, lhs, rhs));
    case EinsumLowering::Kind::Dot:
      return done(computeDots(queue, lhs, rhs, out, static_cast<W *>(operands.workspace)));
    case EinsumLowering::Kind::Gemm:
      break;
    }
    return multiply(queue, operands);
  }

  Expected<bool> multiply(CudaQueue &queue, const MatmulOperands &operands) const {
    for (int64_t i = 0; i < calls.elements(); ++i) {
      auto offsets = calls.offsetsAt(i);
      MatmulOperands call = operands;
      call.a = static_cast<const F *>(operands.a) + offsets[0];
      call.b = static_cast<const F *>(operands.b) + offsets[1];
      call.c = static_cast<R *>(operands.c) + offsets[2];
      if (operands.added)
        call.added = static_cast<const R *>(operands.added) + offsets[2];
      Expected<bool> done = matmul->enqueue(queue, call);
      if (!done || !*done)
        return done;
    }
    return true;
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

Expected<std::unique_ptr<ProductKernel>> makeEinsum(const EinsumLowering &plan, DType in, DType out,
                                                    const MatmulEpilogue &epilogue = {}) {
  return withFloatType(in, [&](auto identity) {
    using F = typename decltype(identity)::type;
    return out == in ? EinsumKernel<F, F>::create(plan, in, out, epilogue)
                     : EinsumKernel<F, Wide<F>>::create(plan, in, out, epilogue);
  });
}

PrepareResult prepareEinsum(const KernelSignature &signature) {
  Expected<EinsumLowering> plan = planEinsum(signature);
  if (!plan)
    return plan.error();
  DType in = signature.inputs[0].dtype, out = signature.outputs[0].dtype;
  if (int64_t length = lengthOfDenseDot(*plan))
    return makeDotProduct(in, out, length);
  auto kernel = makeEinsum(*plan, in, out);
  return kernel ? PrepareResult(std::move(*kernel)) : PrepareResult(kernel.error());
}

/// A product with what cuBLASLt computes besides, or the calls one by one on GPUs for which it does
/// not.
class FusedProductKernel final : public CudaKernel {
public:
  static PrepareResult create(const FusedCalls &calls, FusedProduct match, SingleKernels singles) {
    auto product = match.scaled ? makeScaledProduct(*match.scaled, match.epilogue)
                                : makeEinsum(match.lowering, match.in, match.out, match.epilogue);
    if (!product)
      return product.error();
    return PrepareResult(std::unique_ptr<CudaKernel>(
        new FusedProductKernel(calls, std::move(match), std::move(singles), std::move(*product))));
  }

  size_t workspaceBytes() const override {
    size_t bytes = product->workspaceBytes();
    for (const auto &single : singles)
      bytes = std::max(bytes, single->workspaceBytes());
    return bytes;
  }

  MaybeError enqueue(CudaQueue &queue, const KernelArguments &args) const override {
    std::vector<void *> memory(places.size());
    for (size_t i = 0; i < places.size(); ++i)
      memory[i] = places[i].isMade ? args.outputs[places[i].index] : args.inputs[places[i].index];
    auto read = [&](const FusedOperand &operand, size_t width) -> const void * {
      return static_cast<const std::byte *>(memory[operand.value]) +
             static_cast<size_t>(operand.offset) * width;
    };
    MatmulOperands operands;
    size_t widthOfOperand = byteWidth(match.in), width = byteWidth(match.out);
    operands.a = read(match.a, widthOfOperand);
    operands.b = read(match.b, widthOfOperand);
    operands.c = memory[match.c];
    if (match.added)
      operands.added = read(*match.added, width);
    else if (match.sum && !match.sum->isFirst(args.position))
      operands.added = operands.c;
    if (match.bias)
      operands.bias = read(*match.bias, width);
    if (match.geluInput)
      operands.geluInput = memory[*match.geluInput];
    if (match.biasGrad)
      operands.biasGrad = memory[*match.biasGrad];
    if (match.scaled) {
      operands.scaleA = memory[*match.scaleA];
      operands.scaleB = memory[*match.scaleB];
    }
    operands.workspace = args.workspace;
    Expected<bool> done = product->enqueueProduct(queue, operands);
    if (!done)
      return done.error();
    return *done ? std::nullopt : enqueueSingles(queue, args, memory);
  }

private:
  /// A value among the inputs or the outputs.
  struct Place {
    bool isMade = false;
    size_t index = 0;
  };

  FusedProductKernel(const FusedCalls &calls, FusedProduct match, SingleKernels singles,
                     std::unique_ptr<ProductKernel> product)
      : match(std::move(match)), singles(std::move(singles)), product(std::move(product)) {
    std::vector<size_t> indices = calls.operandIndices();
    for (size_t i = 0; i < indices.size(); ++i)
      places.push_back({calls.values[i].maker.has_value(), indices[i]});
    for (const FusedCalls::Call &call : calls.calls)
      operands.push_back({call.inputs, call.outputs});
  }

  MaybeError enqueueSingles(CudaQueue &queue, const KernelArguments &args,
                            const std::vector<void *> &memory) const {
    for (size_t i = 0; i < singles.size(); ++i) {
      std::vector<void *> inputs, outputs;
      for (size_t value : operands[i].first)
        inputs.push_back(memory[value]);
      for (size_t value : operands[i].second)
        outputs.push_back(memory[value]);
      if (MaybeError error =
              singles[i]->enqueue(queue, {inputs, outputs, args.position, args.workspace}))
        return error;
    }
    return std::nullopt;
  }

  FusedProduct match;
  SingleKernels singles;
  std::unique_ptr<ProductKernel> product;
  std::vector<Place> places;                                                 // by value
  std::vector<std::pair<std::vector<size_t>, std::vector<size_t>>> operands; // of each single call
};

} // namespace

PrepareResult prepareFusedProduct(const FusedCalls &calls, FusedProduct match,
                                  const SingleKernels &singles) {
  return FusedProductKernel::create(calls, std::move(match), singles);
}

/// An einsum of all rows: those without an index are zeros.
static PrepareResult prepareGroupedProduct(const KernelSignature &signature) {
  Expected<GroupedProductCall> checked = checkGroupedProduct(signature);
  if (!checked)
    return checked.error();
  KernelSignature all = signature;
  all.kernel = "einsum";
  all.inputs.pop_back();
  return prepareEinsum(all);
}

std::span<const KernelEntry> einsumKernels() {
  static constexpr KernelEntry entries[] = {{"einsum", prepareEinsum},
                                            {"grouped_product", prepareGroupedProduct}};
  return entries;
}

} // namespace dtc::runtime::cuda
