// RUN: dtc-opt %s --dtc-build-train-step --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp zero-stage=1 zero-axes=dp" -o /dev/null 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: dtc-opt %s --dtc-build-train-step --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp zero-stage=2 zero-axes=dp" -o /dev/null 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: dtc-opt %s --dtc-build-train-step --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp zero-stage=3 zero-axes=dp" -o /dev/null 2>&1 | FileCheck %s --check-prefix=THREE
// RUN: dtc-opt %s --dtc-build-train-step=freeze=w --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp zero-stage=3 zero-axes=dp" -o /dev/null 2>&1 | FileCheck %s --check-prefix=FROZEN
// RUN: sed 's/"dp"=9/"dp"=2/' %s > %t.mlir
// RUN: dtc-opt %t.mlir --dtc-build-train-step --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp zero-stage=3 zero-axes=dp" -o /dev/null 2>&1 | FileCheck %s --check-prefix=EVEN --allow-empty

// Nine devices of 16 elements, two each, leave the last one nothing: the tensor stays whole, and one warning says so for
// all that do. "w" has 64 elements of 4 bytes: two moments, the gradient and the parameter itself. The state of "v", of 18,
// is split.
// ONE: zero-whole.mlir:[[#]]:[[#]]: warning: ZeRO stage 1 over {"dp"} leaves the optimizer's state of 1 of 2 parameters whole: 512 B on every device, besides 16 B for its part of the others; no dimension of the largest, 'w' ('tensor<4x16xf32>'), can be split so that each of 9 devices has a part; take a number of devices that divides one
// ONE-NOT: warning
// TWO: warning: ZeRO stage 2 over {"dp"} leaves the optimizer's state and gradients of 1 of 2 parameters whole: 768 B on every device, besides 24 B
// THREE: warning: ZeRO stage 3 over {"dp"} leaves the optimizer's state, gradients and values of 1 of 2 parameters whole: 1.0 KiB on every device, besides 32 B
// FROZEN: warning: ZeRO stage 3 over {"dp"} leaves the optimizer's state, gradients and values of 1 of 2 parameters whole: 256 B on every device
// EVEN-NOT: warning
dist.mesh @mesh <"dp"=9>
func.func @loss(%x: tensor<72x4xf32> {dtc.input = "x", dtc.axes = ["batch", ""]},
                %w: tensor<4x16xf32> {dtc.param = "w"}, %v: tensor<18xf32> {dtc.param = "v"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,ij->bj" %x, %w : (tensor<72x4xf32>, tensor<4x16xf32>) -> tensor<72x16xf32>
  %r = dtc.reduce sum %0 dims [0, 1] : (tensor<72x16xf32>) -> tensor<f32>
  %1 = dtc.einsum "i,i->" %v, %v : (tensor<18xf32>, tensor<18xf32>) -> tensor<f32>
  %2 = dtc.add %r, %1 : tensor<f32>
  return %2 : tensor<f32>
}
