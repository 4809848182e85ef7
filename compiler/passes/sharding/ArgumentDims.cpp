//===- ArgumentDims.cpp - Dimensions of arguments in axis maps ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/sharding/ArgumentDims.h"

#include "dialects/dtc/DtcOps.h"
#include "support/NearestName.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <optional>

using namespace mlir;
using namespace dtc;

StringRef dtc::argumentName(func::FuncOp function, unsigned argument) {
  for (StringRef kind : {DtcDialect::kParamAttrName, DtcDialect::kInputAttrName})
    if (auto name = function.getArgAttrOfType<StringAttr>(argument, kind))
      return name.getValue();
  return "";
}

bool dtc::matchesArgument(StringRef pattern, StringRef name) {
  while (true) {
    auto [expected, laterExpected] = pattern.split('.');
    auto [found, laterFound] = name.split('.');
    bool isNumber = !found.empty() && llvm::all_of(found, llvm::isDigit);
    if (expected == "*" ? !isNumber : expected != found)
      return false;
    bool isLast = expected.size() == pattern.size();
    if (isLast != (found.size() == name.size()))
      return false;
    if (isLast)
      return true;
    pattern = laterExpected;
    name = laterFound;
  }
}

/// The dimension of `shape` at which `dim` of `fileShape` begins; nullopt where it begins inside of
/// one.
static std::optional<unsigned> beginOf(ArrayRef<int64_t> fileShape, unsigned dim,
                                       ArrayRef<int64_t> shape) {
  int64_t before = 1, passed = 1;
  for (int64_t size : fileShape.take_front(dim))
    before *= size;
  for (auto [index, size] : llvm::enumerate(shape)) {
    // A dimension of one element begins none of the file's, unless that has one element, too.
    if (passed == before && (size > 1 || fileShape[dim] == 1))
      return unsigned(index);
    passed *= size;
  }
  return std::nullopt;
}

/// "'x': the model has no parameter or input 'x'; did you mean "y"?"
static Error unknownName(func::FuncOp function, StringRef key, StringRef pattern) {
  std::vector<std::string> names;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    StringRef name = argumentName(function, i);
    if (name.empty())
      continue;
    // A pattern with '*' is compared with names whose numbers are written as '*'.
    SmallVector<StringRef> parts;
    name.split(parts, '.');
    if (pattern.contains('*'))
      for (StringRef &part : parts)
        if (!part.empty() && llvm::all_of(part, llvm::isDigit))
          part = "*";
    names.push_back(llvm::join(parts, "."));
  }
  llvm::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string meant = didYouMean(pattern, names);
  return Error{llvm::formatv("'{0}': the model has no parameter or input '{1}'{2}", key, pattern,
                             meant.empty() ? "; it has " + quoteNames(names) : meant)};
}

Expected<std::vector<ArgumentDim>> dtc::findArgumentDims(func::FuncOp function, StringRef key) {
  auto [pattern, index] = key.rsplit('#');
  unsigned dim = 0;
  if (pattern.empty() || index.getAsInteger(10, dim)) {
    return Error{
        llvm::formatv("'{0}' is not of the form name#dimension, such as layers.0.weight#1", key)};
  }
  std::vector<ArgumentDim> found;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    StringRef name = argumentName(function, i);
    if (name.empty() || !matchesArgument(pattern, name))
      continue;
    auto shape = cast<RankedTensorType>(function.getArgument(i).getType()).getShape();
    ArrayRef<int64_t> fileShape = shape;
    if (auto attr = function.getArgAttrOfType<DenseI64ArrayAttr>(i, "dtc.file_shape"))
      fileShape = attr.asArrayRef();
    if (dim >= fileShape.size()) {
      return Error{llvm::formatv("'{0}': '{1}' has no dimension {2}; it has {3}, counted from 0",
                                 key, name, dim, fileShape.size())};
    }
    std::optional<unsigned> begin = beginOf(fileShape, dim, shape);
    if (!begin) {
      return Error{llvm::formatv("'{0}': dimension {1} of '{2}' is inside of a larger one in the "
                                 "program, which reshapes the parameter; name an earlier dimension",
                                 key, dim, name)};
    }
    found.push_back({i, *begin});
  }
  if (found.empty())
    return unknownName(function, key, pattern);
  return found;
}
