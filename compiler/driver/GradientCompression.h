//===- GradientCompression.h - The option --compress ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_GRADIENTCOMPRESSION_H
#define DTC_COMPILER_DRIVER_GRADIENTCOMPRESSION_H

#include "compiler/driver/CompileOptions.h"
#include "compiler/passes/collectives/CompressionMethod.h"
#include "support/Error.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace dtc {

/// The settings as --compress takes them, with those that the method has.
std::string str(const CompressionSettings &compression);

/// Reads "dp=int8", "dp=int4:block=64,feedback=on", "dp=topk:share=0.01" or "dp=powersgd:rank=4".
/// The error names the expected text in place of the wrong part, without the name of the option.
Expected<CompressionSettings> parseGradientCompression(llvm::StringRef text);

/// How replicas exchange what they have changed in an outer step; none: in full, or not at all.
std::optional<CompressionSettings> outerCompressionOf(const CompileOptions &options);

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_GRADIENTCOMPRESSION_H
