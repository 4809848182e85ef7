//===- ProximalTerm.h - The proximal term of a gradient ---------*- C++ -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_TRAIN_PROXIMALTERM_H
#define DTC_COMPILER_PASSES_TRAIN_PROXIMALTERM_H

#include "support/OuterStates.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace dtc {

/// The state of a parameter (`dtc.state`) that counts the steps that were applied to it since the
/// last outer step, of replicas that train for clients.
inline constexpr llvm::StringLiteral kInnerStepsState = "inner_steps";

/// The states of that kind of a function's parameters, by `dtc.param`.
llvm::DenseMap<mlir::Attribute, mlir::BlockArgument>
findOuterParameters(mlir::func::FuncOp function);

/// The gradient plus that of the proximal term `strength` / 2 * |parameter - outer|^2 (FedProx; Li
/// et al., "Federated optimization in heterogeneous networks", MLSys 2020, equation 2). All tensors
/// have the parameter's shape. The gradient is a multiple, by the scalar `factor`, of the loss's,
/// and so is what is returned; null: 1.
mlir::Value addProximalTerm(mlir::OpBuilder &builder, mlir::Value gradient, mlir::Value parameter,
                            mlir::Value outer, double strength, mlir::Value factor);

} // namespace dtc

#endif // DTC_COMPILER_PASSES_TRAIN_PROXIMALTERM_H
