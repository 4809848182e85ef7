//===- ImportTorch.cpp - From a captured PyTorch model to model IR --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/torch/ImportTorch.h"

#include "compiler/import/torch/AtenOp.h"
#include "compiler/import/torch/Recognize.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace dtc;
using namespace dtc::torch;

static constexpr StringRef kCaptureAttrName = "torch.capture";
/// The version that python/dtc/torch/capture.py writes.
static constexpr int64_t kCaptureVersion = 1;

bool dtc::isTorchCapture(StringRef text) {
  text = text.ltrim();
  return llvm::any_of(ArrayRef<StringRef>{"//", "#", "module", "func", "\"builtin.", "\"func."},
                      [&](StringRef begin) { return text.starts_with(begin); });
}

namespace {

/// Checks that a module has the form of a capture, and makes a function of dtc's arguments of it.
class CaptureReader {
public:
  CaptureReader(ModuleOp module, Conversion &conversion) : module(module), conversion(conversion) {}

  /// The function, or null after an error.
  func::FuncOp read();

private:
  bool fail(Location loc, const Twine &problem) {
    conversion.error(loc, problem);
    return false;
  }
  bool readVersion();
  bool checkValue(Value value, Location loc);
  bool checkOps();
  bool readUpdates();
  bool readArguments();
  void addRandomKey();

  ModuleOp module;
  Conversion &conversion;
  func::FuncOp function;
};

} // namespace

bool CaptureReader::readVersion() {
  auto capture = module->getAttrOfType<DictionaryAttr>(kCaptureAttrName);
  if (!capture)
    return fail(module.getLoc(),
                "the module has no attribute 'torch.capture'; dtc-import reads what "
                "python -m dtc.torch writes (docs/python.md)");
  auto version = capture.getAs<IntegerAttr>("version");
  if (!version || !version.getType().isSignlessInteger(64) || version.getInt() != kCaptureVersion)
    return fail(module.getLoc(), "the capture has another version than " + Twine(kCaptureVersion) +
                                     "; capture the model with the python/dtc of this dtc-import");
  return true;
}

bool CaptureReader::checkValue(Value value, Location loc) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  Type element = type ? type.getElementType() : Type();
  // Integers of any size become i32, so their shape is checked as one of i32.
  if (isa_and_nonnull<IntegerType>(element) && element.isSignlessInteger() &&
      element.getIntOrFloatBitWidth() <= 64 && !element.isInteger(1))
    type = type.hasStaticShape()
               ? RankedTensorType::get(type.getShape(), IntegerType::get(value.getContext(), 32),
                                       type.getEncoding())
               : type;
  if (type && type.getRank() <= 16 && type.hasStaticShape() && isAnyTensor(type))
    return true;
  std::string text;
  llvm::raw_string_ostream(text) << value.getType();
  return fail(loc, "a value has the type " + Twine(text) +
                       ", expected a tensor of floats, integers or truth values with at most 16 "
                       "dimensions of known sizes of at least 1");
}

bool CaptureReader::checkOps() {
  Block &block = function.getBody().front();
  for (Operation &op : block.without_terminator()) {
    StringRef name = op.getName().getStringRef();
    if (!name.starts_with("aten.") && name != "torch.constant" && !isExpertOp(name))
      return fail(op.getLoc(), "the capture has an op '" + name + "', expected those of 'aten'");
    if (op.getNumRegions() != 0 || op.getNumSuccessors() != 0 || op.getNumResults() == 0)
      return fail(op.getLoc(), "'" + name + "' has regions, successors or no result");
    auto operands = op.getAttrOfType<ArrayAttr>("operands");
    if ((operands ? operands.size() : 0) != op.getNumOperands() ||
        (operands && !llvm::all_of(operands, llvm::IsaPred<StringAttr>)))
      return fail(op.getLoc(),
                  "'" + name + "' has an attribute 'operands' that does not name its operands");
    for (Value result : op.getResults())
      if (!checkValue(result, op.getLoc()))
        return false;
  }
  Operation *terminator = block.getTerminator();
  auto type = terminator->getNumOperands() > 0
                  ? dyn_cast<RankedTensorType>(terminator->getOperand(0).getType())
                  : RankedTensorType();
  if (!type || type.getRank() != 0 || !isFloatTensor(type))
    return fail(terminator->getLoc(), "the function does not return a scalar float, the loss");
  return true;
}

/// Reads the results after the loss, which are new values of buffers: one at most for each buffer.
bool CaptureReader::readUpdates() {
  Builder builder(function.getContext());
  Operation *terminator = function.getBody().front().getTerminator();
  SmallVector<DictionaryAttr> attributes(1, builder.getDictionaryAttr({}));
  llvm::StringSet<> seen;
  for (unsigned index = 1; index < terminator->getNumOperands(); ++index) {
    auto name = function.getResultAttrOfType<StringAttr>(index, "torch.updates");
    BlockArgument buffer;
    for (BlockArgument argument : function.getArguments())
      if (auto own = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "torch.buffer");
          own && own == name)
        buffer = argument;
    if (!name || !buffer || !seen.insert(name.getValue()).second ||
        buffer.getType() != terminator->getOperand(index).getType())
      return fail(terminator->getLoc(), "result " + Twine(index) +
                                            " is not the new value of a buffer, which "
                                            "'torch.updates' names and no other result updates");
    attributes.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr("dtc.updates", builder.getI64IntegerAttr(buffer.getArgNumber()))));
  }
  function.setAllResultAttrs(ArrayRef(attributes));
  return true;
}

/// A buffer's own initial values are part of the capture: all zeros, or all ones.
static Attribute initializerOf(func::FuncOp function, unsigned index) {
  auto init = function.getArgAttrOfType<StringAttr>(index, "torch.init");
  if (init && init.getValue() == "ones")
    return OnesAttr::get(function.getContext());
  return ZerosAttr::get(function.getContext());
}

bool CaptureReader::readArguments() {
  Builder builder(function.getContext());
  llvm::StringSet<> names[2];
  std::optional<int64_t> batch;
  SmallVector<DictionaryAttr> attributes;
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto nameOf = [&](StringRef kind) {
      return function.getArgAttrOfType<StringAttr>(index, kind);
    };
    StringAttr parameter = nameOf("torch.parameter"), buffer = nameOf("torch.buffer"),
               input = nameOf("torch.input");
    Location loc = argument.getLoc();
    if (!checkValue(argument, loc))
      return false;
    StringAttr name = parameter ? parameter : buffer ? buffer : input;
    bool isInput = bool(input), isOne = bool(parameter) + bool(buffer) + isInput == 1;
    if (!isOne || name.empty() || !names[isInput].insert(name.getValue()).second)
      return fail(loc,
                  "argument " + Twine(index) +
                      " has no name of its own as torch.parameter, torch.buffer or torch.input");
    argument.setLoc(NameLoc::get(name));
    ArrayRef<int64_t> shape = cast<RankedTensorType>(argument.getType()).getShape();
    NamedAttrList list;
    if (isInput) {
      if (shape.empty() || batch.value_or(shape[0]) != shape[0])
        return fail(loc,
                    "the input '" + name.getValue() +
                        "' has another number of samples than the inputs before it, or none; the "
                        "first dimension of every input is the batch");
      batch = shape[0];
      list.set(DtcDialect::kInputAttrName, name);
      SmallVector<StringRef> axes(shape.size(), "");
      axes[0] = "batch";
      list.set(DtcDialect::kAxesAttrName, builder.getStrArrayAttr(axes));
    } else {
      if (!isFloatTensor(argument.getType()))
        return fail(loc, "the parameter '" + name.getValue() + "' is no tensor of floats");
      list.set(DtcDialect::kParamAttrName, name);
      if (buffer)
        list.set(DtcDialect::kInitAttrName, initializerOf(function, index));
      if (buffer || function.getArgAttr(index, "torch.frozen"))
        list.set(DtcDialect::kFrozenAttrName, builder.getUnitAttr());
    }
    attributes.push_back(list.getDictionary(builder.getContext()));
  }
  function.setAllArgAttrs(ArrayRef(attributes));
  return true;
}

/// The key from which random ops draw, where there are some.
void CaptureReader::addRandomKey() {
  Block &block = function.getBody().front();
  bool draws = llvm::any_of(block.without_terminator(), [](Operation &op) {
    AtenArguments arguments(&op);
    return (arguments.name() == "dropout" && arguments.flag("train") &&
            arguments.number("p").value_or(0.5) != 0) ||
           arguments.number("dropout_p").value_or(0) != 0;
  });
  if (!draws)
    return;
  Builder builder(function.getContext());
  auto type = RankedTensorType::get({2}, builder.getI32Type());
  auto attributes = builder.getDictionaryAttr(
      builder.getNamedAttr("dtc.scalar", builder.getStringAttr("random_key")));
  unsigned index = function.getNumArguments();
  if (failed(function.insertArgument(index, type, attributes,
                                     NameLoc::get(builder.getStringAttr("random_key")))))
    return;
  conversion.randomKey = function.getArgument(index);
}

func::FuncOp CaptureReader::read() {
  if (!readVersion())
    return {};
  for (Operation &op : *module.getBody())
    if (auto found = dyn_cast<func::FuncOp>(op); found && found.getName() == "loss" && !function)
      function = found;
    else
      fail(op.getLoc(), "the module has more than the function @loss");
  if (!function || !llvm::hasSingleElement(function.getBody())) {
    fail(module.getLoc(), "the module has no function @loss of one block");
    return {};
  }
  if (!conversion.log.errors.empty() || !checkOps() || !readUpdates() || !readArguments())
    return {};
  addRandomKey();
  return function;
}

/// Integers are i32 for dtc.
static void narrowIntegers(func::FuncOp function) {
  auto narrow = [&](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    if (isa<IntegerType>(type.getElementType()) && !type.getElementType().isInteger(1))
      value.setType(type.clone(IntegerType::get(value.getContext(), 32)));
  };
  Block &block = function.getBody().front();
  llvm::for_each(block.getArguments(), narrow);
  for (Operation &op : block.without_terminator())
    llvm::for_each(op.getResults(), narrow);
  function.setFunctionType(FunctionType::get(function.getContext(), block.getArgumentTypes(),
                                             block.getTerminator()->getOperandTypes()));
}

static OwningOpRef<ModuleOp> parse(MLIRContext &context, StringRef text, StringRef fileName,
                                   ImportLog &log) {
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      log.errors.push_back(fileName.str() + ": " + describe(diagnostic.getLocation()) + ": " +
                           diagnostic.str());
    return success();
  });
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, fileName), llvm::SMLoc());
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module && log.errors.empty())
    log.errors.push_back(fileName.str() + ": cannot be parsed as MLIR");
  return module;
}

OwningOpRef<ModuleOp> dtc::importTorch(MLIRContext &context, StringRef text, StringRef fileName,
                                       ImportLog &log) {
  context.loadDialect<DtcDialect, func::FuncDialect>();
  context.allowUnregisteredDialects();
  OwningOpRef<ModuleOp> module = parse(context, text, fileName, log);
  if (!module)
    return nullptr;
  Conversion conversion(fileName, log);
  func::FuncOp function = CaptureReader(*module, conversion).read();
  if (!function)
    return nullptr;
  collectRequests(function, conversion);
  recognizeTopK(function.getBody().front(), conversion);
  if (!log.errors.empty())
    return nullptr;
  foldConstants(function, conversion);
  narrowIntegers(function);
  if (log.errors.empty())
    convertOps(function, conversion);
  if (!log.errors.empty())
    return nullptr;
  raiseParts(function, conversion);
  absorbReshapes(function, conversion);
  checkRequests(function, conversion);
  nameDimensions(function);
  module->getOperation()->removeAttr(kCaptureAttrName);
  conversion.finish();
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    log.errors.push_back(fileName.str() + ": " + describe(diagnostic.getLocation()) + ": " +
                         diagnostic.str() + "; this is a bug of dtc-import");
    return success();
  });
  return failed(verify(*module)) ? OwningOpRef<ModuleOp>() : std::move(module);
}
