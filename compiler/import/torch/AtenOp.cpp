//===- AtenOp.cpp - An ATen op in conversion ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/AtenOp.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

#include <fmt/format.h>

#include <algorithm>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

//===----------------------------------------------------------------------===//
// AtenArguments
//===----------------------------------------------------------------------===//

StringRef AtenArguments::name() const {
  StringRef full = op->getName().getStringRef();
  full.consume_front("aten.");
  return full;
}

Value AtenArguments::operand(StringRef name) const {
  auto names = op->getAttrOfType<ArrayAttr>("operands");
  if (!names)
    return {};
  for (auto [each, value] : llvm::zip(names, op->getOperands()))
    if (auto string = dyn_cast<StringAttr>(each); string && string.getValue() == name)
      return value;
  return {};
}

SmallVector<Value> AtenArguments::list(StringRef name) const {
  SmallVector<Value> values;
  auto names = op->getAttrOfType<ArrayAttr>("operands");
  if (!names)
    return values;
  for (auto [each, value] : llvm::zip(names, op->getOperands())) {
    auto string = dyn_cast<StringAttr>(each);
    if (!string)
      continue;
    auto [list, number] = string.getValue().rsplit('.');
    size_t index = 0;
    // An operator has no more dimensions or inputs than this.
    if (list != name || number.getAsInteger(10, index) || index > 4096)
      continue;
    if (values.size() <= index)
      values.resize(index + 1);
    values[index] = value;
  }
  return values;
}

std::optional<int64_t> AtenArguments::integer(StringRef name) const {
  auto value = op->getAttrOfType<IntegerAttr>(name);
  if (!value || !value.getType().isSignlessInteger(64))
    return std::nullopt;
  return value.getInt();
}

std::optional<double> AtenArguments::number(StringRef name) const {
  Attribute value = op->getAttr(name);
  if (auto real = dyn_cast_or_null<FloatAttr>(value); real && real.getType().isF64())
    return real.getValueAsDouble();
  if (auto truth = dyn_cast_or_null<BoolAttr>(value))
    return truth.getValue() ? 1.0 : 0.0;
  if (std::optional<int64_t> whole = integer(name))
    return double(*whole);
  return std::nullopt;
}

std::optional<ArrayRef<int64_t>> AtenArguments::integers(StringRef name) const {
  if (auto array = op->getAttrOfType<DenseI64ArrayAttr>(name))
    return array.asArrayRef();
  return std::nullopt;
}

bool AtenArguments::flag(StringRef name) const {
  auto value = op->getAttrOfType<BoolAttr>(name);
  return value && value.getValue();
}

bool AtenArguments::isFloat(StringRef name) const {
  return isa_and_nonnull<FloatAttr>(op->getAttr(name));
}

StringRef AtenArguments::string(StringRef name) const {
  auto value = op->getAttrOfType<StringAttr>(name);
  return value ? value.getValue() : StringRef();
}

static std::optional<int64_t> wrapDim(int64_t dim, int64_t rank) {
  if (dim < -rank || dim >= rank)
    return std::nullopt;
  return dim < 0 ? dim + rank : dim;
}

std::optional<int64_t> AtenArguments::dim(StringRef name, int64_t rank) const {
  std::optional<int64_t> value = integer(name);
  return value ? wrapDim(*value, rank) : std::nullopt;
}

std::optional<SmallVector<int64_t>> AtenArguments::dims(StringRef name, int64_t rank) const {
  SmallVector<int64_t> named;
  if (std::optional<int64_t> one = integer(name))
    named.push_back(*one);
  else if (std::optional<ArrayRef<int64_t>> several = integers(name))
    named.assign(several->begin(), several->end());
  if (named.empty())
    return llvm::to_vector(llvm::seq<int64_t>(0, rank));
  SmallVector<int64_t> found;
  for (int64_t each : named) {
    std::optional<int64_t> dim = wrapDim(each, rank);
    if (!dim || llvm::is_contained(found, *dim))
      return std::nullopt;
    found.push_back(*dim);
  }
  llvm::sort(found);
  return found;
}

//===----------------------------------------------------------------------===//
// AtenOp
//===----------------------------------------------------------------------===//

Value AtenOp::fail(const Twine &problem) const {
  conversion.error(loc, "'" + op->getName().getStringRef() + "' " + problem);
  return {};
}

Value AtenOp::required(StringRef name) const {
  if (Value value = operand(name))
    return value;
  return fail("has no operand '" + name + "', which its schema has");
}

RankedTensorType AtenOp::resultType(unsigned index) const { return typeOf(op->getResult(index)); }

Value AtenOp::operandOrScalar(StringRef name, RankedTensorType type) const {
  if (Value value = operand(name))
    return broadcastTo(convert(value, type.getElementType()), type.getShape());
  if (std::optional<double> value = number(name))
    return constant(type.getShape(), type.getElementType(), *value);
  return fail("has neither an operand nor a number '" + name + "'");
}

Value AtenOp::constant(ArrayRef<int64_t> shape, Type element, double value) const {
  if (element.isInteger(32) && !(value >= -0x1p31 && value < 0x1p31))
    return fail(fmt::format("has the integer {}, expected one of 32 bits", value));
  return ConstantOp::create(rewriter, loc, RankedTensorType::get(shape, element), value);
}

Value AtenOp::convert(Value x, Type element) const {
  if (!x || typeOf(x).getElementType() == element)
    return x;
  return ConvertOp::create(rewriter, loc, x, element);
}

Value AtenOp::reshape(Value x, ArrayRef<int64_t> shape) const {
  if (!x || shapeOf(x) == shape)
    return x;
  auto type = RankedTensorType::get(shape, typeOf(x).getElementType());
  if (!isAnyTensor(type) || type.getNumElements() != typeOf(x).getNumElements())
    return fail("changes the number of elements");
  return ReshapeOp::create(rewriter, loc, type, x);
}

Value AtenOp::transpose(Value x, ArrayRef<int64_t> permutation) const {
  if (!x || llvm::equal(permutation, llvm::seq<int64_t>(0, shapeOf(x).size())))
    return x;
  SmallVector<int64_t> sorted(permutation), shape;
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, shapeOf(x).size())))
    return fail("has an order of dimensions that is no permutation");
  for (int64_t dim : permutation)
    shape.push_back(shapeOf(x)[dim]);
  return TransposeOp::create(
      rewriter, loc, RankedTensorType::get(shape, typeOf(x).getElementType()), x, permutation);
}

Value AtenOp::swapDims(Value x, int64_t first, int64_t second) const {
  if (!x)
    return x;
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, shapeOf(x).size()));
  std::swap(order[first], order[second]);
  return transpose(x, order);
}

Value AtenOp::broadcastAlong(Value x, ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) const {
  if (!x || shapeOf(x) == shape)
    return x;
  return BroadcastOp::create(rewriter, loc,
                             RankedTensorType::get(shape, typeOf(x).getElementType()), x, dims);
}

Value AtenOp::broadcastTo(Value x, ArrayRef<int64_t> shape) const {
  if (!x || shapeOf(x) == shape)
    return x;
  ArrayRef<int64_t> source = shapeOf(x);
  if (source.size() > shape.size())
    return fail("broadcasts a tensor to one of fewer dimensions");
  size_t added = shape.size() - source.size();
  SmallVector<int64_t> kept, dims;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == shape[added + i]) {
      kept.push_back(source[i]);
      dims.push_back(int64_t(added + i));
    } else if (source[i] != 1) {
      return fail("broadcasts a dimension of " + Twine(source[i]) + " elements to one of " +
                  Twine(shape[added + i]));
    }
  }
  return broadcastAlong(reshape(x, kept), shape, dims);
}

Value AtenOp::slice(Value x, int64_t dim, int64_t begin, int64_t size) const {
  if (!x)
    return x;
  SmallVector<int64_t> sizes(shapeOf(x)), offsets(sizes.size(), 0);
  if (begin < 0 || size < 1 || begin > sizes[dim] - size)
    return fail("takes the elements from " + Twine(begin) + " to " + Twine(begin + size) +
                " of a dimension of " + Twine(sizes[dim]));
  if (sizes[dim] == size)
    return x;
  sizes[dim] = size;
  offsets[dim] = begin;
  return SliceOp::create(rewriter, loc, RankedTensorType::get(sizes, typeOf(x).getElementType()), x,
                         offsets, sizes);
}

Value AtenOp::pad(Value x, int64_t dim, int64_t count) const {
  if (!x || count == 0)
    return x;
  SmallVector<int64_t> shape(shapeOf(x)), low(shape.size(), 0), high(shape.size(), 0);
  high[dim] = count;
  shape[dim] += count;
  return PadOp::create(rewriter, loc, RankedTensorType::get(shape, typeOf(x).getElementType()), x,
                       low, high, 0.0);
}

Value AtenOp::concat(ValueRange values, int64_t dim) const {
  if (llvm::is_contained(values, Value()))
    return {};
  if (values.empty())
    return fail("joins no tensors");
  if (values.size() == 1)
    return values[0];
  SmallVector<int64_t> shape(shapeOf(values[0]));
  Type element = typeOf(values[0]).getElementType();
  for (Value value : values.drop_front()) {
    SmallVector<int64_t> other(shapeOf(value));
    if (other.size() != shape.size() || typeOf(value).getElementType() != element)
      return fail("joins tensors of different types");
    int64_t size = other[dim];
    other[dim] = shape[dim];
    if (other != shape)
      return fail("joins tensors of different shapes");
    shape[dim] += size;
  }
  return ConcatOp::create(rewriter, loc, RankedTensorType::get(shape, element), values, dim);
}

Value AtenOp::einsum(StringRef equation, Value lhs, Value rhs) const {
  if (!lhs || !rhs)
    return {};
  auto [terms, result] = equation.split("->");
  auto [left, right] = terms.split(',');
  llvm::SmallDenseMap<char, int64_t> sizes;
  for (auto [letters, value] : {std::pair(left, lhs), std::pair(right, rhs)}) {
    if (letters.size() != shapeOf(value).size())
      return fail("multiplies tensors of ranks that do not fit");
    for (auto [letter, size] : llvm::zip(letters, shapeOf(value)))
      if (!sizes.try_emplace(letter, size).second && sizes[letter] != size)
        return fail("multiplies tensors of shapes that do not fit: " + Twine(sizes[letter]) +
                    " and " + Twine(size) + " elements");
  }
  Type element = typeOf(lhs).getElementType();
  if (!isa<FloatType>(element) || typeOf(rhs).getElementType() != element)
    return fail("multiplies tensors that are not floats of one type");
  SmallVector<int64_t> shape;
  for (char letter : result)
    shape.push_back(sizes.lookup(letter));
  return EinsumOp::create(rewriter, loc, RankedTensorType::get(shape, element), lhs, rhs, equation,
                          /*wide=*/false);
}

Value AtenOp::reduce(Value x, ReductionKind kind, ArrayRef<int64_t> dims, bool keep) const {
  if (!x)
    return x;
  if (!torch::isFloat(x))
    return fail("reduces integers, for which there is no rule");
  SmallVector<int64_t> rest, kept;
  for (auto [dim, size] : llvm::enumerate(shapeOf(x))) {
    bool removed = llvm::is_contained(dims, int64_t(dim));
    kept.push_back(removed ? 1 : size);
    if (!removed)
      rest.push_back(size);
  }
  if (!dims.empty())
    x = ReduceOp::create(rewriter, loc, RankedTensorType::get(rest, typeOf(x).getElementType()), x,
                         kind, dims);
  return reshape(x, keep ? kept : rest);
}

Value AtenOp::scale(Value x, double factor) const {
  if (!x || factor == 1)
    return x;
  Value factors = constant(shapeOf(x), typeOf(x).getElementType(), factor);
  if (!factors)
    return {};
  return MulOp::create(rewriter, loc, x.getType(), x, factors);
}

Value AtenOp::dropout(Value x, double rate) const {
  if (!x || rate == 0)
    return x;
  if (!torch::isFloat(x) || !(rate > 0 && rate < 1))
    return fail(fmt::format(
        "drops elements with the probability {}, expected one of at least 0 and less than 1",
        rate));
  return DropoutOp::create(rewriter, loc, x.getType(), x, conversion.randomKey, rate,
                           conversion.numRandomOps++, DenseI64ArrayAttr(), ArrayAttr());
}
