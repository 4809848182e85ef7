//===- KernelSignature.h - A kernel call as the plan states it ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_KERNELSIGNATURE_H
#define DTC_CALLS_KERNELSIGNATURE_H

#include "support/Tensor.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace dtc {

namespace plan {
class KernelCall;
class Program;
} // namespace plan

/// The value of a kernel attribute; the alternatives of plan.proto's Attribute, `data` last.
struct RawBytes {
  std::string bytes;
};
using AttributeValue = std::variant<int64_t, double, std::string, bool, std::vector<int64_t>,
                                    std::vector<std::string>, RawBytes>;
using AttributeMap = std::map<std::string, AttributeValue>;

/// The position of a device on the mesh: axis name -> (coordinate, size). The temporal axis is
/// among them; its coordinate is the microbatch that is running.
struct AxisCoordinate {
  std::string name;
  int64_t size = 1;
  int64_t coordinate = 0;
  bool temporal = false;
  /// For the temporal axis: how often the loop over microbatches has run before in this step.
  int64_t repetition = 0;
};

/// A kernel call as the plan states it.
struct KernelSignature {
  std::string kernel;
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
  AttributeMap attributes;
  /// The mesh, for kernels that depend on it. Only runs have coordinates that mean something.
  std::vector<AxisCoordinate> mesh;
};

/// The signature of a call of a program on a mesh with these axes.
KernelSignature signatureOf(const plan::Program &program, const plan::KernelCall &call,
                            std::span<const AxisCoordinate> axes);

} // namespace dtc

#endif // DTC_CALLS_KERNELSIGNATURE_H
