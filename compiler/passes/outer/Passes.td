//===- Passes.td - Passes of replicas that differ ----------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_OUTER_PASSES_TD
#define DTC_COMPILER_PASSES_OUTER_PASSES_TD

include "mlir/Pass/PassBase.td"

def SeparateReplicasPass : Pass<"dtc-separate-replicas", "::mlir::ModuleOp"> {
  let summary = "Let replicas along a data axis train on their own";
  let description = [{
    In the local view of a train step, the devices along `axis` become replicas whose parameters differ: nothing that
    the step computes for its states is reduced over `axis`. A replica takes its part of the batch for the whole: where
    a sum over the batch was completed over `axis`, the replica multiplies its own part of it by the number of replicas.
    So a mean over the batch is the mean over the replica's part, whether it divides by a constant or by a sum of
    counts. A maximum or a minimum is that of the replica's part.

    Nothing goes between replicas in a step: each skips it or not for itself, and an output, such as the loss, is that of
    the replica. An output of a function that updates no state, such as the loss of an evaluation, is the mean over the replicas.

    With `clients` the replicas train for clients of federated learning. The step counts as applied where the gradient of one
    has a finite norm, and an output is the mean over the replicas. An input, `client_active`, is 0 for a replica that skips the
    step in any case. A further output, `client_losses`, has the loss of each.

    A state that `axis` splits, an input that it splits in another dimension than the first or unevenly, and any other
    collective over `axis` are errors.

    It runs after dtc-spmd-partition.

    ```mlir
    // dtc-opt --dtc-separate-replicas=axis=dp
    // Before
    dist.mesh @mesh <"dp"=2>
    func.func @train_step(%x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 8>,
                                             dist.sharding = #dist.sharding<@mesh, [{"dp"} ]>}) -> tensor<f32> {
      %0 = dtc.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
      %1 = dist.all_reduce sum %0 over @mesh ["dp"] : tensor<f32>
      return %1 : tensor<f32>
    }
    // After
    dist.mesh @mesh <"dp"=2>
    func.func @train_step(%x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 8>,
                                             dist.sharding = #dist.sharding<@mesh, [{"dp"} ]>}) -> tensor<f32> {
      %0 = dtc.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
      %c = dtc.constant dense<2.0> : tensor<f32>
      %1 = dtc.mul %0, %c : tensor<f32>
      return %1 : tensor<f32>
    }
    ```
  }];
  let options = [
    Option<"axis", "axis", "std::string", "", "the axis along which replicas differ">,
    Option<"clients", "clients", "bool", "false", "replicas train for clients">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect", "::dtc::DtcDialect"];
}

def BuildOuterStepPass : Pass<"dtc-build-outer-step", "::mlir::ModuleOp"> {
  let summary = "Build the outer step of replicas from their train step";
  let description = [{
    Makes of a train step whose replicas along `axis` differ the function of the outer step, which gives all replicas
    the same parameters again. With w the mean of a parameter over the R replicas, `step` is

    * `mean`: the parameter becomes w (local SGD; FederatedAveraging of McMahan et al. 2017, algorithm 1, with all
      clients and equally many samples of each);
    * `nesterov`: with the outer parameter s, which all replicas had after the outer step before, the outer gradient is
      d = s - w. The momentum becomes m' = `momentum` m + d, the outer parameter and the parameter become
      s - `learning-rate` (d + `momentum` m'): SGD with Nesterov momentum as PyTorch's (DiLoCo; Douillard et al. 2023,
      algorithm 1). s and m are two more parts of the optimizer's state of each parameter, `outer_params` and
      `outer_momentum`, which do not differ between replicas.

    * `adam`, `yogi`, `adagrad`: FedAdam, FedYogi and FedAdagrad of Reddi et al. 2021, algorithm 2. With d = w - s the first
      moment becomes m' = `momentum` m + (1 - `momentum`) d, the second one v' = `beta2` v + (1 - `beta2`) d^2 (adam),
      v - (1 - `beta2`) d^2 sign(v - d^2) (yogi) or v + d^2 (adagrad), and s and the parameter become
      s + `learning-rate` m' / (sqrt(v') + `tau`), without correction of bias. v begins as `tau`^2. s, m and v are states:
      `outer_params`, `outer_exp_avg`, `outer_exp_avg_sq`.

    With `compressed` the replicas exchange what they have changed by, s - w_r: the mean of these is d, and w is s - d. The
    sums are marked for dtc-compress-gradients, and `mean` has s too.

    Where a parameter has master weights, these are averaged, and the parameter is what they round to, on the devices
    and by the ops of the train step. Other states, such as the moments of Adam, stay those of each replica.

    A train step with a proximal term has s too (see dtc-build-train-step): then `mean` makes it the new parameter.

    With `clients` the mean is weighted: an input `client_weights` has the weight of each replica. One whose weight is 0 is
    left out, whatever its parameters are. Where all weights are 0 the parameters become s, and s, m and v stay. All other
    states of the parameter, such as the moments of Adam, become zeros, so that each round begins with a new optimizer
    (McMahan et al. 2017, algorithm 1). `mean` has s too.

    With `noise` as well, w is s - (sum p_r (s - w_r) + c z) with the weights p_r, whatever they add up to, a number c, the input
    `noise_scale`, and a state z, `outer_noise`, whose elements the run draws from a normal distribution before the step
    (McMahan et al. 2018, algorithm 1).

    With `fragments` above 1 the outer step is that of the parameters of one fragment, number `fragment`. The layers take turns in
    the order of their names, numbers by their values: layer i is of fragment i mod `fragments`. Parameters of no layer go
    where least has been put so far. A name up to its first number, as in `layers.3`, is a layer.

    By `part` it has three functions: with `take`, a state of each parameter, `outer_pending`, becomes s - w_r. With `send` that
    state becomes its mean over the replicas. With `apply`, w is s less that state; s, m and v become what `step` says, and the parameter becomes
    a w_r + (1 - a) s' with the new outer parameter s' and a, `blend` (Douillard et al. 2025, "Streaming DiLoCo with
    overlapping communication", algorithm 2). `mean` has s too. Neither is for clients.

    With `begins` it is the function before the first step instead: s becomes the parameter, and v becomes `tau`^2.

    With `checks` it is a function that changes nothing instead. It has two outputs with an element for each replica, which
    end in the function's number in the module: `update_squares.0`, the sum of the squares of what the function's parameters
    have changed by, w_r - s, and `inner_steps.0`, the number of steps that were applied.

    It runs on the function of each device of a pipeline, after dtc-schedule-pipeline.

    ```mlir
    // dtc-opt --dtc-build-outer-step="axis=dp step=mean"
    // Before
    dist.mesh @mesh <"dp"=2>
    func.func @train_step(%w: tensor<4xf32> {dtc.param = "w", dtc.global_shape = array<i64: 4>,
                                             dist.sharding = #dist.sharding<@mesh, [{} ]>},
                          %x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 8>,
                                             dist.sharding = #dist.sharding<@mesh, [{"dp"} ]>})
        -> (tensor<4xf32> {dtc.updates = 0 : i64}) {
      %0 = dtc.add %w, %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    // After
    dist.mesh @mesh <"dp"=2>
    func.func @outer_train_step(%w: tensor<4xf32> {dtc.param = "w", dtc.global_shape = array<i64: 4>,
                                                   dist.sharding = #dist.sharding<@mesh, [{} ]>})
        -> (tensor<4xf32> {dtc.updates = 0 : i64}) {
      %0 = dist.all_reduce sum %w over @mesh ["dp"] {dist.reason = {consumer = "all replicas",
        from = "one for each replica along dp", remedy = "", to = "one for all", value = "w"}} : tensor<4xf32>
      %c = dtc.constant dense<5.000000e-01> : tensor<f32>
      %all = dtc.broadcast %c dims [] : (tensor<f32>) -> tensor<4xf32>
      %1 = dtc.mul %0, %all : tensor<4xf32>
      return %1 : tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"axis", "axis", "std::string", "", "the axis along which replicas differ">,
    Option<"step", "step", "std::string", "\"nesterov\"", "mean, nesterov, adam, yogi or adagrad">,
    Option<"learningRate", "learning-rate", "double", "0.7", "of all but mean">,
    Option<"momentum", "momentum", "double", "0.9", "of all but mean">,
    Option<"beta2", "beta2", "double", "0.99", "the decay of the second moment of adam and yogi">,
    Option<"tau", "tau", "double", "1e-3", "of adam, yogi and adagrad">,
    Option<"clients", "clients", "bool", "false", "a weighted mean, and a new inner optimizer">,
    Option<"noise", "noise", "bool", "false", "add noise to what clients have changed">,
    Option<"compressed", "compressed", "bool", "false", "exchange changes, in a compressed form">,
    Option<"begins", "begins", "bool", "false", "what comes before the first step">,
    Option<"checks", "checks", "bool", "false", "what each replica has changed by">,
    Option<"fragments", "fragments", "int64_t", "1", "how many fragments there are; one of them has the outer step">,
    Option<"fragment", "fragment", "int64_t", "0", "its number">,
    Option<"part", "part", "std::string", "\"whole\"", "whole, take, send or apply">,
    Option<"blend", "blend", "double", "0", "the part of the parameters that an outer step leaves">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect", "::dtc::DtcDialect"];
}

#endif // DTC_COMPILER_PASSES_OUTER_PASSES_TD
