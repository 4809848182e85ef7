//===- cuda_bf16.h - The stand-in's bfloat16 -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A storage type with the conversions of CUDA's header; it computes as float.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_INCLUDE_CUDA_BF16_H
#define DTC_TEST_STANDIN_CUDA_INCLUDE_CUDA_BF16_H

#include "support/Float16.h"

struct __nv_bfloat16 {
  dtc::BFloat16 value;

  __nv_bfloat16() = default;
  __nv_bfloat16(float number) : value(number) {}
  __nv_bfloat16(double number) : value(number) {}
  __nv_bfloat16(int number) : value(number) {}
  operator float() const { return value; }
};
using nv_bfloat16 = __nv_bfloat16;

inline __nv_bfloat16 __float2bfloat16(float number) { return number; }
inline __nv_bfloat16 __float2bfloat16_rn(float number) { return number; }
inline __nv_bfloat16 __double2bfloat16(double number) { return number; }
inline float __bfloat162float(__nv_bfloat16 number) { return number; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 number) { return number.value.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  __nv_bfloat16 number;
  number.value.bits = bits;
  return number;
}

#endif // DTC_TEST_STANDIN_CUDA_INCLUDE_CUDA_BF16_H
