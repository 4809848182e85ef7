//===- ParameterSettings.h - Settings of parameters by name pattern -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_TRAIN_PARAMETERSETTINGS_H
#define DTC_COMPILER_PASSES_TRAIN_PARAMETERSETTINGS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/GlobPattern.h"

#include <optional>
#include <string>
#include <vector>

namespace dtc {

/// Parameters that train in another way than the others.
struct ParameterGroup {
  std::optional<double> weightDecay; ///< instead of the general one, also for vectors
  double learningRateScale = 1;      ///< times the learning rate; not negative
};

/// Which parameters are frozen, and which belong to which group, by patterns of their names in
/// which `*`, `?`, `[...]` and `{a,b}` stand for what they do in a shell.
class ParameterSettings {
public:
  /// Reads patterns to freeze and groups "pattern:weight_decay=0.0,lr_scale=0.1", and checks that
  /// each pattern matches a parameter of the function. Emits an error otherwise.
  static mlir::FailureOr<ParameterSettings> read(mlir::func::FuncOp function,
                                                 llvm::ArrayRef<std::string> freeze,
                                                 llvm::ArrayRef<std::string> groups);

  /// Whether the parameter keeps its value: so do those that the model marks with dtc.frozen.
  bool isFrozen(mlir::BlockArgument parameter);
  /// The first group whose pattern matches.
  ParameterGroup groupOf(mlir::BlockArgument parameter);

private:
  struct ParameterSetting {
    llvm::GlobPattern pattern;
    ParameterGroup group;
  };
  mlir::func::FuncOp function;
  std::vector<ParameterSetting> frozen, groups;
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_TRAIN_PARAMETERSETTINGS_H
