//===- OffloadOption.cpp - The option --offload ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/OffloadOption.h"

#include "support/NearestName.h"

#include <fmt/format.h>
#include <string>
#include <vector>

using namespace dtc;
using llvm::StringRef;

Expected<double> dtc::parseOffload(StringRef text) {
  static const std::vector<std::string> known = {kOffloadedStates, kAutoOffload};
  auto [what, fraction] = text.split(':');
  if (what != known.front())
    return Error{fmt::format("\"{}\" cannot be kept in the memory of the host, expected "
                             "\"optimizer\", the states of the optimizer, or \"auto\", these if no "
                             "plan fits otherwise{}",
                             what.str(), didYouMean(what.str(), known))};
  double value = 1;
  if (what.size() == text.size())
    return value;
  if (fraction.getAsDouble(value) || !(value > 0 && value <= 1))
    return Error{fmt::format("the fraction is \"{}\", expected a number above 0 and at most 1",
                             fraction.str())};
  return value;
}
