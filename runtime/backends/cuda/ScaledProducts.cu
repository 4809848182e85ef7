//===- ScaledProducts.cu - Products of numbers of 8 bits ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/ScaledCalls.h"
#include "runtime/backends/cuda/BlockReduce.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/ProductKernel.h"
#include "runtime/backends/cuda/StridedCopy.h"
#include "support/Float8.h"

#include <optional>
#include <string>

namespace dtc::runtime::cuda {

namespace {

//===----------------------------------------------------------------------===//
// Numbers of 8 bits
//===----------------------------------------------------------------------===//

/// scaleToFloat8() of support/Float8.h.
template <typename Format> __device__ __forceinline__ float deviceScale(float largest) {
  uint32_t bits = __float_as_uint(largest) & 0x7FFFFFFF;
  if (bits == 0)
    return 1;
  if (bits >= 0x7F800000)
    return __uint_as_float(0x7FC00000u);
  int exponent =
      Format::top - (static_cast<int>(bits >> 23) - 127) - ((bits & 0x7FFFFF) > 0x600000 ? 1 : 0);
  exponent = exponent > 126 ? 126 : exponent;
  return __uint_as_float(static_cast<uint32_t>(exponent + 127) << 23);
}

/// roundToFloat8() of support/Float8.h.
template <typename Format> __device__ __forceinline__ uint8_t deviceRound(float value) {
  constexpr int dropped = 23 - Format::fraction;
  constexpr uint32_t moved = static_cast<uint32_t>(127 - Format::bias) << 23;
  constexpr uint32_t firstNormal = moved + (1u << 23);
  constexpr uint32_t ruler = static_cast<uint32_t>(128 - Format::bias + dropped) << 23;
  uint32_t wide = __float_as_uint(value);
  uint32_t sign = (wide >> 24) & 0x80, magnitude = wide & 0x7FFFFFFF;
  if (magnitude > 0x7F800000)
    return static_cast<uint8_t>(sign | 0x7F);
  if (magnitude >= (Format::largest << dropped) + moved)
    return static_cast<uint8_t>(sign | Format::largest);
  if (magnitude < firstNormal)
    return static_cast<uint8_t>(
        sign | (__float_as_uint(__uint_as_float(magnitude) + __uint_as_float(ruler)) - ruler));
  uint32_t normal = magnitude - moved;
  normal = (normal + (1u << (dropped - 1)) - 1 + ((normal >> dropped) & 1)) >> dropped;
  return static_cast<uint8_t>(sign | normal);
}

/// The formats of support/Float8.h, as types. `top` is the exponent of the largest number.
struct E4M3 {
  static constexpr int fraction = kE4M3.fraction, bias = kE4M3.bias, top = 8;
  static constexpr uint32_t largest = kE4M3.largest;
};
struct E5M2 {
  static constexpr int fraction = kE5M2.fraction, bias = kE5M2.bias, top = 15;
  static constexpr uint32_t largest = kE5M2.largest;
};

template <typename Format, typename F>
__global__ void __launch_bounds__(256)
    quantizeF8Kernel(const F *x, const float *largest, uint8_t *y, float *inverse, int64_t count) {
  constexpr int V = 4;
  float scale = deviceScale<Format>(*largest);
  int64_t thread = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  int64_t threads = int64_t{gridDim.x} * blockDim.x;
  if (thread == 0)
    *inverse = 1 / scale;
  int64_t vectorEnd = isAligned(x, V * sizeof(F)) && isAligned(y, V) ? count / V * V : 0;
  for (int64_t i = thread * V; i < vectorEnd; i += threads * V) {
    Vector<F, V> from = loadVector<V>(x + i);
    Vector<uint8_t, V> to;
#pragma unroll
    for (int j = 0; j < V; ++j)
      to.at[j] = deviceRound<Format>(static_cast<float>(widen(from.at[j])) * scale);
    storeVector(y + i, to);
  }
  for (int64_t i = vectorEnd + thread; i < count; i += threads)
    y[i] = deviceRound<Format>(static_cast<float>(widen(x[i])) * scale);
}

/// The largest absolute value of each chunk of elements; of the chunks' values, that of all.
template <typename F, typename R>
__global__ void __launch_bounds__(256)
    largestMagnitudeKernel(const F *x, R *out, int64_t count, int64_t chunk) {
  int64_t begin = int64_t{blockIdx.x} * chunk;
  int64_t end = begin + chunk < count ? begin + chunk : count;
  Wide<F> most = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    Wide<F> value = widen(x[i]);
    most = MaxOf::combine(most, value < 0 ? -value : value);
  }
  most = reduceBlock<MaxOf>(most);
  if (threadIdx.x == 0)
    out[blockIdx.x] = static_cast<R>(most);
}

template <typename F> std::unique_ptr<CudaKernel> makeLargest(const LargestMagnitudeCall &call) {
  using W = Wide<F>;
  int64_t chunks = std::clamp<int64_t>(call.elements / 4096, 1, 1024);
  int64_t chunk = (call.elements + chunks - 1) / chunks;
  return makeKernel(
      [=](CudaQueue &queue, const KernelArguments &args) -> MaybeError {
        const F *x = input<F>(args, 0);
        auto *out = output<float>(args, 0);
        LaunchShape shape = blockPerRow(chunks, chunk / 4), one = blockPerRow(1, chunks / 4);
        shape.threads = std::min(shape.threads, 256u);
        one.threads = std::min(one.threads, 256u);
        if (chunks == 1)
          return launch(queue, shape, largestMagnitudeKernel<F, float>, x, out, call.elements,
                        chunk);
        auto *partial = static_cast<W *>(args.workspace);
        if (MaybeError error = launch(queue, shape, largestMagnitudeKernel<F, W>, x, partial,
                                      call.elements, chunk))
          return error;
        return launch(queue, one, largestMagnitudeKernel<W, float>, static_cast<const W *>(partial),
                      out, chunks, chunks);
      },
      chunks == 1 ? 0 : arrayBytes<W>(chunks));
}

template <typename Format, typename F>
std::unique_ptr<CudaKernel> makeQuantize(const QuantizeF8Call &call) {
  return makeKernel([call](CudaQueue &queue, const KernelArguments &args) {
    return launch(queue, gridStride(queue, std::max<int64_t>(call.elements / 4, 1)),
                  quantizeF8Kernel<Format, F>, input<F>(args, 0), input<float>(args, 1),
                  output<uint8_t>(args, 0), output<float>(args, 1), call.elements);
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Matrices of 8 bits have this many elements, or a multiple, along both dimensions (cuBLAS
/// documentation, cublasLtMatmul(), "To use FP8 kernels").
constexpr int64_t kMultiple = 16;

/// The first computing capability with products of 8 bits.
constexpr int kFirstCapability = 89;

/// A product by cuBLASLt, which reads both matrices along the summed dimension. A matrix in another
/// order is copied first.
class ScaledProductKernel final : public ProductKernel {
public:
  static Expected<std::unique_ptr<ProductKernel>> create(ScaledProductCall call,
                                                         const MatmulEpilogue &epilogue) {
    std::unique_ptr<ScaledProductKernel> kernel(new ScaledProductKernel(std::move(call)));
    if (MaybeError error = kernel->prepare(epilogue))
      return *error;
    return Expected<std::unique_ptr<ProductKernel>>(std::move(kernel));
  }

  size_t workspaceBytes() const override { return bytes; }

  MaybeError enqueue(CudaQueue &queue, const KernelArguments &args) const override {
    MatmulOperands operands;
    operands.a = args.inputs[0];
    operands.b = args.inputs[1];
    operands.c = args.outputs[0];
    operands.scaleA = args.inputs[2];
    operands.scaleB = args.inputs[3];
    operands.workspace = args.workspace;
    Expected<bool> done = enqueueProduct(queue, operands);
    return done ? std::nullopt : MaybeError(done.error());
  }

  Expected<bool> enqueueProduct(CudaQueue &queue, MatmulOperands operands) const override {
    if (queue.owner().computeCapability() < kFirstCapability)
      return Error{"kernel 'scaled_product': " + queue.owner().modelName() +
                   " has no products of 8 bits, expected computing capability 8.9 or later; "
                   "compile with --dtype bf16"};
    auto *scratch = static_cast<std::byte *>(operands.workspace);
    const void **matrices[2] = {&operands.a, &operands.b};
    for (size_t i = 0; i < 2; ++i)
      for (const Copy &copy : copies[i]) {
        if (MaybeError error =
                enqueueStridedCopy(queue, copy.loops, 1, scratch + copy.at, *matrices[i]))
          return *error;
        *matrices[i] = scratch + copy.at;
      }
    void *out = operands.c;
    if (back)
      operands.c = scratch + back->at;
    operands.workspace = scratch + matmulAt;
    Expected<bool> done = matmul->enqueue(queue, operands);
    if (done && *done && back)
      if (MaybeError error =
              enqueueStridedCopy(queue, back->loops, byteWidth(call.result), out, operands.c))
        return *error;
    return done;
  }

private:
  /// A copy to a place in the workspace, or from it.
  struct Copy {
    DeviceLoops<2> loops;
    size_t at = 0;
  };

  explicit ScaledProductKernel(ScaledProductCall given) : call(std::move(given)) {}

  size_t take(size_t size) {
    size_t at = bytes;
    bytes += (size + 255) / 256 * 256;
    return at;
  }

  MaybeError prepare(const MatmulEpilogue &epilogue) {
    const EinsumLowering &plan = call.lowering;
    GemmShape gemm = plan.gemm;
    if (plan.kind != EinsumLowering::Kind::Gemm || plan.loops.elements() != 1 ||
        gemm.m % kMultiple != 0 || gemm.n % kMultiple != 0 || gemm.k % kMultiple != 0)
      return Error{"kernel 'scaled_product': found a product of " + std::to_string(gemm.m) + "x" +
                   std::to_string(gemm.k) + " and " + std::to_string(gemm.k) + "x" +
                   std::to_string(gemm.n) +
                   ", expected one product of matrices whose dimensions are multiples of " +
                   std::to_string(kMultiple)};
    for (size_t i = 0; i < 2; ++i)
      if (plan.copies[i])
        if (MaybeError error = addCopy(i, *plan.copies[i]))
          return error;
    if (gemm.a.column != 1) {
      if (MaybeError error = addTransposition(0, gemm.m, gemm.k, gemm.a.row, gemm.a.column))
        return error;
      gemm.a = {gemm.k, 1};
    }
    if (gemm.b.row != 1) {
      if (MaybeError error = addTransposition(1, gemm.n, gemm.k, gemm.b.column, gemm.b.row))
        return error;
      gemm.b = {1, gemm.k};
    }
    if (plan.copies[EinsumLowering::Out]) {
      Expected<DeviceLoops<2>> loops = DeviceLoops<2>::from(*plan.copies[EinsumLowering::Out]);
      if (!loops)
        return loops.error();
      back = Copy{*loops, take(static_cast<size_t>(call.resultElements) * byteWidth(call.result))};
    }
    Expected<std::unique_ptr<Matmul>> created =
        Matmul::create(gemm, {}, {call.lhs, call.rhs, call.result}, epilogue);
    if (!created)
      return created.error();
    matmul = std::move(*created);
    matmulAt = take(matmul->workspaceBytes());
    return std::nullopt;
  }

  /// A copy whose dimension of `depth` elements is the inner one.
  MaybeError addTransposition(size_t operand, int64_t outer, int64_t depth, int64_t outerStride,
                              int64_t depthStride) {
    std::vector<int64_t> shape{outer, depth};
    std::array<std::vector<int64_t>, 2> strides;
    strides[0] = {depth, 1};
    strides[1] = {outerStride, depthStride};
    return addCopy(operand, LoopNest<2>(shape, strides));
  }

  MaybeError addCopy(size_t operand, const LoopNest<2> &nest) {
    Expected<DeviceLoops<2>> loops = DeviceLoops<2>::from(nest);
    if (!loops)
      return loops.error();
    copies[operand].push_back(
        {*loops, take(static_cast<size_t>(operand == 0 ? call.lhsElements : call.rhsElements))});
    return std::nullopt;
  }

  ScaledProductCall call;
  std::array<std::vector<Copy>, 2> copies;
  std::optional<Copy> back;
  std::unique_ptr<Matmul> matmul;
  size_t matmulAt = 0, bytes = 0;
};

PrepareResult prepareLargestMagnitude(const KernelSignature &signature) {
  Expected<LargestMagnitudeCall> call = checkLargestMagnitude(signature);
  if (!call)
    return call.error();
  return withFloatType(call->dtype, [&](auto identity) -> PrepareResult {
    return makeLargest<typename decltype(identity)::type>(*call);
  });
}

PrepareResult prepareQuantizeF8(const KernelSignature &signature) {
  Expected<QuantizeF8Call> call = checkQuantizeF8(signature);
  if (!call)
    return call.error();
  return withFloatType(call->from, [&](auto identity) -> PrepareResult {
    using F = typename decltype(identity)::type;
    return call->to == DType::F8E5M2 ? makeQuantize<E5M2, F>(*call) : makeQuantize<E4M3, F>(*call);
  });
}

PrepareResult prepareScaledProduct(const KernelSignature &signature) {
  Expected<ScaledProductCall> call = checkScaledProduct(signature);
  if (!call)
    return call.error();
  auto kernel = makeScaledProduct(std::move(*call));
  return kernel ? PrepareResult(std::move(*kernel)) : PrepareResult(kernel.error());
}

} // namespace

Expected<std::unique_ptr<ProductKernel>> makeScaledProduct(ScaledProductCall call,
                                                           const MatmulEpilogue &epilogue) {
  return ScaledProductKernel::create(std::move(call), epilogue);
}

std::span<const KernelEntry> scaledProductKernels() {
  static constexpr KernelEntry entries[] = {
      {"largest_magnitude", prepareLargestMagnitude},
      {"quantize_f8", prepareQuantizeF8},
      {"scaled_product", prepareScaledProduct},
  };
  return entries;
}

} // namespace dtc::runtime::cuda
