//===- ElementwiseBinary.cpp - Functions of two tensors and more ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/ElementwiseCalls.h"
#include "calls/LoopNest.h"
#include "runtime/backends/cpu/DataMovement.h"
#include "runtime/backends/cpu/ElementwiseKernel.h"
#include "runtime/backends/cpu/WideBlocks.h"

#include <array>
#include <type_traits>

namespace dtc::runtime::cpu {

namespace {

// Integers wrap around, which signed arithmetic does not.
template <typename T> struct Wrapping { using type = T; };
template <> struct Wrapping<int32_t> { using type = uint32_t; };
template <typename T> using WrappingT = typename Wrapping<T>::type;

struct Add {
  template <typename T> static T apply(T a, T b) {
    return static_cast<T>(WrappingT<T>(a) + WrappingT<T>(b));
  }
};
struct Sub {
  template <typename T> static T apply(T a, T b) {
    return static_cast<T>(WrappingT<T>(a) - WrappingT<T>(b));
  }
};
struct Mul {
  template <typename T> static T apply(T a, T b) {
    return static_cast<T>(WrappingT<T>(a) * WrappingT<T>(b));
  }
};
struct Div {
  template <typename T> static T apply(T a, T b) { return a / b; }
};
// A NaN in either operand is the result.
struct Maximum {
  template <typename T> static T apply(T a, T b) { return a > b || a != a ? a : b; }
};
struct Minimum {
  template <typename T> static T apply(T a, T b) { return a < b || a != a ? a : b; }
};

struct Equal {
  template <typename T> static bool apply(T a, T b) { return a == b; }
};
struct NotEqual {
  template <typename T> static bool apply(T a, T b) { return a != b; }
};
struct Less {
  template <typename T> static bool apply(T a, T b) { return a < b; }
};
struct LessEqual {
  template <typename T> static bool apply(T a, T b) { return a <= b; }
};
struct Greater {
  template <typename T> static bool apply(T a, T b) { return a > b; }
};
struct GreaterEqual {
  template <typename T> static bool apply(T a, T b) { return a >= b; }
};

/// One stretch of a result. The strides of the operands are 0 or 1, since dims are increasing.
template <typename Op, typename T>
inline void binarySegment(const T *a, int64_t aStride, const T *b, int64_t bStride, T *y,
                          int64_t length) {
  if (aStride == 1 && bStride == 1) {
#pragma omp simd
    for (int64_t i = 0; i < length; ++i)
      y[i] = Op::apply(a[i], b[i]);
  } else if (aStride == 1) {
    T value = *b;
#pragma omp simd
    for (int64_t i = 0; i < length; ++i)
      y[i] = Op::apply(a[i], value);
  } else if (bStride == 1) {
    T value = *a;
#pragma omp simd
    for (int64_t i = 0; i < length; ++i)
      y[i] = Op::apply(value, b[i]);
  } else {
    std::fill_n(y, length, Op::apply(*a, *b));
  }
}

/// Elements [begin, end) of the result, of a type that is computed with as it is.
template <typename Op, typename T>
void applyBinary(const LoopNest<2> *loops, const T *lhs, const T *rhs, T *out, int64_t begin,
                 int64_t end) {
  simd([=] {
    const auto strides = loops->inner().strides;
    T *y = out + begin;
    loops->forSegments(begin, end, [&](const auto &offsets, int64_t length) {
      binarySegment<Op>(lhs + offsets[0], strides[0], rhs + offsets[1], strides[1], y, length);
      y += length;
    });
  });
}

/// The operands of elements [begin, end) of the result, widened and repeated where they repeat.
template <typename F>
void widenOperands(const LoopNest<2> *loops, const F *lhs, const F *rhs, int64_t begin, int64_t end,
                   Wide<F> *lhsArray, Wide<F> *rhsArray) {
  simd([=] {
    const std::array<const F *, 2> from = {lhs, rhs};
    std::array<Wide<F> *, 2> to = {lhsArray, rhsArray};
    const auto strides = loops->inner().strides;
    loops->forSegments(begin, end, [&](const auto &offsets, int64_t length) {
      for (size_t operand = 0; operand < 2; ++operand) {
        const F *x = from[operand] + offsets[operand];
        Wide<F> *wide = to[operand];
        if (strides[operand] == 1) {
#pragma omp simd
          for (int64_t i = 0; i < length; ++i)
            wide[i] = static_cast<Wide<F>>(x[i]);
        } else {
          std::fill_n(wide, length, static_cast<Wide<F>>(*x));
        }
        to[operand] += length;
      }
    });
  });
}

template <typename Op, typename T> std::unique_ptr<CpuKernel> makeBinary(LoopNest<2> nest) {
  int64_t count = nest.elements();
  auto range = [nest = std::move(nest)](const CpuArguments &args, int64_t begin, int64_t end) {
    const T *lhs = input<T>(args, 0);
    const T *rhs = input<T>(args, 1);
    T *out = output<T>(args, 0);
    const LoopNest<2> *loops = &nest;
    if constexpr (kIsWide<T>) {
      applyBinary<Op>(loops, lhs, rhs, out, begin, end);
    } else {
      WideArray<T> lhsArray, rhsArray;
      forWideBlocks<T>(begin, end, 1, [&](int64_t first, int64_t last) {
        Wide<T> *a = lhsArray.elements, *b = rhsArray.elements;
        int64_t length = last - first;
        widenOperands(loops, lhs, rhs, first, last, a, b);
        simd([=] { binarySegment<Op>(a, 1, b, 1, a, length); });
        narrow(a, out + first, length);
      });
    }
  };
  return makeElementwise(count, kElementGrain, std::move(range));
}

template <typename Op> PrepareResult prepareBinary(const KernelSignature &signature) {
  constexpr bool allowsIntegers = !std::is_same_v<Op, Div>;
  Expected<BinaryCall> call = checkBinary(signature, allowsIntegers);
  if (!call)
    return call.error();
  if constexpr (allowsIntegers)
    if (call->dtype == DType::I32)
      return makeBinary<Op, int32_t>(std::move(call->loops));
  return withFloatType(call->dtype, [&](auto zero) {
    return makeBinary<Op, decltype(zero)>(std::move(call->loops));
  });
}

template <typename Op, typename W>
void applyCompare(const W *lhs, const W *rhs, uint8_t *out, int64_t count) {
  simd([=] {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i)
      out[i] = Op::apply(lhs[i], rhs[i]) ? 1 : 0;
  });
}

template <typename Op, typename T> std::unique_ptr<CpuKernel> makeCompare(int64_t count) {
  return makeKernel([count](const CpuArguments &args) {
    const T *lhs = input<T>(args, 0);
    const T *rhs = input<T>(args, 1);
    uint8_t *out = output<uint8_t>(args, 0);
    parallelFor(args.threads, count, kElementGrain, [=](int64_t begin, int64_t end, int) {
      WideArray<T> lhsArray, rhsArray;
      forWideBlocks<T>(begin, end, 1, [&](int64_t first, int64_t last) {
        int64_t length = last - first;
        applyCompare<Op>(wideInput(lhs + first, length, lhsArray.elements),
                         wideInput(rhs + first, length, rhsArray.elements), out + first, length);
      });
    });
  });
}

template <typename T> std::unique_ptr<CpuKernel> makeCompare(Predicate predicate, int64_t count) {
  switch (predicate) {
  case Predicate::Equal:
    return makeCompare<Equal, T>(count);
  case Predicate::NotEqual:
    return makeCompare<NotEqual, T>(count);
  case Predicate::Less:
    return makeCompare<Less, T>(count);
  case Predicate::LessEqual:
    return makeCompare<LessEqual, T>(count);
  case Predicate::Greater:
    return makeCompare<Greater, T>(count);
  default:
    return makeCompare<GreaterEqual, T>(count);
  }
}

PrepareResult prepareCompare(const CompareCall &call) {
  int64_t count = call.type.numElements();
  if (call.type.dtype == DType::I32)
    return makeCompare<int32_t>(call.predicate, count);
  return withFloatType(call.type.dtype, [&](auto zero) {
    return makeCompare<decltype(zero)>(call.predicate, count);
  });
}

/// Elements are moved as unsigned integers, for any type.
template <typename T> std::unique_ptr<CpuKernel> makeSelect(int64_t count) {
  return makeKernel([count](const CpuArguments &args) {
    const uint8_t *condition = input<uint8_t>(args, 0);
    const T *whenTrue = input<T>(args, 1);
    const T *whenFalse = input<T>(args, 2);
    T *out = output<T>(args, 0);
    parallelFor(args.threads, count, kElementGrain, [=](int64_t begin, int64_t end, int) {
      simd([=] {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) {
          T a = whenTrue[i], b = whenFalse[i];
          out[i] = condition[i] ? a : b;
        }
      });
    });
  });
}

PrepareResult prepareSelect(const TensorType &type) {
  return withElementBits(type.dtype,
                         [&](auto zero) { return makeSelect<decltype(zero)>(type.numElements()); });
}

} // namespace

std::span<const KernelEntry> binaryKernels() {
  static constexpr KernelEntry entries[] = {
      {"add", prepareBinary<Add>},
      {"sub", prepareBinary<Sub>},
      {"mul", prepareBinary<Mul>},
      {"div", prepareBinary<Div>},
      {"maximum", prepareBinary<Maximum>},
      {"minimum", prepareBinary<Minimum>},
      {"compare", prepareBy<checkCompare, prepareCompare>},
      {"select", prepareBy<checkSelect, prepareSelect>},
  };
  return entries;
}

} // namespace dtc::runtime::cpu
