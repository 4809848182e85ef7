//===- Passes.td - Passes about element types --------------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PRECISION_PASSES_TD
#define DTC_COMPILER_PASSES_PRECISION_PASSES_TD

include "mlir/Pass/PassBase.td"

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
    parameters. A parameter all of whose users are conversions that the model has stays f32.

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
                          %master: tensor<4xf32> {dtc.state = "master", dtc.state_of = "w"})
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

#endif // DTC_COMPILER_PASSES_PRECISION_PASSES_TD
