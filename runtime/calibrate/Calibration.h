//===- Calibration.h - Measuring this machine -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CALIBRATE_CALIBRATION_H
#define DTC_RUNTIME_CALIBRATE_CALIBRATION_H

#include "runtime/backends/Kernel.h"
#include "runtime/calibrate/KernelCases.h"
#include "runtime/fabrics/Fabric.h"
#include "simulator/cluster/cluster.pb.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The measurements to make, and their lengths. The defaults are for cores, and take some minutes
/// on two.
struct CalibrationOptions {
  /// Devices of the node that is described, at least 1; virtual ones where they are of cores.
  int64_t devices = 8;
  /// Threads that each device's kernels may use, at least 1.
  int threadsPerDevice = 1;
  /// Float types of kernels; plans always compute some things in F32.
  std::vector<DType> dtypes = {DType::F32, DType::BF16, DType::F16};
  /// Sizes of products, each list rising.
  std::vector<int64_t> rows = {1, 8, 32, 64, 128, 256, 512, 2048};
  std::vector<int64_t> columns = {1, 8, 32, 64, 128, 256, 512, 2048};
  std::vector<int64_t> depths = {8, 32, 64, 128, 256, 512, 2048};
  /// All three sizes of products for the gradients of weights.
  std::vector<int64_t> gradientSizes = {32, 64, 128, 256, 512, 2048};
  /// Products of f32 have none of these sizes that is larger.
  int64_t largestSizeOfF32 = int64_t{1} << 40;
  /// Products with more multiplications are measured in one way alone: the ways then differ little,
  /// and take long.
  int64_t manyMultiplications = int64_t{1} << 29;
  /// Bytes that calls of other kernels read and write, and of the input of a member of a collective
  /// or of a message; rising.
  std::vector<int64_t> kernelBytes = {512,     4 << 10, 32 << 10, 256 << 10,
                                      2 << 20, 8 << 20, 64 << 20};
  std::vector<int64_t> collectiveBytes = {1 << 10,   4 << 10, 16 << 10, 64 << 10,
                                          256 << 10, 1 << 20, 4 << 20,  16 << 20};
  /// Attention by the bytes of short sequences, whose batch grows with them; sizes as
  /// `kernelBytes`, which are taken if there are none here.
  std::vector<int64_t> attentionBytes = {};
  AttentionCase shortAttention = {1, 4, 128, 32};
  /// Attention whose FLOPs say what it takes.
  AttentionCase longAttention = {1, 4, 512, 64};
  /// Members of groups; those with more than `devices` are left out.
  std::vector<int64_t> members = {2, 4, 8};
  /// How often all is measured (Rounds.h), at least once.
  int64_t rounds = 3;
  /// For each point of a round, and at least three calls of what is measured.
  double secondsPerPoint = 0.004;
  /// How long all measurements together wait for cores that are slow for the time (CoreSpeed).
  double patienceSeconds = 90;
  /// See KernelRunOptions. Between two uses of a tensor, a step of training touches more memory
  /// than the caches of a core hold, and sometimes more than the cache that all cores share;
  /// products use the elements that they read several times.
  size_t workingSetBytes = size_t{12} << 20;
  size_t productSetBytes = size_t{4} << 20;
  /// How long a device that is no core works before it is measured: an idle one has a slow clock.
  double warmUpSeconds = 0;
  /// Opens the fabric of devices that are no cores; needed for several.
  OpenFabric openFabric = {};
  /// Further remarks for the head of the file, a line each.
  std::vector<std::string> remarks = {};
};

/// For a GPU with some tens of GiB: half a minute on an H100.
CalibrationOptions gpuCalibrationOptions();

/// Measures what the backend computes on.
///
/// The cores of this machine, as plans use them that run on virtual devices: kernels on all cores
/// at the same time, the collectives and transfers of local communicators, what the executor takes
/// for an instruction.
///
/// The first device with memory of its own: kernels in graphs, as steps run them; and collectives
/// of several devices, if the options have several.
///
/// Progress goes to `err`, which may be null. The cluster has one node; entries are in a fixed
/// order.
Expected<cluster::Cluster> calibrate(const CalibrationOptions &options,
                                     std::shared_ptr<const Backend> backend, FILE *err);

/// The main figures of a cluster that calibrate() made, for people, in lines.
std::string calibrationTable(const cluster::Cluster &cluster);

/// The work of dtc-run calibrate: checks that the file can be written, measures, writes the file,
/// prints the table to `out`.
MaybeError calibrateToFile(const CalibrationOptions &options, const std::string &path,
                           std::shared_ptr<const Backend> backend, FILE *out, FILE *err);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CALIBRATE_CALIBRATION_H
