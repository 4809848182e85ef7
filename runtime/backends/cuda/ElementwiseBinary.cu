//===- ElementwiseBinary.cu - Functions of two tensors and more -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/ElementwiseCalls.h"
#include "runtime/backends/cuda/CudaKernel.h"
#include "runtime/backends/cuda/Elementwise.h"

namespace dtc::runtime::cuda {

namespace {

// Integers wrap around, which signed arithmetic does not.
template <typename T> struct Wrapping { using type = T; };
template <> struct Wrapping<int32_t> { using type = uint32_t; };
template <typename T> using WrappingT = typename Wrapping<T>::type;

struct Add {
  template <typename T> __device__ T operator()(int64_t, T a, T b) const {
    return static_cast<T>(WrappingT<T>(a) + WrappingT<T>(b));
  }
};
struct Sub {
  template <typename T> __device__ T operator()(int64_t, T a, T b) const {
    return static_cast<T>(WrappingT<T>(a) - WrappingT<T>(b));
  }
};
struct Mul {
  template <typename T> __device__ T operator()(int64_t, T a, T b) const {
    return static_cast<T>(WrappingT<T>(a) * WrappingT<T>(b));
  }
};
struct Div {
  template <typename T> __device__ T operator()(int64_t, T a, T b) const { return a / b; }
};
// A NaN in either operand is the result.
struct Maximum {
  template <typename T> __device__ T operator()(int64_t, T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Minimum {
  template <typename T> __device__ T operator()(int64_t, T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

struct Compare {
  Predicate predicate;
  template <typename T> __device__ uint8_t operator()(int64_t, T a, T b) const {
    switch (predicate) {
    case Predicate::Equal:
      return a == b;
    case Predicate::NotEqual:
      return a != b;
    case Predicate::Less:
      return a < b;
    case Predicate::LessEqual:
      return a <= b;
    case Predicate::Greater:
      return a > b;
    case Predicate::GreaterEqual:
      return a >= b;
    }
    return 0;
  }
};

struct Select {
  template <typename T> __device__ T operator()(int64_t, uint8_t condition, T a, T b) const {
    return condition ? a : b;
  }
};

template <typename T, typename Op> std::unique_ptr<CudaKernel> makeBinary(DeviceLoops<2> loops) {
  return makeKernel([loops](CudaQueue &queue, const KernelArguments &args) {
    return enqueueElementwise<T, T, T>(queue, loops, Op(), output<T>(args, 0), input<T>(args, 0),
                                       input<T>(args, 1));
  });
}

template <typename Op> PrepareResult prepareBinary(const KernelSignature &signature) {
  constexpr bool allowsIntegers = !std::is_same_v<Op, Div>;
  Expected<BinaryCall> call = checkBinary(signature, allowsIntegers);
  if (!call)
    return call.error();
  Expected<DeviceLoops<2>> loops = DeviceLoops<2>::from(call->loops);
  if (!loops)
    return loops.error();
  if constexpr (allowsIntegers)
    if (call->dtype == DType::I32)
      return makeBinary<int32_t, Op>(*loops);
  return withFloatType(call->dtype, [&](auto identity) {
    return makeBinary<typename decltype(identity)::type, Op>(*loops);
  });
}

template <typename T> std::unique_ptr<CudaKernel> makeCompare(const CompareCall &call) {
  return makeKernel([=](CudaQueue &queue, const KernelArguments &args) {
    return enqueueDense<uint8_t, T, T>(queue, call.type.numElements(), Compare{call.predicate},
                                       output<uint8_t>(args, 0), input<T>(args, 0),
                                       input<T>(args, 1));
  });
}

PrepareResult prepareCompare(const CompareCall &call) {
  if (call.type.dtype == DType::I32)
    return makeCompare<int32_t>(call);
  return withFloatType(call.type.dtype, [&](auto identity) {
    return makeCompare<typename decltype(identity)::type>(call);
  });
}

PrepareResult prepareSelect(const TensorType &type) {
  int64_t count = type.numElements();
  return withElementBits(type.dtype, [&](auto identity) -> std::unique_ptr<CudaKernel> {
    using T = typename decltype(identity)::type;
    return makeKernel([=](CudaQueue &queue, const KernelArguments &args) {
      return enqueueDense<T, uint8_t, T, T>(queue, count, Select(), output<T>(args, 0),
                                            input<uint8_t>(args, 0), input<T>(args, 1),
                                            input<T>(args, 2));
    });
  });
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

} // namespace dtc::runtime::cuda
