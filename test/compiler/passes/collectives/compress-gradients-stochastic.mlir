// RUN: dtc-opt %s --split-input-file --dtc-compress-gradients="axis=dp block=4 rounding=stochastic" 2>/dev/null | FileCheck %s
// RUN: dtc-opt %s --split-input-file --dtc-compress-gradients="axis=dp block=4 rounding=stochastic" --verify-diagnostics --mlir-print-op-on-diagnostic=false -o /dev/null

// An addend draws a number for each element of the parameter on each device, the sum one for each element of the part that a
// device adds; padding is not drawn for.
// CHECK-LABEL: func.func @all_reduce(
// CHECK-SAME: %[[KEY:[^:]*]]: tensor<2xi32> {dtc.step_state = "random_key"}
// CHECK: %[[U:.*]] = dist.random_uniform %[[KEY]] {number = [[ADDEND:[0-9]+]] : i64, shape = array<i64: 2, 2, 5>, sharding = ["dp", "", ""]} : (tensor<2xi32>) -> tensor<1x2x5xf32>
// CHECK: %[[NOISE:.*]] = dtc.pad %{{.*}} low [0] high [6] value 0.000000e+00 : (tensor<10xf32>) -> tensor<16xf32>
// CHECK: dist.quantize_blocks %{{.*}} noise %[[NOISE]] {bits = 8 : i64, block = 4 : i64, dim = 0 : i64, parts = 2 : i64} : (tensor<16xf64>, tensor<16xf32>)
// CHECK: dtc.reduce sum
// CHECK: dist.random_uniform %[[KEY]] {number = {{[0-9]+}} : i64, shape = array<i64: 2, 5>, sharding = ["", ""]} : (tensor<2xi32>) -> tensor<2x5xf32>
// CHECK: %[[PART:.*]] = dist.shard_slice %{{.*}} dim 0 over @mesh ["dp"] : (tensor<16xf32>) -> tensor<8xf32>
// CHECK: %[[ROWS:.*]] = dtc.reshape %[[PART]] : (tensor<8xf32>) -> tensor<2x4xf32>
// CHECK: dist.quantize_blocks %{{.*}} noise %[[ROWS]]
dist.mesh @mesh <"dp"=2>
func.func @all_reduce(%key: tensor<2xi32> {dtc.step_state = "random_key"}, %p: tensor<2x5xf64> {dtc.param = "p"}, %m: tensor<2x5xf64> {dtc.state = "momentum", dtc.state_of = "p", dist.sharding = #dist.sharding<@mesh, [{}, {}]>}, %g: tensor<2x5xf64>, %l: tensor<f64>, %apply: tensor<i1>) -> tensor<2x5xf64> {
  %sum = dist.all_reduce sum %g over @mesh ["dp"] : tensor<2x5xf64>
  %new, %newm = dtc.sgd %p, %sum, %m, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<2x5xf64>, tensor<2x5xf64>, tensor<2x5xf64>, tensor<f64>, tensor<f64>, tensor<i1>) -> (tensor<2x5xf64>, tensor<2x5xf64>)
  return %new : tensor<2x5xf64>
}

// -----

// The part that ZeRO leaves on a device, of columns that tp splits too.
// CHECK-LABEL: func.func @scattered(
// CHECK: dist.random_uniform %{{.*}} {number = {{[0-9]+}} : i64, shape = array<i64: 2, 8, 8>, sharding = ["dp", "", "tp"]} : (tensor<2xi32>) -> tensor<1x8x4xf32>
// CHECK: dist.quantize_blocks %{{.*}} noise %{{.*}} {bits = 8 : i64, block = 4 : i64, dim = 0 : i64, parts = 2 : i64} : (tensor<8x4xf32>, tensor<8x4xf32>)
// CHECK: dist.random_uniform %{{.*}} shape = array<i64: 8, 8>, sharding = ["", "tp"]} : (tensor<2xi32>) -> tensor<8x4xf32>
// CHECK: dist.shard_slice %{{.*}} dim 0 over @mesh ["dp"] : (tensor<8x4xf32>) -> tensor<4x4xf32>
// CHECK: dist.quantize_blocks %{{.*}} noise %{{.*}} : (tensor<4x4xf32>, tensor<4x4xf32>)
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @scattered(%key: tensor<2xi32> {dtc.step_state = "random_key"}, %p: tensor<4x4xf32> {dtc.param = "p", dtc.global_shape = array<i64: 8, 8>, dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>}, %m: tensor<4x4xf32> {dtc.state = "momentum", dtc.state_of = "p", dtc.global_shape = array<i64: 8, 8>, dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>}, %g: tensor<8x4xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> tensor<4x4xf32> {
  %sum = dist.reduce_scatter sum %g dim 0 over @mesh ["dp"] : (tensor<8x4xf32>) -> tensor<4x4xf32>
  %new, %newm = dtc.sgd %p, %sum, %m, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
  return %new : tensor<4x4xf32>
}

// -----

// CHECK-LABEL: func.func @no_state(
// CHECK-NOT: quantize
// CHECK: return
dist.mesh @mesh <"dp"=2>
func.func @no_state(%key: tensor<2xi32> {dtc.step_state = "random_key"}, %p: tensor<16xf32> {dtc.param = "p"}, %g: tensor<16xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> tensor<16xf32> {
  // expected-remark@+1 {{is summed over "dp" in full, as what a device has of it is no shard of the parameter, for whose elements it would draw numbers}}
  %sum = dist.all_reduce sum %g over @mesh ["dp"] : tensor<16xf32>
  %new, %newm = dtc.sgd %p, %sum, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<16xf32>, tensor<16xf32>)
  return %new : tensor<16xf32>
}
