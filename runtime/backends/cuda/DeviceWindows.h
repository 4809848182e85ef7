//===- DeviceWindows.h - Windows of convolutions and poolings, on a GPU ---===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_DEVICEWINDOWS_H
#define DTC_RUNTIME_BACKENDS_CUDA_DEVICEWINDOWS_H

#include "calls/WindowCalls.h"

#include <cstdint>
#include <cuda_runtime.h>

namespace dtc::runtime::cuda {

/// An index along each of the three spatial dimensions.
struct Places {
  int64_t at[3];
};

/// SpatialDims as a parameter of kernels.
struct DeviceWindows {
  struct Dim {
    int64_t in, out, size, stride, padding, dilation;
  };
  Dim dims[3];

  explicit DeviceWindows(const SpatialDims &from) {
    for (size_t i = 0; i < 3; ++i) {
      const Windows &windows = from[i].windows;
      dims[i] = {from[i].in,     from[i].out,     windows.size,
                 windows.stride, windows.padding, windows.dilation};
    }
  }

  __device__ __forceinline__ int64_t inElements() const {
    return dims[0].in * dims[1].in * dims[2].in;
  }
  __device__ __forceinline__ int64_t outElements() const {
    return dims[0].out * dims[1].out * dims[2].out;
  }
  __device__ __forceinline__ int64_t windowElements() const {
    return dims[0].size * dims[1].size * dims[2].size;
  }

  /// The indices of element `i` of a plane of x, of y, and of a window.
  __device__ __forceinline__ Places placeAt(int64_t i) const {
    return split(i, dims[1].in, dims[2].in);
  }
  __device__ __forceinline__ Places windowAt(int64_t i) const {
    return split(i, dims[1].out, dims[2].out);
  }
  __device__ __forceinline__ Places elementAt(int64_t i) const {
    return split(i, dims[1].size, dims[2].size);
  }

  /// Where in a plane of x element `k` of a window lies; -1 if it is padding.
  __device__ __forceinline__ int64_t placeOf(const Places &window, const Places &k) const {
    int64_t place = 0;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      int64_t index = placeAlong(dims[i], window.at[i], k.at[i]);
      if (index < 0)
        return -1;
      place = place * dims[i].in + index;
    }
    return place;
  }

  /// Calls body(k, place) for each element of a window that is no padding, in the order of memory:
  /// its place in the window and in a plane of x.
  template <typename Body>
  __device__ __forceinline__ void forPlaces(const Places &window, const Body &body) const {
    for (int64_t k0 = 0; k0 < dims[0].size; ++k0) {
      int64_t p0 = placeAlong(dims[0], window.at[0], k0);
      if (p0 < 0)
        continue;
      for (int64_t k1 = 0; k1 < dims[1].size; ++k1) {
        int64_t p1 = placeAlong(dims[1], window.at[1], k1);
        if (p1 < 0)
          continue;
        for (int64_t k2 = 0; k2 < dims[2].size; ++k2) {
          int64_t p2 = placeAlong(dims[2], window.at[2], k2);
          if (p2 >= 0)
            body((k0 * dims[1].size + k1) * dims[2].size + k2,
                 (p0 * dims[1].in + p1) * dims[2].in + p2);
        }
      }
    }
  }

  /// Calls body(k, window) for each window that has a place of x, in the order of k: as which of
  /// its elements, and the window's place in a plane of y.
  template <typename Body>
  __device__ __forceinline__ void forWindows(const Places &place, const Body &body) const {
    for (int64_t k0 = 0; k0 < dims[0].size; ++k0) {
      int64_t t0 = windowAlong(dims[0], place.at[0], k0);
      if (t0 < 0)
        continue;
      for (int64_t k1 = 0; k1 < dims[1].size; ++k1) {
        int64_t t1 = windowAlong(dims[1], place.at[1], k1);
        if (t1 < 0)
          continue;
        for (int64_t k2 = 0; k2 < dims[2].size; ++k2) {
          int64_t t2 = windowAlong(dims[2], place.at[2], k2);
          if (t2 >= 0)
            body((k0 * dims[1].size + k1) * dims[2].size + k2,
                 (t0 * dims[1].out + t1) * dims[2].out + t2);
        }
      }
    }
  }

private:
  static __device__ __forceinline__ Places split(int64_t i, int64_t middle, int64_t inner) {
    int64_t rows = i / inner, outer = rows / middle;
    return {{outer, rows - outer * middle, i - rows * inner}};
  }
  static __device__ __forceinline__ int64_t placeAlong(const Dim &dim, int64_t window, int64_t k) {
    int64_t place = window * dim.stride - dim.padding + k * dim.dilation;
    return place >= 0 && place < dim.in ? place : -1;
  }
  /// The window whose element k is the place; -1 if there is none.
  static __device__ __forceinline__ int64_t windowAlong(const Dim &dim, int64_t place, int64_t k) {
    int64_t begin = place + dim.padding - k * dim.dilation;
    if (begin < 0 || begin % dim.stride != 0)
      return -1;
    int64_t window = begin / dim.stride;
    return window < dim.out ? window : -1;
  }
};

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_DEVICEWINDOWS_H
