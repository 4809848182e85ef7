//===- cuda_fp16.h - The stand-in's binary16 -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A storage type with the conversions of CUDA's header; it computes as float.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_INCLUDE_CUDA_FP16_H
#define DTC_TEST_STANDIN_CUDA_INCLUDE_CUDA_FP16_H

#include "support/Float16.h"

struct __half {
  dtc::Float16 value;

  __half() = default;
  __half(float number) : value(number) {}
  __half(double number) : value(number) {}
  __half(int number) : value(number) {}
  operator float() const { return value; }
};
using half = __half;

inline __half __float2half(float number) { return number; }
inline __half __float2half_rn(float number) { return number; }
inline __half __double2half(double number) { return number; }
inline float __half2float(__half number) { return number; }
inline unsigned short __half_as_ushort(__half number) { return number.value.bits; }
inline __half __ushort_as_half(unsigned short bits) {
  __half number;
  number.value.bits = bits;
  return number;
}

#endif // DTC_TEST_STANDIN_CUDA_INCLUDE_CUDA_FP16_H
