// RUN: dtc-opt %s --dtc-build-train-step --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp zero-stage=1 zero-axes=dp" -o /dev/null 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: dtc-opt %s --dtc-build-train-step --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp zero-stage=2 zero-axes=dp" -o /dev/null 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: dtc-opt %s --dtc-build-train-step --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp zero-stage=3 zero-axes=dp" -o /dev/null 2>&1 | FileCheck %s --check-prefix=THREE
// RUN: dtc-opt %s --dtc-build-train-step=freeze=w --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp zero-stage=3 zero-axes=dp" -o /dev/null 2>&1 | FileCheck %s --check-prefix=FROZEN
// RUN: dtc-opt %s --dtc-build-train-step --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp zero-stage=3 zero-axes=dp" 2>/dev/null | FileCheck %s --check-prefix=SPLIT
// RUN: sed 's/"dp"=9/"dp"=2/' %s > %t.mlir
// RUN: dtc-opt %t.mlir --dtc-build-train-step --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp zero-stage=3 zero-axes=dp" -o /dev/null 2>&1 | FileCheck %s --check-prefix=EVEN

// Nine devices of 16 columns have two each, and the last one has nothing: a device has 8 of 64 elements, where 7.1 would
// be even. "w" has 64 elements of 4 bytes: two moments, the gradient and the parameter itself. "v", of 18, is split evenly;
// "s" is one element and stays whole.
// ONE: zero-whole.mlir:[[#]]:[[#]]: remark: ZeRO stage 1 leaves the optimizer's state of 's' ('tensor<1xf32>') whole, 8 B on every device: a device has one element of it
// ONE: zero-whole.mlir:[[#]]:[[#]]: warning: ZeRO stage 1 over {"dp"} leaves 88 B of the optimizer's state on every device, where 74 B would be even; most of that is 'w' ('tensor<4x16xf32>'), 64 B instead of 57 B, which 9 devices do not divide; take a number of devices with smaller prime factors
// ONE-NOT: warning
// TWO: warning: ZeRO stage 2 over {"dp"} leaves 132 B of the optimizer's state and gradients on every device, where 112 B would be even
// THREE: warning: ZeRO stage 3 over {"dp"} leaves 176 B of the optimizer's state, gradients and values on every device, where 148 B would be even
// FROZEN: warning: ZeRO stage 3 over {"dp"} leaves {{.*}} on every device
// SPLIT: tensor<4x16xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>, dtc.param = "w"
// SPLIT: tensor<18xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}]>, dtc.param = "v"
// SPLIT: tensor<1xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>, dtc.param = "s"
// EVEN: remark: ZeRO stage 3 leaves {{.*}} of 's'
// EVEN-NOT: warning
dist.mesh @mesh <"dp"=9>
func.func @loss(%x: tensor<72x4xf32> {dtc.input = "x", dtc.axes = ["batch", ""]},
                %w: tensor<4x16xf32> {dtc.param = "w"}, %v: tensor<18xf32> {dtc.param = "v"},
                %s: tensor<1xf32> {dtc.param = "s"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,ij->bj" %x, %w : (tensor<72x4xf32>, tensor<4x16xf32>) -> tensor<72x16xf32>
  %r = dtc.reduce sum %0 dims [0, 1] : (tensor<72x16xf32>) -> tensor<f32>
  %1 = dtc.einsum "i,i->" %v, %v : (tensor<18xf32>, tensor<18xf32>) -> tensor<f32>
  %2 = dtc.einsum "i,i->" %s, %s : (tensor<1xf32>, tensor<1xf32>) -> tensor<f32>
  %3 = dtc.add %r, %1 : tensor<f32>
  %4 = dtc.add %3, %2 : tensor<f32>
  return %4 : tensor<f32>
}
