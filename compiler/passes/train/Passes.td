//===- Passes.td - Passes that build steps -----------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_TRAIN_PASSES_TD
#define DTC_COMPILER_PASSES_TRAIN_PASSES_TD

include "mlir/Pass/PassBase.td"

def FoldParameterReshapesPass : Pass<"dtc-fold-parameter-reshapes", "::mlir::ModuleOp"> {
  let summary = "Give parameters the shape in which the function uses them";
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

def ChunkLossPass : Pass<"dtc-chunk-loss", "::mlir::ModuleOp"> {
  let summary = "Compute a loss in chunks of tokens";
  let description = [{
    Computes each `dtc.cross_entropy`, what is as large as its logits, the product that makes these, and what follows up
    to sums over tokens, once for each of `chunks` chunks of the tokens, and adds the sums. The tokens are the last
    dimension of the labels, which `chunks` has to divide; chunk i has the tokens i, i + chunks, i + 2 chunks and so on.
    With dtc-delay-loss-chunks the logits of all tokens then never exist together. Ops of chunks, and those that need
    their sums, are marked with `dtc.loss_chunk`.

    ```mlir
    // dtc-opt --dtc-chunk-loss=chunks=2
    // Before
    func.func @loss(%w: tensor<5x3xf32> {dtc.param = "w"}, %h: tensor<4x3xf32> {dtc.input = "h"},
                    %labels: tensor<4xi32> {dtc.input = "labels"}) -> tensor<f32> {
      %logits = dtc.einsum "sd,vd->sv" %h, %w : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
      %each, %lse = dtc.cross_entropy %logits, %labels
        : (tensor<4x5xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
      %loss = dtc.reduce sum %each dims [0] : (tensor<4xf32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    // After
    func.func @loss(%w: tensor<5x3xf32> {dtc.param = "w"}, %h: tensor<4x3xf32> {dtc.input = "h"},
                    %labels: tensor<4xi32> {dtc.input = "labels"}) -> tensor<f32> {
      %hs = dtc.reshape %h : (tensor<4x3xf32>) -> tensor<2x2x3xf32>
      %h0 = dtc.slice %hs offsets [0, 0, 0] sizes [2, 1, 3] {dtc.loss_chunk}
        : (tensor<2x2x3xf32>) -> tensor<2x1x3xf32>
      %h1 = dtc.reshape %h0 {dtc.loss_chunk} : (tensor<2x1x3xf32>) -> tensor<2x3xf32>
      %logits0 = dtc.einsum "sd,vd->sv" %h1, %w {dtc.loss_chunk}
        : (tensor<2x3xf32>, tensor<5x3xf32>) -> tensor<2x5xf32>
      %ls = dtc.reshape %labels : (tensor<4xi32>) -> tensor<2x2xi32>
      %l0 = dtc.slice %ls offsets [0, 0] sizes [2, 1] {dtc.loss_chunk}
        : (tensor<2x2xi32>) -> tensor<2x1xi32>
      %l1 = dtc.reshape %l0 {dtc.loss_chunk} : (tensor<2x1xi32>) -> tensor<2xi32>
      %each0, %lse0 = dtc.cross_entropy %logits0, %l1 {dtc.loss_chunk}
        : (tensor<2x5xf32>, tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>)
      %loss0 = dtc.reduce sum %each0 dims [0] {dtc.loss_chunk} : (tensor<2xf32>) -> tensor<f32>
      %h2 = dtc.slice %hs offsets [0, 1, 0] sizes [2, 1, 3] {dtc.loss_chunk}
        : (tensor<2x2x3xf32>) -> tensor<2x1x3xf32>
      %h3 = dtc.reshape %h2 {dtc.loss_chunk} : (tensor<2x1x3xf32>) -> tensor<2x3xf32>
      %logits1 = dtc.einsum "sd,vd->sv" %h3, %w {dtc.loss_chunk}
        : (tensor<2x3xf32>, tensor<5x3xf32>) -> tensor<2x5xf32>
      %l2 = dtc.slice %ls offsets [0, 1] sizes [2, 1] {dtc.loss_chunk}
        : (tensor<2x2xi32>) -> tensor<2x1xi32>
      %l3 = dtc.reshape %l2 {dtc.loss_chunk} : (tensor<2x1xi32>) -> tensor<2xi32>
      %each1, %lse1 = dtc.cross_entropy %logits1, %l3 {dtc.loss_chunk}
        : (tensor<2x5xf32>, tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>)
      %loss1 = dtc.reduce sum %each1 dims [0] {dtc.loss_chunk} : (tensor<2xf32>) -> tensor<f32>
      %loss = dtc.add %loss0, %loss1 {dtc.loss_chunk} : tensor<f32>
      return %loss : tensor<f32>
    }
    ```
  }];
  let options = [
    Option<"chunks", "chunks", "int64_t", "1", "how many chunks; 1 changes nothing">,
  ];
  let dependentDialects = ["::dtc::DtcDialect"];
}

def DelayLossChunksPass : Pass<"dtc-delay-loss-chunks", "::mlir::ModuleOp"> {
  let summary = "Compute the loss of each chunk of tokens just before its gradient";
  let description = [{
    In a train step, moves each op that dtc-chunk-loss has marked with `dtc.loss_chunk`, and what is computed from these
    before the first gradient of a loss, to just before its first user, and removes the marks. The product that makes
    the logits of a chunk, its loss and its gradients are then together, and the logits of the next chunk come after
    them.

    ```mlir
    // Before
    func.func @gradients(%x: tensor<2x5xf32> {dtc.input = "x"}, %y: tensor<2x5xf32> {dtc.input = "y"},
                         %l: tensor<2xi32> {dtc.input = "l"}, %d: tensor<2xf32> {dtc.input = "d"})
        -> (tensor<2x5xf32>, tensor<2x5xf32>) {
      %loss0, %lse0 = dtc.cross_entropy %x, %l {dtc.loss_chunk}
        : (tensor<2x5xf32>, tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>)
      %loss1, %lse1 = dtc.cross_entropy %y, %l {dtc.loss_chunk}
        : (tensor<2x5xf32>, tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>)
      %dy = dtc.cross_entropy_grad %y, %l, %lse1, %d
        : (tensor<2x5xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x5xf32>
      %dx = dtc.cross_entropy_grad %x, %l, %lse0, %d
        : (tensor<2x5xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x5xf32>
      return %dx, %dy : tensor<2x5xf32>, tensor<2x5xf32>
    }
    // After
    func.func @gradients(%x: tensor<2x5xf32> {dtc.input = "x"}, %y: tensor<2x5xf32> {dtc.input = "y"},
                         %l: tensor<2xi32> {dtc.input = "l"}, %d: tensor<2xf32> {dtc.input = "d"})
        -> (tensor<2x5xf32>, tensor<2x5xf32>) {
      %loss1, %lse1 = dtc.cross_entropy %y, %l : (tensor<2x5xf32>, tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>)
      %dy = dtc.cross_entropy_grad %y, %l, %lse1, %d
        : (tensor<2x5xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x5xf32>
      %loss0, %lse0 = dtc.cross_entropy %x, %l : (tensor<2x5xf32>, tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>)
      %dx = dtc.cross_entropy_grad %x, %l, %lse0, %d
        : (tensor<2x5xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x5xf32>
      return %dx, %dy : tensor<2x5xf32>, tensor<2x5xf32>
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

    With `proximal` mu the loss of the step has the proximal term mu / 2 |w - s|^2 of each parameter w that trains (FedProx;
    Li et al. 2020, equation 2), so that its gradient and the norm have mu (w - s). s is a state of the parameter,
    `outer_params`, which dtc-build-outer-step gives its value.

    With `clients` replicas will train for clients of federated learning, each on its own. What is skipped by one may be
    applied by another: then the step counts as applied, and each parameter has a state `inner_steps`, the number of steps
    that were applied to it, from which the optimizer has the number of its step. dtc-build-outer-step sets it to 0.

    With `sample-clip` C and `sample-noise` S the step is that of DP-SGD (Abadi et al. 2016, algorithm 1): the gradient is
    the sum of the samples' gradients, to which dtc-clip-samples scales those of this function, and of normal noise of the
    standard deviation S C, divided by the number of samples. Broadcasts with `dtc.sample_noise` stand for the noise, each
    for that of the parameter that it names; `dtc.sample_divisor` marks the division of the loss by a sum over samples.
    It takes `accumulates` and `separate-batches`.

    Frozen parameters have no gradient and no optimizer state, and ops that only their gradients need are not built.

    With `accumulates` a step may accumulate gradients over several batches. `dist.sum_batches` marks the sums over
    batches: the loss or its sums, the metrics, and with `separate-batches` each gradient. A loss
    `(sums + once) / divisor + rest`, whose divisor depends on data while `once` and `rest` do not, is computed from the
    sums over all batches; `once` and `rest` count once. Any other loss is the mean of the batches' losses.
    `dtc-spmd-partition` refuses a loss that is not linear in sums over samples. Without `accumulates`, the marks of
    `separate-batches` are for a loop over one microbatch that runs for one batch.

    Results of the model after the loss are metrics (`dtc.metric`), which the step returns after its loss: the sum over
    all batches, or of a mean (`dtc.mean`) the mean. The gradient norm is infinite where one that must be zero
    (`dtc.must_be_zero`) is not, so that the step changes no parameter.

    With `optimizer=none` the function is `@gradients(parameters, inputs) -> (loss, metrics, gradients)`.

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
        %m: tensor<4xf32> {dtc.state = "momentum_buffer", dtc.state_of = "w"})
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
    Option<"proximal", "proximal", "double", "0.0", "the factor mu of the proximal term; 0: none">,
    Option<"clients", "clients", "bool", "false", "replicas will train for clients">,
    Option<"sampleClip", "sample-clip", "double", "0.0",
      "largest norm of the gradient of one sample; 0: samples are not clipped">,
    Option<"sampleNoise", "sample-noise", "double", "0.0",
      "standard deviation of the noise of the summed gradients, in units of sample-clip">,
    ListOption<"freeze", "freeze", "std::string", "patterns of the names of frozen parameters">,
    ListOption<"paramGroup", "param-group", "std::string",
      "pattern:weight_decay=W,lr_scale=S for the parameters whose names match; the first that matches holds">,
    Option<"lossScale", "loss-scale", "bool", "false", "scale the loss">,
    Option<"accumulates", "accumulates", "bool", "false", "gradients may be summed over several batches">,
    Option<"separateBatches", "separate-batches", "bool", "false",
      "mark gradients as sums over batches">,
    Option<"numberOps", "number-ops", "bool", "false",
      "leave in dtc.op and dtc.gradient_of which op each gradient belongs to, for dtc-partition-stages">,
  ];
  let dependentDialects = ["::dtc::DtcDialect", "::dtc::dist::DistDialect", "::mlir::func::FuncDialect"];
}

def RemoveDropoutPass : Pass<"dtc-remove-dropout", "::mlir::ModuleOp"> {
  let summary = "Remove dropout from a program that does not train";
  let description = [{
    `dtc.dropout` gives its operand, and attention has no dropout. The random key, from which nothing draws any more, is
    no argument.

    ```mlir
    // Before
    func.func @loss(%x: tensor<4xf32> {dtc.input = "x"}, %key: tensor<2xi32> {dtc.scalar = "random_key"})
        -> tensor<4xf32> {
      %0 = dtc.dropout %x, %key {number = 0, rate = 0.5} : (tensor<4xf32>, tensor<2xi32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    // After
    func.func @loss(%x: tensor<4xf32> {dtc.input = "x"}) -> tensor<4xf32> {
      return %x : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["::dtc::DtcDialect"];
}

def AdvanceRandomKeyPass : Pass<"dtc-advance-random-key", "::mlir::ModuleOp"> {
  let summary = "Make the key of random masks a state that the step advances";
  let description = [{
    An argument with `dtc.scalar = "random_key"`, from which random ops draw their masks, becomes a part of the step
    state: `dtc.step_state = "random_key"`. Its first word, which comes from the seed of the run, does not change. Its
    second word, the number of the step's first batch, grows by the argument `batches`, which is added where the
    function has none. Within a step, random kernels count the repetitions of the microbatch loop themselves. With
    `always`, a function that has no such argument gets one, for ops that later passes insert.

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
  let options = [
    Option<"always", "always", "bool", "false", "also where the function draws nothing">,
  ];
  let dependentDialects = ["::dtc::DtcDialect"];
}

def BuildEvaluationPass : Pass<"dtc-build-evaluation", "::mlir::ModuleOp"> {
  let summary = "Build the evaluation function from a partitioned train step";
  let description = [{
    Reduces the train step to @evaluate, which returns the loss, and metrics that must be zero: the forward pass without
    dropout, with the shardings and the stages of training. It has all states of the train step and changes none.

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

#endif // DTC_COMPILER_PASSES_TRAIN_PASSES_TD
