// RUN: dtc-opt %s --split-input-file --dtc-clip-samples="clip=2 noise=0" | FileCheck %s
// RUN: dtc-opt %s --split-input-file --dtc-clip-samples="clip=2 noise=1.5" | FileCheck %s --check-prefix=NOISE
// RUN: dtc-opt %s --split-input-file --dtc-clip-samples="clip=2 noise=1.5 outer=dp" | FileCheck %s --check-prefix=OUTER

// Before the loop adds it up, a gradient g of a sample becomes 4 g min(1, 2 / (|4 g| + 1e-6)), as the loss of the batch is the
// mean over 4 samples. Nothing stands for noise any more.
// CHECK-LABEL: func.func @one_parameter(
// CHECK-NOT:     dist.sample
// CHECK:         %[[SUM:.*]] = dist.microbatch_loop
// CHECK:           %[[G:.*]] = dtc.reshape
// CHECK-NEXT:      %[[SQUARES:.*]] = dtc.einsum "a,a->" %[[G]], %[[G]]
// CHECK-NEXT:      %[[NORM:.*]] = dtc.sqrt %[[SQUARES]]
// CHECK-NEXT:      %[[SAMPLES:.*]] = dtc.constant dense<4.000000e+00>
// CHECK-NEXT:      %[[OWN:.*]] = dtc.mul %[[NORM]], %[[SAMPLES]]
// CHECK-NEXT:      %[[TINY:.*]] = dtc.constant dense<9.99999997E-7>
// CHECK-NEXT:      %[[BOUNDED:.*]] = dtc.add %[[OWN]], %[[TINY]]
// CHECK-NEXT:      %[[CLIP:.*]] = dtc.constant dense<2.000000e+00>
// CHECK-NEXT:      %[[QUOTIENT:.*]] = dtc.div %[[CLIP]], %[[BOUNDED]]
// CHECK-NEXT:      %[[ONE:.*]] = dtc.constant dense<1.000000e+00>
// CHECK-NEXT:      %[[SMALLER:.*]] = dtc.minimum %[[QUOTIENT]], %[[ONE]]
// CHECK-NEXT:      %[[FACTOR:.*]] = dtc.mul %[[SMALLER]], %[[SAMPLES]]
// CHECK-NEXT:      %[[FACTORS:.*]] = dtc.broadcast %[[FACTOR]]
// CHECK-NEXT:      %[[CLIPPED:.*]] = dtc.mul %[[G]], %[[FACTORS]]
// CHECK-NEXT:      dist.yield %[[CLIPPED]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[SUM]]

// Normal noise by Box and Muller, times noise * clip = 3.
// NOISE-LABEL: func.func @one_parameter(
// NOISE-SAME:    %[[KEY:[^:]*]]: tensor<2xi32>
// NOISE:         %[[SUM:.*]] = dist.microbatch_loop
// NOISE-COUNT-3: dist.random_uniform %[[KEY]] {number = {{[0-9]+}} : i64, shape = array<i64: 3>, sharding = [""]}
// NOISE-NOT:     dist.random_uniform
// NOISE:         %[[BY:.*]] = dtc.constant dense<3.000000e+00>
// NOISE-NEXT:    %[[ALL:.*]] = dtc.broadcast %[[BY]]
// NOISE-NEXT:    %[[NORMAL:.*]] = dtc.mul %{{.*}}, %[[ALL]]
// NOISE-NEXT:    %[[NOISY:.*]] = dtc.add %[[SUM]], %[[NORMAL]] : tensor<3xf32>
// NOISE-NEXT:    return %[[NOISY]]

dist.mesh @mesh <"dp"=1, "micro"=4 temporal>
func.func @one_parameter(%key: tensor<2xi32> {dtc.step_state = "random_key"},
                      %x: tensor<4x3xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4, 3>, dist.sample_dim = 0 : i64,
                                           dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
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

// -----

// The norm is over both parameters. "w" has parts of each sample on the devices of "tp", whose sum comes into the loop for the
// norm alone; "v" has other elements there. The sums over samples on the devices of "dp" stay.
// CHECK-LABEL: func.func @two_parameters(
// CHECK:         %[[SUMS:.*]]:2 = dist.microbatch_loop
// CHECK:           %[[W:.*]] = dtc.reshape
// CHECK:           %[[V:.*]] = dtc.neg %[[W]]
// CHECK:           %[[WHOLE:.*]] = dist.all_reduce sum %[[W]] over @mesh ["tp"] : tensor<3xf32>
// CHECK:           %[[SQUARES_W:.*]] = dtc.einsum "a,a->" %[[WHOLE]], %[[WHOLE]]
// CHECK:           %[[PART:.*]] = dtc.einsum "a,a->" %[[V]], %[[V]]
// CHECK:           %[[SQUARES_V:.*]] = dist.all_reduce sum %[[PART]] over @mesh ["tp"] : tensor<f32>
// CHECK:           %[[SQUARES:.*]] = dtc.add %[[SQUARES_W]], %[[SQUARES_V]]
// CHECK:           dtc.sqrt %[[SQUARES]]
// CHECK:           %[[CLIPPED_W:.*]] = dtc.mul %[[W]], %{{.*}} : tensor<3xf32>
// CHECK:           %[[CLIPPED_V:.*]] = dtc.mul %[[V]], %{{.*}} : tensor<3xf32>
// CHECK:           dist.yield %[[CLIPPED_W]], %[[CLIPPED_V]]
// CHECK:         %[[ALL_W:.*]] = dist.all_reduce sum %[[SUMS]]#0 over @mesh ["dp", "tp"]
// CHECK:         %[[ALL_V:.*]] = dist.all_reduce sum %[[SUMS]]#1 over @mesh ["dp"]
// CHECK:         return %[[ALL_W]], %[[ALL_V]]

// Each element of a parameter has one number, wherever it is.
// NOISE-LABEL: func.func @two_parameters(
// NOISE-COUNT-3: dist.random_uniform %{{.*}} {number = {{[0-9]+}} : i64, shape = array<i64: 3>, sharding = [""]}
// NOISE-COUNT-3: dist.random_uniform %{{.*}} {number = {{[0-9]+}} : i64, shape = array<i64: 6>, sharding = ["tp"]}

// Replicas that will differ along "dp" have noise of their own, 2 times as much.
// OUTER-LABEL: func.func @two_parameters(
// OUTER-COUNT-3: dist.random_uniform %{{.*}} {number = {{[0-9]+}} : i64, shape = array<i64: 2, 3>, sharding = ["dp", ""]}
// OUTER:         %[[BY:.*]] = dtc.constant dense<6.000000e+00>
// OUTER-NEXT:    %[[ALL:.*]] = dtc.broadcast %[[BY]] dims [] : (tensor<f32>) -> tensor<3xf32>
// OUTER-NEXT:    dtc.mul %{{.*}}, %[[ALL]]
// OUTER-COUNT-3: dist.random_uniform %{{.*}} {number = {{[0-9]+}} : i64, shape = array<i64: 2, 6>, sharding = ["dp", "tp"]}
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=2 temporal>
func.func @two_parameters(%key: tensor<2xi32> {dtc.step_state = "random_key"},
                      %x: tensor<2x3xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4, 3>, dist.sample_dim = 0 : i64,
                                           dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>})
    -> (tensor<3xf32>, tensor<3xf32>) attributes {dist.samples = 4 : i64} {
  %sums:2 = dist.microbatch_loop @mesh "micro" : tensor<3xf32>, tensor<3xf32> {
    %one = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<2x3xf32>) -> tensor<1x3xf32>
    %g = dtc.reshape %one : (tensor<1x3xf32>) -> tensor<3xf32>
    %h = dtc.neg %g : tensor<3xf32>
    dist.yield %g, %h : tensor<3xf32>, tensor<3xf32>
  }
  %whole = dist.all_reduce sum %sums#0 over @mesh ["dp", "tp"] : tensor<3xf32>
  %part = dist.all_reduce sum %sums#1 over @mesh ["dp"] : tensor<3xf32>
  %c = dtc.constant dense<1.0> : tensor<f32>
  %n = dtc.broadcast %c dims [] : (tensor<f32>) -> tensor<3xf32>
  %0 = dtc.add %whole, %n {dist.sample_noise = "w", dist.noise_shape = array<i64: 3>, dist.noise_sharding = [""]}
    : tensor<3xf32>
  %1 = dtc.add %part, %n {dist.sample_noise = "v", dist.noise_shape = array<i64: 6>, dist.noise_sharding = ["tp"]}
    : tensor<3xf32>
  return %0, %1 : tensor<3xf32>, tensor<3xf32>
}

// -----

// Nothing says that the step has samples.
// CHECK-LABEL: func.func @no_samples(
// CHECK-NEXT:    %[[NEGATED:.*]] = dtc.neg
// CHECK-NEXT:    return %[[NEGATED]]
dist.mesh @mesh <"dp"=1, "micro"=4 temporal>
func.func @no_samples(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = dtc.neg %x : tensor<3xf32>
  return %0 : tensor<3xf32>
}
