//===- ConstantTensor.cpp - Values that do not depend on inputs -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/ConstantTensor.h"

#include "mlir/IR/BuiltinTypes.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

static SmallVector<int64_t> rowMajor(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t i = int64_t(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

static int64_t product(ArrayRef<int64_t> shape) {
  int64_t result = 1;
  for (int64_t size : shape)
    result *= size;
  return result;
}

double dtc::torch::rounded(double value, Type element) {
  if (element.isF64())
    return value;
  if (element.isInteger(1))
    return value != 0 ? 1 : 0;
  // Models have no numbers beyond 2^62; infinities become that, too.
  if (isa<IntegerType>(element))
    return std::isnan(value) ? 0 : std::clamp(std::trunc(value), -0x1p62, 0x1p62);
  bool loses = false;
  llvm::APFloat number(value);
  number.convert(cast<FloatType>(element).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven,
                 &loses);
  number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &loses);
  return number.convertToDouble();
}

bool dtc::torch::allIndices(ArrayRef<int64_t> shape,
                            llvm::function_ref<bool(ArrayRef<int64_t>)> predicate) {
  SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t left = product(shape); left > 0; --left) {
    if (!predicate(index))
      return false;
    for (int64_t dim = int64_t(shape.size()) - 1; dim >= 0 && ++index[dim] == shape[dim]; --dim)
      index[dim] = 0;
  }
  return true;
}

void dtc::torch::forEachIndex(ArrayRef<int64_t> shape,
                              llvm::function_ref<void(ArrayRef<int64_t>)> call) {
  allIndices(shape, [&](ArrayRef<int64_t> index) {
    call(index);
    return true;
  });
}

ConstantTensor::ConstantTensor(Type element, ArrayRef<int64_t> shape, std::vector<double> values)
    : element(element), shape(shape), strides(rowMajor(shape)),
      values(std::make_shared<const std::vector<double>>(std::move(values))) {}

ConstantTensor ConstantTensor::splat(Type element, ArrayRef<int64_t> shape, double value) {
  ConstantTensor result(element, {}, {rounded(value, element)});
  result.shape.assign(shape.begin(), shape.end());
  result.strides.assign(shape.size(), 0);
  return result;
}

std::optional<ConstantTensor> ConstantTensor::get(DenseElementsAttr elements) {
  auto type = cast<RankedTensorType>(elements.getType());
  Type element = type.getElementType();
  auto toDouble = [&](const auto &each) -> double {
    if constexpr (std::is_same_v<std::decay_t<decltype(each)>, APFloat>) {
      APFloat wide = each;
      bool loses = false;
      wide.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &loses);
      return wide.convertToDouble();
    } else {
      return element.isInteger(1) ? double(each.getBoolValue()) : double(each.getSExtValue());
    }
  };
  bool isFloat = isa<FloatType>(element);
  if (elements.isSplat())
    return splat(element, type.getShape(),
                 isFloat ? toDouble(elements.getSplatValue<APFloat>())
                         : toDouble(elements.getSplatValue<APInt>()));
  if (type.getNumElements() > kMaxConstantElements)
    return std::nullopt;
  std::vector<double> values;
  values.reserve(size_t(type.getNumElements()));
  if (isFloat)
    for (APFloat each : elements.getValues<APFloat>())
      values.push_back(toDouble(each));
  else
    for (APInt each : elements.getValues<APInt>())
      values.push_back(toDouble(each));
  return ConstantTensor(element, type.getShape(), std::move(values)).compressed();
}

int64_t ConstantTensor::placeOf(ArrayRef<int64_t> index) const {
  int64_t place = offset;
  for (auto [i, stride] : llvm::zip(index, strides))
    place += i * stride;
  return place;
}

double ConstantTensor::at(ArrayRef<int64_t> index) const {
  return (*values)[size_t(placeOf(index))];
}

int64_t ConstantTensor::size() const { return product(shape); }

int64_t ConstantTensor::distinct() const {
  int64_t count = 1;
  for (auto [size, stride] : llvm::zip(shape, strides))
    count *= stride == 0 ? 1 : size;
  return count;
}

std::vector<double> ConstantTensor::flat() const {
  std::vector<double> result;
  result.reserve(size_t(size()));
  forEachIndex(shape, [&](ArrayRef<int64_t> index) { result.push_back(at(index)); });
  return result;
}

ConstantTensor ConstantTensor::permuted(ArrayRef<int64_t> order) const {
  ConstantTensor result = *this;
  for (auto [i, from] : llvm::enumerate(order)) {
    result.shape[i] = shape[from];
    result.strides[i] = strides[from];
  }
  return result;
}

ConstantTensor ConstantTensor::sliced(int64_t dim, int64_t begin, int64_t count,
                                      int64_t step) const {
  ConstantTensor result = *this;
  result.offset += begin * strides[dim];
  result.strides[dim] *= step;
  result.shape[dim] = count;
  return result;
}

std::optional<ConstantTensor> ConstantTensor::broadcast(ArrayRef<int64_t> wanted) const {
  if (wanted.size() < shape.size())
    return std::nullopt;
  ConstantTensor result = *this;
  size_t added = wanted.size() - shape.size();
  result.shape.assign(wanted.begin(), wanted.end());
  result.strides.assign(wanted.size(), 0);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == wanted[added + i])
      result.strides[added + i] = strides[i];
    else if (shape[i] != 1)
      return std::nullopt;
  }
  return result;
}

ConstantTensor ConstantTensor::reshaped(ArrayRef<int64_t> wanted) const {
  // Dimensions of size 1 come and go without a copy, and so does all of a splat.
  if (distinct() == 1) {
    ConstantTensor result = *this;
    result.shape.assign(wanted.begin(), wanted.end());
    result.strides.assign(wanted.size(), 0);
    return result;
  }
  auto isOne = [](int64_t size) { return size == 1; };
  SmallVector<int64_t> before(shape), after(wanted);
  llvm::erase_if(before, isOne);
  llvm::erase_if(after, isOne);
  if (before != after)
    return ConstantTensor(element, wanted, flat());
  ConstantTensor result = *this;
  result.shape.assign(wanted.begin(), wanted.end());
  result.strides.assign(wanted.size(), 0);
  size_t from = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == 1)
      continue;
    while (shape[from] == 1)
      ++from;
    result.strides[i] = strides[from++];
  }
  return result;
}

ConstantTensor ConstantTensor::converted(Type wanted) const {
  if (wanted == element)
    return *this;
  auto mapped = mapElements({*this}, wanted, shape, [](ArrayRef<double> x) { return x[0]; });
  return mapped ? *mapped : *this;
}

ConstantTensor ConstantTensor::compressed() const {
  ConstantTensor result = *this;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (result.strides[dim] == 0 || result.shape[dim] == 1)
      continue;
    SmallVector<int64_t> rest(shape);
    for (size_t i = 0; i < rest.size(); ++i)
      if (result.strides[i] == 0)
        rest[i] = 1;
    bool isRepeated = allIndices(rest, [&](ArrayRef<int64_t> index) {
      int64_t place = result.placeOf(index);
      double one = (*values)[size_t(place)];
      double other = (*values)[size_t(place - index[dim] * result.strides[dim])];
      return one == other || (std::isnan(one) && std::isnan(other));
    });
    if (isRepeated)
      result.strides[dim] = 0;
  }
  return result;
}

DenseElementsAttr ConstantTensor::attribute() const {
  auto type = RankedTensorType::get(shape, element);
  std::vector<double> all = distinct() == 1 ? std::vector{(*values)[size_t(offset)]} : flat();
  if (auto floats = dyn_cast<FloatType>(element)) {
    SmallVector<APFloat> elements;
    for (double each : all) {
      APFloat number(each);
      bool loses = false;
      number.convert(floats.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &loses);
      elements.push_back(number);
    }
    return DenseElementsAttr::get(type, elements);
  }
  SmallVector<APInt> elements;
  for (double each : all)
    elements.emplace_back(element.getIntOrFloatBitWidth(), uint64_t(int64_t(each)),
                          /*isSigned=*/true, /*implicitTrunc=*/true);
  return DenseElementsAttr::get(type, elements);
}

std::optional<ConstantTensor>
dtc::torch::mapElements(ArrayRef<ConstantTensor> operands, Type element, ArrayRef<int64_t> shape,
                        llvm::function_ref<double(ArrayRef<double>)> apply) {
  SmallVector<ConstantTensor> wide;
  for (const ConstantTensor &operand : operands) {
    auto broadcast = operand.broadcast(shape);
    if (!broadcast)
      return std::nullopt;
    wide.push_back(std::move(*broadcast));
  }
  // The result is computed for one element of each dimension along which all operands repeat one.
  SmallVector<int64_t> small(shape);
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (llvm::all_of(wide, [&](const ConstantTensor &each) {
          return each.sliced(int64_t(dim), 0, 1).distinct() == each.distinct();
        }))
      small[dim] = 1;
  if (product(small) > kMaxConstantElements)
    return std::nullopt;
  std::vector<double> values;
  values.reserve(size_t(product(small)));
  SmallVector<double> arguments(wide.size());
  // Row by row: within one, places are a stride apart.
  int64_t length = small.empty() ? 1 : small.back();
  ArrayRef<int64_t> rows = ArrayRef<int64_t>(small).drop_back(small.empty() ? 0 : 1);
  SmallVector<int64_t> places(wide.size());
  forEachIndex(rows, [&](ArrayRef<int64_t> row) {
    for (auto [place, operand] : llvm::zip(places, wide))
      place = operand.placeOf(row);
    for (int64_t i = 0; i < length; ++i) {
      for (size_t each = 0; each < wide.size(); ++each) {
        arguments[each] = (*wide[each].values)[size_t(places[each])];
        places[each] += small.empty() ? 0 : wide[each].strides.back();
      }
      values.push_back(rounded(apply(arguments), element));
    }
  });
  return ConstantTensor(element, small, std::move(values)).broadcast(shape);
}
