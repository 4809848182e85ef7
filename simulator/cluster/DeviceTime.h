//===- DeviceTime.h - Cost model of kernels -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SIMULATOR_CLUSTER_DEVICETIME_H
#define DTC_SIMULATOR_CLUSTER_DEVICETIME_H

#include "simulator/cluster/cluster.pb.h"
#include "support/Tensor.h"

#include <optional>
#include <string_view>
#include <vector>

namespace dtc {

/// `batch` products of [rows x depth] by [depth x columns]. The result's columns are innermost in
/// memory.
struct MatrixShape {
  double batch = 1, rows = 1, columns = 1, depth = 1;
  bool isTransposed = false; ///< the left operand lies with its rows innermost

  double flops() const { return 2 * batch * rows * columns * depth; }
};

/// The shape of an einsum, from its equation ("bsd,df->bsf") and the shapes of its operands; none
/// if that is no equation with a letter for each dimension of two operands. If the result ends with
/// a letter of the first operand, the second one is the left one.
std::optional<MatrixShape> matrixShape(std::string_view equation, const std::vector<int64_t> &lhs,
                                       const std::vector<int64_t> &rhs);

/// The seconds of products on a device, without reading and writing operands. See MatrixRate: where
/// rates were measured those for such operands hold, or else those of `table`; without any the
/// result is cut into tiles, compute units take them wave by wave, and of the kinds of tiles the
/// best is taken. An element type without a rate is computed as f32.
double productSeconds(const cluster::DeviceKind &device, DType dtype, const MatrixShape &shape);

/// The FLOP/s of a device in an element type, or in the one in which products of it are computed:
/// from its data sheet, or as measured if that is more.
double peakFlops(const cluster::DeviceKind &device, std::string_view dtype);

/// The bytes of a device that plans may use.
double usableBytes(const cluster::DeviceKind &device);

/// The seconds in which a device reads and writes bytes.
double memorySeconds(const cluster::DeviceKind &device, double bytes);

/// A kernel as its cost sees it.
struct KernelWork {
  std::string_view kernel;
  DType dtype = DType::F32; ///< of its first float operand
  double flops = 0;
  double bytes = 0; ///< read and written
};

/// The rate for a kernel, or null. A rate of its element type comes before one of any type.
const cluster::KernelRate *findKernelRate(const cluster::DeviceKind &device,
                                          std::string_view kernel, DType dtype);

/// The seconds of a kernel that is no product, without its launch: its measured time, or else the
/// time of its bytes and, for kernels with products inside (attention), of its FLOPs.
double kernelSeconds(const cluster::DeviceKind &device, const KernelWork &work);

} // namespace dtc

#endif // DTC_SIMULATOR_CLUSTER_DEVICETIME_H
