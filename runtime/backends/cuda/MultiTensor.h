//===- MultiTensor.h - Kernels of many tensors ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One launch for the tensors of many calls. The table of their addresses is an argument of the
// kernel, so that it needs no memory of its own: CUDA allows 32,764 bytes of arguments ("CUDA C++
// Programming Guide", version 13.0, "Function Parameters").
//
// Blocks take chunks of the tensors in turn, so that a launch of one large and many small ones
// keeps the GPU busy. Results do not depend on the division.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_MULTITENSOR_H
#define DTC_RUNTIME_BACKENDS_CUDA_MULTITENSOR_H

#include "runtime/backends/cuda/Elements.h"
#include "runtime/backends/cuda/HeldLaunches.h"
#include "runtime/backends/cuda/Launch.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <type_traits>

namespace dtc::runtime::cuda {

/// The tensors of a launch, of up to `Capacity` calls with `Arrays` arrays each.
template <int Arrays, int Capacity> struct GroupTable {
  /// The elements that a block takes at a time.
  static constexpr int64_t kChunk = 4096;

  struct Group {
    void *arrays[Arrays];
    int64_t count;
    int64_t firstChunk;
  };

  int64_t chunks;
  int groups;
  Group group[Capacity];
};

/// The last group of a table that begins at a chunk or before it.
template <typename Table>
__device__ __forceinline__ int groupOfChunk(const Table &table, int64_t chunk) {
  int low = 0, high = table.groups - 1;
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (table.group[middle].firstChunk <= chunk)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/// Calls function(group, begin, end) for the chunks of this block: elements [begin, end) of a
/// group's arrays. `begin` is a multiple of kChunk.
template <typename Table, typename Function>
__device__ __forceinline__ void forEachChunk(const Table &table, const Function &function) {
  for (int64_t chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
    const auto &group = table.group[groupOfChunk(table, chunk)];
    int64_t begin = (chunk - group.firstChunk) * Table::kChunk;
    int64_t end = begin + Table::kChunk < group.count ? begin + Table::kChunk : group.count;
    function(group, begin, end);
  }
}

template <typename Parameter, typename... Parameters, typename... Arguments>
MaybeError launchTable(CudaQueue &queue, std::span<const TensorGroup> groups,
                       void (*kernel)(Parameter, Parameters...), const Arguments &...arguments) {
  using Table = std::remove_cvref_t<Parameter>;
  static_assert(sizeof(Table) <= 32764 - 256);
  Table table;
  table.chunks = 0;
  table.groups = 0;
  for (const TensorGroup &from : groups) {
    if (from.count == 0)
      continue;
    auto &to = table.group[table.groups++];
    std::copy_n(from.arrays.begin(), std::size(to.arrays), to.arrays);
    to.count = from.count;
    to.firstChunk = table.chunks;
    table.chunks += (from.count + table.kChunk - 1) / table.kChunk;
  }
  return launch(queue, gridStride(queue, table.chunks * 256), kernel, table, arguments...);
}

/// Launches a kernel for the groups: `few` for the smaller table, `many` for the larger one.
template <typename Few, typename Many, typename... Parameters, typename... Arguments>
MaybeError launchGroups(CudaQueue &queue, std::span<const TensorGroup> groups,
                        void (*few)(Few, Parameters...), void (*many)(Many, Parameters...),
                        const Arguments &...arguments) {
  constexpr size_t most = std::extent_v<decltype(std::remove_cvref_t<Few>::group)>;
  static_assert(std::extent_v<decltype(std::remove_cvref_t<Many>::group)> ==
                HeldLaunches::kMaxGroups);
  if (queue.isPreparing()) { // more calls may share a launch than are prepared together
    MaybeError error = loadKernel(few);
    return error ? error : loadKernel(many);
  }
  if (groups.size() <= most)
    return launchTable(queue, groups, few, arguments...);
  return launchTable(queue, groups, many, arguments...);
}

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_MULTITENSOR_H
