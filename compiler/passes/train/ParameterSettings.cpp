//===- ParameterSettings.cpp - Settings of parameters by name pattern -----===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/train/ParameterSettings.h"

#include "dialects/dtc/DtcDialect.h"
#include "plan/FileTensors.h"

#include <cmath>

using namespace mlir;
using namespace dtc;

/// The name of a parameter; empty for other arguments.
static StringRef nameOf(func::FuncOp function, unsigned index) {
  auto name = function.getArgAttrOfType<StringAttr>(index, DtcDialect::kParamAttrName);
  return name ? name.getValue() : StringRef();
}

/// Whether a pattern names a parameter, or the tensor of weights files that it is a part of, or any
/// of those that it is made of.
static bool matches(const llvm::GlobPattern &pattern, func::FuncOp function, unsigned index) {
  StringRef name = nameOf(function, index);
  if (name.empty())
    return pattern.match(name);
  return pattern.match(name) || llvm::any_of(fileTensorNames(name), [&](const std::string &tensor) {
           return pattern.match(tensor);
         });
}

/// Reads a pattern that names some parameter; `what` is the option, for errors.
static FailureOr<llvm::GlobPattern> readPattern(func::FuncOp function, StringRef what,
                                                StringRef text) {
  // A pattern with many alternatives would be expanded to all of their combinations.
  auto pattern = llvm::GlobPattern::create(text, /*MaxSubPatterns=*/1024);
  if (!pattern)
    return function.emitError() << what << " has the pattern '" << text
                                << "', which cannot be read ("
                                << llvm::toString(pattern.takeError()) << ")";
  std::string example;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    StringRef name = nameOf(function, i);
    if (!name.empty() && matches(*pattern, function, i))
      return std::move(*pattern);
    if (example.empty())
      example = name.str();
  }
  return function.emitError() << what << " names '" << text
                              << "', which matches no parameter; the first one is called '"
                              << example << "'";
}

static LogicalResult readGroup(func::FuncOp function, StringRef text, ParameterGroup &group) {
  auto fail = [&](StringRef setting) {
    return function.emitError() << "param-group has '" << setting
                                << "', expected weight_decay=W or lr_scale=S with a finite number "
                                   "that is not negative";
  };
  SmallVector<StringRef> settings;
  text.split(settings, ',');
  for (StringRef setting : settings) {
    auto [key, number] = setting.split('=');
    double value;
    if (number.getAsDouble(value) || !std::isfinite(value) || value < 0)
      return fail(setting);
    if (key == "weight_decay")
      group.weightDecay = value;
    else if (key == "lr_scale")
      group.learningRateScale = value;
    else
      return fail(setting);
  }
  return success();
}

FailureOr<ParameterSettings> ParameterSettings::read(func::FuncOp function,
                                                     ArrayRef<std::string> freeze,
                                                     ArrayRef<std::string> groups) {
  ParameterSettings settings;
  settings.function = function;
  for (StringRef text : freeze) {
    auto pattern = readPattern(function, "freeze", text);
    if (failed(pattern))
      return failure();
    settings.frozen.push_back({std::move(*pattern), {}});
  }
  for (StringRef text : groups) {
    auto [name, rest] = text.rsplit(':');
    ParameterGroup group;
    if (failed(readGroup(function, rest, group)))
      return failure();
    auto pattern = readPattern(function, "param-group", name);
    if (failed(pattern))
      return failure();
    settings.groups.push_back({std::move(*pattern), group});
  }
  return settings;
}

bool ParameterSettings::isFrozen(BlockArgument parameter) {
  unsigned index = parameter.getArgNumber();
  return function.getArgAttr(index, DtcDialect::kFrozenAttrName) ||
         llvm::any_of(frozen, [&](const ParameterSetting &entry) {
           return matches(entry.pattern, function, index);
         });
}

ParameterGroup ParameterSettings::groupOf(BlockArgument parameter) {
  for (const ParameterSetting &entry : groups)
    if (matches(entry.pattern, function, parameter.getArgNumber()))
      return entry.group;
  return {};
}
