//===- ElementwiseKernel.cpp - Kernels of elements, and of rows in use ----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/ElementwiseKernel.h"

#include "calls/GroupedProductCall.h"

#include <algorithm>
#include <cstring>

namespace dtc::runtime::cpu {

namespace {

/// Threads share the rows in use and the others alike, so that each has as much to do as the next,
/// however the rows are spread over the groups.
class KernelOfRows final : public CpuKernel {
public:
  KernelOfRows(std::unique_ptr<CpuKernel> kernel, const ElementwiseKernel &elementwise,
               size_t numInputs, size_t elementBytes, int64_t rows, int64_t rowsOfGroup)
      : owned(std::move(kernel)), elementwise(elementwise), numInputs(numInputs),
        rowBytes(static_cast<size_t>(elementwise.elements / rows) * elementBytes), rows(rows),
        rowsOfGroup(rowsOfGroup) {}

  void run(const CpuArguments &args) const override {
    const auto *indices = input<int32_t>(args, numInputs);
    auto *out = output<std::byte>(args, 0);
    int64_t width = elementwise.elements / rows, inUse = 0;
    for (int64_t first = 0; first < rows; first += rowsOfGroup)
      inUse += usedRows(indices + first, rowsOfGroup);
    // In place of an operand the zeros are there.
    bool isInPlace = std::ranges::find(args.inputs.first(numInputs), args.outputs[0]) !=
                     args.inputs.begin() + static_cast<std::ptrdiff_t>(numInputs);
    int64_t empty = isInPlace ? 0 : rows - inUse;
    int parts = numParts(args.threads, elementwise.elements, elementwise.grain);
    forParts(parts, [&](int part) {
      Share used(inUse, parts, part), zeros(empty, parts, part);
      for (int64_t first = 0; first < rows; first += rowsOfGroup) {
        int64_t count = usedRows(indices + first, rowsOfGroup);
        auto [begin, end] = used.of(count);
        if (begin < end)
          elementwise.runRange(args, (first + begin) * width, (first + end) * width);
        auto [zeroBegin, zeroEnd] = zeros.of(isInPlace ? 0 : rowsOfGroup - count);
        if (zeroBegin < zeroEnd)
          std::memset(out + static_cast<size_t>(first + count + zeroBegin) * rowBytes, 0,
                      static_cast<size_t>(zeroEnd - zeroBegin) * rowBytes);
      }
    });
  }

private:
  /// The share of a part in rows that are counted group by group.
  struct Share {
    Share(int64_t count, int parts, int part)
        : begin(partBegin(count, parts, part)), end(partBegin(count, parts, part + 1)) {}
    /// The rows [first, second) of the next `count` ones.
    std::pair<int64_t, int64_t> of(int64_t count) {
      int64_t first = std::clamp<int64_t>(begin - seen, 0, count);
      int64_t last = std::clamp<int64_t>(end - seen, 0, count);
      seen += count;
      return {first, last};
    }
    int64_t begin, end, seen = 0;
  };

  std::unique_ptr<CpuKernel> owned;
  const ElementwiseKernel &elementwise; // the same
  size_t numInputs, rowBytes;
  int64_t rows, rowsOfGroup;
};

} // namespace

std::unique_ptr<CpuKernel> makeOfRows(std::unique_ptr<CpuKernel> kernel, size_t numInputs,
                                      size_t elementBytes, int64_t rows, int64_t rowsOfGroup) {
  const auto *elementwise = dynamic_cast<const ElementwiseKernel *>(kernel.get());
  if (!elementwise)
    return nullptr;
  return std::make_unique<KernelOfRows>(std::move(kernel), *elementwise, numInputs, elementBytes,
                                        rows, rowsOfGroup);
}

} // namespace dtc::runtime::cpu
