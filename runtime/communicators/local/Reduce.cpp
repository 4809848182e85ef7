//===- Reduce.cpp - Reductions of the members' operands -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/communicators/local/Reduce.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace dtc::runtime {

namespace {

struct Add {
  template <typename T> T operator()(T a, T b) const {
    // Integers wrap; signed overflow has no defined result.
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                            static_cast<std::make_unsigned_t<T>>(b));
    else
      return a + b;
  }
};
// A comparison with a NaN is false: `a` is kept if it is the NaN, `b` if that is. Without the short
// circuit of ||, loops become vector instructions.
struct Maximum {
  template <typename T> T operator()(T a, T b) const { return ((a > b) | (a != a)) ? a : b; }
};
struct Minimum {
  template <typename T> T operator()(T a, T b) const { return ((a < b) | (a != a)) ? a : b; }
};

template <typename T, typename Op>
void reduceWith(Op op, std::span<const std::byte *const> inputs, std::byte *output, size_t count) {
  // A chunk stays in the first cache level while the inputs pass over it. It is a copy, because
  // the output may be one of the inputs.
  constexpr size_t chunkElements = 8192 / sizeof(T);
  T chunk[chunkElements];
  for (size_t begin = 0; begin < count; begin += chunkElements) {
    size_t n = std::min(chunkElements, count - begin);
    std::memcpy(chunk, inputs[0] + begin * sizeof(T), n * sizeof(T));
    for (const std::byte *input : inputs.subspan(1)) {
      const T *values = reinterpret_cast<const T *>(input) + begin;
      for (size_t i = 0; i < n; ++i)
        chunk[i] = op(chunk[i], values[i]);
    }
    std::memcpy(output + begin * sizeof(T), chunk, n * sizeof(T));
  }
}

template <typename T>
void reduceAs(Reduction reduction, std::span<const std::byte *const> inputs, std::byte *output,
              size_t count) {
  switch (reduction) {
  case Reduction::Sum:
    return reduceWith<T>(Add(), inputs, output, count);
  case Reduction::Max:
    return reduceWith<T>(Maximum(), inputs, output, count);
  case Reduction::Min:
    return reduceWith<T>(Minimum(), inputs, output, count);
  }
}

} // namespace

void reduceElements(Reduction reduction, DType dtype, std::span<const std::byte *const> inputs,
                    std::byte *output, size_t count) {
  switch (dtype) {
  case DType::F32:
    return reduceAs<float>(reduction, inputs, output, count);
  case DType::F64:
    return reduceAs<double>(reduction, inputs, output, count);
  case DType::I32:
    return reduceAs<int32_t>(reduction, inputs, output, count);
  case DType::Bool:
    return; // refused when the plan is read
  }
}

} // namespace dtc::runtime
