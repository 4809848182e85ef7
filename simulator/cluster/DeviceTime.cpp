//===- DeviceTime.cpp - Cost model of kernels -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/DeviceTime.h"

#include "plan/KernelTable.h"
#include "simulator/cluster/TimeTable.h"
#include "support/EinsumEquation.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dtc {

static double orElse(double value, double other) { return value > 0 ? value : other; }

/// The rate of an element type, or else of f32, or else the first that the device has. Both types
/// of 8 bits have the rate of "fp8", or else that of bf16: where there are no such units, kernels
/// widen.
static const cluster::MatrixRate &findRate(const cluster::DeviceKind &device,
                                           std::string_view dtype) {
  bool has8Bits = dtype == "fp8" || dtype == name(DType::F8E4M3) || dtype == name(DType::F8E5M2);
  std::string_view own = has8Bits ? "fp8" : dtype, next = has8Bits ? "bf16" : "f32";
  for (std::string_view name : {own, next, std::string_view("f32")})
    for (const cluster::MatrixRate &rate : device.matrix())
      if (rate.dtype() == name)
        return rate;
  return device.matrix(0);
}

static double peakOf(const cluster::MatrixRate &rate) {
  double flops = rate.flops();
  for (const cluster::MatrixTable *table : {&rate.table(), &rate.transposed_table()})
    for (double measured : table->flops())
      flops = std::max(flops, measured);
  return flops;
}

double peakFlops(const cluster::DeviceKind &device, std::string_view dtype) {
  return peakOf(findRate(device, dtype));
}

std::optional<MatrixShape> matrixShape(std::string_view equation, const std::vector<int64_t> &lhs,
                                       const std::vector<int64_t> &rhs) {
  std::optional<EinsumEquation> parsed = EinsumEquation::parse(equation);
  if (!parsed || parsed->lhs().size() != lhs.size() || parsed->rhs().size() != rhs.size())
    return std::nullopt;
  const std::array<std::string, 3> &terms = parsed->terms;
  MatrixShape shape;
  std::string contracted, free[2]; // letters
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    size_t inLhs = terms[0].find(letter), inRhs = terms[1].find(letter);
    bool inOut = terms[2].find(letter) != std::string::npos;
    if (inLhs != std::string::npos && inRhs != std::string::npos) {
      (inOut ? shape.batch : shape.depth) *= static_cast<double>(lhs[inLhs]);
      if (!inOut)
        contracted += letter;
    } else if (inLhs != std::string::npos) {
      shape.rows *= static_cast<double>(lhs[inLhs]);
      free[0] += letter;
    } else if (inRhs != std::string::npos) {
      shape.columns *= static_cast<double>(rhs[inRhs]);
      free[1] += letter;
    }
  }
  size_t left = 0;
  if (size_t last = terms[2].find_last_of(free[0] + free[1]);
      last != std::string::npos && free[0].find(terms[2][last]) != free[0].npos &&
      !free[1].empty()) {
    left = 1;
    std::swap(shape.rows, shape.columns);
  }
  size_t lastSummed = terms[left].find_last_of(contracted),
         lastFree = terms[left].find_last_of(free[left]);
  shape.isTransposed =
      lastSummed != std::string::npos && lastFree != std::string::npos && lastSummed < lastFree;
  return shape;
}

/// Sums are not cut into shorter parts than this.
static constexpr double kShortestPart = 512;

/// The time of the waves of tiles, with the kind of tile that is best. `full` is the FLOP/s of the
/// device without a loss to tiles; there is a tile.
static double tiledSeconds(const cluster::DeviceKind &device, const cluster::MatrixRate &rate,
                           double full, const MatrixShape &shape) {
  auto units = static_cast<double>(std::max<int64_t>(device.compute_units(), 1));
  double best = 0;
  for (const cluster::Tile &tile : rate.tiles())
    // Either operand may be cut into rows.
    for (bool isTurned : {false, true}) {
      auto rows = static_cast<double>(isTurned ? tile.columns() : tile.rows());
      auto columns = static_cast<double>(isTurned ? tile.rows() : tile.columns());
      double tiles =
          shape.batch * std::ceil(shape.rows / rows) * std::ceil(shape.columns / columns);
      // If there are fewer tiles than compute units, several work on parts of one tile's sum.
      double parts = std::max(
          1.0, std::min(std::floor(units / tiles), std::floor(shape.depth / kShortestPart)));
      double ofTile = 2 * rows * columns * (std::ceil(shape.depth / parts) + rate.tile_ramp()) /
                      (full / units * orElse(tile.efficiency(), 1));
      double seconds = std::ceil(tiles * parts / units) * ofTile;
      best = best == 0 ? seconds : std::min(best, seconds);
    }
  return best;
}

double productSeconds(const cluster::DeviceKind &device, DType dtype, const MatrixShape &shape) {
  const cluster::MatrixRate &rate = findRate(device, name(dtype));
  double flops = shape.flops();
  // Each element of a matrix is used once: reading it takes the time.
  if (flops == 0 || shape.rows == 1 || shape.columns == 1)
    return 0;
  const cluster::MatrixTable &table =
      shape.isTransposed && rate.has_transposed_table() ? rate.transposed_table() : rate.table();
  double full = orElse(rate.flops(), peakOf(rate)) * orElse(rate.sustained(), 1);
  RateModel tiled = [&](double rows, double columns, double depth, double batch) {
    MatrixShape other{.batch = batch, .rows = rows, .columns = columns, .depth = depth};
    return other.flops() / tiledSeconds(device, rate, full, other);
  };
  if (table.flops_size() > 0)
    return flops / interpolateRate(table, shape.rows, shape.columns, shape.depth,
                                   rate.tiles().empty() ? nullptr : tiled, shape.batch);
  return rate.tiles().empty() ? flops / full : tiledSeconds(device, rate, full, shape);
}

double usableBytes(const cluster::DeviceKind &device) {
  return device.memory_bytes() * orElse(device.usable_memory(), 1);
}

double memorySeconds(const cluster::DeviceKind &device, double bytes) {
  return bytes / device.memory_bandwidth();
}

const cluster::KernelRate *findKernelRate(const cluster::DeviceKind &device,
                                          std::string_view kernel, DType dtype) {
  const cluster::KernelRate *ofAny = nullptr;
  for (const cluster::KernelRate &rate : device.kernels()) {
    if (rate.kernel() != kernel)
      continue;
    if (rate.dtype() == name(dtype))
      return &rate;
    if (rate.dtype().empty())
      ofAny = &rate;
  }
  return ofAny;
}

/// The kernel whose rate is measured for a kernel: attention to parts of one tensor takes the time
/// of attention.
static std::string_view timedAs(std::string_view kernel) {
  constexpr std::string_view joined = "joined_";
  return kernel.starts_with(joined) ? kernel.substr(joined.size()) : kernel;
}

double kernelSeconds(const cluster::DeviceKind &device, const KernelWork &work) {
  const cluster::KernelRate *rate = findKernelRate(device, timedAs(work.kernel), work.dtype);
  double bytes = rate && !rate->points().empty() ? interpolateTime(rate->points(), work.bytes)
                                                 : memorySeconds(device, work.bytes);
  double flops = 0;
  if (rate && rate->flops() > 0) {
    flops = work.flops / rate->flops();
  } else if (classOf(work.kernel) == KernelClass::Attention) {
    const cluster::MatrixRate &matrix = findRate(device, name(work.dtype));
    // The share of the data sheet's rate that a fused kernel of two products with a softmax between
    // them reaches (Dao 2023, "FlashAttention-2", section 4.1: 50 to 73 % of the A100's).
    flops = work.flops / (0.6 * peakOf(matrix));
  }
  return std::max(bytes, flops);
}

} // namespace dtc
