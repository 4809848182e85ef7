//===- KernelTable.h - Operands and attributes of each kernel -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Facts about the kernels of docs/kernels.md by name, for the compiler, the verifier, the simulator
// and the reports: the numbers of operands, the attributes, the operands that may lie in place, and
// the cost of a call. The types and shapes of operands are checked by the backend that runs a
// kernel.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_KERNELTABLE_H
#define DTC_PLAN_KERNELTABLE_H

#include "support/Error.h"
#include "support/Tensor.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dtc::plan {
class KernelCall;
} // namespace dtc::plan

namespace dtc {

/// The classes in which the time of a step is reported: products and attention, which FLOPs limit,
/// kernels that only bytes limit, and the launches of all of them, which is no kernel's class.
enum class KernelClass : size_t { Product, Attention, Other, Optimizer, Launch };
inline constexpr size_t kNumKernelClasses = 5;

/// The bytes that a call reads and writes.
enum class KernelTraffic {
  Operands,   ///< all of its operands
  Rows,       ///< the first input only as far as the first output is large
  Accumulate, ///< all of its operands, and the output is read as well
  Cache       ///< the first input and the output (a cache) only as far as the second input is large
};

/// An output that may lie in the bytes of an input of the same type.
struct InPlacePair {
  int input = 0;
  int output = 0;
};

/// The kinds of values that an attribute may have, as plan.proto's Attribute has them.
enum class AttributeKind { Bool, Int, Float, String, Ints, Strings, Data };

struct KernelAttribute {
  std::string_view name;
  AttributeKind kind = AttributeKind::Int;
  bool isOptional = false;
};

/// How many inputs a call has.
struct KernelInputs {
  int least = 1, most = 1;
};

struct KernelInfo {
  std::string_view name;
  KernelInputs inputs = {};
  int outputs = 1;
  std::span<const KernelAttribute> attributes = {};
  KernelClass kernelClass = KernelClass::Other;
  KernelTraffic traffic = KernelTraffic::Operands;
  /// Each element of the result depends on one element of each operand, so that a device that fuses
  /// kernels computes it together with the kernel before or after it.
  bool isPointwise = false;
  /// Of a pointwise kernel: where the elements of all operands are 0, the result is 0.
  bool keepsZeros = false;
  /// A product can compute it while it writes its result.
  bool isEpilogue = false;
  /// If it reads a random key, it draws another mask in each repetition of the loop over
  /// microbatches.
  bool drawsMask = false;
  std::span<const InPlacePair> inPlace = {}; // in order of preference
};

/// All kernels of docs/kernels.md, ordered by name.
std::span<const KernelInfo> allKernels();

/// Adds a kernel of a backend that is not in docs/kernels.md, so that plans may call it. The memory
/// that `kernel` refers to outlives all plans; a known name is refused. To be called before plans
/// are read: readers do not lock.
MaybeError addKernel(const KernelInfo &kernel);

/// The letters of docs/kernels.md for a kind: "i", "ints".
std::string_view name(AttributeKind kind);

/// The description of a kernel. One that is not in the table is of class Other, moves its operands,
/// and never works in place.
const KernelInfo &findKernel(std::string_view name);

/// The class of a kernel by its name.
KernelClass classOf(std::string_view kernel);

/// Whether output `output` of the kernel may lie in the same bytes as its input `input`. The two
/// must also have the same type.
bool mayRunInPlace(std::string_view kernel, int input, int output);

/// The bytes that a call of a kernel reads and writes, as the times of cluster.proto's KernelRate
/// are told by: those of its KernelTraffic, also where an output lies in place of an input.
int64_t kernelBytes(std::string_view kernel, std::span<const TensorType> inputs,
                    std::span<const TensorType> outputs);

/// An error if the kernel of a call is unknown, the number of operands is wrong, or an attribute is
/// unknown, of another kind or missing. The error names the kernel and the expectation.
MaybeError checkKernelCall(const plan::KernelCall &call);

/// Whether the kernel reads the earlier content of its output, after the first microbatch.
bool readsOwnOutput(std::string_view kernel);

} // namespace dtc

#endif // DTC_PLAN_KERNELTABLE_H
