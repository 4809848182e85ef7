// RUN: dtc-opt %s --split-input-file --dtc-compress-gradients="axis=dp block=4" 2>/dev/null | FileCheck %s
// RUN: dtc-opt %s --split-input-file --dtc-compress-gradients="axis=dp block=4 method=int4" 2>/dev/null | FileCheck %s --check-prefix INT4
// RUN: dtc-opt %s --split-input-file --dtc-compress-gradients="axis=dp block=4" --verify-diagnostics --mlir-print-op-on-diagnostic=false -o /dev/null

// Ten elements are filled up to 16, two blocks for each device. The norm reads the sum that the optimizer reads; the sum of the
// loss is left alone.
// CHECK-LABEL: func.func @all_reduce(
// CHECK-SAME: %[[P:[^:]*]]: tensor<2x5xf32> {dtc.param = "p"}, %[[G:[^:]*]]: tensor<2x5xf32>, %[[L:[^:]*]]: tensor<f32>
// CHECK-NEXT: %[[FLAT:.*]] = dtc.reshape %[[G]] : (tensor<2x5xf32>) -> tensor<10xf32>
// CHECK-NEXT: %[[PAD:.*]] = dtc.pad %[[FLAT]] low [0] high [6] value 0.000000e+00 : (tensor<10xf32>) -> tensor<16xf32>
// CHECK-NEXT: %[[Q:.*]] = dist.quantize_blocks %[[PAD]] {bits = 8 : i64, block = 4 : i64, dim = 0 : i64, parts = 2 : i64} : (tensor<16xf32>) -> tensor<4x2xi32>
// CHECK-NEXT: %[[R:.*]] = dist.all_to_all %[[Q]] split_dim 0 dim 1 over @mesh ["dp"] {dist.reason = {value = "g"}} : (tensor<4x2xi32>) -> tensor<2x4xi32>
// CHECK-NEXT: %[[ROWS:.*]] = dtc.reshape %[[R]] : (tensor<2x4xi32>) -> tensor<4x2xi32>
// CHECK-NEXT: %[[D:.*]] = dist.dequantize_blocks %[[ROWS]] {{.*}} parts = 1 : i64} : (tensor<4x2xi32>) -> tensor<2x2x4xf32>
// CHECK-NEXT: %[[T:.*]] = dtc.reduce sum %[[D]] dims [1] : (tensor<2x2x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: %[[QT:.*]] = dist.quantize_blocks %[[T]] {{.*}} parts = 1 : i64} : (tensor<2x4xf32>) -> tensor<2x2xi32>
// CHECK-NEXT: %[[ALL:.*]] = dist.all_gather %[[QT]] dim 0 over @mesh ["dp"] {dist.reason = {value = "g"}} : (tensor<2x2xi32>) -> tensor<4x2xi32>
// CHECK-NEXT: %[[V:.*]] = dist.dequantize_blocks %[[ALL]] {{.*}} parts = 1 : i64} : (tensor<4x2xi32>) -> tensor<16xf32>
// CHECK-NEXT: %[[CUT:.*]] = dtc.slice %[[V]] offsets [0] sizes [10] : (tensor<16xf32>) -> tensor<10xf32>
// CHECK-NEXT: %[[SUM:.*]] = dtc.reshape %[[CUT]] : (tensor<10xf32>) -> tensor<2x5xf32>
// CHECK-NEXT: dtc.einsum "ab,ab->" %[[SUM]], %[[SUM]]
// CHECK-NEXT: dtc.sgd %[[P]], %[[SUM]],
// CHECK-NEXT: dist.all_reduce sum %[[L]] over @mesh ["dp"] : tensor<f32>

// INT4-LABEL: func.func @all_reduce(
// INT4: dist.quantize_blocks {{.*}} {bits = 4 : i64, block = 4 : i64, dim = 0 : i64, parts = 2 : i64} : (tensor<16xf32>) -> tensor<4x2xi32>
dist.mesh @mesh <"dp"=2>
func.func @all_reduce(%p: tensor<2x5xf32> {dtc.param = "p"}, %g: tensor<2x5xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> (tensor<2x5xf32>, tensor<f32>, tensor<f32>) {
  %sum = dist.all_reduce sum %g over @mesh ["dp"] {dist.reason = {value = "g"}} : tensor<2x5xf32>
  %norm = dtc.einsum "ab,ab->" %sum, %sum : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<f32>
  %new, %m = dtc.sgd %p, %sum, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<2x5xf32>, tensor<2x5xf32>)
  %loss = dist.all_reduce sum %l over @mesh ["dp"] : tensor<f32>
  return %new, %norm, %loss : tensor<2x5xf32>, tensor<f32>, tensor<f32>
}

// -----

// A part of columns, in blocks of the rows of the part; the sum over cp comes before, in full.
// CHECK-LABEL: func.func @scattered(
// CHECK-SAME: %[[G:[^:]*]]: tensor<3x16xf32>
// CHECK: %[[CP:.*]] = dist.all_reduce sum %[[G]] over @mesh ["cp"] : tensor<3x16xf32>
// CHECK-NEXT: %[[Q:.*]] = dist.quantize_blocks %[[CP]] {bits = 8 : i64, block = 4 : i64, dim = 1 : i64, parts = 2 : i64} : (tensor<3x16xf32>) -> tensor<12x2xi32>
// CHECK-NEXT: %[[R:.*]] = dist.all_to_all %[[Q]] split_dim 0 dim 1 over @mesh ["dp"] : (tensor<12x2xi32>) -> tensor<6x4xi32>
// CHECK-NEXT: %[[ROWS:.*]] = dtc.reshape %[[R]] : (tensor<6x4xi32>) -> tensor<12x2xi32>
// CHECK-NEXT: %[[D:.*]] = dist.dequantize_blocks %[[ROWS]] {{.*}} : (tensor<12x2xi32>) -> tensor<6x2x4xf32>
// CHECK-NEXT: %[[T:.*]] = dtc.reduce sum %[[D]] dims [1]
// CHECK-NEXT: %[[QT:.*]] = dist.quantize_blocks %[[T]] {{.*}} : (tensor<6x4xf32>) -> tensor<6x2xi32>
// CHECK-NEXT: %[[SUM:.*]] = dist.dequantize_blocks %[[QT]] {{.*}} : (tensor<6x2xi32>) -> tensor<3x8xf32>
// CHECK-NEXT: dtc.sgd %{{.*}}, %[[SUM]],
// CHECK-NOT: all_gather
dist.mesh @mesh <"dp"=2, "cp"=2>
func.func @scattered(%g: tensor<3x16xf32>, %p: tensor<3x8xf32> {dtc.param = "p", dtc.global_shape = array<i64: 3, 16>, dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>}, %l: tensor<f32>, %apply: tensor<i1>) -> tensor<3x8xf32> {
  %0 = dist.all_reduce sum %g over @mesh ["cp"] : tensor<3x16xf32>
  %1 = dist.reduce_scatter sum %0 dim 1 over @mesh ["dp"] : (tensor<3x16xf32>) -> tensor<3x8xf32>
  %new, %m = dtc.sgd %p, %1, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<3x8xf32>, tensor<3x8xf32>)
  return %new : tensor<3x8xf32>
}

// -----

// CHECK-LABEL: func.func @both_axes(
// CHECK-SAME: %[[G:[^:]*]]: tensor<16xf32>
// CHECK: %[[CP:.*]] = dist.all_reduce sum %[[G]] over @mesh ["cp"] : tensor<16xf32>
// CHECK-NEXT: dist.quantize_blocks %[[CP]]
dist.mesh @mesh <"dp"=2, "cp"=2>
func.func @both_axes(%g: tensor<16xf32>, %p: tensor<16xf32> {dtc.param = "p"}, %l: tensor<f32>, %apply: tensor<i1>) -> tensor<16xf32> {
  %0 = dist.all_reduce sum %g over @mesh ["dp", "cp"] : tensor<16xf32>
  %new, %m = dtc.sgd %p, %0, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<16xf32>, tensor<16xf32>)
  return %new : tensor<16xf32>
}

// -----

// A device has three consecutive elements of the parameter, fewer than a block.
// CHECK-LABEL: func.func @short_parts(
// CHECK: dist.quantize_blocks %{{.*}} {bits = 8 : i64, block = 3 : i64, {{.*}}} : (tensor<12xf32>) -> tensor<4x2xi32>
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @short_parts(%g: tensor<4x3xf32>, %p: tensor<4x3xf32> {dtc.param = "p", dtc.global_shape = array<i64: 4, 6>, dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>}, %l: tensor<f32>, %apply: tensor<i1>) -> tensor<4x3xf32> {
  // expected-remark@+1 {{has blocks of 3 elements and not of 4, since a device has parts of 3 consecutive elements; the result is not that of other layouts}}
  %0 = dist.all_reduce sum %g over @mesh ["dp"] : tensor<4x3xf32>
  %new, %m = dtc.sgd %p, %0, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return %new : tensor<4x3xf32>
}

// -----

// CHECK-LABEL: func.func @in_full(
// CHECK-NOT: quantize
// CHECK: dist.all_reduce
// CHECK: dist.all_reduce
// CHECK-NOT: quantize
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @in_full(%g: tensor<1xf32>, %p: tensor<1xf32> {dtc.param = "p"}, %h: tensor<4xf32>, %q: tensor<4xf32> {dtc.param = "q", dtc.global_shape = array<i64: 7>, dist.sharding = #dist.sharding<@mesh, [{"tp"}]>}, %l: tensor<f32>, %apply: tensor<i1>) -> (tensor<1xf32>, tensor<4xf32>) {
  // expected-remark@+1 {{is summed over "dp" in full, as blocks of length 1 with their scales are no smaller}}
  %0 = dist.all_reduce sum %g over @mesh ["dp"] : tensor<1xf32>
  %new, %m = dtc.sgd %p, %0, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<1xf32>, tensor<1xf32>)
  // expected-remark@+1 {{is summed over "dp" in full, as dimension 0 of 7 elements is padded to shards of 4}}
  %1 = dist.all_reduce sum %h over @mesh ["dp"] : tensor<4xf32>
  %newq, %mq = dtc.sgd %q, %1, %q, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %new, %newq : tensor<1xf32>, tensor<4xf32>
}
