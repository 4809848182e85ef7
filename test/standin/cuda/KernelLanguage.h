//===- KernelLanguage.h - CUDA's extensions of C++ for kernels -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A thread of a block is executed as a coroutine of the thread that works for the device. It gives
// way to others at barriers and at functions of warps, and nowhere else. Of each such function the
// place in the source is known, so that errors name it.
//
// Sources: NVIDIA, "CUDA C++ Programming Guide", version 13.0, "C++ Language Extensions", and
// "CUDA Math API".
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_KERNELLANGUAGE_H
#define DTC_TEST_STANDIN_CUDA_KERNELLANGUAGE_H

#include "test/standin/cuda/VectorTypes.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <source_location>
#include <type_traits>
#include <utility>

#define __host__
#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __constant__ static
// Threads read such a parameter where the launch left it, as on a GPU. It stands after its type.
#define __grid_constant__ &
// One object for each thread of the host: kernels are executed by one. Variables of functions in
// thread-local memory are found in the table of symbols, by which fresh blocks find them poisoned.
#define __shared__ static thread_local

/// Of the thread that is executed now.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace dtc::standin {

using Place = std::source_location;

/// Waits for all threads of the block.
void blockBarrier(Place place);
/// Waits for the lanes of `mask`; returns what lane `source` gave as `bits`, for which it has to be
/// in `mask`.
uint64_t exchange(unsigned mask, uint64_t bits, unsigned source, const char *function, Place place);
/// Waits for the lanes of `mask`; returns the mask of those that gave true.
unsigned ballot(unsigned mask, bool value, const char *function, Place place);
unsigned laneIndex();
/// The shared memory that the launch asked for: before its end are at most 15 bytes more, after it
/// is a page that cannot be accessed.
std::byte *sharedArray();

template <typename T>
T exchangeValue(unsigned mask, T value, unsigned source, const char *function, Place place) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = exchange(mask, bits, source, function, place);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

} // namespace dtc::standin

inline void __syncthreads(dtc::standin::Place place = dtc::standin::Place::current()) {
  dtc::standin::blockBarrier(place);
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFF,
                       dtc::standin::Place place = dtc::standin::Place::current()) {
  dtc::standin::ballot(mask, true, "__syncwarp", place);
}
inline unsigned __ballot_sync(unsigned mask, int value,
                              dtc::standin::Place place = dtc::standin::Place::current()) {
  return dtc::standin::ballot(mask, value, "__ballot_sync", place);
}
inline int __any_sync(unsigned mask, int value,
                      dtc::standin::Place place = dtc::standin::Place::current()) {
  return dtc::standin::ballot(mask, value, "__any_sync", place) != 0;
}
inline int __all_sync(unsigned mask, int value,
                      dtc::standin::Place place = dtc::standin::Place::current()) {
  return dtc::standin::ballot(mask, value, "__all_sync", place) == mask;
}

// The lanes of a warp form segments of `width` (a power of two); a lane whose source is in another
// segment gets its own value.
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
              dtc::standin::Place place = dtc::standin::Place::current()) {
  unsigned self = dtc::standin::laneIndex(), first = self & ~unsigned(width - 1);
  return dtc::standin::exchangeValue(mask, value, first + (unsigned(lane) & (width - 1)),
                                     "__shfl_sync", place);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 dtc::standin::Place place = dtc::standin::Place::current()) {
  unsigned self = dtc::standin::laneIndex(), in = self & (width - 1);
  return dtc::standin::exchangeValue(mask, value, in >= delta ? self - delta : self,
                                     "__shfl_up_sync", place);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   dtc::standin::Place place = dtc::standin::Place::current()) {
  unsigned self = dtc::standin::laneIndex(), in = self & (width - 1);
  return dtc::standin::exchangeValue(
      mask, value, in + delta < unsigned(width) ? self + delta : self, "__shfl_down_sync", place);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32,
                  dtc::standin::Place place = dtc::standin::Place::current()) {
  unsigned self = dtc::standin::laneIndex(), source = self ^ unsigned(bits);
  // A source in an earlier segment can be read, one in a later segment cannot.
  unsigned last = self | unsigned(width - 1);
  return dtc::standin::exchangeValue(mask, value, source <= last ? source : self, "__shfl_xor_sync",
                                     place);
}

// Between two barriers a thread is alone, so that plain reads and writes are atomic. Each function
// returns the value before.
template <typename T> T atomicAdd(T *at, std::type_identity_t<T> value) {
  return std::exchange(*at, *at + value);
}
template <typename T> T atomicSub(T *at, std::type_identity_t<T> value) {
  return std::exchange(*at, *at - value);
}
template <typename T> T atomicMax(T *at, std::type_identity_t<T> value) {
  return std::exchange(*at, std::max(*at, value));
}
template <typename T> T atomicMin(T *at, std::type_identity_t<T> value) {
  return std::exchange(*at, std::min(*at, value));
}
template <typename T> T atomicOr(T *at, std::type_identity_t<T> value) {
  return std::exchange(*at, *at | value);
}
template <typename T> T atomicAnd(T *at, std::type_identity_t<T> value) {
  return std::exchange(*at, *at & value);
}
template <typename T> T atomicExch(T *at, std::type_identity_t<T> value) {
  return std::exchange(*at, value);
}
template <typename T>
T atomicCAS(T *at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return std::exchange(*at, *at == expected ? value : *at);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

template <typename T> T __ldg(const T *at) { return *at; }

// min and max of two equal arithmetic types, and of mixed ones as the usual conversions have it.
template <typename A, typename B>
requires(std::is_arithmetic_v<A> &&std::is_arithmetic_v<B>) constexpr std::common_type_t<A, B> min(
    A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>)
    return std::fmin(T(a), T(b));
  else
    return T(a) < T(b) ? T(a) : T(b);
}
template <typename A, typename B>
requires(std::is_arithmetic_v<A> &&std::is_arithmetic_v<B>) constexpr std::common_type_t<A, B> max(
    A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>)
    return std::fmax(T(a), T(b));
  else
    return T(a) < T(b) ? T(b) : T(a);
}

using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;

inline float rsqrtf(float x) { return static_cast<float>(1 / std::sqrt(static_cast<double>(x))); }
/// The sine and the cosine of pi x.
inline void sincospi(double x, double *sine, double *cosine) {
  double angle = std::numbers::pi * std::remainder(x, 2);
  *sine = std::sin(angle);
  *cosine = std::cos(angle);
}
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __fma_rn(double x, double y, double z) { return std::fma(x, y, z); }
inline float __saturatef(float x) { return std::fmin(std::fmax(x, 0.0f), 1.0f); }

inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return x ? std::countr_zero(static_cast<unsigned>(x)) + 1 : 0; }
inline unsigned __umulhi(unsigned x, unsigned y) { return (uint64_t(x) * y) >> 32; }
inline uint64_t __umul64hi(uint64_t x, uint64_t y) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(x) * y) >> 64);
}

#endif // DTC_TEST_STANDIN_CUDA_KERNELLANGUAGE_H
