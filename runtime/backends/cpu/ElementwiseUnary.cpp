//===- ElementwiseUnary.cpp - Functions of one tensor, their gradients ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/ElementwiseCalls.h"
#include "runtime/backends/cpu/ElementwiseKernel.h"
#include "runtime/backends/cpu/VectorMath.h"
#include "runtime/backends/cpu/WideBlocks.h"

namespace dtc::runtime::cpu {

namespace {

// The functions. `cost` weighs one element against an addition, for the split into threads.

struct Neg {
  static constexpr int cost = 1;
  template <typename F> static F apply(F x) { return -x; }
};
struct Abs {
  static constexpr int cost = 1;
  template <typename F> static F apply(F x) { return std::fabs(x); }
};
struct Exp {
  static constexpr int cost = 2;
  template <typename F> static F apply(F x) { return vmath::exp(x); }
};
struct Log {
  static constexpr int cost = 4;
  template <typename F> static F apply(F x) { return vmath::log(x); }
};
struct Sqrt {
  static constexpr int cost = 2;
  template <typename F> static F apply(F x) { return std::sqrt(x); }
};
struct Rsqrt {
  static constexpr int cost = 2;
  template <typename F> static F apply(F x) { return F(1) / std::sqrt(x); }
};
struct Tanh {
  static constexpr int cost = 4;
  template <typename F> static F apply(F x) { return vmath::tanh(x); }
};
struct Sigmoid {
  static constexpr int cost = 4;
  template <typename F> static F apply(F x) { return vmath::sigmoid(x); }
};
struct Softplus {
  static constexpr int cost = 8;
  template <typename F> static F apply(F x) { return vmath::softplus(x); }
};
struct Relu {
  static constexpr int cost = 1;
  // Written so that a NaN stays one.
  template <typename F> static F apply(F x) { return x < F(0) ? F(0) : x; }
};
struct Silu {
  static constexpr int cost = 4;
  template <typename F> static F apply(F x) { return x * vmath::sigmoid(x); }
};

// 0.5 (1 + tanh(u)) is sigmoid(2u), which is cheaper and keeps small results accurate.
template <typename F> F geluTwiceU(F x) {
  return F(1.5957691216057308) * (x + F(0.044715) * (x * x * x));
}
struct GeluTanh {
  static constexpr int cost = 4;
  template <typename F> static F apply(F x) { return x * vmath::sigmoid(geluTwiceU(x)); }
};
template <typename F> F normalCdf(F x) {
  return F(0.5) * (F(1) + vmath::erf(x * F(0.70710678118654752)));
}
struct GeluErf {
  static constexpr int cost = 4;
  template <typename F> static F apply(F x) { return x * normalCdf(x); }
};

struct GeluTanhGrad {
  static constexpr int cost = 4;
  template <typename F> static F apply(F x, F dy) {
    F slope;
    F s = vmath::sigmoidAndSlope(geluTwiceU(x), slope);
    F inner = F(1.5957691216057308) * (F(1) + F(3 * 0.044715) * (x * x));
    return dy * (s + x * slope * inner);
  }
};
struct GeluErfGrad {
  static constexpr int cost = 8;
  template <typename F> static F apply(F x, F dy) {
    F density = F(0.39894228040143268) * vmath::exp(F(-0.5) * x * x);
    return dy * (normalCdf(x) + x * density);
  }
};
struct SiluGrad {
  static constexpr int cost = 4;
  template <typename F> static F apply(F x, F dy) {
    F slope;
    F s = vmath::sigmoidAndSlope(x, slope);
    return dy * (s + x * slope);
  }
};

// For elements of f32 and f64. y may be x, dx may be x or dy.

template <typename Op, typename W> void applyUnary(const W *x, W *y, int64_t count) {
  simd([=] {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i)
      y[i] = Op::apply(x[i]);
  });
}
template <typename Op, typename W>
void applyGradient(const W *x, const W *dy, W *dx, int64_t count) {
  simd([=] {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i)
      dx[i] = Op::apply(x[i], dy[i]);
  });
}

template <typename Op, typename F> std::unique_ptr<CpuKernel> makeUnary(int64_t count) {
  auto range = [](const CpuArguments &args, int64_t begin, int64_t end) {
    const F *x = input<F>(args, 0);
    F *y = output<F>(args, 0);
    WideArray<F> array;
    forWideBlocks<F>(begin, end, 1, [&](int64_t first, int64_t last) {
      int64_t length = last - first;
      Wide<F> *to = wideOutput(y + first, array.elements);
      applyUnary<Op>(wideInput(x + first, length, array.elements), to, length);
      storeWide(to, y + first, length);
    });
  };
  return makeElementwise(count, kElementGrain / Op::cost, range);
}

template <typename Op, typename F> std::unique_ptr<CpuKernel> makeGradient(int64_t count) {
  auto range = [](const CpuArguments &args, int64_t begin, int64_t end) {
    const F *x = input<F>(args, 0);
    const F *dy = input<F>(args, 1);
    F *dx = output<F>(args, 0);
    WideArray<F> wideX, wideDy;
    forWideBlocks<F>(begin, end, 1, [&](int64_t first, int64_t last) {
      int64_t length = last - first;
      Wide<F> *to = wideOutput(dx + first, wideDy.elements);
      applyGradient<Op>(wideInput(x + first, length, wideX.elements),
                        wideInput(dy + first, length, wideDy.elements), to, length);
      storeWide(to, dx + first, length);
    });
  };
  return makeElementwise(count, kElementGrain / Op::cost, range);
}

template <typename Op> std::unique_ptr<CpuKernel> makeUnary(const TensorType &type) {
  return withFloatType(
      type.dtype, [&](auto zero) { return makeUnary<Op, decltype(zero)>(type.numElements()); });
}

template <typename Op> std::unique_ptr<CpuKernel> makeGradient(const TensorType &type) {
  return withFloatType(
      type.dtype, [&](auto zero) { return makeGradient<Op, decltype(zero)>(type.numElements()); });
}

template <typename Op> PrepareResult prepareUnary(const KernelSignature &signature) {
  Expected<TensorType> type = checkUnary(signature);
  return type ? PrepareResult(makeUnary<Op>(*type)) : PrepareResult(type.error());
}

PrepareResult prepareGelu(const GeluCall &call) {
  return call.isTanh ? makeUnary<GeluTanh>(call.type) : makeUnary<GeluErf>(call.type);
}

PrepareResult prepareGeluGrad(const GeluCall &call) {
  return call.isTanh ? makeGradient<GeluTanhGrad>(call.type) : makeGradient<GeluErfGrad>(call.type);
}

} // namespace

std::span<const KernelEntry> unaryKernels() {
  static constexpr KernelEntry entries[] = {
      {"neg", prepareUnary<Neg>},
      {"abs", prepareUnary<Abs>},
      {"exp", prepareUnary<Exp>},
      {"log", prepareUnary<Log>},
      {"sqrt", prepareUnary<Sqrt>},
      {"rsqrt", prepareUnary<Rsqrt>},
      {"tanh", prepareUnary<Tanh>},
      {"sigmoid", prepareUnary<Sigmoid>},
      {"relu", prepareUnary<Relu>},
      {"silu", prepareUnary<Silu>},
      {"gelu", prepareBy<checkGelu, prepareGelu>},
      {"gelu_grad", prepareBy<checkGeluGrad, prepareGeluGrad>},
      {"silu_grad", prepareBy<checkUnaryGrad, makeGradient<SiluGrad>>},
      {"softplus", prepareUnary<Softplus>},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
