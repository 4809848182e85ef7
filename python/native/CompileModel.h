//===- CompileModel.h - From the text of a model to a plan ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PYTHON_NATIVE_COMPILEMODEL_H
#define DTC_PYTHON_NATIVE_COMPILEMODEL_H

#include "plan/plan.pb.h"
#include "support/Error.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dtc::python {

/// What dtc-import and dtc-compile would be told.
struct CompileRequest {
  std::string text;      ///< a captured PyTorch model, or model IR
  std::string fileName;  ///< of the text, for messages
  std::string modelName; ///< that of the plan
  /// Names of options in OptionTable.h, such as "microbatches", and their values as the flags have
  /// them. A list is separated by commas, or has its name several times.
  std::vector<std::pair<std::string, std::string>> options;
};

struct CompiledModel {
  std::shared_ptr<const plan::Plan> plan;
  /// What the tools would print besides, a line each.
  std::vector<std::string> warnings, remarks;
};

/// Imports the text if it is a captured model, and compiles it. The error has the diagnostics, with
/// the places in the model, as the tools print them.
Expected<CompiledModel> compileModel(const CompileRequest &request);

} // namespace dtc::python

#endif // DTC_PYTHON_NATIVE_COMPILEMODEL_H
