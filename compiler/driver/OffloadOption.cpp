//===- OffloadOption.cpp - The option --offload ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/OffloadOption.h"

#include "support/NearestName.h"

#include "llvm/ADT/SmallVector.h"

#include <fmt/format.h>
#include <string>
#include <vector>

using namespace dtc;
using llvm::StringRef;

/// Reads a word with its fraction.
static MaybeError parseEntry(StringRef entry, Offload &result) {
  static const std::vector<std::string> known = {kOffloadedStates, kOffloadedActivations,
                                                 kAutoOffload};
  auto [what, fraction] = entry.split(':');
  if (what != kOffloadedStates && what != kOffloadedActivations)
    return Error{fmt::format("\"{}\" cannot be kept in the memory of the host, expected "
                             "\"optimizer\", the states of the optimizer, \"activations\", what "
                             "the backward pass needs of the forward pass, both as "
                             "\"optimizer,activations\", or \"auto\" alone, the states if no plan "
                             "fits otherwise{}",
                             what.str(), didYouMean(what.str(), known))};
  double &value = what == kOffloadedStates ? result.optimizer : result.activations;
  if (value > 0)
    return Error{fmt::format("\"{}\" is there twice, expected once", what.str())};
  value = 1;
  if (what.size() < entry.size() && (fraction.getAsDouble(value) || !(value > 0 && value <= 1)))
    return Error{fmt::format("the fraction is \"{}\", expected a number above 0 and at most 1",
                             fraction.str())};
  return std::nullopt;
}

Expected<Offload> dtc::parseOffload(StringRef text) {
  Offload result;
  llvm::SmallVector<StringRef> entries;
  text.split(entries, ',');
  for (StringRef entry : entries)
    if (MaybeError error = parseEntry(entry, result))
      return *error;
  return result;
}

Offload dtc::offloadOf(StringRef text) {
  return text.empty() || text == kAutoOffload ? Offload() : *parseOffload(text);
}

std::string dtc::describeOffload(const Offload &offload) {
  if (offload.activations == 0)
    return "states of the optimizer";
  return offload.optimizer > 0 ? "states of the optimizer and activations" : "activations";
}
