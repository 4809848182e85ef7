//===- DescribeLocation.h - Readable locations of ops ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_DESCRIBELOCATION_H
#define DTC_COMPILER_ANALYSIS_DESCRIBELOCATION_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace dtc {

/// "h.3.attn", "model.mlir:12:8", or both as "h.3.attn (model.mlir:12:8)"; "unknown" if neither is
/// known.
std::string describeLocation(mlir::Location loc);

/// The name of a location, such as "h.3.attn"; empty where it has none.
llvm::StringRef nameOf(mlir::Location loc);

/// A name in two parts: the layer up to its first number, and the rest. "h.3.attn.c_attn" is layer
/// 3 of "h.", with "attn.c_attn" in it. A name without a number is in no layer.
struct LayerName {
  llvm::StringRef prefix; ///< "h."; empty outside layers
  int64_t number = 0;
  llvm::StringRef rest;

  explicit LayerName(llvm::StringRef name);
  /// "h.3", or the whole name where it is in no layer.
  std::string layer() const;
};

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_DESCRIBELOCATION_H
