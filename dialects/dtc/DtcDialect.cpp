//===- DtcDialect.cpp - The dtc dialect, its types and attributes ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialects/dtc/DtcDialect.h"
#include "dialects/dtc/AgreedAttribute.h"
#include "dialects/dtc/Constraint.h"
#include "dialects/dtc/DtcOps.h"
#include "dialects/dtc/Float8Attribute.h"
#include "dialects/dtc/LoraAttribute.h"
#include "support/StepStateKinds.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace dtc;

#include "dialects/dtc/DtcDialect.cpp.inc"
#include "dialects/dtc/DtcEnums.cpp.inc"

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Larger tensors are refused, so that products of sizes and sizes in bytes do not overflow.
static constexpr int64_t kMaxElements = int64_t(1) << 56;

/// The element type if `type` is a ranked tensor of a shape that the dialect takes, null otherwise.
static Type getElementTypeOfTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getEncoding())
    return {};
  int64_t numElements = 1;
  for (int64_t size : tensor.getShape()) {
    if (size < 1 || size > kMaxElements / numElements)
      return {};
    numElements *= size;
  }
  return tensor.getElementType();
}

bool dtc::isFloatTensor(Type type) {
  Type element = getElementTypeOfTensor(type);
  return element && (element.isF32() || element.isF64() || element.isBF16() || element.isF16());
}

bool dtc::isWideTensor(Type type) {
  return isFloatTensor(type) && getWideTensor(cast<RankedTensorType>(type)) == type;
}

bool dtc::isIndexTensor(Type type) {
  Type element = getElementTypeOfTensor(type);
  return element && element.isSignlessInteger(32);
}

bool dtc::isMaskTensor(Type type) {
  Type element = getElementTypeOfTensor(type);
  return element && element.isSignlessInteger(1);
}

bool dtc::isNumericTensor(Type type) { return isFloatTensor(type) || isIndexTensor(type); }

bool dtc::isAnyTensor(Type type) { return isNumericTensor(type) || isMaskTensor(type); }

bool dtc::isStoredTensor(Type type) {
  Type element = getElementTypeOfTensor(type);
  return isAnyTensor(type) || isa_and_nonnull<Float8E4M3FNType, Float8E5M2Type>(element);
}

Type dtc::getWideType(Type elementType) {
  return elementType.isBF16() || elementType.isF16() ? Float32Type::get(elementType.getContext())
                                                     : elementType;
}

RankedTensorType dtc::getWideTensor(RankedTensorType type) {
  return RankedTensorType::get(type.getShape(), getWideType(type.getElementType()));
}

Type dtc::getMaskType(Type type) {
  Type element = IntegerType::get(type.getContext(), 1);
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.clone(element);
  return element;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

bool dtc::isInitializer(Attribute attribute) {
  return isa<NormalAttr, UniformAttr, ZerosAttr, OnesAttr>(attribute);
}

/// custom<Double>: a float that prints so that it reads back as the same.
static ParseResult parseDouble(AsmParser &parser, FailureOr<APFloat> &value) {
  double number;
  if (parser.parseFloat(number))
    return failure();
  value = APFloat(number);
  return success();
}

static void printDouble(AsmPrinter &printer, const APFloat &value) { printer.printFloat(value); }

static LogicalResult verifyScale(function_ref<InFlightDiagnostic()> emitError, StringRef label,
                                 StringRef what, const APFloat &value) {
  if (&value.getSemantics() != &APFloat::IEEEdouble())
    return violates(emitError, label) << "expected the " << what << " as a 64-bit float";
  if (!value.isFinite() || (value.isNegative() && !value.isZero()))
    return violates(emitError, label) << "found " << what << " " << value.convertToDouble()
                                      << ", expected a finite number that is not negative";
  return success();
}

LogicalResult NormalAttr::verify(function_ref<InFlightDiagnostic()> emitError, APFloat stddev) {
  return verifyScale(emitError, "normal-c1", "standard deviation", stddev);
}

LogicalResult UniformAttr::verify(function_ref<InFlightDiagnostic()> emitError, APFloat bound) {
  return verifyScale(emitError, "uniform-c1", "bound", bound);
}

#define GET_ATTRDEF_CLASSES
#include "dialects/dtc/DtcAttributes.cpp.inc"
#include "dialects/dtc/LossChunkAttribute.h"
#include "dialects/dtc/WeightsAttributes.h"

//===----------------------------------------------------------------------===//
// The dialect
//===----------------------------------------------------------------------===//

void DtcDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/dtc/DtcOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dtc/DtcAttributes.cpp.inc"
      >();
}

Operation *DtcDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                           Location loc) {
  auto elements = dyn_cast<DenseElementsAttr>(value);
  if (!elements || elements.getType() != type || !isAnyTensor(type))
    return nullptr;
  return ConstantOp::create(builder, loc, elements);
}

//===----------------------------------------------------------------------===//
// Discardable attributes
//===----------------------------------------------------------------------===//

/// Checks `dtc.axes` on a value of `type`; `what` names the value in errors.
static LogicalResult verifyAxes(Operation *op, const Twine &what, Attribute value, Type type) {
  StringRef name = DtcDialect::kAxesAttrName;
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return violates(op, "dtc-c1") << "'" << name << "' on " << what << " of type " << type
                                  << ", expected a ranked tensor";
  auto axes = dyn_cast<ArrayAttr>(value);
  if (!axes || !llvm::all_of(axes, llvm::IsaPred<StringAttr>))
    return violates(op, "dtc-c2") << "'" << name << "' of " << what << " is " << value
                                  << ", expected an array of strings";
  if (static_cast<int64_t>(axes.size()) != tensor.getRank())
    return violates(op, "dtc-c3") << "'" << name << "' of " << what << " has " << axes.size()
                                  << " names, expected " << tensor.getRank()
                                  << ", one for each dimension of " << type;
  llvm::StringSet<> seen;
  for (auto axis : axes.getAsRange<StringAttr>())
    if (!axis.empty() && !seen.insert(axis.getValue()).second)
      return violates(op, "dtc-c4") << "'" << name << "' of " << what << " has " << axis
                                    << " twice, expected different names";
  return success();
}

/// Checks that all arguments with the attribute `name` have different strings.
static LogicalResult verifyUniqueNames(FunctionOpInterface function, StringRef name) {
  llvm::StringSet<> seen;
  for (unsigned i = 0, e = function.getNumArguments(); i < e; ++i) {
    auto string = function.getArgAttrOfType<StringAttr>(i, name);
    if (string && !seen.insert(string.getValue()).second)
      return violates(function, "dtc-c5")
             << "argument #" << i << " has '" << name << "' " << string
             << ", which an earlier argument has, expected a name of its own";
  }
  return success();
}

/// Checks the attributes that passes give the signature of a step; nullopt if `attribute` is none
/// of them.
static std::optional<LogicalResult> verifyStepAttribute(Operation *op, const Twine &what,
                                                        NamedAttribute attribute, bool result) {
  enum Kind { String, Integer, Integers, Unit };
  struct Known {
    StringRef name;
    Kind kind;
    bool onResult, onArgument;
  };
  static constexpr Known table[] = {
      {"dtc.state", String, false, true},
      {"dtc.state_of", String, false, true},
      {"dtc.cache", String, false, true},
      {"dtc.scalar", String, false, true},
      {"dtc.step_state", String, false, true},
      {"dtc.file_shape", Integers, false, true},
      {"dtc.index_limit", Integer, false, true},
      {"dtc.ignored_index", Integer, false, true},
      {"dtc.global_shape", Integers, true, true},
      {"dtc.output", String, true, false},
      {"dtc.updates", Integer, true, false},
      {DtcDialect::kMetricAttrName, String, true, false},
      {DtcDialect::kMeanAttrName, Unit, true, false},
      {DtcDialect::kMustBeZeroAttrName, Unit, true, false},
  };
  for (const Known &known : table) {
    if (attribute.getName() != known.name || !(result ? known.onResult : known.onArgument))
      continue;
    Attribute value = attribute.getValue();
    bool fits = known.kind == String    ? isa<StringAttr>(value)
                : known.kind == Integer ? isa<IntegerAttr>(value)
                : known.kind == Unit    ? isa<UnitAttr>(value)
                                        : isa<DenseI64ArrayAttr>(value);
    if (!fits)
      return violates(op, "dtc-c6")
             << "'" << known.name << "' of " << what << " is " << value << ", expected "
             << (known.kind == String    ? "a string"
                 : known.kind == Integer ? "an integer"
                 : known.kind == Unit    ? "no value"
                                         : "an array of integers");
    auto function = cast<FunctionOpInterface>(op);
    if (known.name == "dtc.updates" &&
        cast<IntegerAttr>(value).getValue().uge(function.getNumArguments()))
      return violates(op, "dtc-c7") << "'dtc.updates' of " << what << " is " << value
                                    << ", expected the number of an argument";
    return success();
  }
  return std::nullopt;
}

/// Checks `dtc.step_state` on argument `index` of type `type`.
static LogicalResult verifyStepState(FunctionOpInterface function, unsigned index, StringAttr kind,
                                     Type type) {
  auto error = [&](StringRef label) -> ConstraintError {
    return violates(function, label) << "argument #" << index << " is the step state " << kind;
  };
  auto tensor = dyn_cast<RankedTensorType>(type);
  const StepStateKind *known = findStepStateKind(kind.getValue());
  if (!known)
    return error("dtc-c8") << ", expected " << listStepStateKinds();
  std::string shape = known->numWords > 0 ? llvm::itostr(known->numWords) + "x" : "";
  bool hasShape = tensor && tensor.getShape() == ArrayRef(known->typeWith(DType::F32).shape);
  if (!hasShape || !(known->isFloat ? isWideTensor(type) : isIndexTensor(type)))
    return error("dtc-c9") << " of type " << type << ", expected tensor<" << shape
                           << (known->isFloat ? "f32> or tensor<f64>" : "i32>");
  for (unsigned i = 0; i < index; ++i)
    if (function.getArgAttr(i, DtcDialect::kStepStateAttrName) == kind)
      return error("dtc-c10") << ", as argument #" << i << " is already; expected one of each kind";
  return success();
}

/// Checks `dtc.lora`.
static LogicalResult verifyLora(Operation *op, Attribute value) {
  auto lora = dyn_cast<DictionaryAttr>(value);
  auto rank = lora ? lora.getAs<IntegerAttr>("rank") : IntegerAttr();
  auto alpha = lora ? lora.getAs<FloatAttr>("alpha") : FloatAttr();
  auto dropout = lora ? lora.getAs<FloatAttr>("dropout") : FloatAttr();
  auto targets = lora ? lora.getAs<ArrayAttr>("targets") : ArrayAttr();
  if (isa<ModuleOp>(op) && rank && rank.getType().isSignlessInteger(64) && rank.getInt() >= 1 &&
      alpha && alpha.getValueAsDouble() > 0 && std::isfinite(alpha.getValueAsDouble()) && dropout &&
      dropout.getValueAsDouble() >= 0 && dropout.getValueAsDouble() < 1 && targets &&
      llvm::all_of(targets, llvm::IsaPred<StringAttr>))
    return success();
  return violates(op, "dtc-c11")
         << "'" << kLoraAttrName << "' is " << value
         << ", expected on a module {rank = an i64 of at least 1, alpha = a "
            "finite float above 0, dropout = a float of at least 0 and less than "
            "1, targets = an array of strings}";
}

LogicalResult DtcDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == kLoraAttrName)
    return verifyLora(op, attribute.getValue());
  if (name == kAxesAttrName) {
    if (op->getNumResults() != 1)
      return violates(op, "dtc-c12") << "'" << name << "' on an operation with "
                                     << op->getNumResults() << " results, expected one result";
    return verifyAxes(op, "the result", attribute.getValue(), op->getResult(0).getType());
  }
  if (name == kAgreedAttrName || name == kLossChunkAttrName || name == kReadsMasterAttrName ||
      name == kOuterGradientAttrName) {
    if (!isa<UnitAttr>(attribute.getValue()))
      return violates(op, "dtc-c13")
             << "'" << name << "' is " << attribute.getValue() << ", expected no value";
    return success();
  }
  if (name == kFloat8AttrName) {
    auto types = dyn_cast<ArrayAttr>(attribute.getValue());
    bool fits = types && types.size() == 2 && llvm::all_of(types, [](Attribute type) {
                  auto attr = dyn_cast<TypeAttr>(type);
                  return attr && isa<Float8E4M3FNType, Float8E5M2Type>(attr.getValue());
                });
    if (!isa<EinsumOp>(op) || !fits)
      return violates(op, "dtc-c26") << "has '" << name << "' = " << attribute.getValue()
                                     << ", expected it on dtc.einsum with two types, each "
                                        "f8E4M3FN or f8E5M2";
    return success();
  }
  if (name == kOpNumberAttrName || name == kGradientOfAttrName) {
    if (!isa<IntegerAttr>(attribute.getValue()))
      return violates(op, "dtc-c14")
             << "'" << name << "' is " << attribute.getValue() << ", expected the number of an op";
    return success();
  }
  if (name == kParamAttrName || name == kInputAttrName || name == kInitAttrName)
    return violates(op, "dtc-c15")
           << "'" << name << "' on an operation, expected it on a function argument";
  return violates(op, "dtc-c15") << "unknown attribute '" << name << "', expected '"
                                 << kAxesAttrName << "'";
}

LogicalResult DtcDialect::verifyRegionArgAttribute(Operation *op, unsigned /*regionIndex*/,
                                                   unsigned argIndex, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return violates(op, "dtc-c16")
           << "'" << name << "' on an argument, expected it on a function argument";
  Type type = function.getArgumentTypes()[argIndex];
  std::string what = "argument #" + std::to_string(argIndex);

  if (name == kAxesAttrName)
    return verifyAxes(op, what, value, type);

  if (name == kInitAttrName) {
    if (!isInitializer(value))
      return violates(op, "dtc-c17")
             << "'" << name << "' of " << what << " is " << value
             << ", expected #dtc.normal, #dtc.uniform, #dtc.zeros or #dtc.ones";
    if (!function.getArgAttr(argIndex, kParamAttrName))
      return violates(op, "dtc-c18")
             << what << " has '" << name << "' but is no parameter, expected '" << kParamAttrName
             << "' as well";
    return success();
  }

  if (name == kFrozenAttrName) {
    if (!isa<UnitAttr>(value) || !function.getArgAttr(argIndex, kParamAttrName))
      return violates(op, "dtc-c19")
             << what << " has '" << name << "', expected it without a value on an "
             << "argument with '" << kParamAttrName << "'";
    return success();
  }

  if (std::optional<LogicalResult> known =
          verifyStepAttribute(op, what, attribute, /*result=*/false)) {
    if (failed(*known) || name != kStepStateAttrName)
      return *known;
    return verifyStepState(function, argIndex, cast<StringAttr>(value), type);
  }
  if (name != kParamAttrName && name != kInputAttrName)
    return violates(op, "dtc-c16") << "unknown attribute '" << name << "' of " << what
                                   << ", expected '" << kParamAttrName << "', '" << kInputAttrName
                                   << "', '" << kAxesAttrName << "' or '" << kInitAttrName << "'";

  auto string = dyn_cast<StringAttr>(value);
  if (!string || string.empty())
    return violates(op, "dtc-c20") << "'" << name << "' of " << what << " is " << value
                                   << ", expected a string that is not empty";
  if (name == kParamAttrName) {
    if (!isFloatTensor(type))
      return violates(op, "dtc-c21")
             << what << " is the parameter " << value << " and has type " << type
             << ", expected a ranked tensor of f32, f64, bf16 or f16 with static sizes of at "
                "least 1 and at most 2^56 elements";
    if (function.getArgAttr(argIndex, kInputAttrName))
      return violates(op, "dtc-c22") << what << " has both '" << kParamAttrName << "' and '"
                                     << kInputAttrName << "', expected one of them";
  }
  // Once for the function, at its first argument with this attribute.
  for (unsigned i = 0; i < argIndex; ++i)
    if (function.getArgAttr(i, name))
      return success();
  return verifyUniqueNames(function, name);
}

LogicalResult DtcDialect::verifyRegionResultAttribute(Operation *op, unsigned /*regionIndex*/,
                                                      unsigned resultIndex,
                                                      NamedAttribute attribute) {
  std::string what = "result #" + std::to_string(resultIndex);
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (function && attribute.getName() == kMetricAttrName &&
      !isFloatTensor(function.getResultTypes()[resultIndex]))
    return violates(op, "dtc-c25")
           << what << ", a metric, has the type " << function.getResultTypes()[resultIndex]
           << ", expected a tensor of floats";
  if ((attribute.getName() == kMeanAttrName || attribute.getName() == kMustBeZeroAttrName) &&
      !(function && function.getResultAttr(resultIndex, kMetricAttrName)))
    return violates(op, "dtc-c24")
           << "'" << attribute.getName().getValue() << "' on " << what
           << ", which is no metric, expected '" << kMetricAttrName << "' as well";
  if (std::optional<LogicalResult> known =
          verifyStepAttribute(op, what, attribute, /*result=*/true))
    return *known;
  return violates(op, "dtc-c23") << "'" << attribute.getName().getValue() << "' on " << what
                                 << ", expected '" << kMetricAttrName << "', '" << kMeanAttrName
                                 << "', '" << kMustBeZeroAttrName
                                 << "', 'dtc.output' or 'dtc.updates'";
}
