//===- DistAttrs.cpp - The text form of axes and shardings ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::dist;

//===----------------------------------------------------------------------===//
// #dist.axis<"dp"=2>, #dist.axis<"micro"=4 temporal>
//===----------------------------------------------------------------------===//

FailureOr<AxisAttr> AxisAttr::parseBody(AsmParser &parser) {
  std::string name, subAxisOf;
  int64_t size = 0;
  double bandwidth = 0, latency = 0;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseString(&name) || parser.parseEqual() || parser.parseInteger(size))
    return failure();
  Builder b(parser.getContext());
  bool temporal = succeeded(parser.parseOptionalKeyword("temporal"));
  bool pipeline = succeeded(parser.parseOptionalKeyword("pipeline"));
  bool isPart = succeeded(parser.parseOptionalKeyword("of"));
  if (isPart && parser.parseString(&subAxisOf))
    return failure();
  bool hasLink = succeeded(parser.parseOptionalKeyword("link"));
  if (hasLink && (parser.parseFloat(bandwidth) || parser.parseFloat(latency)))
    return failure();
  auto attr =
      getChecked([&] { return parser.emitError(loc); }, parser.getContext(), b.getStringAttr(name),
                 size, temporal, pipeline, isPart ? b.getStringAttr(subAxisOf) : StringAttr(),
                 hasLink ? b.getF64FloatAttr(bandwidth) : FloatAttr(),
                 hasLink ? b.getF64FloatAttr(latency) : FloatAttr());
  if (!attr)
    return failure();
  return attr;
}

void AxisAttr::printBody(raw_ostream &os) const {
  os << getName() << "=" << getSize() << (getTemporal() ? " temporal" : "")
     << (getPipeline() ? " pipeline" : "");
  if (getSubAxisOf())
    os << " of " << getSubAxisOf();
  if (getBandwidth()) {
    // As floats are in attributes: the shortest text that is read back as the same number.
    os << " link ";
    getBandwidth().print(os, /*elideType=*/true);
    os << " ";
    getLatency().print(os, /*elideType=*/true);
  }
}

Attribute AxisAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<AxisAttr> attr = parseBody(parser);
  if (failed(attr) || parser.parseGreater())
    return {};
  return *attr;
}

void AxisAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printBody(printer.getStream());
  printer << ">";
}

LogicalResult AxisAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr name,
                               int64_t size, bool temporal, bool pipeline, StringAttr,
                               FloatAttr bandwidth, FloatAttr latency) {
  if (name.getValue().empty())
    return violates(emitError, "axis-c1") << "a mesh axis has an empty name";
  if (size < 1 || size > kMaxMeshSize)
    return violates(emitError, "axis-c2")
           << "mesh axis " << name << " has size " << size << ", expected 1 to " << kMaxMeshSize;
  if (temporal && pipeline)
    return violates(emitError, "axis-c3")
           << "mesh axis " << name << " is temporal and a pipeline, expected one of both";
  if (!bandwidth != !latency)
    return violates(emitError, "axis-c4")
           << "mesh axis " << name << " has a bandwidth or a latency, expected both";
  if (bandwidth && !(bandwidth.getValueAsDouble() >= 0 && latency.getValueAsDouble() >= 0))
    return violates(emitError, "axis-c4")
           << "mesh axis " << name << " has a link of " << bandwidth.getValueAsDouble()
           << " bytes a second and " << latency.getValueAsDouble()
           << " seconds, expected at least 0 of each (0: not known)";
  return success();
}

LogicalResult StageAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t index,
                                StagePass) {
  if (index < 0)
    return violates(emitError, "stage-c1")
           << "stage " << index << " does not exist; stages count from 0";
  return success();
}

//===----------------------------------------------------------------------===//
// #dist.sharding<@mesh, [{"dp"}, {}], partial = sum{"tp"}>
//===----------------------------------------------------------------------===//

/// {"dp", "tp"}; with `open` also {"dp", ?}.
static ParseResult parseAxes(AsmParser &parser, SmallVectorImpl<Attribute> &axes,
                             bool *open = nullptr) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, [&]() -> ParseResult {
    std::string name;
    SMLoc loc = parser.getCurrentLocation();
    if (open && *open)
      return parser.emitError(loc, "an open dimension ends with ?, expected } after it");
    if (open && succeeded(parser.parseOptionalQuestion())) {
      *open = true;
      return success();
    }
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
  SmallVector<bool> open;
  SmallVector<int64_t> priorities;
  auto kind = ReductionKind::Sum;
  auto parsePriority = [&](int64_t &priority) -> ParseResult {
    StringRef keyword;
    SMLoc loc = parser.getCurrentLocation();
    if (failed(parser.parseOptionalKeyword(&keyword)))
      return success();
    if (!keyword.consume_front("p") || keyword.getAsInteger(10, priority) || priority < 0)
      return parser.emitError(loc, "expected a priority such as p1 after a dimension");
    return success();
  };
  if (parser.parseLess() || parser.parseAttribute(mesh) || parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
        SmallVector<Attribute> axes;
        bool isOpen = false;
        int64_t priority = 0;
        if (parseAxes(parser, axes, &isOpen) || parsePriority(priority))
          return failure();
        dims.push_back(ArrayAttr::get(context, axes));
        open.push_back(isOpen);
        priorities.push_back(priority);
        return success();
      }))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    StringRef keyword;
    SMLoc loc;
    if (parser.parseKeyword("partial") || parser.parseEqual() || parser.getCurrentLocation(&loc) ||
        parser.parseKeyword(&keyword))
      return {};
    auto parsed = findByName<ReductionKind>(keyword);
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
  // The usual case has no lists, so that it is one attribute however it is made.
  if (!llvm::is_contained(open, true))
    open.clear();
  if (llvm::all_of(priorities, [](int64_t priority) { return priority == 0; }))
    priorities.clear();
  return parser.getChecked<ShardingAttr>(context, mesh, ArrayAttr::get(context, dims), kind,
                                         ArrayAttr::get(context, partial), ArrayRef<bool>(open),
                                         ArrayRef<int64_t>(priorities));
}

static void printAxes(AsmPrinter &printer, ArrayAttr axes, bool open = false) {
  printer << "{";
  llvm::interleaveComma(axes, printer, [&](Attribute axis) { printer << axis; });
  if (open)
    printer << (axes.empty() ? "?" : ", ?");
  printer << "}";
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << "<" << getMesh() << ", [";
  llvm::interleaveComma(llvm::seq<int64_t>(0, getRank()), printer, [&](int64_t dim) {
    printAxes(printer, getDimAxes(dim), isOpen(dim));
    if (int64_t priority = getPriority(dim))
      printer << "p" << priority;
  });
  printer << "]";
  if (isPartial()) {
    printer << ", partial = " << dtc::name(getPartialKind());
    printAxes(printer, getPartialAxes());
  }
  printer << ">";
}

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError, FlatSymbolRefAttr,
                                   ArrayAttr dims, ReductionKind, ArrayAttr partialAxes,
                                   ArrayRef<bool> open, ArrayRef<int64_t> priorities) {
  if ((!open.empty() && open.size() != dims.size()) ||
      (!priorities.empty() && priorities.size() != dims.size()))
    return violates(emitError, "sharding-c1")
           << "a sharding of " << dims.size() << " dimensions has " << open.size()
           << " marks for open ones and " << priorities.size() << " priorities";
  llvm::StringSet<> seen;
  auto check = [&](Attribute attr) -> LogicalResult {
    auto axes = dyn_cast<ArrayAttr>(attr);
    if (!axes)
      return violates(emitError, "sharding-c1")
             << "a dimension of a sharding is " << attr << ", expected a list of axes";
    for (Attribute axis : axes) {
      auto name = dyn_cast<StringAttr>(axis);
      if (!name)
        return violates(emitError, "sharding-c1")
               << "an axis of a sharding is " << axis << ", expected its name";
      if (!seen.insert(name.getValue()).second)
        return violates(emitError, "sharding-c1")
               << "axis " << name
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
