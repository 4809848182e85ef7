//===- GradientCompression.h - The option --compress ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_GRADIENTCOMPRESSION_H
#define DTC_COMPILER_DRIVER_GRADIENTCOMPRESSION_H

#include "compiler/passes/collectives/CompressionMethod.h"
#include "support/Error.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace dtc {

/// How sums of gradients over an axis are compressed; see dtc-compress-gradients.
struct GradientCompression {
  std::string axis;
  CompressionMethod method = CompressionMethod::Int8;
  Rounding rounding = Rounding::Nearest; ///< of integers
  int64_t block = 256;                   ///< elements of a block, of integers or of top-k
  double share = 0.01;                   ///< of the elements of a block that travel, of top-k
  int64_t rank = 4;                      ///< columns of the factors of PowerSGD
  bool feedback = false;

  /// The same as --compress takes it, with the settings that the method has.
  std::string str() const;
};

/// Reads "dp=int8", "dp=int4:block=64,feedback=on", "dp=topk:share=0.01" or "dp=powersgd:rank=4".
/// The error says what was expected in place of the part that is wrong, without the name of the
/// option.
Expected<GradientCompression> parseGradientCompression(llvm::StringRef text);

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_GRADIENTCOMPRESSION_H
