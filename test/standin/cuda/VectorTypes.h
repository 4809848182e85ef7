//===- VectorTypes.h - Vector types of CUDA ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The types of CUDA's vector_types.h that kernels use, with its names, sizes and alignments.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_VECTORTYPES_H
#define DTC_TEST_STANDIN_CUDA_VECTORTYPES_H

// NAME2, NAME3, NAME4 and make_NAME2, ... of a type of elements.
#define DTC_STANDIN_VECTORS(NAME, TYPE)                                                            \
  struct alignas(2 * sizeof(TYPE)) NAME##2 {                                                       \
    TYPE x, y;                                                                                     \
  };                                                                                               \
  struct NAME##3 {                                                                                 \
    TYPE x, y, z;                                                                                  \
  };                                                                                               \
  struct alignas(sizeof(TYPE) < 4 ? 4 * sizeof(TYPE) : 16) NAME##4 {                               \
    TYPE x, y, z, w;                                                                               \
  };                                                                                               \
  inline NAME##2 make_##NAME##2(TYPE x, TYPE y) { return {x, y}; }                                 \
  inline NAME##3 make_##NAME##3(TYPE x, TYPE y, TYPE z) { return {x, y, z}; }                      \
  inline NAME##4 make_##NAME##4(TYPE x, TYPE y, TYPE z, TYPE w) { return {x, y, z, w}; }

DTC_STANDIN_VECTORS(char, signed char)
DTC_STANDIN_VECTORS(uchar, unsigned char)
DTC_STANDIN_VECTORS(short, short)
DTC_STANDIN_VECTORS(ushort, unsigned short)
DTC_STANDIN_VECTORS(int, int)
DTC_STANDIN_VECTORS(uint, unsigned)
DTC_STANDIN_VECTORS(longlong, long long)
DTC_STANDIN_VECTORS(ulonglong, unsigned long long)
DTC_STANDIN_VECTORS(float, float)
DTC_STANDIN_VECTORS(double, double)

#undef DTC_STANDIN_VECTORS

/// Extents of a grid or a block.
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 value) : x(value.x), y(value.y), z(value.z) {}
};

#endif // DTC_TEST_STANDIN_CUDA_VECTORTYPES_H
