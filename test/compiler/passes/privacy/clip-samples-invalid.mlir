// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-clip-samples="clip=2 noise=0.5"
// RUN: not dtc-opt %s --split-input-file --dtc-clip-samples="clip=0" 2>&1 | FileCheck %s --check-prefix=CLIP
// RUN: not dtc-opt %s --split-input-file --dtc-clip-samples="clip=2 noise=-1" 2>&1 | FileCheck %s --check-prefix=NOISE
// RUN: not dtc-opt %s --split-input-file --dtc-clip-samples="clip=2 outer=dp" 2>&1 | FileCheck %s --check-prefix=OUTER

// CLIP: error: the options clip and noise are 0.0{{.*}} and 0.0{{.*}}, expected finite numbers, clip above 0 and noise at least 0
// NOISE: error: the options clip and noise are 2.0{{.*}} and -1.0{{.*}}, expected finite numbers, clip above 0 and noise at least 0
// OUTER: error: the mesh has no axis "dp"

// Noise needs a key.
dist.mesh @mesh <"micro"=4 temporal>
// expected-error@+1 {{the step has no random key, from which noise is drawn; run dtc-advance-random-key with always}}
func.func @train_step(%x: tensor<4x3xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4, 3>, dist.sample_dim = 0 : i64,
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

// Two samples on the device in a microbatch.
dist.mesh @mesh <"micro"=2 temporal>
// expected-error@+1 {{the batch has 4 samples in 2 parts, expected one sample on each device in a microbatch, as the gradient of each is clipped; leave --microbatches out}}
func.func @train_step(%x: tensor<4x3xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4, 3>, dist.sample_dim = 0 : i64,
                               dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
    -> tensor<3xf32> attributes {dist.samples = 4 : i64} {
  %sum = dist.microbatch_loop @mesh "micro" : tensor<3xf32> {
    %one = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<4x3xf32>) -> tensor<2x3xf32>
    %g = dtc.reduce sum %one dims [0] : (tensor<2x3xf32>) -> tensor<3xf32>
    dist.yield %g : tensor<3xf32>
  }
  %c = dtc.constant dense<1.0> : tensor<f32>
  %n = dtc.broadcast %c dims [] : (tensor<f32>) -> tensor<3xf32>
  %0 = dtc.add %sum, %n {dist.sample_noise = "w", dist.noise_shape = array<i64: 3>, dist.noise_sharding = [""]}
    : tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

dist.mesh @mesh <"micro"=4 temporal>
// expected-error@+1 {{'func.func' op has 'dist.samples' and no gradient with 'dist.sample_noise'; run dtc-build-train-step first}}
func.func @train_step(%w: tensor<3xf32>)
    -> tensor<3xf32> attributes {dist.samples = 4 : i64} {
  %n = dtc.neg %w : tensor<3xf32>
  return %n : tensor<3xf32>
}

// -----

dist.mesh @mesh <"micro"=4 temporal>
func.func @train_step(%w: tensor<3xf32>)
    -> tensor<3xf32> attributes {dist.samples = 4 : i64} {
// expected-error@+1 {{'dtc.neg' op has 'dist.sample_noise', expected it on a dtc.add in the local view; run dtc-spmd-partition first}}
  %n = dtc.neg %w {dist.sample_noise = "w"} : tensor<3xf32>
  return %n : tensor<3xf32>
}

// -----

dist.mesh @mesh <"micro"=4 temporal>
// expected-error@+1 {{'func.func' op has 0 loops over microbatches, expected one}}
func.func @train_step(%w: tensor<3xf32>)
    -> tensor<3xf32> attributes {dist.samples = 4 : i64} {
  %c = dtc.constant dense<1.0> : tensor<f32>
  %n = dtc.broadcast %c dims [] : (tensor<f32>) -> tensor<3xf32>
  %0 = dtc.add %w, %n {dist.sample_noise = "w", dist.noise_shape = array<i64: 3>, dist.noise_sharding = [""]}
    : tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=4 temporal>
// expected-error@+1 {{the mesh has a pipeline, whose devices have the gradient of a sample at different times, and its norm is over all of them; use tp, fsdp or dp for --dp-sgd}}
func.func @train_step(%x: tensor<4x3xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4, 3>, dist.sample_dim = 0 : i64,
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

// The gradient has other dimensions than the parameter.
dist.mesh @mesh <"micro"=4 temporal>
func.func @train_step(%x: tensor<4x3xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4, 3>, dist.sample_dim = 0 : i64,
                               dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
    -> tensor<3xf32> attributes {dist.samples = 4 : i64} {
  %sum = dist.microbatch_loop @mesh "micro" : tensor<3xf32> {
    %one = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<4x3xf32>) -> tensor<1x3xf32>
    %g = dtc.reshape %one : (tensor<1x3xf32>) -> tensor<3xf32>
    dist.yield %g : tensor<3xf32>
  }
  %c = dtc.constant dense<1.0> : tensor<f32>
  %n = dtc.broadcast %c dims [] : (tensor<f32>) -> tensor<3xf32>
// expected-error@+1 {{the gradient of a sample has the type 'tensor<3xf32>', expected a tensor of 2 dimensions}}
  %0 = dtc.add %sum, %n {dist.sample_noise = "w", dist.noise_shape = array<i64: 3, 1>, dist.noise_sharding = ["", ""]}
    : tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// The largest of the gradients of several samples.
dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
func.func @train_step(%x: tensor<2x3xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4, 3>, dist.sample_dim = 0 : i64,
                               dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>})
    -> tensor<3xf32> attributes {dist.samples = 4 : i64} {
  %sum = dist.microbatch_loop @mesh "micro" : tensor<3xf32> {
    %one = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<2x3xf32>) -> tensor<1x3xf32>
    %g = dtc.reshape %one : (tensor<1x3xf32>) -> tensor<3xf32>
    dist.yield %g : tensor<3xf32>
  }
  // expected-error@+1 {{'dist.all_reduce' makes the gradient of}}
  %most = dist.all_reduce max %sum over @mesh ["dp"] : tensor<3xf32>
  %c = dtc.constant dense<1.0> : tensor<f32>
  %n = dtc.broadcast %c dims [] : (tensor<f32>) -> tensor<3xf32>
  %0 = dtc.add %most, %n {dist.sample_noise = "w", dist.noise_shape = array<i64: 3>, dist.noise_sharding = [""]}
    : tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// A part of the gradient that belongs to no sample.
dist.mesh @mesh <"micro"=4 temporal>
func.func @train_step(%w: tensor<3xf32>, %x: tensor<4x3xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4, 3>, dist.sample_dim = 0 : i64,
                               dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
    -> tensor<3xf32> attributes {dist.samples = 4 : i64} {
  %sum = dist.microbatch_loop @mesh "micro" : tensor<3xf32> {
    %one = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<4x3xf32>) -> tensor<1x3xf32>
    %g = dtc.reshape %one : (tensor<1x3xf32>) -> tensor<3xf32>
    dist.yield %g : tensor<3xf32>
  }
  %c = dtc.constant dense<1.0> : tensor<f32>
  %n = dtc.broadcast %c dims [] : (tensor<f32>) -> tensor<3xf32>
// expected-error@+1 {{it adds what is of no sample: use weight decay (--weight-decay) for a part of the loss that depends on parameters alone}}
  %more = dtc.add %sum, %w : tensor<3xf32>
  %0 = dtc.add %more, %n {dist.sample_noise = "w", dist.noise_shape = array<i64: 3>, dist.noise_sharding = [""]}
    : tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// A metric of the sum that is clipped.
dist.mesh @mesh <"micro"=4 temporal>
func.func @train_step(%x: tensor<4x3xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4, 3>, dist.sample_dim = 0 : i64,
                               dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
    -> (tensor<3xf32>, tensor<3xf32>) attributes {dist.samples = 4 : i64} {
  %sum = dist.microbatch_loop @mesh "micro" : tensor<3xf32> {
    %one = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<4x3xf32>) -> tensor<1x3xf32>
    %g = dtc.reshape %one : (tensor<1x3xf32>) -> tensor<3xf32>
    dist.yield %g : tensor<3xf32>
  }
  %twice = dtc.add %sum, %sum : tensor<3xf32>
  %c = dtc.constant dense<1.0> : tensor<f32>
  %n = dtc.broadcast %c dims [] : (tensor<f32>) -> tensor<3xf32>
  %0 = dtc.add %twice, %n {dist.sample_noise = "w", dist.noise_shape = array<i64: 3>, dist.noise_sharding = [""]}
    : tensor<3xf32>
// expected-error@+1 {{'dtc.neg' reads a sum of gradients of samples that the optimizer reads as well, where they are clipped; expected a metric that is no gradient}}
  %metric = dtc.neg %twice : tensor<3xf32>
  return %0, %metric : tensor<3xf32>, tensor<3xf32>
}
