//===- GradientCompression.h - The option --compress ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_GRADIENTCOMPRESSION_H
#define DTC_COMPILER_DRIVER_GRADIENTCOMPRESSION_H

#include "support/Error.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace dtc {

/// How sums of gradients over an axis are compressed; see dtc-compress-gradients.
struct GradientCompression {
  std::string axis;
  int64_t bits = 8;    ///< of an integer
  int64_t block = 256; ///< elements with one scale
  bool feedback = false;
};

/// Reads "dp=int8" or "dp=int4:block=64,feedback=on". The error says what was expected in place of
/// the part that is wrong, without the name of the option.
Expected<GradientCompression> parseGradientCompression(llvm::StringRef text);

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_GRADIENTCOMPRESSION_H
