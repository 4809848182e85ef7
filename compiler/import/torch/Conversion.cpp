//===- Conversion.cpp - The conversion of a captured model ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/Conversion.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

std::string dtc::torch::describe(Location loc) {
  std::string name, place;
  loc->walk([&](Location part) {
    if (auto named = dyn_cast<NameLoc>(part); named && name.empty())
      name = named.getName().str();
    if (auto file = dyn_cast<FileLineColLoc>(part); file && place.empty())
      place = file.getFilename().str() + ":" + std::to_string(file.getLine());
    return WalkResult::advance();
  });
  if (name.empty() || place.empty())
    return name.empty() ? place : name;
  return name + " (" + place + ")";
}

void Conversion::error(Location loc, const Twine &problem) {
  log.errors.push_back((fileName + ": " + describe(loc) + ": " + problem).str());
}

void Conversion::warning(Location loc, const Twine &problem) {
  std::string text = (fileName + ": " + describe(loc) + ": " + problem).str();
  if (!llvm::is_contained(log.warnings, text))
    log.warnings.push_back(text);
}

void Conversion::raised(StringRef what, Location loc) {
  Count &count = counts[what];
  if (count.number++ == 0)
    count.first = describe(loc);
}

void Conversion::finish() {
  for (const auto &[what, count] : counts)
    log.remarks.push_back(fileName + ": " + what.str() + ": " + std::to_string(count.number) +
                          ", first in " + count.first);
}
