//===- ProductRates.cpp - Rates of products -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Measurements.h"
#include "simulator/cluster/DeviceTime.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime {

/// The einsums of a linear layer: the product with its weights and that of its gradient with the
/// weights for its input, or, if `ofWeights`, that of both activations for the gradient of the
/// weights, which has a wide result. Sizes of 1 are no dimensions, as in the einsums of plans: a
/// dot product is "k,k->".
static std::vector<KernelSignature> productCalls(const CalibrationOptions &options, DType dtype,
                                                 int64_t rows, int64_t columns, int64_t depth,
                                                 bool ofWeights) {
  auto sizeOf = [&](char letter) { return letter == 'm' ? rows : letter == 'n' ? columns : depth; };
  auto withoutOnes = [&](std::string term) {
    std::erase_if(term, [&](char letter) { return letter != 'k' && sizeOf(letter) == 1; });
    return term;
  };
  auto typeOf = [&](const std::string &term, DType type) {
    TensorType result{type, {}};
    for (char letter : term)
      result.shape.push_back(sizeOf(letter));
    return result;
  };
  std::vector<KernelSignature> calls;
  for (auto [lhs, rhs] : {std::pair("mk", "kn"), std::pair("mk", "nk"), std::pair("km", "kn")}) {
    if (ofWeights != (lhs[0] == 'k'))
      continue;
    std::string left = withoutOnes(lhs), right = withoutOnes(rhs), out = withoutOnes("mn");
    KernelSignature call{"einsum",
                         {typeOf(left, dtype), typeOf(right, dtype)},
                         {typeOf(out, ofWeights ? wideType(dtype) : dtype)},
                         {{"equation", fmt::format("{},{}->{}", left, right, out)}},
                         {}};
    calls.push_back(std::move(call));
    if (rows * columns * depth > options.manyMultiplications)
      break;
  }
  return calls;
}

static MaybeError measureTable(CalibrationContext &context, DType dtype, bool ofWeights,
                               cluster::MatrixTable &table) {
  KernelRunOptions run;
  run.workingSetBytes = context.options.productSetBytes;
  for (int64_t rows : table.rows())
    for (int64_t columns : table.columns())
      for (int64_t depth : table.depths()) {
        Expected<double> seconds = context.timer.secondsOf(
            productCalls(context.options, dtype, rows, columns, depth, ofWeights), run);
        if (!seconds)
          return seconds.error();
        double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(columns) *
                       static_cast<double>(depth);
        table.add_flops(rounded(flops / *seconds));
      }
  return std::nullopt;
}

MaybeError measureProducts(CalibrationContext &context, cluster::DeviceKind &device) {
  const CalibrationOptions &options = context.options;
  for (DType dtype : options.dtypes) {
    auto sizesOf = [&](std::vector<int64_t> sizes) {
      std::erase_if(sizes, [&](int64_t size) {
        return dtype == DType::F32 && size > options.largestSizeOfF32;
      });
      return sizes;
    };
    auto makeTable = [&](const std::vector<int64_t> &rows, const std::vector<int64_t> &columns,
                         const std::vector<int64_t> &depths) {
      cluster::MatrixTable table;
      table.mutable_rows()->Assign(rows.begin(), rows.end());
      table.mutable_columns()->Assign(columns.begin(), columns.end());
      table.mutable_depths()->Assign(depths.begin(), depths.end());
      return table;
    };
    cluster::MatrixTable table =
        makeTable(sizesOf(options.rows), sizesOf(options.columns), sizesOf(options.depths));
    std::vector<int64_t> sizes = sizesOf(options.gradientSizes);
    cluster::MatrixTable ofWeights = makeTable(sizes, sizes, sizes);
    context.announce(
        fmt::format("products of {}", name(dtype)),
        static_cast<size_t>(table.rows_size() * table.columns_size() * table.depths_size()) +
            sizes.size() * sizes.size() * sizes.size());
    for (bool isOfWeights : {false, true})
      if (MaybeError error =
              measureTable(context, dtype, isOfWeights, isOfWeights ? ofWeights : table))
        return error;
    cluster::MatrixRate *rate = device.add_matrix();
    rate->set_dtype(name(dtype));
    *rate->mutable_table() = std::move(table);
    *rate->mutable_transposed_table() = std::move(ofWeights);
    rate->set_flops(peakFlops(device, name(dtype)));
  }
  return std::nullopt;
}

} // namespace dtc::runtime
