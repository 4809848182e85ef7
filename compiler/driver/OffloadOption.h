//===- OffloadOption.h - The option --offload -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_OFFLOADOPTION_H
#define DTC_COMPILER_DRIVER_OFFLOADOPTION_H

#include "support/Error.h"

#include "llvm/ADT/StringRef.h"

#include <string>

namespace dtc {

/// The value with which nothing is kept there unless no plan fits the devices' memory otherwise.
inline constexpr const char *kAutoOffload = "auto";

/// What can be kept there: the states of the optimizer, and what the backward pass needs of the
/// forward pass.
inline constexpr const char *kOffloadedStates = "optimizer";
inline constexpr const char *kOffloadedActivations = "activations";

/// The values that "auto" stands for, in the order in which they are tried.
inline constexpr const char *kOffloadsOfAuto[] = {kOffloadedStates, kOffloadedActivations,
                                                  "optimizer,activations"};

/// The parts of the bytes that lie in the memory of the host, from 0 to 1.
struct Offload {
  double optimizer = 0, activations = 0;
};

/// Reads one of the two words, or both with a comma between them, each perhaps with a fraction:
/// "optimizer:0.5,activations". An error for anything else, "auto" too, says what is expected.
Expected<Offload> parseOffload(llvm::StringRef text);

/// What parseOffload() reads, without checks; nothing of "" and "auto".
Offload offloadOf(llvm::StringRef text);

/// "states of the optimizer", "activations" or both, as the beginning of a sentence about them.
std::string describeOffload(const Offload &offload);

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_OFFLOADOPTION_H
