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
    From `@loss(parameters, inputs) -> scalar` makes `@train_step(parameters, inputs, learning rates, step state,
    optimizer state) -> (loss, gradient norm, updated parameters, updated state)`: reverse-mode gradients through the
    DifferentiableOpInterface, global-norm clipping with the factor min(1, clip / (norm + 1e-6)) (Pascanu et al. 2013,
    section 3.2; the 1e-6 is PyTorch's), and the optimizer's update of each parameter. Weight decay applies to
    parameters that have at least two dimensions in weights files, and to those of groups as these say.

    Where the gradient's norm is not finite, nothing is updated (`apply` of the optimizers is false): one such element on
    any device holds back the step on all of them.

    The step state (`dtc.step_state`) counts the steps that were applied and those that were skipped. From it follow the
    number that the optimizer gets and which of the given learning rates the step has, so that nothing has to be decided
    between two steps.

    A loss that is a quotient whose divisor does not depend on the parameters, such as a number of labels that count, is
    differentiated without the divisor, and the gradients are divided by it in the end: the divisor may then be a sum
    over all microbatches. With `loss-scale` the loss that is differentiated is multiplied by a scale, and the
    gradients are divided by it in the end. The scale is a part of the step state: it halves after each step that was
    skipped, and doubles after `growth_interval` steps in a row that were not (Micikevicius et al. 2018, section 3.2).

    Frozen parameters have no gradient and no state, and what only their gradients need is not built.

    With `accumulates` a step may take several batches. The loss is then their mean, or the quotient of sums over all of
    them where it is such a quotient. With `separate-batches` the sums over the batches are ops (`dist.sum_batches`), so
    that nothing else of one batch meets another one.

    With `optimizer=none` the function is `@gradients(parameters, inputs) -> (loss, gradients)`.
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "adamw, adam, sgd, lion or none">,
    Option<"clip", "clip", "double", "1.0", "largest norm of the gradient; 0 does not clip">,
    Option<"beta1", "beta1", "double", "0.9", "Adam, AdamW: decay of the first moment; Lion: its part in the update">,
    Option<"beta2", "beta2", "double", "0.95", "Adam, AdamW: decay of the second moment; Lion: decay of the momentum">,
    Option<"eps", "eps", "double", "1e-8", "Adam, AdamW: added to the root of the second moment">,
    Option<"weightDecay", "weight-decay", "double", "0.1", "weight decay; decoupled but for Adam and SGD">,
    Option<"momentum", "momentum", "double", "0.9", "SGD: decay of the momentum">,
    ListOption<"freeze", "freeze", "std::string", "patterns of names of parameters that training does not change">,
    ListOption<"paramGroup", "param-group", "std::string",
      "pattern:weight_decay=W,lr_scale=S for parameters that train in another way; the first that matches holds">,
    Option<"lossScale", "loss-scale", "bool", "false", "scale the loss">,
    Option<"accumulates", "accumulates", "bool", "false", "gradients may be summed over several batches">,
    Option<"separateBatches", "separate-batches", "bool", "false",
      "mark the sums over batches, for a loop over one microbatch that runs once for each batch">,
    Option<"numberOps", "number-ops", "bool", "false",
      "leave in dtc.op and dtc.gradient_of which op each gradient belongs to, for dtc-partition-stages">,
  ];
  let dependentDialects = ["::dtc::DtcDialect", "::dtc::dist::DistDialect", "::mlir::func::FuncDialect"];
}

def AdvanceRandomKeyPass : Pass<"dtc-advance-random-key", "::mlir::ModuleOp"> {
  let summary = "Make the key of random masks a state that the step advances";
  let description = [{
    An argument with `dtc.scalar = "random_key"`, from which random ops draw their masks, becomes a part of the step
    state: `dtc.step_state = "random_key"`. Its first word, of the run's seed, stays; its second, the number of the
    step's first batch, grows by the argument `batches`, which is added where the function has none. Within a step random
    kernels count the runs of the loop over microbatches themselves.

    ```mlir
    // Before
    func.func @loss(..., %key: tensor<2xi32> {dtc.scalar = "random_key"}) -> tensor<f32>
    // After
    func.func @loss(..., %key: tensor<2xi32> {dtc.step_state = "random_key"},
                    %batches: tensor<f32> {dtc.scalar = "batches"})
        -> (tensor<f32>, tensor<2xi32> {dtc.updates = 1})
    ```
  }];
  let dependentDialects = ["::dtc::DtcDialect"];
}

def MixedPrecisionPass : Pass<"dtc-mixed-precision", "::mlir::ModuleOp"> {
  let summary = "Compute in 16 bits, and keep in 32 what has to be exact";
  let description = [{
    From a step in f32 makes one in mixed precision (Micikevicius et al. 2018, section 3): parameters and activations
    have the type `dtype`. The insides of norms, softmax, losses and attention, sums and what an op computes for each
    element are f32 whatever the types of the operands, since kernels compute in the wide type. In f32 are further: what
    the losses give and what is computed from that, exp, log and roots that the model has as ops of their own, means,
    reciprocals of deviations and logs of sums that a gradient needs, and gradients of parameters, from the op that makes
    them on: they are summed over microbatches and between devices in f32.

    Each parameter that trains has a master copy in f32, a part of the optimizer's state. The optimizer updates that one;
    the parameter is made from it by rounding, once a step, on the shards that the optimizer has. So ZeRO gathers 16-bit
    parameters. A frozen parameter has no master copy. Without an optimizer there are only the 16-bit parameters.

    Runs behind dtc-build-train-step. Integers are left alone; a model whose floats are not all f32 is refused.
  }];
  let options = [
    Option<"dtype", "dtype", "std::string", "\"bf16\"", "bf16 or f16">,
  ];
  let dependentDialects = ["::dtc::DtcDialect"];
}

def NarrowGradientReductionsPass : Pass<"dtc-narrow-gradient-reductions", "::mlir::ModuleOp"> {
  let summary = "Sum gradients between devices in 16 bits";
  let description = [{
    A gradient is rounded to `dtype` before it is summed between devices, and widened behind that: half of the bytes move.
    Each sum still adds up in f32 and is rounded once. Sums over microbatches stay f32, whether devices sum before them, as
    in ZeRO's stages 2 and 3, or behind.
  }];
  let options = [
    Option<"dtype", "dtype", "std::string", "\"bf16\"", "bf16 or f16">,
  ];
  let dependentDialects = ["::dtc::DtcDialect", "::dtc::dist::DistDialect"];
}

def VerifyPrecisionPass : Pass<"dtc-verify-precision", "::mlir::ModuleOp"> {
  let summary = "Refuse a program in which something that needs f32 has lost it";
  let description = [{
    Names each op that computes on 16-bit floats what has to be wide (`exp`, `log`, `sqrt`, `rsqrt`), and, unless
    `allow-narrow-reductions`, each gradient that is summed between devices in 16 bits. (That kernels sum and norms
    divide in f32, and that sums over microbatches and optimizers are f32, is in the types of the ops.)
  }];
  let options = [
    Option<"allowNarrowReductions", "allow-narrow-reductions", "bool", "false",
      "gradients may be summed between devices in 16 bits">,
  ];
}

def NameDimensionsPass : Pass<"dtc-name-dimensions", "::mlir::ModuleOp"> {
  let summary = "Make logical axes of the dimensions that a map names by their arguments";
  let description = [{
    An entry of the map may have a dimension of an argument as its key: `layers.0.weight#1=tp` is about dimension 1 of
    the parameter or input "layers.0.weight", in the shape that files have; a component `*` of the name stands for any
    number. Such a dimension gets the key as its logical axis (`dtc.axes`), in place of the name that it may have. From
    there on the entry is as any other.

    It runs after `dtc-fold-parameter-reshapes`. A name that matches no argument, a dimension that is not there, and two
    entries for one dimension are errors.
  }];
  let options = [
    ListOption<"shard", "shard", "std::string", "as for dtc-propagate-shardings; entries of logical axes are left alone">,
  ];
  let dependentDialects = ["::dtc::DtcDialect"];
}

def SplitMeshAxesPass : Pass<"dtc-split-mesh-axes", "::mlir::ModuleOp"> {
  let summary = "Take mesh axes apart where a dimension is smaller than they are";
  let description = [{
    With two key-value heads and `tp=4` the heads can be split over two devices, each of which has a copy. That is a
    split over a part of the axis: `tp` becomes `tp.0=2` and `tp.1=2`, key-value heads are split over the first of them,
    query heads over both. Shardings in the module and the map that name `tp` mean both.
  }];
  let options = [
    ListOption<"shard", "shard", "std::string", "as for dtc-propagate-shardings">,
    ListOption<"defaultShard", "default-shard", "std::string", "as for dtc-propagate-shardings">,
    ListOption<"whole", "whole", "std::string",
      "logical axes of which copies are of no use, such as batch: nothing is taken apart for them, and for first "
      "dimensions of inputs that the map names by their arguments">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def PropagateShardingsPass : Pass<"dtc-propagate-shardings", "::mlir::ModuleOp"> {
  let summary = "Give every value a sharding, and every op the axes of its factors";
  let description = [{
    Starts from shardings that are written in the IR (`dist.sharding` on arguments, results and ops, and
    `dist.constrain`), whose closed dimensions are never changed, and from the map of logical axis names (`dtc.axes`) to
    mesh axes. Follows the factors of each op, forwards and backwards, in nested strategies, each to a fixpoint: wishes
    of priority 0, then of priority 1, and so on; within one, first ops that pass dimensions through, then those that
    reduce some, and last ops whose tensors contradict each other, which are settled by estimated time, with a remark.

    The axes that each op's factors are split by are left in `dist.factors` for `dtc-insert-reshards`.

    An op that needs a sharded dimension whole is written as simpler ops (its `decompose`) where it can be. Dimensions
    that do not divide are padded, with a remark. A mesh axis that splits nothing in the end is a warning.

    With a `zero-stage` the optimizer's state (1), the gradients (2) and the parameters (3) are split over `zero-axes`
    as well (Rajbhandari et al. 2020).
  }];
  let options = [
    ListOption<"shard", "shard", "std::string",
      "logical axis = mesh axes, such as batch=dp+micro, or residual_seq=tp@1 for priority 1; a dimension that is not "
      "split at all is an error, and so is an axis that the model does not have">,
    ListOption<"defaultShard", "default-shard", "std::string",
      "as shard, for axes that it does not name; dimensions that are too small are left whole">,
    ListOption<"mustSplit", "must-split", "std::string",
      "logical axes of default-shard for which a dimension that is too small is an error">,
    ListOption<"batchAxes", "batch-axes", "std::string",
      "mesh axes that split what shard says of the batch as well, after the axes that it names: microbatches">,
    Option<"zeroStage", "zero-stage", "int64_t", "0", "0 to 3">,
    ListOption<"zeroAxes", "zero-axes", "std::string", "the mesh axes over which ZeRO splits">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def PartitionStagesPass : Pass<"dtc-partition-stages", "::mlir::ModuleOp"> {
  let summary = "Cut a program into the stages of a pipeline";
  let description = [{
    Gives each op that works on a microbatch a `dist.stage`: its stage, and whether it runs in the forward or the
    backward pass. The ops of the loss, in their order, are cut into `chunks` stages for each device of the mesh's
    pipeline axis. Among all cuts, those are taken for which the slowest stage takes the least time, counting each op
    with its gradients, and what the link needs for the values that cross a stage's ends: at most 2% of the mean stage,
    since messages move beside the work; among these the ones over which least is sent. Ops of the backward pass follow
    the op whose gradients they compute (`dtc.gradient_of`).

    Without a pipeline axis there is one stage, and what is of use is the pass of each op.

    What does not work on a microbatch has no stage: it runs, once a step, wherever it is needed. So do the sums of the
    gradients of a parameter that several stages use.

    With `stages` the user cuts: for each stage, separated by `|`, names of layers and ranges of them, separated by
    commas, such as `wte,h.0-h.3|h.4-h.7,ln_f`. Ops of layers that are not named belong to the stage of the op before
    them.

    The ops of a program that has no backward pass may be numbered (`dtc.op`). Then `dist.stage_starts` of the function is
    the number of the first op of each stage but the first, and with `starts`, such numbers, another program that was
    made from the same model is cut at the same places.
  }];
  let options = [
    Option<"chunks", "chunks", "int64_t", "1", "stages of one device">,
    Option<"stages", "stages", "std::string", "\"\"", "the layers of each stage">,
    ListOption<"starts", "starts", "int64_t", "the number of the first op of each stage but the first">,
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

def PrintShardingsPass : Pass<"dtc-print-shardings", "::mlir::ModuleOp"> {
  let summary = "Print the shardings of a program as a table";
  let description = [{
    Prints, on the standard output, where the global view lays its values: for each parameter the global shape, the
    sharding, the shape and the bytes of a device's shard and what is padded; the optimizer's state where it differs
    from its parameter; the inputs; and the results of ops. Rows are grouped by layer, the name of a location up to its
    first number; a number in parentheses counts equal rows; successive layers that are alike are printed once.

    It runs after `dtc-propagate-shardings`, or after `dtc-insert-reshards`, where partial sums are seen as well. The
    program does not change; `-o` keeps it out of the table.
  }];
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

def BuildEvaluationPass : Pass<"dtc-build-evaluation", "::mlir::ModuleOp"> {
  let summary = "Reduce a partitioned train step to the loss that it computes";
  let description = [{
    What is left of a train step is @evaluate, which returns the loss alone: the forward pass, sharded and cut into stages
    as it is for training, without dropout. It has all states of the train step and changes none.
  }];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def BuildGenerationPass : Pass<"dtc-build-generation", "::mlir::ModuleOp"> {
  let summary = "Turn a loss into the program that gives the next token";
  let description = [{
    The function of a loss, of one input of tokens `i32[batch, seq]`, becomes a function of the logits at one position of
    each sample, `positions i32[batch]`. The keys and values of each `dtc.attention` are kept in caches as long as the
    sequence, arguments with `dtc.cache` that the function updates. `phase` is

    * `prefill`: @prefill takes whole sequences of tokens, fills the caches and returns the logits at `positions`. Tokens
      behind them have no influence on these;
    * `decode`: @decode takes the one token at `positions`, adds its keys and values to the caches and returns its logits.

    Dropout is left out. All ops but causal attention must work on each position alone.
  }];
  let options = [
    Option<"phase", "phase", "std::string", "\"prefill\"", "prefill or decode">,
  ];
  let dependentDialects = ["::dtc::DtcDialect"];
}

def RegatherParametersPass : Pass<"dtc-regather-parameters", "::mlir::ModuleOp"> {
  let summary = "Gather parameters for each layer that uses them, and drop them behind it";
  let description = [{
    A parameter that is gathered over one of `axes` is gathered again for each visit of a layer, forward and backward,
    instead of being kept between them (ZeRO stage 3, fully sharded data parallel). A visit is a run of ops of one stage
    whose locations name one layer: up to the first number in the name. Gathers of one visit share buckets. They stand before
    the visit that is `prefetch` visits earlier, so that they run while it computes.
  }];
  let options = [
    ListOption<"axes", "axes", "std::string", "mesh axes over which gathered parameters are not kept">,
    Option<"bucketBytes", "bucket-bytes", "int64_t", "26214400", "largest sum of the gathered bytes of a bucket">,
    Option<"prefetch", "prefetch", "int64_t", "1", "how many visits ahead gathers start">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def RecomputeActivationsPass : Pass<"dtc-recompute-activations", "::mlir::ModuleOp"> {
  let summary = "Keep fewer values for the backward pass, and compute the others again";
  let description = [{
    Copies ops of the forward pass to just before the ops of the backward pass that use their results, instead of keeping
    these (Chen et al. 2016). Each op computes with the same operands, so that no bit of the result changes. `mode` is

    * `none`;
    * `selective`: what takes little for what it saves is computed again where that keeps less (after Korthikanti et al.
      2022). Where contractions make much of little, as the scores of attention are made (more bytes than they read, with
      fewer than a quarter of the floating point operations for each that the products with parameters take on average),
      these and what follows them up to the next contraction (section 5); in other programs what takes fewer than two
      floating point operations for each byte that it reads or writes. Activations that are gathered from other devices are
      gathered again (section 4.2.2). Projections, the other products of a layer and other collectives are not repeated;
    * `full`: only what goes from one layer to another is kept, all else is computed again, collectives too;
    * `auto`: the least is computed again for which a device keeps at most `keep-bytes`, counting the microbatches that
      the schedule has in flight. What goes from one layer to another is kept. A collective counts as long as it takes.

    Layers are those that locations name; where they name none, the program is cut into about as many parts as each has
    ops.

    In a pipeline the bytes are those of all stages of a device together. Ops need a `dist.stage`, also without a
    pipeline. It runs before `dtc-regather-parameters`, so that what is computed again with parameters that are split
    gathers them again.

    A loop over one microbatch that no pipeline needs becomes its body, unless `keep-loop`.
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"selective\"", "none, selective, full or auto">,
    ListOption<"keepBytes", "keep-bytes", "int64_t",
      "the most bytes that each device keeps, in the order of coordinates on the pipeline axis; the last holds for those "
      "that follow">,
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "as for dtc-schedule-pipeline">,
    Option<"chunks", "chunks", "int64_t", "1", "stages of one device">,
    Option<"keepLoop", "keep-loop", "bool", "false",
      "keep a loop over one microbatch, which a step of several batches runs again">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def SchedulePipelinePass : Pass<"dtc-schedule-pipeline", "::mlir::ModuleOp"> {
  let summary = "One function for each device of a pipeline, and the order of its work";
  let description = [{
    From the local view of the whole program, whose ops have a `dist.stage`, makes a function for each coordinate on the
    pipeline axis. Its loop over microbatches holds a `dist.fragment` for each stage and pass of the device, and a
    `dist.send` or `dist.receive` for what another device makes or needs. What has no stage is copied to where it is
    needed; of what runs once a step, values that are smaller than what they are made of are made in one place and
    sent.

    The order of the fragments follows from the schedule's rule: `naive` (one microbatch at a time), `gpipe` (Huang et
    al. 2019), `1f1b` and `interleaved` (Narayanan et al. 2021, section 2.2), `zb-h1` (Qi et al. 2023) and `zb-v` (Qi et
    al. 2024). The last two run the part of the backward pass that no other stage waits for when there is nothing better
    to do. A receive starts so early that no send has to wait for it, if ops take as long as estimated; that order
    cannot deadlock, whatever they take.
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "naive, gpipe, 1f1b, interleaved, zb-h1 or zb-v">,
    Option<"chunks", "chunks", "int64_t", "1", "stages of one device">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def OptimizeCollectivesPass : Pass<"dtc-optimize-collectives", "::mlir::ModuleOp"> {
  let summary = "Start collectives early and together";
  let description = [{
    Each collective moves to behind the op that makes its operand. Small ones of one kind over the same axes become a
    `dist.bucket`, which goes off when it has `bucket-bytes` or when one of its results is needed.
  }];
  let options = [
    Option<"bucketBytes", "bucket-bytes", "int64_t", "26214400",
      "bytes at which a bucket goes off, and from which a collective stays alone; 0 makes no buckets">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def LowerToExecPass : Pass<"dtc-lower-to-exec", "::mlir::ModuleOp"> {
  let summary = "From tensors to kernels on buffers";
  let description = [{
    Makes one `exec.program` from the local view's function: a buffer for each value, in place where the kernel can and
    the operand is not needed any more, a kernel or collective for each op, tasks before, in and after the loop over
    microbatches. Broadcasts that only kernels read which can repeat an operand themselves are folded into them.
  }];
  let options = [
    Option<"keepSums", "keep-sums", "bool", "false", "sum over one microbatch as over several">,
  ];
  let dependentDialects = ["::dtc::exec::ExecDialect", "::mlir::memref::MemRefDialect"];
}

def OverlapCollectivesPass : Pass<"dtc-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "Let collectives run beside kernels";
  let description = [{
    A collective whose outputs are not needed, and whose inputs are not overwritten, before some kernel has run starts
    where it stands and runs beside the instructions that follow. An `exec.wait` stands before the first instruction that
    must not run before its end, or at the end of the task. Of collectives whose inputs are memory that could be used
    again, such as gradients that are scattered, at most two run or wait: before a third starts, the first is waited for.
  }];
  let dependentDialects = ["::dtc::exec::ExecDialect"];
}

def PlanMemoryPass : Pass<"dtc-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Place every buffer in one arena";
  let description = [{
    Lifetimes follow from the order of the tasks; a buffer that a repeated task reads from outside lives through all
    its repetitions. A buffer of which each microbatch has its own gets as many slots as there are microbatches at once
    between its first use and its last; buffers of several stages of a device share slots where that saves any. The size
    of the arena and the lower bound go to the program's attributes.
  }];
  let dependentDialects = ["::dtc::exec::ExecDialect"];
}

#endif // DTC_COMPILER_PASSES_PASSES_TD
