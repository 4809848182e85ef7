//===- Passes.td - Passes of training with privacy ---------*- tablegen -*-===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_PRIVACY_PASSES_TD
#define DTC_COMPILER_PASSES_PRIVACY_PASSES_TD

include "mlir/Pass/PassBase.td"

def ClipSamplesPass : Pass<"dtc-clip-samples", "::mlir::ModuleOp"> {
  let summary = "Clip the gradient of each sample, and add noise to the sum";
  let description = [{
    In the local view of a train step with `dist.samples`, where each device has one sample in a microbatch, the loop over
    microbatches sums the samples' gradients after each is scaled to a norm of `clip` at most, over all parameters (Abadi
    et al. 2016, algorithm 1): g becomes g min(1, clip / (|g| + 1e-6)), where the 1e-6 is PyTorch's, and Opacus'. g is
    the gradient of the loss of the sample: of the loss of the batch times the number of samples, or, where the loss is
    divided by a sum over samples (`dist.sample_divisor`), of what the batch of this sample alone has as its loss.

    A sum over devices that have parts of one sample moves into the loop, for the norm alone; a sum over devices with other
    samples stays where it is, and where that is in the loop, as with ZeRO stages 2 and 3, the gradient is scaled before it.

    What stands for the noise (`dist.sample_noise`) becomes normal noise of the standard deviation `noise` times `clip`. It
    is a function of the random key, of the name of the parameter and of the place of an element in it, by the formula of
    Box and Muller (1958): sqrt(-2 ln u) cos(2 pi v). u has 48 random bits and v 24.

    With `outer`, the axis along which dtc-separate-replicas will let replicas train on their own, each replica has noise
    of its own, drawn for its place along the axis, and multiplied by the number of replicas: so the mean over its own
    samples has the noise that it would have alone.

    A gradient that is no sum over samples, more samples than one on a device in a microbatch, and a pipeline are errors.

    It runs after dtc-spmd-partition, with the random key of `dtc-advance-random-key=always`. A step without `dist.samples`
    stays as it is.

    ```mlir
    // dtc-opt --dtc-clip-samples="clip=2 noise=0"
    // Before
    dist.mesh @mesh <"micro"=4 temporal>
    func.func @train_step(%x: tensor<4x3xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4, 3>,
                                               dist.sample_dim = 0 : i64,
                                               dist.sharding = #dist.sharding<@mesh, [{}, {} ]>})
        -> tensor<3xf32> attributes {dist.samples = 4 : i64} {
      %sum = dist.microbatch_loop @mesh "micro" : tensor<3xf32> {
        %one = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<4x3xf32>) -> tensor<1x3xf32>
        %g = dtc.reshape %one : (tensor<1x3xf32>) -> tensor<3xf32>
        dist.yield %g : tensor<3xf32>
      }
      %c = dtc.constant dense<1.0> : tensor<f32>
      %n = dtc.broadcast %c dims [] : (tensor<f32>) -> tensor<3xf32>
      %0 = dtc.add %sum, %n {dist.sample_noise = "w", dist.noise_shape = array<i64: 3>, dist.noise_sharding = [""]}
        : tensor<3xf32>
      return %0 : tensor<3xf32>
    }
    // After
    dist.mesh @mesh <"micro"=4 temporal>
    func.func @train_step(%x: tensor<4x3xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4, 3>,
                                               dist.sharding = #dist.sharding<@mesh, [{}, {} ]>}) -> tensor<3xf32> {
      %sum = dist.microbatch_loop @mesh "micro" : tensor<3xf32> {
        %one = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<4x3xf32>) -> tensor<1x3xf32>
        %g = dtc.reshape %one : (tensor<1x3xf32>) -> tensor<3xf32>
        %square = dtc.einsum "a,a->" %g, %g : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
        %root = dtc.sqrt %square : tensor<f32>
        // The gradient of the sample's own loss is 4 times as large.
        %samples = dtc.constant dense<4.0> : tensor<f32>
        %norm = dtc.mul %root, %samples : tensor<f32>
        %tiny = dtc.constant dense<1.0e-6> : tensor<f32>
        %bounded = dtc.add %norm, %tiny : tensor<f32>
        %clip = dtc.constant dense<2.0> : tensor<f32>
        %quotient = dtc.div %clip, %bounded : tensor<f32>
        %most = dtc.constant dense<1.0> : tensor<f32>
        %smaller = dtc.minimum %quotient, %most : tensor<f32>
        %factor = dtc.mul %smaller, %samples : tensor<f32>
        %all = dtc.broadcast %factor dims [] : (tensor<f32>) -> tensor<3xf32>
        %clipped = dtc.mul %g, %all : tensor<3xf32>
        dist.yield %clipped : tensor<3xf32>
      }
      return %sum : tensor<3xf32>
    }
    ```
  }];
  let options = [
    Option<"clip", "clip", "double", "0.0", "largest norm of the gradient of a sample, above 0">,
    Option<"noise", "noise", "double", "0.0", "standard deviation of the noise of the sum, in units of clip">,
    Option<"outer", "outer", "std::string", "\"\"", "the axis along which replicas will differ; empty: none">,
  ];
  let dependentDialects = ["::dtc::dist::DistDialect", "::dtc::DtcDialect"];
}

#endif // DTC_COMPILER_PASSES_PRIVACY_PASSES_TD
