//===- Passes.td - The passes of the road ----------------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PASSES_TD
#define DTC_COMPILER_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

def FoldParameterReshapesPass : Pass<"dtc-fold-parameter-reshapes", "::mlir::ModuleOp"> {
  let summary = "Give parameters the shape that the program uses them in";
  let description = [{
    Where every use of a parameter is a `dtc.reshape` to one and the same shape, the function's argument takes that shape
    and remembers the one that weights files have in `dtc.file_shape`; the elements and their order do not change. A
    dimension that merges several, such as heads times head size, can then be sharded by one of them.
  }];
  let dependentDialects = ["::dtc::DtcDialect"];
}

def BuildTrainStepPass : Pass<"dtc-build-train-step", "::mlir::ModuleOp"> {
  let summary = "Turn a loss into a train step";
  let description = [{
    From `@loss(parameters, inputs) -> scalar` makes `@train_step(parameters, optimizer state, inputs, learning rate,
    step) -> (loss, gradient norm, updated parameters, updated state)`: reverse-mode gradients through the
    DifferentiableOpInterface, global-norm clipping with the factor min(1, clip / (norm + 1e-6)) (Pascanu et al. 2013,
    section 3.2; the 1e-6 is PyTorch's), and AdamW (Loshchilov and Hutter 2019, algorithm 2, with bias correction) or
    SGD with momentum. Weight decay applies to parameters that have at least two dimensions in weights files.

    With `optimizer=none` the function is `@gradients(parameters, inputs) -> (loss, gradients)`.
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "adamw, sgd or none">,
    Option<"clip", "clip", "double", "1.0", "largest norm of the gradient; 0 does not clip">,
    Option<"beta1", "beta1", "double", "0.9", "AdamW: decay of the first moment">,
    Option<"beta2", "beta2", "double", "0.95", "AdamW: decay of the second moment">,
    Option<"eps", "eps", "double", "1e-8", "AdamW: added to the root of the second moment">,
    Option<"weightDecay", "weight-decay", "double", "0.1", "decoupled weight decay">,
    Option<"momentum", "momentum", "double", "0.9", "SGD: decay of the momentum">,
  ];
  let dependentDialects = ["::dtc::DtcDialect", "::mlir::func::FuncDialect"];
}

def PropagateShardingsPass : Pass<"dtc-propagate-shardings", "::mlir::ModuleOp"> {
  let summary = "Give every value a sharding";
  let description = [{
    Starts from shardings that are written in the IR (`dist.sharding` on arguments, results and ops, and
    `dist.constrain`), which are never changed, and from the map of logical axis names (`dtc.axes`) to mesh axes.
    Follows the factors of each op, forwards and backwards, to a fixpoint: an op's tensors take over the axes of the
    factors they share where they have none that contradict.

    An op that needs a sharded dimension whole is written as simpler ops (its `decompose`) where it can be. A mesh axis
    that splits nothing in the end is a warning.
  }];
  let options = [
    ListOption<"shard", "shard", "std::string",
      "logical axis = mesh axes, such as batch=dp+micro; a dimension that does not divide is an error, and so is an axis "
      "that the model does not have">,
    ListOption<"defaultShard", "default-shard", "std::string",
      "as shard, for axes that it does not name; dimensions that do not divide are left whole">,
    ListOption<"mustDivide", "must-divide", "std::string",
      "logical axes of default-shard for which a dimension that does not divide is an error">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def InsertReshardsPass : Pass<"dtc-insert-reshards", "::mlir::ModuleOp"> {
  let summary = "Make every change of sharding explicit";
  let description = [{
    For each op chooses the axes that its factors are split by, and inserts `dist.reshard` where an operand lies
    differently. Afterwards the shardings of an op's operands and results follow from one assignment of axes to its
    factors; a factor that is summed leaves its axes as partial axes of the results. Partial values flow through ops
    that are linear in them and do not make them larger, and are completed once where that ends.
  }];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def SpmdPartitionPass : Pass<"dtc-spmd-partition", "::mlir::ModuleOp"> {
  let summary = "From the global view to one device's";
  let description = [{
    Gives every value its local shape, turns each `dist.reshard` into collectives, shifts indices into sharded factors
    to the shard's start, and gathers what runs once for each microbatch in a `dist.microbatch_loop`. A program that
    needs the result of a sum over microbatches in the computation of a microbatch is refused, with the op named.
  }];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def LowerToExecPass : Pass<"dtc-lower-to-exec", "::mlir::ModuleOp"> {
  let summary = "From tensors to kernels on buffers";
  let description = [{
    Makes one `exec.program` from the local view's function: a buffer for each value, in place where the kernel can and
    the operand is not needed any more, a kernel or collective for each op, tasks before, in and after the loop over
    microbatches. Broadcasts that only kernels read which can repeat an operand themselves are folded into them.
  }];
  let dependentDialects = ["::dtc::exec::ExecDialect", "::mlir::memref::MemRefDialect"];
}

def PlanMemoryPass : Pass<"dtc-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Place every buffer in one arena";
  let description = [{
    Lifetimes follow from the order of the tasks; a buffer that a repeated task reads from outside lives through all
    its repetitions. The size of the arena and the lower bound go to the program's attributes.
  }];
  let dependentDialects = ["::dtc::exec::ExecDialect"];
}

#endif // DTC_COMPILER_PASSES_PASSES_TD
