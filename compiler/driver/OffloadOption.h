//===- OffloadOption.h - The option --offload -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_OFFLOADOPTION_H
#define DTC_COMPILER_DRIVER_OFFLOADOPTION_H

#include "support/Error.h"

#include "llvm/ADT/StringRef.h"

namespace dtc {

/// The value with which nothing is kept there unless no plan fits the devices' memory otherwise.
inline constexpr const char *kAutoOffload = "auto";

/// The one thing that can be kept there: the states of the optimizer.
inline constexpr const char *kOffloadedStates = "optimizer";

/// Reads "optimizer" or "optimizer:0.5": the part of the bytes of the optimizer's state that lies
/// in the memory of the host. An error for anything else says what is expected.
Expected<double> parseOffload(llvm::StringRef text);

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_OFFLOADOPTION_H
