// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-compress-gradients="axis=dp block=4"
// RUN: not dtc-opt %s --split-input-file --dtc-compress-gradients="method=int5" 2>&1 | FileCheck %s --check-prefix METHOD
// RUN: not dtc-opt %s --split-input-file --dtc-compress-gradients="block=-1" 2>&1 | FileCheck %s --check-prefix BLOCK
// RUN: not dtc-opt %s --split-input-file --dtc-compress-gradients="rounding=up" 2>&1 | FileCheck %s --check-prefix ROUNDING
// RUN: not dtc-opt %s --split-input-file --dtc-compress-gradients="method=topk share=1" 2>&1 | FileCheck %s --check-prefix SHARE
// RUN: not dtc-opt %s --split-input-file --dtc-compress-gradients="method=powersgd rank=65" 2>&1 | FileCheck %s --check-prefix RANK
// RUN: not dtc-opt %s --split-input-file --dtc-compress-gradients="rounding=stochastic" 2>&1 | FileCheck %s --check-prefix KEY
// RUN: not dtc-opt %s --split-input-file --dtc-compress-gradients="axis=tp" 2>&1 | FileCheck %s --check-prefix AXIS

// METHOD: error: the option method is "int5", expected one of int8, int4, topk, powersgd
// BLOCK: error: the option block is -1, expected at least 0
// ROUNDING: error: the option rounding is "up", expected nearest or stochastic
// SHARE: error: the option share is 1, expected a number above 0 and below 1
// RANK: error: the option rank is 65, expected at most 64
// KEY: error: the step has no random key, from which stochastic rounding draws; run dtc-advance-random-key with always
// AXIS: error: sums of gradients cannot be compressed over "tp", expected an axis of devices with different samples: the mesh has dp, cp

dist.mesh @mesh <"dp"=2, "cp"=2>
func.func @several_axes(%g: tensor<16xf32>, %p: tensor<4xf32> {dtc.param = "p"}, %l: tensor<f32>, %apply: tensor<i1>) -> tensor<4xf32> {
  // expected-error@+1 {{cannot be summed over "dp" as int8: it is scattered over several axes, ["dp", "cp"]; have ZeRO split over "dp" alone (--zero-axes)}}
  %0 = dist.reduce_scatter sum %g dim 0 over @mesh ["dp", "cp"] : (tensor<16xf32>) -> tensor<4xf32>
  %new, %m = dtc.sgd %p, %0, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %new : tensor<4xf32>
}

// -----

dist.mesh @mesh <"dp"=2>
func.func @narrow(%g: tensor<16xbf16>, %p: tensor<16xf32> {dtc.param = "p"}, %l: tensor<f32>, %apply: tensor<i1>) -> tensor<16xf32> {
  // expected-error@+1 {{it has type 'tensor<16xbf16>', expected f32 or f64; reduce gradients in f32 (--grad-reduce-dtype)}}
  %0 = dist.all_reduce sum %g over @mesh ["dp"] : tensor<16xbf16>
  %1 = dtc.convert %0 : (tensor<16xbf16>) -> tensor<16xf32>
  %new, %m = dtc.sgd %p, %1, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<16xf32>, tensor<16xf32>)
  return %new : tensor<16xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
func.func @each_microbatch(%g: tensor<16xf32>, %p: tensor<8xf32> {dtc.param = "p"}, %l: tensor<f32>, %apply: tensor<i1>) -> tensor<8xf32> {
  %0 = dist.microbatch_loop @mesh "micro" : tensor<8xf32> {
    // expected-error@+1 {{it is summed once for each microbatch, and would be compressed each time; choose a ZeRO stage of at most 1 (--zero), or one microbatch}}
    %s = dist.reduce_scatter sum %g dim 0 over @mesh ["dp"] : (tensor<16xf32>) -> tensor<8xf32>
    dist.yield %s : tensor<8xf32>
  }
  %new, %m = dtc.sgd %p, %0, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>)
  return %new : tensor<8xf32>
}

// -----

// expected-error@+1 {{sums of gradients cannot be compressed over "dp", which is cut into {"dp.0", "dp.1"}; leave the dimension whole that cuts it}}
module {
  dist.mesh @mesh <"dp.0"=2 of "dp", "dp.1"=3 of "dp">
  func.func @parts(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

dist.mesh @mesh <"dp"=2>
func.func @no_state(%g: tensor<16xf32>, %p: tensor<16xf32> {dtc.param = "p"}, %l: tensor<f32>, %apply: tensor<i1>) -> tensor<16xf32> {
  %0 = dist.all_reduce sum %g over @mesh ["dp"] : tensor<16xf32>
  %new, %m = dtc.sgd %p, %0, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<16xf32>, tensor<16xf32>)
  return %new : tensor<16xf32>
}
