//===- Passes.td - Pass definitions ----------------------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PASSES_TD
#define DTC_COMPILER_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

def FoldParameterReshapesPass : Pass<"dtc-fold-parameter-reshapes", "::mlir::ModuleOp"> {
  let summary = "Give parameters the shape in which the program uses them";
  let description = [{
    Where every use of a parameter is a `dtc.reshape` to the same shape, the function's argument takes that shape, and
    `dtc.file_shape` keeps the one that weights files have; the elements and their order do not change. A dimension of
    the file that merges several, such as heads times head size, is then several dimensions, each of which can be
    sharded.

    ```mlir
    // Before
    func.func @loss(%w: tensor<8x6xf32> {dtc.param = "w"}) -> tensor<8x3x2xf32> {
      %0 = dtc.reshape %w {dtc.axes = ["", "heads", ""]} : (tensor<8x6xf32>) -> tensor<8x3x2xf32>
      return %0 : tensor<8x3x2xf32>
    }
    // After
    func.func @loss(%w: tensor<8x3x2xf32> {dtc.param = "w", dtc.axes = ["", "heads", ""],
                                           dtc.file_shape = array<i64: 8, 6>}) -> tensor<8x3x2xf32> {
      return %w : tensor<8x3x2xf32>
    }
    ```
  }];
  let dependentDialects = ["::dtc::DtcDialect"];
}

def BuildTrainStepPass : Pass<"dtc-build-train-step", "::mlir::ModuleOp"> {
  let summary = "Build a train step from a loss";
  let description = [{
    Makes from `@loss(parameters, inputs) -> scalar` the function `@train_step(parameters, inputs, learning rates, step
    state, optimizer state) -> (loss, gradient norm, updated parameters, updated state)`: gradients by reverse-mode
    differentiation (DifferentiableOpInterface), clipping of their global norm by the factor min(1, clip / (norm +
    1e-6)) (Pascanu et al. 2013, section 3.2; the 1e-6 is PyTorch's), and the optimizer's update of each parameter.
    Weight decay applies to parameters that have at least two dimensions in weights files; parameter groups can set it
    otherwise.

    A step whose gradient norm is not finite is skipped: the operand `apply` of the optimizers is false, and nothing is
    updated. One such element on any device makes all devices skip the step.

    The step state (`dtc.step_state`) counts applied steps and skipped steps. The step number that the optimizer gets,
    and which of the given learning rates the step uses, are computed from it, so that the host decides nothing between
    two steps.

    A loss that is a quotient whose divisor does not depend on the parameters, such as a number of labels that count, is
    differentiated without the divisor, and the gradients are divided by it at the end: the divisor may then be a sum
    over all microbatches. With `loss-scale` the loss is multiplied by a scale before it is differentiated, and the
    gradients are divided by the scale at the end. The scale is a part of the step state: it is halved after each
    skipped step, and doubled after `growth_interval` applied steps without a skipped one between them (Micikevicius et
    al. 2018, section 3.2).

    Frozen parameters have no gradient and no optimizer state, and ops that only their gradients need are not built.

    With `accumulates` a step may accumulate gradients over several batches. The loss is then the mean of the batches'
    losses or, where it is such a quotient, the quotient of the sums over all batches. With `separate-batches` the sums
    over batches are ops (`dist.sum_batches`), and no other op combines values of different batches.

    With `optimizer=none` the function is `@gradients(parameters, inputs) -> (loss, gradients)`.

    ```mlir
    // dtc-opt --dtc-build-train-step=optimizer=none
    // Before
    func.func @loss(%w: tensor<4xf32> {dtc.param = "w"}, %x: tensor<4xf32> {dtc.input = "x"}) -> tensor<f32> {
      %0 = dtc.einsum "i,i->" %w, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    // After
    func.func @gradients(%w: tensor<4xf32> {dtc.param = "w"}, %x: tensor<4xf32> {dtc.input = "x"})
        -> (tensor<f32> {dtc.output = "loss"}, tensor<4xf32> {dtc.output = "grad:w"}) {
      %0 = dtc.einsum "i,i->" %w, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
      %1 = dtc.constant dense<1.0> : tensor<f32>
      %2 = dtc.einsum ",i->i" %1, %x : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
      return %0, %2 : tensor<f32>, tensor<4xf32>
    }
    ```

    The same loss with an optimizer:

    ```mlir
    // dtc-opt --dtc-build-train-step="optimizer=sgd momentum=0 clip=0"
    // Before
    func.func @loss(%w: tensor<4xf32> {dtc.param = "w"}, %x: tensor<4xf32> {dtc.input = "x"}) -> tensor<f32> {
      %0 = dtc.einsum "i,i->" %w, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    // After
    func.func @train_step(%w: tensor<4xf32> {dtc.param = "w"}, %x: tensor<4xf32> {dtc.input = "x"},
        %rates: tensor<64xf32> {dtc.scalar = "learning_rates"}, %first: tensor<i32> {dtc.scalar = "first_step"},
        %applied: tensor<i32> {dtc.step_state = "applied_steps"},
        %skipped: tensor<i32> {dtc.step_state = "skipped_steps"},
        %m: tensor<4xf32> {dtc.slot = "momentum_buffer", dtc.slot_of = "w"})
        -> (tensor<f32> {dtc.output = "loss"}, tensor<f32> {dtc.output = "grad_norm"}, tensor<4xf32> {dtc.updates = 0},
            tensor<4xf32> {dtc.updates = 6}, tensor<i32> {dtc.updates = 4}, tensor<i32> {dtc.updates = 5}) {
      %loss = dtc.einsum "i,i->" %w, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
      // The gradient of w.
      %one = dtc.constant dense<1.0> : tensor<f32>
      %grad = dtc.einsum ",i->i" %one, %x : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
      // The learning rate of this step.
      %steps = dtc.add %applied, %skipped : tensor<i32>
      %index = dtc.sub %steps, %first : tensor<i32>
      %rate = dtc.pick %rates, %index : (tensor<64xf32>, tensor<i32>) -> tensor<f32>
      // The norm of all gradients: the root of the sum of their squares, and whether it is finite.
      %square = dtc.einsum "a,a->" %grad, %grad : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
      %square1 = dtc.reshape %square : (tensor<f32>) -> tensor<1xf32>
      %squares = dtc.concat %square1 dim 0 : (tensor<1xf32>) -> tensor<1xf32>
      %sum = dtc.reduce sum %squares dims [0] : (tensor<1xf32>) -> tensor<f32>
      %norm = dtc.sqrt %sum {dtc.agreed} : tensor<f32>
      %infinity = dtc.constant dense<0x7F800000> : tensor<f32>
      %apply = dtc.compare lt %norm, %infinity : tensor<f32>
      // The update, with a gradient that is not clipped (its factor is 1).
      %factor = dtc.constant dense<1.0> : tensor<f32>
      %new_w, %new_m = dtc.sgd %w, %grad, %m, %rate, %factor, %apply {momentum = 0.0, weight_decay = 0.0}
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>)
        -> (tensor<4xf32>, tensor<4xf32>)
      // The counters of steps.
      %next = dtc.constant dense<1> : tensor<i32>
      %is_applied = dtc.convert %apply : (tensor<i1>) -> tensor<i32>
      %is_skipped = dtc.sub %next, %is_applied : tensor<i32>
      %new_applied = dtc.add %applied, %is_applied : tensor<i32>
      %new_skipped = dtc.add %skipped, %is_skipped : tensor<i32>
      return %loss, %norm, %new_w, %new_m, %new_applied, %new_skipped
        : tensor<f32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<i32>
    }
    ```
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "adamw, adam, sgd, lion or none">,
    Option<"clip", "clip", "double", "1.0", "largest norm of the gradient; 0 does not clip">,
    Option<"beta1", "beta1", "double", "0.9",
      "Adam, AdamW: decay of the first moment; Lion: weight of the momentum in the update">,
    Option<"beta2", "beta2", "double", "0.95", "Adam, AdamW: decay of the second moment; Lion: decay of the momentum">,
    Option<"eps", "eps", "double", "1e-8", "Adam, AdamW: added to the root of the second moment">,
    Option<"weightDecay", "weight-decay", "double", "0.1", "weight decay; decoupled but for Adam and SGD">,
    Option<"momentum", "momentum", "double", "0.9", "SGD: decay of the momentum">,
    ListOption<"freeze", "freeze", "std::string", "patterns of the names of frozen parameters">,
    ListOption<"paramGroup", "param-group", "std::string",
      "pattern:weight_decay=W,lr_scale=S for the parameters whose names match; the first that matches holds">,
    Option<"lossScale", "loss-scale", "bool", "false", "scale the loss">,
    Option<"accumulates", "accumulates", "bool", "false", "gradients may be summed over several batches">,
    Option<"separateBatches", "separate-batches", "bool", "false",
      "make ops of the sums over batches, for a loop over one microbatch that is repeated for each batch">,
    Option<"numberOps", "number-ops", "bool", "false",
      "leave in dtc.op and dtc.gradient_of which op each gradient belongs to, for dtc-partition-stages">,
  ];
  let dependentDialects = ["::dtc::DtcDialect", "::dtc::dist::DistDialect", "::mlir::func::FuncDialect"];
}

def AdvanceRandomKeyPass : Pass<"dtc-advance-random-key", "::mlir::ModuleOp"> {
  let summary = "Make the key of random masks a state that the step advances";
  let description = [{
    An argument with `dtc.scalar = "random_key"`, from which random ops draw their masks, becomes a part of the step
    state: `dtc.step_state = "random_key"`. Its first word, which comes from the seed of the run, does not change. Its
    second word, the number of the step's first batch, grows by the argument `batches`, which is added where the
    function has none. Within a step, random kernels count the repetitions of the microbatch loop themselves.

    ```mlir
    // Before
    func.func @loss(%x: tensor<4xf32> {dtc.input = "x"}, %key: tensor<2xi32> {dtc.scalar = "random_key"})
        -> tensor<4xf32> {
      %0 = dtc.dropout %x, %key {number = 0, rate = 0.5} : (tensor<4xf32>, tensor<2xi32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    // After
    func.func @loss(%x: tensor<4xf32> {dtc.input = "x"}, %key: tensor<2xi32> {dtc.step_state = "random_key"},
                    %batches: tensor<f32> {dtc.scalar = "batches"})
        -> (tensor<4xf32>, tensor<2xi32> {dtc.updates = 1}) {
      %0 = dtc.dropout %x, %key {number = 0, rate = 0.5} : (tensor<4xf32>, tensor<2xi32>) -> tensor<4xf32>
      %1 = dtc.convert %batches : (tensor<f32>) -> tensor<i32>
      %2 = dtc.broadcast %1 dims [] : (tensor<i32>) -> tensor<2xi32>
      %3 = dtc.constant dense<[0, 1]> : tensor<2xi32>
      %4 = dtc.mul %2, %3 : tensor<2xi32>
      %5 = dtc.add %key, %4 : tensor<2xi32>
      return %0, %5 : tensor<4xf32>, tensor<2xi32>
    }
    ```
  }];
  let dependentDialects = ["::dtc::DtcDialect"];
}

def MixedPrecisionPass : Pass<"dtc-mixed-precision", "::mlir::ModuleOp"> {
  let summary = "Convert a train step to mixed precision";
  let description = [{
    Converts a step in f32 to mixed precision (Micikevicius et al. 2018, section 3): parameters and activations get the
    type `dtype`. Norms, softmax, losses, attention, sums and elementwise functions compute in f32 whatever the types of
    their operands, since kernels compute in the wide type. These values stay f32: the losses and what is computed from
    them; exp, log and roots that the model has as ops of their own; means, reciprocals of deviations and logs of sums
    that a gradient needs; and gradients of parameters, from the op that makes them on, because they are summed over
    microbatches and between devices in f32.

    Each parameter that is trained has master weights, an f32 copy in the optimizer state. The optimizer updates these;
    the parameter is made from them by rounding, once a step, on the shards that the optimizer has. So ZeRO gathers
    16-bit parameters. A frozen parameter has no master weights. Without an optimizer there are only the 16-bit
    parameters.

    Runs after dtc-build-train-step. Integers are left alone; a model whose floats are not all f32 is refused.

    ```mlir
    // Before
    func.func @gradients(%w: tensor<4x3xf32> {dtc.param = "w"}, %x: tensor<2x4xf32> {dtc.input = "x"})
        -> (tensor<f32> {dtc.output = "loss"}, tensor<4x3xf32> {dtc.output = "grad:w"}) {
      %y = dtc.einsum "bi,io->bo" %x, %w : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
      %loss = dtc.einsum "bo,bo->" %y, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<f32>
      %dy = dtc.add %y, %y : tensor<2x3xf32>
      %dw = dtc.einsum "bi,bo->io" %x, %dy : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
      return %loss, %dw : tensor<f32>, tensor<4x3xf32>
    }
    // After
    func.func @gradients(%w: tensor<4x3xbf16> {dtc.param = "w"}, %x: tensor<2x4xf32> {dtc.input = "x"})
        -> (tensor<f32> {dtc.output = "loss"}, tensor<4x3xf32> {dtc.output = "grad:w"}) {
      %x16 = dtc.convert %x : (tensor<2x4xf32>) -> tensor<2x4xbf16>
      %y = dtc.einsum "bi,io->bo" %x16, %w : (tensor<2x4xbf16>, tensor<4x3xbf16>) -> tensor<2x3xbf16>
      %loss = dtc.einsum "bo,bo->" %y, %y {wide} : (tensor<2x3xbf16>, tensor<2x3xbf16>) -> tensor<f32>
      %dy = dtc.add %y, %y : tensor<2x3xbf16>
      %dw = dtc.einsum "bi,bo->io" %x16, %dy {wide} : (tensor<2x4xbf16>, tensor<2x3xbf16>) -> tensor<4x3xf32>
      return %loss, %dw : tensor<f32>, tensor<4x3xf32>
    }
    ```

    Master weights; `%g` is a gradient:

    ```mlir
    // Before
    func.func @train_step(%w: tensor<4xf32> {dtc.param = "w"}, %g: tensor<4xf32> {dtc.input = "g"},
                          %rate: tensor<f32>, %factor: tensor<f32>, %apply: tensor<i1>)
        -> (tensor<4xf32> {dtc.updates = 0}) {
      %new_w, %m = dtc.sgd %w, %g, %g, %rate, %factor, %apply {momentum = 0.0, weight_decay = 0.0}
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>)
        -> (tensor<4xf32>, tensor<4xf32>)
      return %new_w : tensor<4xf32>
    }
    // After
    func.func @train_step(%w: tensor<4xbf16> {dtc.param = "w"}, %g: tensor<4xf32> {dtc.input = "g"},
                          %rate: tensor<f32>, %factor: tensor<f32>, %apply: tensor<i1>,
                          %master: tensor<4xf32> {dtc.slot = "master", dtc.slot_of = "w"})
        -> (tensor<4xbf16> {dtc.updates = 0}, tensor<4xf32> {dtc.updates = 5}) {
      %new_master, %m = dtc.sgd %master, %g, %g, %rate, %factor, %apply {momentum = 0.0, weight_decay = 0.0}
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>)
        -> (tensor<4xf32>, tensor<4xf32>)
      %new_w = dtc.convert %new_master : (tensor<4xf32>) -> tensor<4xbf16>
      return %new_w, %new_master : tensor<4xbf16>, tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"dtype", "dtype", "std::string", "\"bf16\"", "bf16 or f16">,
  ];
  let dependentDialects = ["::dtc::DtcDialect"];
}

def NarrowGradientReductionsPass : Pass<"dtc-narrow-gradient-reductions", "::mlir::ModuleOp"> {
  let summary = "Reduce gradients between devices in 16 bits";
  let description = [{
    A gradient is rounded to `dtype` before it is summed between devices, and converted back after the sum: half of the
    bytes move. Each sum is still computed in f32 and rounded once. Sums over microbatches stay f32, whether they come
    after the sum between devices, as in ZeRO stages 2 and 3, or before it.

    ```mlir
    // Before
    dist.mesh @mesh <"dp"=2>
    func.func @train_step(%w: tensor<4xf32>, %g: tensor<4xf32>, %rate: tensor<f32>, %factor: tensor<f32>,
                          %apply: tensor<i1>) -> tensor<4xf32> {
      %sum = dist.all_reduce sum %g over @mesh ["dp"] : tensor<4xf32>
      %new_w, %m = dtc.sgd %w, %sum, %g, %rate, %factor, %apply {momentum = 0.0, weight_decay = 0.0}
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>)
        -> (tensor<4xf32>, tensor<4xf32>)
      return %new_w : tensor<4xf32>
    }
    // After
    dist.mesh @mesh <"dp"=2>
    func.func @train_step(%w: tensor<4xf32>, %g: tensor<4xf32>, %rate: tensor<f32>, %factor: tensor<f32>,
                          %apply: tensor<i1>) -> tensor<4xf32> {
      %g16 = dtc.convert %g : (tensor<4xf32>) -> tensor<4xbf16>
      %sum16 = dist.all_reduce sum %g16 over @mesh ["dp"] : tensor<4xbf16>
      %sum = dtc.convert %sum16 : (tensor<4xbf16>) -> tensor<4xf32>
      %new_w, %m = dtc.sgd %w, %sum, %g, %rate, %factor, %apply {momentum = 0.0, weight_decay = 0.0}
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>)
        -> (tensor<4xf32>, tensor<4xf32>)
      return %new_w : tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"dtype", "dtype", "std::string", "\"bf16\"", "bf16 or f16">,
  ];
  let dependentDialects = ["::dtc::DtcDialect", "::dtc::dist::DistDialect"];
}

def VerifyPrecisionPass : Pass<"dtc-verify-precision", "::mlir::ModuleOp"> {
  let summary = "Verify that ops which need f32 compute in f32";
  let description = [{
    Reports an error for each op that needs f32 and computes on 16-bit floats (`exp`, `log`, `sqrt`, `rsqrt`), and,
    unless `allow-narrow-reductions`, for each gradient that is summed between devices in 16 bits. (That kernels sum and
    norms divide in f32, and that sums over microbatches and optimizers are f32, follows from the types of the ops.)

    ```mlir
    // Before
    func.func @loss(%x: tensor<4xbf16>) -> tensor<4xbf16> {
      %0 = dtc.exp %x : tensor<4xbf16>
      return %0 : tensor<4xbf16>
    }
    // Error: 'dtc.exp' op computes on 16-bit floats, in which it loses too much; convert its operand to f32 first
    ```
  }];
  let options = [
    Option<"allowNarrowReductions", "allow-narrow-reductions", "bool", "false",
      "gradients may be summed between devices in 16 bits">,
  ];
}

def NameDimensionsPass : Pass<"dtc-name-dimensions", "::mlir::ModuleOp"> {
  let summary = "Give logical axes to dimensions that the axis map names by argument";
  let description = [{
    The key of an axis-map entry may be a dimension of an argument: `layers.0.weight#1=tp` is about dimension 1 of the
    parameter or input "layers.0.weight", in the shape that weights files have; a component `*` of the name matches any
    number. The key becomes the logical axis (`dtc.axes`) of the dimension and replaces the one that it may have. From
    then on the entry is like any other.

    It runs after `dtc-fold-parameter-reshapes`. A name that matches no argument, a dimension that does not exist, and
    two entries for one dimension are errors.

    ```mlir
    // dtc-opt --dtc-name-dimensions="shard=h.*.w#1=tp"
    // Before
    func.func @loss(%w0: tensor<8x4xf32> {dtc.param = "h.0.w"},
                    %w1: tensor<8x4xf32> {dtc.param = "h.1.w", dtc.axes = ["embed", "mlp"]}) {
      return
    }
    // After
    func.func @loss(%w0: tensor<8x4xf32> {dtc.param = "h.0.w", dtc.axes = ["", "h.*.w#1"]},
                    %w1: tensor<8x4xf32> {dtc.param = "h.1.w", dtc.axes = ["embed", "h.*.w#1"]}) {
      return
    }
    ```
  }];
  let options = [
    ListOption<"shard", "shard", "std::string",
      "as for dtc-propagate-shardings; entries for logical axes are left alone">,
  ];
  let dependentDialects = ["::dtc::DtcDialect"];
}

def SplitMeshAxesPass : Pass<"dtc-split-mesh-axes", "::mlir::ModuleOp"> {
  let summary = "Split mesh axes into sub-axes where a dimension is smaller than the axis";
  let description = [{
    Two key-value heads cannot be split by an axis `tp=4`, only by a part of it, and are replicated over the rest. `tp`
    becomes `tp.0=2` and `tp.1=2`: key-value heads are split by the first sub-axis, query heads by both. Shardings in
    the module and axis-map entries that name `tp` then mean both.

    ```mlir
    // dtc-opt --dtc-split-mesh-axes="shard=heads=tp,kv_heads=tp"
    // Before
    dist.mesh @mesh <"tp"=4>
    func.func @loss(%q: tensor<4x8xf32> {dtc.param = "q", dtc.axes = ["heads", ""]},
                    %k: tensor<2x8xf32> {dtc.param = "k", dtc.axes = ["kv_heads", ""]},
                    %x: tensor<8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"tp"} ]>}) {
      return
    }
    // After
    dist.mesh @mesh <"tp.0"=2 of "tp", "tp.1"=2 of "tp">
    func.func @loss(%q: tensor<4x8xf32> {dtc.param = "q", dtc.axes = ["heads", ""]},
                    %k: tensor<2x8xf32> {dtc.param = "k", dtc.axes = ["kv_heads", ""]},
                    %x: tensor<8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"tp.0", "tp.1"} ]>}) {
      return
    }
    ```
  }];
  let options = [
    ListOption<"shard", "shard", "std::string", "as for dtc-propagate-shardings">,
    ListOption<"defaultShard", "default-shard", "std::string", "as for dtc-propagate-shardings">,
    ListOption<"whole", "whole", "std::string",
      "logical axes that are of no use replicated, such as batch: no mesh axis is split for them, nor for first "
      "dimensions of inputs that the axis map names by argument">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def PropagateShardingsPass : Pass<"dtc-propagate-shardings", "::mlir::ModuleOp"> {
  let summary = "Derive the sharding of every value, and the mesh axes of every op's factors";
  let description = [{
    Starts from the shardings that are written in the IR (`dist.sharding` on arguments, results and ops, and
    `dist.constrain`), whose closed dimensions are never changed, and from the axis map, which gives mesh axes to
    logical axes (`dtc.axes`). Follows the factors of each op, forwards and backwards, in nested propagation levels,
    each to a fixpoint: requests of priority 0, then of priority 1, and so on; within one priority, first ops that pass
    dimensions through, then those that reduce some, and last ops whose tensors are in conflict. A conflict is resolved
    by estimated time, with a remark.

    The mesh axes that split each op's factors are left in `dist.factors` for `dtc-insert-reshards`.

    An op that needs all of a sharded dimension on one device is replaced by simpler ops (its `decompose`) where it can
    be. Dimensions that the axes do not divide are padded, with a remark. A mesh axis that splits nothing in the end is
    a warning.

    With a `zero-stage` the optimizer state (1), the gradients (2) and the parameters (3) are sharded over `zero-axes`
    as well (Rajbhandari et al. 2020).

    ```mlir
    // dtc-opt --dtc-propagate-shardings="shard=mlp=tp"
    // Before
    dist.mesh @mesh <"tp"=2>
    func.func @loss(%x: tensor<4x8xf32> {dtc.input = "x"},
                    %w: tensor<8x6xf32> {dtc.param = "w", dtc.axes = ["", "mlp"]}) -> tensor<4x6xf32> {
      %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
      return %0 : tensor<4x6xf32>
    }
    // After
    dist.mesh @mesh <"tp"=2>
    func.func @loss(%x: tensor<4x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {} ]>},
                    %w: tensor<8x6xf32> {dtc.param = "w", dtc.axes = ["", "mlp"],
                                         dist.sharding = #dist.sharding<@mesh, [{}, {"tp"} ]>}) -> tensor<4x6xf32> {
      %0 = dtc.einsum "bi,io->bo" %x, %w {dist.factors = [[], [], ["tp"]],
                                          dist.sharding = #dist.sharding<@mesh, [{}, {"tp"} ]>}
        : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
      return %0 : tensor<4x6xf32>
    }
    ```
  }];
  let options = [
    ListOption<"shard", "shard", "std::string",
      "logical axis = mesh axes, such as batch=dp+micro, or residual_seq=tp@1 for priority 1; a dimension that is not "
      "split at all is an error, and so is an axis that the model does not have">,
    ListOption<"defaultShard", "default-shard", "std::string",
      "as shard, for logical axes that it does not name; dimensions that are too small are not split">,
    ListOption<"mustSplit", "must-split", "std::string",
      "logical axes of default-shard for which a dimension that is too small is an error">,
    ListOption<"batchAxes", "batch-axes", "std::string",
      "mesh axes of microbatches: they split the batch as well, after the axes that shard names for it">,
    Option<"zeroStage", "zero-stage", "int64_t", "0", "0 to 3">,
    ListOption<"zeroAxes", "zero-axes", "std::string", "the mesh axes over which ZeRO shards">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def PartitionStagesPass : Pass<"dtc-partition-stages", "::mlir::ModuleOp"> {
  let summary = "Partition a function into pipeline stages";
  let description = [{
    Gives each op that works on a microbatch a `dist.stage`: its stage, and whether it runs in the forward pass or in
    the backward pass. The ops of the loss, in their order, are cut into `chunks` stages for each device of the mesh's
    pipeline axis. The cuts are those for which the slowest stage takes the least time. The time of a stage is that of
    its ops with their gradients, and that of the link for the values that cross its ends: at most 2% of the mean stage,
    since messages overlap with computation. Of all such cuts, those are taken that send the fewest bytes. Ops of the
    backward pass follow the op whose gradients they compute (`dtc.gradient_of`).

    Without a pipeline axis there is one stage, and the result says which ops run in the forward pass and which in the
    backward pass.

    An op that does not work on a microbatch has no stage: it runs once a step, on each device that needs its result. So
    do the sums of the gradients of a parameter that several stages use.

    With `stages` the user gives the stages: for each stage, separated by `|`, names of layers and ranges of them,
    separated by commas, such as `wte,h.0-h.3|h.4-h.7,ln_f`. Ops of layers that are not named belong to the stage of the
    op before them.

    The ops of a program that has no backward pass may be numbered (`dtc.op`). Then `dist.stage_starts` of the function
    has the number of the first op of each stage but the first. With these numbers as `starts`, another program that was
    made from the same model is cut at the same places.

    ```mlir
    // Before
    dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
    func.func @loss(%x: tensor<4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"micro"} ]>})
        -> (tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{"micro"} ]>}) {
      %0 = dtc.exp %x {dist.sharding = #dist.sharding<@mesh, [{"micro"} ]>} : tensor<4xf32>
      %1 = dtc.tanh %0 {dist.sharding = #dist.sharding<@mesh, [{"micro"} ]>} : tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    // After
    dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
    func.func @loss(%x: tensor<4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"micro"} ]>})
        -> (tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{"micro"} ]>}) {
      %0 = dtc.exp %x {dist.sharding = #dist.sharding<@mesh, [{"micro"} ]>,
                       dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
      %1 = dtc.tanh %0 {dist.sharding = #dist.sharding<@mesh, [{"micro"} ]>,
                        dist.stage = #dist.stage<1 forward>} : tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"chunks", "chunks", "int64_t", "1", "stages of one device">,
    Option<"stages", "stages", "std::string", "\"\"", "the layers of each stage">,
    ListOption<"starts", "starts", "int64_t", "the number of the first op of each stage but the first">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def InsertReshardsPass : Pass<"dtc-insert-reshards", "::mlir::ModuleOp"> {
  let summary = "Make every change of layout an op";
  let description = [{
    Chooses for each op the mesh axes that split its factors, and inserts a `dist.reshard` where an operand has another
    layout. After it, the shardings of an op's operands and results follow from one assignment of axes to its factors; a
    factor that is summed leaves its axes as partial axes of the results. Partial values flow through ops that are
    linear in them and do not make them larger, and are reduced once where that ends.

    `dist.reason` says why a reshard is there and what would remove it; `dtc-plan explain` shows it.

    ```mlir
    // Before
    dist.mesh @mesh <"tp"=2>
    func.func @loss(%x: tensor<4x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"} ]>})
        -> (tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{} ]>}) {
      %0 = dtc.reduce sum %x dims [1] {dist.sharding = #dist.sharding<@mesh, [{} ]>}
        : (tensor<4x8xf32>) -> tensor<4xf32>
      %1 = dtc.exp %0 {dist.sharding = #dist.sharding<@mesh, [{} ]>} : tensor<4xf32> loc("act")
      return %1 : tensor<4xf32>
    }
    // After
    dist.mesh @mesh <"tp"=2>
    func.func @loss(%x: tensor<4x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"} ]>})
        -> (tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{} ]>}) {
      %0 = dtc.reduce sum %x dims [1] {dist.sharding = #dist.sharding<@mesh, [{} ], partial = sum{"tp"}>}
        : (tensor<4x8xf32>) -> tensor<4xf32>
      %1 = dist.reshard %0 from <@mesh, [{} ], partial = sum{"tp"}> to <@mesh, [{} ]> {
        dist.reason = {consumer = "dtc.exp in act", from = "[{} ] partial sum{\22tp\22}",
          remedy = "it is a sum over {\22tp\22}, which split a dimension that was reduced; keep that dimension whole",
          to = "[{} ]", value = "result of dtc.reduce"},
        dist.sharding = #dist.sharding<@mesh, [{} ]>} : tensor<4xf32>
      %2 = dtc.exp %1 {dist.sharding = #dist.sharding<@mesh, [{} ]>} : tensor<4xf32>
      return %2 : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def PrintShardingsPass : Pass<"dtc-print-shardings", "::mlir::ModuleOp"> {
  let summary = "Print the shardings of a program as a table";
  let description = [{
    Prints, on the standard output, the layout of the values of the global view: for each parameter the global shape,
    the sharding, the shape and the bytes of a device's shard and what is padded; the optimizer state where it differs
    from its parameter; the inputs; and the results of ops. Rows are grouped by layer, the name of a location up to its
    first number; a number in parentheses counts equal rows; successive layers that are alike are printed once.

    It runs after `dtc-propagate-shardings`, or after `dtc-insert-reshards`, where partial sums are shown as well. The
    program does not change; `-o` writes it to a file, so that the standard output has only the table.

    ```mlir
    // Before
    dist.mesh @mesh <"tp"=2>
    func.func @loss(%w: tensor<8x6xf32> {dtc.param = "w", dist.sharding = #dist.sharding<@mesh, [{}, {"tp"} ]>})
        -> (tensor<8x6xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"} ]>}) {
      %0 = dtc.exp %w {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"} ]>} : tensor<8x6xf32> loc("h.0")
      return %0 : tensor<8x6xf32>
    }
    // Prints
    // @loss on mesh tp=2: 2 devices
    //
    //   parameter  shape    sharding      local shape  bytes  padding
    //   w          8x6xf32  [{}, {"tp"} ]  8x3xf32      96
    // parameters: 1 tensor, 48 elements, 96 bytes on each device
    //
    //   activation  in  shape    sharding      local shape  bytes  padding
    // h.0
    //   dtc.exp         8x6xf32  [{}, {"tp"} ]  8x3xf32      96
    ```
  }];
}

def SpmdPartitionPass : Pass<"dtc-spmd-partition", "::mlir::ModuleOp"> {
  let summary = "Partition the global view into the local view";
  let description = [{
    Gives every value its local shape, turns each `dist.reshard` into collectives, shifts indices into sharded factors
    to the start of the shard, and moves the ops that run once for each microbatch into a `dist.microbatch_loop`. A
    program in which the computation of a microbatch needs the result of a sum over microbatches is refused, with the op
    named.

    ```mlir
    // Before
    dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
    func.func @loss(%x: tensor<8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"} ]>})
        -> (tensor<f32> {dtc.output = "y", dist.sharding = #dist.sharding<@mesh, []>}) {
      %0 = dtc.reduce sum %x dims [0] {dist.sharding = #dist.sharding<@mesh, [], partial = sum{"dp", "micro"}>}
        : (tensor<8xf32>) -> tensor<f32>
      %1 = dist.reshard %0 from <@mesh, [], partial = sum{"dp", "micro"}> to <@mesh, []>
        {dist.sharding = #dist.sharding<@mesh, []>} : tensor<f32>
      return %1 : tensor<f32>
    }
    // After
    dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
    func.func @loss(%x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 8>,
                                       dist.sharding = #dist.sharding<@mesh, [{"dp"} ]>})
        -> (tensor<f32> {dtc.output = "y", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>}) {
      %0 = dist.microbatch_loop @mesh "micro" : tensor<f32> {
        %2 = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<4xf32>) -> tensor<2xf32>
        %3 = dtc.reduce sum %2 dims [0] : (tensor<2xf32>) -> tensor<f32>
        dist.yield %3 : tensor<f32>
      }
      %1 = dist.all_reduce sum %0 over @mesh ["dp"] : tensor<f32>
      return %1 : tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def BuildEvaluationPass : Pass<"dtc-build-evaluation", "::mlir::ModuleOp"> {
  let summary = "Build the evaluation function from a partitioned train step";
  let description = [{
    Reduces the train step to @evaluate, which returns the loss alone: the forward pass without dropout, with the
    shardings and the stages of training. It has all states of the train step and changes none.

    ```mlir
    // Before
    dist.mesh @mesh <>
    func.func @train_step(%w: tensor<4xf32> {dtc.param = "w", dtc.global_shape = array<i64: 4>,
                                             dist.sharding = #dist.sharding<@mesh, [{} ]>})
        -> (tensor<f32> {dtc.output = "loss", dtc.global_shape = array<i64>,
                         dist.sharding = #dist.sharding<@mesh, []>},
            tensor<4xf32> {dtc.updates = 0, dtc.global_shape = array<i64: 4>,
                           dist.sharding = #dist.sharding<@mesh, [{} ]>}) {
      %loss = dtc.reduce sum %w dims [0] : (tensor<4xf32>) -> tensor<f32>
      %new_w = dtc.neg %w : tensor<4xf32>
      return %loss, %new_w : tensor<f32>, tensor<4xf32>
    }
    // After
    dist.mesh @mesh <>
    func.func @evaluate(%w: tensor<4xf32> {dtc.param = "w", dtc.global_shape = array<i64: 4>,
                                           dist.sharding = #dist.sharding<@mesh, [{} ]>})
        -> (tensor<f32> {dtc.output = "loss", dtc.global_shape = array<i64>,
                         dist.sharding = #dist.sharding<@mesh, []>}) {
      %loss = dtc.reduce sum %w dims [0] : (tensor<4xf32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def BuildGenerationPass : Pass<"dtc-build-generation", "::mlir::ModuleOp"> {
  let summary = "Build the function for the logits of the next token from a loss";
  let description = [{
    The function of a loss, of one input of tokens `i32[batch, seq]`, becomes a function of the logits at one position
    of each sample, `positions i32[batch]`. The keys and values of each `dtc.attention` are stored in caches as long as
    the sequence, arguments with `dtc.cache` that the function updates. `phase` is

    * `prefill`: @prefill takes whole sequences of tokens, fills the caches and returns the logits at `positions`.
      Tokens after these positions have no influence on the logits;
    * `decode`: @decode takes the one token at `positions`, adds its keys and values to the caches and returns its
      logits.

    Dropout is left out. All ops but causal attention must compute each position from that position alone.

    ```mlir
    // dtc-opt --dtc-build-generation=phase=decode
    // Before
    func.func @loss(%wte: tensor<64x4xf32> {dtc.param = "wte"}, %tokens: tensor<2x8xi32> {dtc.input = "tokens"})
        -> tensor<f32> {
      %x = dtc.embedding %wte, %tokens : (tensor<64x4xf32>, tensor<2x8xi32>) -> tensor<2x8x4xf32>
      %q = dtc.reshape %x : (tensor<2x8x4xf32>) -> tensor<2x8x1x4xf32>
      %a, %lse = dtc.attention %q, %q, %q {causal = true, scale = 0.5}
        : (tensor<2x8x1x4xf32>, tensor<2x8x1x4xf32>, tensor<2x8x1x4xf32>) -> (tensor<2x8x1x4xf32>, tensor<2x1x8xf32>)
      %y = dtc.reshape %a : (tensor<2x8x1x4xf32>) -> tensor<2x8x4xf32>
      %losses, %z = dtc.cross_entropy %y, %tokens
        : (tensor<2x8x4xf32>, tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
      %loss = dtc.reduce sum %losses dims [0, 1] : (tensor<2x8xf32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    // After
    func.func @decode(%wte: tensor<64x4xf32> {dtc.param = "wte"}, %positions: tensor<2xi32> {dtc.input = "positions"},
                      %token: tensor<2x1xi32> {dtc.input = "tokens"},
                      %keys: tensor<2x8x1x4xf32> {dtc.cache = "attention.keys"},
                      %values: tensor<2x8x1x4xf32> {dtc.cache = "attention.values"})
        -> (tensor<2x1x4xf32> {dtc.output = "logits"}, tensor<2x8x1x4xf32> {dtc.updates = 3},
            tensor<2x8x1x4xf32> {dtc.updates = 4}) {
      %x = dtc.embedding %wte, %token {dtc.op = 0} : (tensor<64x4xf32>, tensor<2x1xi32>) -> tensor<2x1x4xf32>
      %q = dtc.reshape %x {dtc.op = 1} : (tensor<2x1x4xf32>) -> tensor<2x1x1x4xf32>
      %k = dtc.cache_update %keys, %q, %positions {dtc.op = 2}
        : (tensor<2x8x1x4xf32>, tensor<2x1x1x4xf32>, tensor<2xi32>) -> tensor<2x8x1x4xf32>
      %v = dtc.cache_update %values, %q, %positions {dtc.op = 2}
        : (tensor<2x8x1x4xf32>, tensor<2x1x1x4xf32>, tensor<2xi32>) -> tensor<2x8x1x4xf32>
      %a = dtc.cached_attention %q, %k, %v, %positions {dtc.op = 2, scale = 0.5}
        : (tensor<2x1x1x4xf32>, tensor<2x8x1x4xf32>, tensor<2x8x1x4xf32>, tensor<2xi32>) -> tensor<2x1x1x4xf32>
      %y = dtc.reshape %a {dtc.op = 3} : (tensor<2x1x1x4xf32>) -> tensor<2x1x4xf32>
      return %y, %k, %v : tensor<2x1x4xf32>, tensor<2x8x1x4xf32>, tensor<2x8x1x4xf32>
    }
    ```
  }];
  let options = [
    Option<"phase", "phase", "std::string", "\"prefill\"", "prefill or decode">,
  ];
  let dependentDialects = ["::dtc::DtcDialect"];
}

def RegatherParametersPass : Pass<"dtc-regather-parameters", "::mlir::ModuleOp"> {
  let summary = "Gather parameters before each use by a layer, and free them after it";
  let description = [{
    A parameter that is gathered over one of `axes` is gathered again for each layer use, in the forward pass and in the
    backward pass, instead of being kept between them (ZeRO stage 3, fully sharded data parallelism). A layer use is a
    run of ops that read gathered parameters, belong to one stage, and have locations that name one layer: up to the
    first number in the name. Gathers of one layer use share buckets. They are placed before the layer use that is
    `prefetch` uses earlier, so that they overlap with its computation.

    ```mlir
    // dtc-opt --dtc-regather-parameters="axes=dp prefetch=0"
    // Before
    dist.mesh @mesh <"dp"=2>
    func.func @train_step(%x: tensor<8xf32>, %w: tensor<4xf32> {dtc.param = "w"}) -> tensor<8xf32> {
      %w1 = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
      %0 = dtc.mul %x, %w1 : tensor<8xf32> loc("h.0")
      %1 = dtc.mul %0, %w1 : tensor<8xf32> loc("h.1")
      return %1 : tensor<8xf32>
    }
    // After
    dist.mesh @mesh <"dp"=2>
    func.func @train_step(%x: tensor<8xf32>, %w: tensor<4xf32> {dtc.param = "w"}) -> tensor<8xf32> {
      %w1 = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
      %0 = dtc.mul %x, %w1 : tensor<8xf32>
      %w2 = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
      %1 = dtc.mul %0, %w2 : tensor<8xf32>
      return %1 : tensor<8xf32>
    }
    ```
  }];
  let options = [
    ListOption<"axes", "axes", "std::string", "mesh axes over which parameters are gathered for each layer use">,
    Option<"bucketBytes", "bucket-bytes", "int64_t", "26214400", "largest sum of the gathered bytes of a bucket">,
    Option<"prefetch", "prefetch", "int64_t", "1", "the number of layer uses by which gathers start ahead">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def RecomputeActivationsPass : Pass<"dtc-recompute-activations", "::mlir::ModuleOp"> {
  let summary = "Recompute activations in the backward pass";
  let description = [{
    Copies ops of the forward pass to just before the ops of the backward pass that use their results, instead of saving
    these (Chen et al. 2016). The copies compute with the same operands, so that no bit of the result changes. `mode` is

    * `none`: nothing is recomputed;
    * `selective`: activations are recomputed that cost little for the bytes that need not be saved then (after
      Korthikanti et al. 2022), where that lowers the sum of saved bytes. If some contractions make a large result from
      small operands, as that of the scores of attention does (a result of more bytes than the operands, for fewer than
      a quarter of the FLOPs per byte that the products with parameters take on average), these are recomputed, and the
      ops after each up to the next contraction (section 5). In other programs, ops are recomputed that take fewer than
      two FLOPs for each byte that they read or write. Activations that are gathered from other devices are gathered
      again (section 4.2.2). Projections, the other products of a layer and other collectives are not repeated;
    * `full`: only what goes from one layer to another is saved; all else is recomputed, collectives too;
    * `auto`: as little is recomputed as lets a device save at most `keep-bytes`, counting the microbatches that the
      schedule has in flight. What goes from one layer to another is saved. A collective costs the time that it takes.

    Layers are those that locations name; where they name none, the program is cut into about as many parts as each has
    ops.

    In a pipeline the bytes are those of all stages of a device together. Ops need a `dist.stage`, also without a
    pipeline. It runs before `dtc-regather-parameters`, so that recomputed ops that use sharded parameters gather these
    again.

    A loop over one microbatch that no pipeline needs becomes its body, unless `keep-loop`.

    ```mlir
    // dtc-opt --dtc-recompute-activations=mode=full
    // Before
    dist.mesh @mesh <"micro"=1 temporal>
    func.func @train_step(%x: tensor<4xf32> {dtc.input = "x"}) -> tensor<4xf32> {
      %0 = dist.microbatch_loop @mesh "micro" : tensor<4xf32> {
        %1 = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
        %2 = dtc.mul %1, %1 {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
        dist.yield %2 : tensor<4xf32>
      }
      return %0 : tensor<4xf32>
    }
    // After
    dist.mesh @mesh <"micro"=1 temporal>
    func.func @train_step(%x: tensor<4xf32> {dtc.input = "x"}) -> tensor<4xf32> {
      %0 = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
      %1 = dtc.exp %x {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
      %2 = dtc.mul %1, %1 {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
      return %2 : tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"selective\"", "none, selective, full or auto">,
    ListOption<"keepBytes", "keep-bytes", "int64_t",
      "the most bytes that each device saves, in the order of coordinates on the pipeline axis; the last holds for "
      "those that follow">,
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "as for dtc-schedule-pipeline">,
    Option<"chunks", "chunks", "int64_t", "1", "stages of one device">,
    Option<"keepLoop", "keep-loop", "bool", "false",
      "keep a loop over one microbatch, which is repeated for each batch of a step">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def SchedulePipelinePass : Pass<"dtc-schedule-pipeline", "::mlir::ModuleOp"> {
  let summary = "Create and schedule the functions of a pipeline's devices";
  let description = [{
    From the local view of the whole program, whose ops have a `dist.stage`, makes a function for each coordinate on the
    pipeline axis. Its microbatch loop holds a `dist.fragment` for each forward, backward or weight pass over a stage of
    the device, and a `dist.send` or `dist.receive` for each value that another device needs or makes. An op without a
    stage is copied to where its result is needed; but an op that runs once a step and whose result is smaller than its
    operands runs in one place, and the result is sent.

    The order of the fragments follows from the schedule rule: `naive` (one microbatch at a time), `gpipe` (Huang et al.
    2019), `1f1b` and `interleaved` (Narayanan et al. 2021, section 2.2), `zb-h1` (Qi et al. 2023) and `zb-v` (Qi et al.
    2024). The last two run the weight pass, the part of the backward pass that no other stage waits for, when a device
    has nothing better to do. A receive is posted so early that no send has to wait for it, if ops take as long as
    estimated; the order cannot deadlock, whatever they take.

    ```mlir
    // dtc-opt --dtc-schedule-pipeline=schedule=gpipe
    // Before
    dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
    func.func @loss(%x: tensor<4xf32> {dtc.input = "x"}) -> (tensor<4xf32> {dtc.output = "y"}) {
      %0 = dist.microbatch_loop @mesh "micro" : tensor<4xf32> {
        %1 = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
        %2 = dtc.neg %1 {dist.stage = #dist.stage<1 forward>} : tensor<4xf32>
        dist.yield %2 : tensor<4xf32>
      }
      return %0 : tensor<4xf32>
    }
    // After
    dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
    func.func @loss.0(%x: tensor<4xf32> {dtc.input = "x"})
        attributes {dist.pipeline = {schedule = "gpipe", stages = 2}} {
      dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0, 0, 1, 1, 0, 1, 1>} {
        %0 = dist.fragment forward 0 -> tensor<4xf32> {
          %1 = dtc.exp %x : tensor<4xf32>
          dist.yield %1 : tensor<4xf32>
        }
        dist.send %0 to 1 channel 0 : tensor<4xf32>
      }
      return
    }
    func.func @loss.1() -> (tensor<4xf32> {dtc.output = "y"})
        attributes {dist.pipeline = {schedule = "gpipe", stages = 2}} {
      %0 = dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0, 0, 1, 1, 0, 1, 1>}
          : tensor<4xf32> {
        %1 = dist.receive from 0 channel 0 : tensor<4xf32>
        %2 = dist.fragment forward 1 -> tensor<4xf32> {
          %3 = dtc.neg %1 : tensor<4xf32>
          dist.yield %3 : tensor<4xf32>
        }
        dist.yield %2 : tensor<4xf32>
      }
      return %0 : tensor<4xf32>
    }
    ```

    The `schedule` of a loop is a list of pairs: the number of an op of the loop, and a microbatch.
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "naive, gpipe, 1f1b, interleaved, zb-h1 or zb-v">,
    Option<"chunks", "chunks", "int64_t", "1", "stages of one device">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def OptimizeCollectivesPass : Pass<"dtc-optimize-collectives", "::mlir::ModuleOp"> {
  let summary = "Hoist collectives and merge them into buckets";
  let description = [{
    Each collective moves to just after the op that makes its operand; one whose operand is made outside the block stays
    where it is. A gather in the backward pass of what the forward pass made moves to before the matrix product before
    it, with which it overlaps. Collectives of one kind over the same axes that are small become a `dist.bucket`, which
    is closed when it has `bucket-bytes` or when one of its results is needed.

    ```mlir
    // Before
    dist.mesh @mesh <"dp"=2>
    func.func @train_step(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = dtc.exp %x : tensor<4xf32>
      %1 = dtc.neg %x : tensor<4xf32>
      %2 = dtc.abs %x : tensor<4xf32>
      %3 = dist.all_reduce sum %0 over @mesh ["dp"] : tensor<4xf32>
      %4 = dist.all_reduce sum %1 over @mesh ["dp"] : tensor<4xf32>
      %5 = dtc.add %2, %4 : tensor<4xf32>
      return %3, %5 : tensor<4xf32>, tensor<4xf32>
    }
    // After
    dist.mesh @mesh <"dp"=2>
    func.func @train_step(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = dtc.exp %x : tensor<4xf32>
      %1 = dtc.neg %x : tensor<4xf32>
      %sums:2 = dist.bucket -> tensor<4xf32>, tensor<4xf32> {
        %3 = dist.all_reduce sum %0 over @mesh ["dp"] : tensor<4xf32>
        %4 = dist.all_reduce sum %1 over @mesh ["dp"] : tensor<4xf32>
        dist.yield %3, %4 : tensor<4xf32>, tensor<4xf32>
      }
      %2 = dtc.abs %x : tensor<4xf32>
      %5 = dtc.add %2, %sums#1 : tensor<4xf32>
      return %sums#0, %5 : tensor<4xf32>, tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"bucketBytes", "bucket-bytes", "int64_t", "26214400",
      "bytes at which a bucket is closed, and from which a collective stays alone; 0 makes no buckets">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect"];
}

def LowerToExecPass : Pass<"dtc-lower-to-exec", "::mlir::ModuleOp"> {
  let summary = "Lower tensors to kernels on buffers";
  let description = [{
    Makes one `exec.program` from the function of the local view: a buffer for each value, in place where the kernel can
    and the operand is not needed any more, a kernel or collective for each op, and tasks before, in and after the
    microbatch loop. Broadcasts that are read only by kernels which can repeat an operand themselves are folded into
    these.

    ```mlir
    // Before
    dist.mesh @mesh <>
    func.func @loss(%x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4>,
                                       dist.sharding = #dist.sharding<@mesh, [{} ]>})
        -> (tensor<4xf32> {dtc.output = "y", dtc.global_shape = array<i64: 4>,
                           dist.sharding = #dist.sharding<@mesh, [{} ]>}) {
      %0 = dtc.exp %x : tensor<4xf32>
      %1 = dtc.neg %0 : tensor<4xf32>
      %2 = dtc.exp %1 : tensor<4xf32>
      return %2 : tensor<4xf32>
    }
    // After
    dist.mesh @mesh <>
    exec.program @loss on @mesh {
      %x = exec.buffer input : memref<4xf32>
      exec.input "data" "x" = %x shape [4] sharding <@mesh, [{} ]> : memref<4xf32>
      %0 = exec.buffer activation : memref<4xf32>
      %1 = exec.reuse %0 : memref<4xf32>
      %2 = exec.buffer output : memref<4xf32>
      exec.output "y" = %2 shape [4] sharding <@mesh, [{} ]> : memref<4xf32>
      exec.task @step seconds 6.4e-11 {
        exec.kernel "exp"(%x) to(%0) {} {flops = 4.0} : (memref<4xf32>) -> memref<4xf32>
        exec.kernel "neg"(%0) to(%1) {} {flops = 4.0} : (memref<4xf32>) -> memref<4xf32>
        exec.kernel "exp"(%1) to(%2) {} {flops = 4.0} : (memref<4xf32>) -> memref<4xf32>
      }
      exec.run @step
    }
    ```
  }];
  let options = [
    Option<"keepSums", "keep-sums", "bool", "false",
      "add up the results of a loop over one microbatch too, for gradient accumulation over several batches">,
  ];
  let dependentDialects = ["::dtc::exec::ExecDialect", "::mlir::memref::MemRefDialect"];
}

def OverlapCollectivesPass : Pass<"dtc-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "Overlap collectives with kernels";
  let description = [{
    A collective becomes asynchronous if some kernel comes before the first instruction that needs its outputs or
    overwrites its inputs: it starts where it was, and runs at the same time as the instructions after it. An
    `exec.wait` comes before the first instruction that must not run before its end, or at the end of the task. Of
    collectives whose inputs are memory that could be used again, such as gradients that are scattered, at most two are
    running or queued: before a third starts, the first is waited for.

    ```mlir
    // Before
    dist.mesh @mesh <"dp"=2>
    exec.program @train_step on @mesh {
      %0 = exec.buffer activation : memref<4xf32>
      %1 = exec.buffer activation : memref<8xf32>
      %2 = exec.buffer activation : memref<4xf32>
      exec.task @step {
        exec.collective all_gather over ["dp"](%0) to(%1) dims [0] split_dims [0] : (memref<4xf32>) -> memref<8xf32>
        exec.kernel "exp"(%0) to(%2) {} : (memref<4xf32>) -> memref<4xf32>
        exec.kernel "neg"(%1) to(%1) {} : (memref<8xf32>) -> memref<8xf32>
      }
      exec.run @step
    }
    // After
    dist.mesh @mesh <"dp"=2>
    exec.program @train_step on @mesh {
      %0 = exec.buffer activation : memref<4xf32>
      %1 = exec.buffer activation : memref<8xf32>
      %2 = exec.buffer activation : memref<4xf32>
      exec.task @step {
        %t = exec.collective all_gather over ["dp"](%0) to(%1) dims [0] split_dims [0]
          : (memref<4xf32>) -> memref<8xf32> async !exec.token
        exec.kernel "exp"(%0) to(%2) {} : (memref<4xf32>) -> memref<4xf32>
        exec.wait %t
        exec.kernel "neg"(%1) to(%1) {} : (memref<8xf32>) -> memref<8xf32>
      }
      exec.run @step
    }
    ```
  }];
  let dependentDialects = ["::dtc::exec::ExecDialect"];
}

def PlanMemoryPass : Pass<"dtc-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Assign every buffer an offset in the arena";
  let description = [{
    Live ranges follow from the order of the tasks; a buffer that a repeated task reads from outside is live during all
    its executions. A buffer of which each microbatch has its own gets as many slots as there are microbatches at once
    between its first use and its last; buffers of several stages of a device share slots where that saves any. The size
    of the arena and the lower bound go to the program's attributes.

    ```mlir
    // Before
    dist.mesh @mesh <>
    exec.program @train_step on @mesh {
      %0 = exec.buffer activation : memref<16xf32>
      %1 = exec.buffer activation : memref<f32>
      %2 = exec.buffer activation : memref<16xf32>
      exec.task @step {
        exec.kernel "fill"() to(%0) {} : () -> memref<16xf32>
        exec.kernel "reduce"(%0) to(%1) {} : (memref<16xf32>) -> memref<f32>
        exec.kernel "broadcast"(%1) to(%2) {} : (memref<f32>) -> memref<16xf32>
      }
      exec.run @step
    }
    // After
    dist.mesh @mesh <>
    exec.program @train_step on @mesh
        attributes {arena_bytes = 128, arena_lower_bound = 128, memory_by_kind = {activation = 128}} {
      %0 = exec.buffer activation at 0 : memref<16xf32>
      %1 = exec.buffer activation at 64 : memref<f32>
      %2 = exec.buffer activation at 0 : memref<16xf32>
      exec.task @step {
        exec.kernel "fill"() to(%0) {} : () -> memref<16xf32>
        exec.kernel "reduce"(%0) to(%1) {} : (memref<16xf32>) -> memref<f32>
        exec.kernel "broadcast"(%1) to(%2) {} : (memref<f32>) -> memref<16xf32>
      }
      exec.run @step
    }
    ```
  }];
  let dependentDialects = ["::dtc::exec::ExecDialect"];
}

#endif // DTC_COMPILER_PASSES_PASSES_TD
