//===- DescribeLocation.cpp - Readable locations of ops -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DescribeLocation.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;

StringRef dtc::nameOf(Location loc) {
  StringRef name;
  loc->walk([&](Location part) {
    if (auto named = dyn_cast<NameLoc>(part); named && name.empty())
      name = named.getName().getValue();
    return WalkResult::advance();
  });
  return name;
}

std::string dtc::describeLocation(Location loc) {
  std::string name = nameOf(loc).str(), place;
  loc->walk([&](Location part) {
    if (auto file = dyn_cast<FileLineColLoc>(part); file && place.empty())
      place = (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" +
               Twine(file.getColumn()))
                  .str();
    return WalkResult::advance();
  });
  if (name.empty())
    return place.empty() ? "unknown" : place;
  return place.empty() ? name : name + " (" + place + ")";
}

dtc::LayerName::LayerName(StringRef name) : rest(name) {
  for (size_t begin = 0; begin < name.size();) {
    size_t end = std::min(name.find('.', begin), name.size());
    // Leading zeros would print as another name.
    StringRef component = name.slice(begin, end);
    if (!component.empty() && llvm::all_of(component, llvm::isDigit) && begin != 0 &&
        !component.getAsInteger(10, number) && std::to_string(number) == component) {
      prefix = name.take_front(begin);
      rest = name.drop_front(std::min(end + 1, name.size()));
      return;
    }
    begin = end + 1;
  }
}

std::string dtc::LayerName::layer() const {
  return prefix.empty() ? rest.str() : prefix.str() + std::to_string(number);
}
