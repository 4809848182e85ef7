//===- Lowering.h - From tensors to kernels on buffers ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_EXEC_LOWERING_H
#define DTC_COMPILER_PASSES_EXEC_LOWERING_H

#include "compiler/analysis/Layout.h"
#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace dtc {

/// Memory that one or more values share: an in-place result, a reshape.
struct LoweredStorage {
  int lastUse = -1;      ///< of any value in it, as an op's number
  bool inLoop = false;   ///< belongs to one microbatch
  bool reusable = false; ///< holds an intermediate value that may be overwritten after its last use
};

class Lowering {
public:
  /// With `keepSums` a loop over one microbatch makes sums as any other does.
  Lowering(mlir::func::FuncOp function, const Mesh &mesh, bool keepSums)
      : function(function), mesh(mesh), keepSums(keepSums), builder(function.getContext()),
        declare(function.getContext()) {}
  mlir::LogicalResult run();

private:
  void number();
  void markGradients();
  mlir::LogicalResult lowerArguments();
  mlir::LogicalResult lowerOp(mlir::Operation &op);
  mlir::LogicalResult lowerKernel(mlir::Operation &op);
  /// One collective of the given tensors.
  void lowerCollectives(llvm::ArrayRef<mlir::Operation *> ops);
  void lowerBucket(dist::BucketOp bucket);
  mlir::LogicalResult lowerLoop(dist::MicrobatchLoopOp loop);
  int64_t microbatchesOf(dist::MicrobatchLoopOp loop);
  /// Whether what the loop yields is added up, and not handed on as the only value of its kind.
  bool makesSums(dist::MicrobatchLoopOp loop) { return keepSums || microbatchesOf(loop) > 1; }
  /// Puts the fragments of a pipeline's loop, each with its receives and sends, in the order in
  /// which the schedule first runs them, so that the order of the text is that of execution.
  void orderAsScheduled(dist::MicrobatchLoopOp loop);
  mlir::LogicalResult lowerScheduled(dist::MicrobatchLoopOp loop);
  mlir::LogicalResult lowerFragment(dist::FragmentOp fragment);
  /// The ops of one microbatch, or of a fragment of it, which add to the loop's sums.
  mlir::LogicalResult lowerBody(mlir::Block &block);
  /// Declare one end of a transfer, and the buffers of what is received.
  exec::TransferOp declareSend(dist::SendOp send);
  exec::TransferOp declareReceive(dist::ReceiveOp receive);
  void start(exec::TransferOp transfer);
  void finish(exec::TransferOp transfer);
  /// Waits for what was sent outside a loop.
  void finishSends();
  /// Marks the buffers that several tasks of a loop use for one microbatch.
  void markMicrobatchBuffers();
  mlir::LogicalResult lowerReturn(mlir::func::ReturnOp op);

  /// What a fragment or a bucket returns, inside it; of a loop that makes no sums, what it yields.
  /// Any other value is itself.
  mlir::Value makerInside(mlir::Value value);
  bool isFolded(BroadcastOp op);
  /// The value that an operand reads once broadcasts are folded.
  mlir::Value source(mlir::OpOperand &operand);
  mlir::MemRefType bufferType(mlir::Type type) {
    auto tensor = cast<mlir::RankedTensorType>(type);
    return mlir::MemRefType::get(tensor.getShape(), tensor.getElementType());
  }
  mlir::Value allocate(mlir::Value value, exec::BufferKind kind, bool reusable = true);
  exec::BufferKind kindOf(mlir::Value value);
  /// The buffer for result `index` of `op`: an operand's where that is allowed, else a new one.
  mlir::Value allocateResult(mlir::Operation &op, unsigned index,
                             llvm::ArrayRef<std::pair<unsigned, unsigned>> inPlacePairs);
  void share(mlir::Value value, unsigned storage, mlir::Value buffer);
  /// Declares that the value takes the bytes of `buffer`, which is in that storage.
  mlir::Value reuse(mlir::Value value, unsigned storage, mlir::Value buffer);
  void kernel(mlir::Location loc, llvm::StringRef name, mlir::ValueRange inputs,
              mlir::ValueRange outputs, mlir::DictionaryAttr attributes, double flops = 0);
  /// Further instructions go to a new task.
  exec::TaskOp beginTask(const llvm::Twine &name);
  void endTask();

  mlir::func::FuncOp function;
  const Mesh &mesh;
  bool keepSums;
  mlir::OpBuilder builder; ///< in the task that is being filled
  mlir::OpBuilder declare; ///< before the first task
  exec::ProgramOp program;
  exec::TaskOp task;  ///< the one that is being filled
  double seconds = 0; ///< that it takes by estimate
  struct Run {
    exec::TaskOp task;
    int64_t microbatch;
    bool inLoop = false; ///< over more than one microbatch, or over one that is summed all the same
  };
  llvm::SmallVector<Run> runs; ///< in their order
  bool inLoop = false;
  llvm::SmallVector<exec::TransferOp> unfinished;      ///< sends outside a loop
  llvm::SmallVector<exec::BufferOp> microbatchBuffers; ///< that are made in the loop
  /// The sums, by number of the loop's result, that a value is added to.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 1>> sumsOf;

  llvm::DenseMap<mlir::Operation *, int> numbers;
  llvm::DenseMap<mlir::Value, int> lastUse;
  llvm::DenseSet<mlir::Value> gradients, returned;
  /// The argument that a returned value updates.
  llvm::DenseMap<mlir::Value, mlir::BlockArgument> updates;
  llvm::DenseMap<mlir::Value, mlir::StringAttr> stateNames; ///< of arguments
  llvm::SmallVector<LoweredStorage> storages;
  llvm::DenseMap<mlir::Value, unsigned> storageOf;
  llvm::DenseMap<mlir::Value, mlir::Value> bufferOf;
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_EXEC_LOWERING_H
