//===- SignatureChecker.h - Kernel calls against their signatures ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_CALLS_SIGNATURECHECKER_H
#define DTC_CALLS_SIGNATURECHECKER_H

#include "calls/KernelSignature.h"
#include "support/Error.h"
#include "support/Kinds.h"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dtc {

/// Checks a call against its row of docs/kernels.md. The first mismatch is kept and every later
/// check is harmless, so a kernel states its whole signature and asks for the error once, with
/// finish(). Values that depend on the shapes (strides, sizes) are computed after that.
class SignatureChecker {
public:
  /// Expects the numbers of operands.
  SignatureChecker(const KernelSignature &signature, size_t numInputs, size_t numOutputs);
  /// Leaves the numbers of operands to the kernel.
  explicit SignatureChecker(const KernelSignature &signature) : signature(signature) {}

  /// An operand's type; an f32 scalar if there is no such operand.
  const TensorType &input(size_t index) const;
  const TensorType &output(size_t index) const;

  /// An operand of a float type and of at least `minRank` dimensions.
  const TensorType &floatInput(size_t index, int64_t minRank = 0);
  /// An operand of a float type and of exactly `rank` dimensions.
  const TensorType &floatInputOfRank(size_t index, int64_t rank);
  /// An operand of f32 or f64, of at least `minRank` dimensions or of exactly `rank`.
  const TensorType &wideInput(size_t index, int64_t minRank = 0);
  const TensorType &wideInputOfRank(size_t index, int64_t rank);
  /// An operand of integers, of any shape.
  const TensorType &indexInput(size_t index);

  void expectInput(size_t index, const TensorType &expected);
  void expectOutput(size_t index, const TensorType &expected);

  /// Required attributes. Without them, or with another type, the result is 0, false or empty.
  int64_t intAttribute(const std::string &name);
  /// Also finite.
  double floatAttribute(const std::string &name);
  double floatAttributeInRange(const std::string &name, double low, double high);
  /// Any value, also an infinity or a NaN.
  double anyFloatAttribute(const std::string &name);
  bool boolAttribute(const std::string &name);
  std::string stringAttribute(const std::string &name);
  std::vector<int64_t> intsAttribute(const std::string &name);
  std::vector<std::string> stringsAttribute(const std::string &name);
  const std::string &dataAttribute(const std::string &name);
  bool hasAttribute(const std::string &name) const { return signature.attributes.contains(name); }

  /// A dimension number of a tensor of that rank.
  int64_t dimAttribute(const std::string &name, int64_t rank);
  /// Strictly increasing dimension numbers of a tensor of that rank.
  std::vector<int64_t> dimsAttribute(const std::string &name, int64_t rank);
  /// One of the words; its index (0 if there was an error).
  size_t choiceAttribute(const std::string &name, const std::vector<std::string_view> &words);
  /// The name of a value of the enum; its first value if there was an error.
  template <NamedEnum Enum> Enum nameAttribute(const std::string &name) {
    constexpr auto &list = EnumNames<Enum>::list;
    return static_cast<Enum>(1 + choiceAttribute(name, {list.begin(), list.end()}));
  }
  /// The names of distinct mesh axes; the number of blocks that they count in `blocks`.
  std::vector<std::string> axesAttribute(const std::string &name, int64_t &blocks);

  /// Keeps the error "kernel 'k': <message>" unless there is one already.
  void fail(const std::string &message);
  void failAttribute(const std::string &name, const std::string &found,
                     const std::string &expected);
  bool failed() const { return error.has_value(); }

  /// The first mismatch, an attribute that nobody asked for included.
  MaybeError finish();

private:
  template <typename T> const T *attribute(const std::string &name, const char *expected);
  void expectOperand(const char *what, size_t index, const TensorType &found,
                     const std::string &expected);

  const KernelSignature &signature;
  std::set<std::string> known;
  MaybeError error;
};

/// Refuses shapes whose sizes in elements or bytes do not fit an int64_t, so that no kernel has to
/// think of overflow when it multiplies dimensions of one operand.
MaybeError checkOperandSizes(const KernelSignature &signature);

/// The type without its last `count` dimensions (fewer if it has fewer).
TensorType dropLast(TensorType type, size_t count = 1);
/// The type with one more dimension.
TensorType append(TensorType type, int64_t dim);
/// The same shape with other elements.
TensorType withElements(TensorType type, DType dtype);
/// The number of elements of all dimensions but the last.
int64_t numRows(const TensorType &type);

} // namespace dtc

#endif // DTC_CALLS_SIGNATURECHECKER_H
