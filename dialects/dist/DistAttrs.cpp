//===- DistAttrs.cpp - The text form of axes and shardings ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace dtc::dist;

//===----------------------------------------------------------------------===//
// #dist.axis<"dp"=2>, #dist.axis<"micro"=4 temporal>
//===----------------------------------------------------------------------===//

Attribute AxisAttr::parse(AsmParser &parser, Type) {
  std::string name;
  int64_t size = 0;
  if (parser.parseLess() || parser.parseString(&name) || parser.parseEqual() ||
      parser.parseInteger(size))
    return {};
  bool temporal = succeeded(parser.parseOptionalKeyword("temporal"));
  if (parser.parseGreater())
    return {};
  return parser.getChecked<AxisAttr>(parser.getContext(),
                                     StringAttr::get(parser.getContext(), name), size, temporal);
}

void AxisAttr::print(AsmPrinter &printer) const {
  printer << "<" << getName() << "=" << getSize() << (getTemporal() ? " temporal" : "") << ">";
}

LogicalResult AxisAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr name,
                               int64_t size, bool) {
  if (name.getValue().empty())
    return emitError() << "a mesh axis has an empty name";
  if (size < 1 || size > kMaxMeshSize)
    return emitError() << "mesh axis " << name << " has size " << size << ", expected 1 to "
                       << kMaxMeshSize;
  return success();
}

//===----------------------------------------------------------------------===//
// #dist.sharding<@mesh, [{"dp"}, {}], partial = sum{"tp"}>
//===----------------------------------------------------------------------===//

static ParseResult parseAxes(AsmParser &parser, SmallVectorImpl<Attribute> &axes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, [&] {
    std::string name;
    if (parser.parseString(&name))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  });
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  MLIRContext *context = parser.getContext();
  FlatSymbolRefAttr mesh;
  SmallVector<Attribute> dims, partial;
  auto kind = ReductionKind::Sum;
  if (parser.parseLess() || parser.parseAttribute(mesh) || parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
        SmallVector<Attribute> axes;
        if (parseAxes(parser, axes))
          return failure();
        dims.push_back(ArrayAttr::get(context, axes));
        return success();
      }))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    StringRef keyword;
    SMLoc loc;
    if (parser.parseKeyword("partial") || parser.parseEqual() || parser.getCurrentLocation(&loc) ||
        parser.parseKeyword(&keyword))
      return {};
    auto parsed = symbolizeReductionKind(keyword);
    if (!parsed) {
      parser.emitError(loc) << "'" << keyword << "' is no reduction, expected sum, max or min";
      return {};
    }
    kind = *parsed;
    if (parseAxes(parser, partial))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ShardingAttr>(context, mesh, ArrayAttr::get(context, dims), kind,
                                         ArrayAttr::get(context, partial));
}

static void printAxes(AsmPrinter &printer, ArrayAttr axes) {
  printer << "{";
  llvm::interleaveComma(axes, printer, [&](Attribute axis) { printer << axis; });
  printer << "}";
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << "<" << getMesh() << ", [";
  llvm::interleaveComma(getDims(), printer,
                        [&](Attribute dim) { printAxes(printer, cast<ArrayAttr>(dim)); });
  printer << "]";
  if (isPartial()) {
    printer << ", partial = " << stringifyReductionKind(getPartialKind());
    printAxes(printer, getPartialAxes());
  }
  printer << ">";
}

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError, FlatSymbolRefAttr,
                                   ArrayAttr dims, ReductionKind, ArrayAttr partialAxes) {
  llvm::StringSet<> seen;
  auto check = [&](Attribute attr) -> LogicalResult {
    auto axes = dyn_cast<ArrayAttr>(attr);
    if (!axes)
      return emitError() << "a dimension of a sharding is " << attr << ", expected a list of axes";
    for (Attribute axis : axes) {
      auto name = dyn_cast<StringAttr>(axis);
      if (!name)
        return emitError() << "an axis of a sharding is " << axis << ", expected its name";
      if (!seen.insert(name.getValue()).second)
        return emitError() << "axis " << name
                           << " is used twice in one sharding; an axis can split one dimension, or "
                              "be partial, but not both";
    }
    return success();
  };
  for (Attribute dim : dims)
    if (failed(check(dim)))
      return failure();
  return check(partialAxes);
}
