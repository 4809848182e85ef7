//===- EnumName.h - Names of the enums of support/ in IR ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_DIALECTS_DTC_ENUMNAME_H
#define DTC_DIALECTS_DTC_ENUMNAME_H

#include "support/EnumNames.h"

#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/STLExtras.h"

#include <string>

namespace dtc {

/// Reads the name of a value, with or without quotes.
template <NamedEnum Enum> mlir::FailureOr<Enum> parseEnumName(mlir::AsmParser &parser) {
  std::string text;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeywordOrString(&text))
    return mlir::failure();
  if (std::optional<Enum> value = findByName<Enum>(text))
    return *value;
  mlir::InFlightDiagnostic error = parser.emitError(loc)
                                   << "found \"" << text << "\", expected one of ";
  llvm::interleave(EnumNames<Enum>::list, error, ", ");
  return mlir::failure();
}

} // namespace dtc

#endif // DTC_DIALECTS_DTC_ENUMNAME_H
