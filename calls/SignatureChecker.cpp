//===- SignatureChecker.cpp - Kernel calls against their signatures -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/SignatureChecker.h"

#include "support/CheckedMath.h"
#include "support/Format.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace dtc {

static const TensorType kMissingOperand;

/// "a float", as the messages name the alternatives of AttributeValue.
static const char *typeName(const AttributeValue &value) {
  static constexpr const char *names[] = {
      "an integer",         "a float",           "a string", "a boolean",
      "a list of integers", "a list of strings", "bytes"};
  static_assert(std::variant_size_v<AttributeValue> == std::size(names));
  return names[value.index()];
}

/// "a", "b", "c".
template <typename Words> static std::string quoted(const Words &words) {
  std::string text;
  for (std::string_view word : words)
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", word);
  return text;
}

SignatureChecker::SignatureChecker(const KernelSignature &signature, size_t numInputs,
                                   size_t numOutputs)
    : signature(signature) {
  if (signature.inputs.size() != numInputs)
    fail(fmt::format("has {} inputs, expected {}", signature.inputs.size(), numInputs));
  if (signature.outputs.size() != numOutputs)
    fail(fmt::format("has {} outputs, expected {}", signature.outputs.size(), numOutputs));
}

const TensorType &SignatureChecker::input(size_t index) const {
  return index < signature.inputs.size() ? signature.inputs[index] : kMissingOperand;
}

const TensorType &SignatureChecker::output(size_t index) const {
  return index < signature.outputs.size() ? signature.outputs[index] : kMissingOperand;
}

const TensorType &SignatureChecker::floatInput(size_t index, int64_t minRank) {
  const TensorType &type = input(index);
  if (!isFloat(type.dtype))
    expectOperand("input", index, type, "elements of f32, f64, bf16 or f16");
  if (type.rank() < minRank)
    expectOperand("input", index, type, fmt::format("at least {} dimensions", minRank));
  return type;
}

const TensorType &SignatureChecker::floatInputOfRank(size_t index, int64_t rank) {
  const TensorType &type = floatInput(index);
  if (type.rank() != rank)
    expectOperand("input", index, type, fmt::format("{} dimensions", rank));
  return type;
}

const TensorType &SignatureChecker::wideInput(size_t index, int64_t minRank) {
  const TensorType &type = floatInput(index, minRank);
  if (type.dtype != wideType(type.dtype))
    expectOperand("input", index, type, "elements of f32 or f64");
  return type;
}

const TensorType &SignatureChecker::wideInputOfRank(size_t index, int64_t rank) {
  const TensorType &type = floatInputOfRank(index, rank);
  if (type.dtype != wideType(type.dtype))
    expectOperand("input", index, type, "elements of f32 or f64");
  return type;
}

const TensorType &SignatureChecker::indexInput(size_t index) {
  const TensorType &type = input(index);
  if (type.dtype != DType::I32)
    expectOperand("input", index, type, "elements of i32");
  return type;
}

void SignatureChecker::expectInput(size_t index, const TensorType &expected) {
  if (input(index) != expected)
    expectOperand("input", index, input(index), expected.str());
}

void SignatureChecker::expectOutput(size_t index, const TensorType &expected) {
  if (output(index) != expected)
    expectOperand("output", index, output(index), expected.str());
}

void SignatureChecker::expectOperand(const char *what, size_t index, const TensorType &found,
                                     const std::string &expected) {
  fail(fmt::format("{} {} is {}, expected {}", what, index, found.str(), expected));
}

template <typename T>
const T *SignatureChecker::attribute(const std::string &name, const char *expected) {
  known.insert(name);
  auto found = signature.attributes.find(name);
  if (found == signature.attributes.end()) {
    fail(fmt::format("attribute '{}' is missing, expected {}", name, expected));
    return nullptr;
  }
  const T *value = std::get_if<T>(&found->second);
  if (!value)
    failAttribute(name, typeName(found->second), expected);
  return value;
}

int64_t SignatureChecker::intAttribute(const std::string &name) {
  const int64_t *value = attribute<int64_t>(name, "an integer");
  return value ? *value : 0;
}

double SignatureChecker::anyFloatAttribute(const std::string &name) {
  const double *value = attribute<double>(name, "a float");
  return value ? *value : 0;
}

double SignatureChecker::floatAttribute(const std::string &name) {
  double value = anyFloatAttribute(name);
  if (!std::isfinite(value))
    failAttribute(name, fmt::format("{}", value), "a finite number");
  return value;
}

double SignatureChecker::floatAttributeInRange(const std::string &name, double low, double high) {
  double value = floatAttribute(name);
  if (!(value >= low && value <= high))
    failAttribute(name, fmt::format("{}", value), fmt::format("a number from {} to {}", low, high));
  return value;
}

bool SignatureChecker::boolAttribute(const std::string &name) {
  const bool *value = attribute<bool>(name, "a boolean");
  return value && *value;
}

std::string SignatureChecker::stringAttribute(const std::string &name) {
  const std::string *value = attribute<std::string>(name, "a string");
  return value ? *value : std::string();
}

std::vector<int64_t> SignatureChecker::intsAttribute(const std::string &name) {
  const auto *value = attribute<std::vector<int64_t>>(name, "a list of integers");
  return value ? *value : std::vector<int64_t>();
}

std::vector<std::string> SignatureChecker::stringsAttribute(const std::string &name) {
  const auto *value = attribute<std::vector<std::string>>(name, "a list of strings");
  return value ? *value : std::vector<std::string>();
}

const std::string &SignatureChecker::dataAttribute(const std::string &name) {
  static const std::string none;
  const RawBytes *value = attribute<RawBytes>(name, "bytes");
  return value ? value->bytes : none;
}

int64_t SignatureChecker::dimAttribute(const std::string &name, int64_t rank) {
  int64_t dim = intAttribute(name);
  if (dim < 0 || dim >= rank) {
    failAttribute(name, fmt::format("{}", dim),
                  fmt::format("a dimension of a tensor of rank {}", rank));
    return 0;
  }
  return dim;
}

std::vector<int64_t> SignatureChecker::dimsAttribute(const std::string &name, int64_t rank) {
  std::vector<int64_t> dims = intsAttribute(name);
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < 0 || dims[i] >= rank || (i > 0 && dims[i] <= dims[i - 1])) {
      failAttribute(name, formatShape(dims),
                    fmt::format("increasing dimensions of a tensor of rank {}", rank));
      return {};
    }
  return dims;
}

size_t SignatureChecker::choiceAttribute(const std::string &name,
                                         const std::vector<std::string_view> &words) {
  std::string value = stringAttribute(name);
  auto found = std::find(words.begin(), words.end(), value);
  if (found == words.end()) {
    failAttribute(name, fmt::format("\"{}\"", value), "one of " + quoted(words));
    return 0;
  }
  return static_cast<size_t>(found - words.begin());
}

std::vector<std::string> SignatureChecker::axesAttribute(const std::string &name, int64_t &blocks) {
  std::vector<std::string> axes = stringsAttribute(name);
  blocks = 1;
  std::set<std::string> seen;
  for (const std::string &axis : axes) {
    auto found =
        std::find_if(signature.mesh.begin(), signature.mesh.end(),
                     [&](const AxisCoordinate &position) { return position.name == axis; });
    std::optional<int64_t> product;
    if (found != signature.mesh.end() && found->size > 0)
      product = checkedMul(blocks, found->size);
    if (!product || !seen.insert(axis).second) {
      failAttribute(name, quoted(axes), "distinct axes of the mesh");
      blocks = 1;
      return {};
    }
    blocks = *product;
  }
  return axes;
}

void SignatureChecker::fail(const std::string &message) {
  if (!error)
    error = Error{fmt::format("kernel '{}': {}", signature.kernel, message)};
}

void SignatureChecker::failAttribute(const std::string &name, const std::string &found,
                                     const std::string &expected) {
  fail(fmt::format("attribute '{}' is {}, expected {}", name, found, expected));
}

MaybeError SignatureChecker::finish() {
  for (const auto &[name, value] : signature.attributes)
    if (!known.contains(name))
      fail(fmt::format("attribute '{}' is unknown to this kernel", name));
  return error;
}

TensorType dropLast(TensorType type, size_t count) {
  type.shape.resize(type.shape.size() - std::min(count, type.shape.size()));
  return type;
}

TensorType append(TensorType type, int64_t dim) {
  type.shape.push_back(dim);
  return type;
}

TensorType withElements(TensorType type, DType dtype) {
  type.dtype = dtype;
  return type;
}

int64_t numRows(const TensorType &type) { return dropLast(type).numElements(); }

MaybeError checkOperandSizes(const KernelSignature &signature) {
  auto check = [&](const char *what, const std::vector<TensorType> &types) -> MaybeError {
    for (size_t i = 0; i < types.size(); ++i) {
      size_t width = byteWidth(types[i].dtype);
      std::optional<int64_t> elements = checkedElements(types[i].shape);
      if (width == 0 || !elements || !checkedMul(*elements, static_cast<int64_t>(width)))
        return Error{fmt::format("kernel '{}': {} {} is {}, expected a tensor of a size that can "
                                 "be addressed",
                                 signature.kernel, what, i, types[i].str())};
    }
    return std::nullopt;
  };
  if (MaybeError error = check("input", signature.inputs))
    return error;
  return check("output", signature.outputs);
}

} // namespace dtc
