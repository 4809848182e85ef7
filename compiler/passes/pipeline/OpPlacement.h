//===- OpPlacement.h - Placement of ops outside the microbatch loop ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PIPELINE_OPPLACEMENT_H
#define DTC_COMPILER_PASSES_PIPELINE_OPPLACEMENT_H

#include "compiler/passes/pipeline/PipelineProgram.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SmallBitVector.h"

#include <vector>

namespace dtc {

/// A set of devices: coordinates on the pipeline axis.
using DeviceSet = llvm::SmallBitVector;

/// A value that one device makes outside the loop over microbatches and another needs.
struct OnceMessage {
  mlir::Value value;
  int64_t sender = 0, receiver = 0;
  mlir::Operation *user = nullptr; ///< the first op on the receiver that needs it
  bool operator==(const OnceMessage &) const = default;
};

/// Where the ops around the loop over microbatches run, and which states live where.
///
/// A parameter lives on each device whose stages use it, and with it the optimizer's state for it.
/// An op runs where its results are needed; operands that are made elsewhere are sent. An op that
/// makes less than what it reads, such as the square sum of a gradient, runs once, where its
/// operands are, and its result is sent, unless all devices have what it reads; so does one on
/// whose result all devices agree.
class OpPlacement {
public:
  OpPlacement(mlir::func::FuncOp function, dist::MicrobatchLoopOp loop,
              const PipelineProgram &program, int64_t devices);

  /// The devices that run `op`.
  const DeviceSet &of(mlir::Operation *op) const { return places.find(op)->second; }
  /// The devices on which the value is made, or lies from the start.
  const DeviceSet &available(mlir::Value value) const { return made.find(value)->second; }
  bool isAvailable(mlir::Value value, int64_t device) const {
    return available(value).test(device);
  }
  /// In the order of the ops that need them first.
  llvm::ArrayRef<OnceMessage> messages() const { return stepMessages; }

private:
  void findHomes();
  void findCommon();
  bool runsOnce(mlir::Operation &op) const;
  void findNeeds();
  void place();
  void placeOp(mlir::Operation &op);
  DeviceSet none() const { return DeviceSet(devices); }
  DeviceSet all() const { return DeviceSet(devices, true); }
  DeviceSet &needOf(mlir::Value value);
  DeviceSet usersOf(mlir::Operation *op);

  mlir::func::FuncOp function;
  dist::MicrobatchLoopOp loop;
  const PipelineProgram &program;
  unsigned devices;
  llvm::DenseMap<mlir::Value, DeviceSet> inLoop; ///< where the loop reads the value
  /// The values that each device can compute from values that all devices have, such as the step
  /// state.
  llvm::DenseSet<mlir::Value> common;
  llvm::DenseMap<mlir::Value, DeviceSet> needed;
  llvm::DenseMap<mlir::Value, DeviceSet> made;
  llvm::DenseMap<mlir::Operation *, DeviceSet> places;
  std::vector<OnceMessage> stepMessages;
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_PIPELINE_OPPLACEMENT_H
