// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages

// A cut is only before an op that takes time.
dist.mesh @mesh <"pp"=3 pipeline link 1.0e12 0.0, "micro"=4 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
// expected-error@+1 {{3 stages; the model can be cut at 1 place, into at most 2; ask for fewer}}
func.func @too_many(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %sum = dtc.reduce sum %0 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

dist.mesh @mesh <"pp"=4 pipeline link 1.0e12 0.0, "micro"=4 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
// expected-error@+1 {{4 stages; the model can be cut at 2 places, into at most 3; ask for fewer}}
func.func @still_too_many(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dtc.einsum "bi,io->bo" %0, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %sum = dtc.reduce sum %1 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// expected-warning@+1 {{mesh axis 'micro' of size 4 splits no tensor}}
dist.mesh @mesh <"pp"=2 pipeline link 1.0e12 0.0, "micro"=4 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
// expected-error@+1 {{no op works on a microbatch, so that there is nothing to cut into stages; give the data a logical axis "batch", or a sharding over the temporal axis "micro"}}
func.func @no_batch(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dtc.einsum "bi,io->bo" %0, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %sum = dtc.reduce sum %1 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// Nor is there one that works on a parameter's part.
dist.mesh @mesh <"pp"=2 pipeline link 1.0e12 0.0, "micro"=4 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
// expected-error@+1 {{no op works on a microbatch}}
func.func @nothing(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<64x64xf32> {
  return %w : tensor<64x64xf32>
}
