// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-verify-precision
// RUN: not dtc-opt %s --split-input-file --dtc-verify-precision=allow-narrow-reductions 2>&1 | FileCheck %s --check-prefix=ALLOW --implicit-check-not "error: a gradient"

// The other errors stay where gradients may be narrow.
// ALLOW: error: 'dtc.exp' op computes on 16-bit floats

// Ops that need f32 are named, each of them.
func.func @wide_ops(%x: tensor<4xbf16>, %h: tensor<4xf16>) {
  // expected-error@+1 {{'dtc.exp' op computes on 16-bit floats, in which it loses too much; convert its operand to f32 first}}
  %0 = dtc.exp %x : tensor<4xbf16>
  // expected-error@+1 {{'dtc.log' op computes on 16-bit floats}}
  %1 = dtc.log %h : tensor<4xf16>
  // expected-error@+1 {{'dtc.sqrt' op computes on 16-bit floats}}
  %2 = dtc.sqrt %x : tensor<4xbf16>
  // expected-error@+1 {{'dtc.rsqrt' op computes on 16-bit floats}}
  %3 = dtc.rsqrt %h : tensor<4xf16>
  return
}

// -----

// The same in f32, and what has its own f32 inside, is fine.
func.func @fine(%x: tensor<4xbf16>, %f: tensor<4xf32>, %d: tensor<4xf64>, %g: tensor<4xbf16>) {
  %0 = dtc.exp %f : tensor<4xf32>
  %1 = dtc.rsqrt %d : tensor<4xf64>
  %2 = dtc.softmax %x : tensor<4xbf16>
  %3 = dtc.tanh %x : tensor<4xbf16>
  %4 = dtc.reduce sum %x dims [0] : (tensor<4xbf16>) -> tensor<f32>
  return
}

// -----

// Sums over microbatches are wide: a loop has no other results.
dist.mesh @mesh <"micro"=2 temporal>
func.func @microbatches(%x: tensor<4xbf16>) {
  // expected-error@+1 {{'dist.microbatch_loop' op adds up values of type 'tensor<4xbf16>', expected f32 or f64}}
  %0:2 = dist.microbatch_loop @mesh "micro" : tensor<4xbf16>, tensor<f32> {
    %1 = dtc.neg %x : tensor<4xbf16>
    %2 = dtc.reduce sum %x dims [0] : (tensor<4xbf16>) -> tensor<f32>
    dist.yield %1, %2 : tensor<4xbf16>, tensor<f32>
  }
  return
}

// -----

// A gradient may be summed between devices in 16 bits only where that was asked for. Activations may be.
dist.mesh @mesh <"dp"=2>
func.func @gradient(%p: tensor<4xf32>, %g: tensor<4xbf16>, %s: tensor<8xf16>, %x: tensor<4xbf16>, %l: tensor<f32>, %apply: tensor<i1>) {
  // expected-error@+1 {{a gradient of type 'tensor<4xbf16>' is summed between devices, which needs f32; say so if 16 bits will do (--grad-reduce-dtype)}}
  %0 = dist.all_reduce sum %g over @mesh ["dp"] : tensor<4xbf16>
  %1 = dtc.convert %0 : (tensor<4xbf16>) -> tensor<4xf32>
  %2:2 = dtc.sgd %p, %1, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  // expected-error@+1 {{a gradient of type 'tensor<8xf16>' is summed between devices}}
  %3 = dist.reduce_scatter sum %s dim 0 over @mesh ["dp"] : (tensor<8xf16>) -> tensor<4xf16>
  %4 = dtc.convert %3 : (tensor<4xf16>) -> tensor<4xf32>
  %5:2 = dtc.sgd %p, %4, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  %6 = dist.all_reduce sum %x over @mesh ["dp"] : tensor<4xbf16>
  return
}
