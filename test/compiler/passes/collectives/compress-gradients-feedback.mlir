// RUN: dtc-opt %s --split-input-file --dtc-compress-gradients="axis=dp block=4 feedback" | FileCheck %s
// RUN: not dtc-opt %S/compress-gradients-invalid.mlir --split-input-file --dtc-compress-gradients="feedback" 2>&1 | FileCheck %s --check-prefix STATE

// STATE: error: the gradient of {{.*}} has no state beside it that lies as it does, so that nothing says how its residual would; choose no feedback

// Each device has a residual, which it adds to its gradient; a step that is skipped leaves it as it is.
// CHECK-LABEL: func.func @all_reduce(
// CHECK-SAME: %[[G:[^:]*]]: tensor<2x5xf32>, %{{[^:]*}}: tensor<f32>, %[[APPLY:[^:]*]]: tensor<i1>,
// CHECK-SAME: %[[E:[^:]*]]: tensor<1x2x5xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}, {}]>, dtc.global_shape = array<i64: 2, 2, 5>, dtc.state = "residual", dtc.state_of = "p"})
// CHECK-SAME: tensor<1x2x5xf32> {dtc.global_shape = array<i64: 2, 2, 5>, dtc.updates = 5 : i64})
// CHECK: %[[OLD:.*]] = dtc.reshape %[[E]] : (tensor<1x2x5xf32>) -> tensor<2x5xf32>
// CHECK-NEXT: %[[ADDEND:.*]] = dtc.add %[[G]], %[[OLD]]
// CHECK: %[[Q:.*]] = dist.quantize_blocks
// CHECK-NEXT: dist.all_to_all %[[Q]]
// CHECK-NEXT: %[[KEPT:.*]] = dist.dequantize_blocks %[[Q]] {{.*}} parts = 2 : i64} : (tensor<4x2xi32>) -> tensor<16xf32>
// CHECK-NEXT: dtc.slice %[[KEPT]]
// CHECK-NEXT: %[[SENT:.*]] = dtc.reshape
// CHECK-NEXT: %[[LOST:.*]] = dtc.sub %[[ADDEND]], %[[SENT]]
// CHECK: %[[APPLIES:.*]] = dtc.broadcast %[[APPLY]] dims [] : (tensor<i1>) -> tensor<1x2x5xi1>
// CHECK-NEXT: %[[NEXT:.*]] = dtc.reshape %[[LOST]]
// CHECK-NEXT: %[[NEW:.*]] = dtc.select %[[APPLIES]], %[[NEXT]], %[[E]]
// CHECK-NEXT: return {{.*}}, %[[NEW]] :
dist.mesh @mesh <"dp"=2>
func.func @all_reduce(%p: tensor<2x5xf32> {dtc.param = "p"}, %m: tensor<2x5xf32> {dtc.state = "momentum", dtc.state_of = "p", dist.sharding = #dist.sharding<@mesh, [{}, {}]>}, %g: tensor<2x5xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> (tensor<2x5xf32> {dtc.updates = 0}, tensor<2x5xf32> {dtc.updates = 1}) {
  %sum = dist.all_reduce sum %g over @mesh ["dp"] : tensor<2x5xf32>
  %new, %newm = dtc.sgd %p, %sum, %m, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<2x5xf32>, tensor<2x5xf32>)
  return %new, %newm : tensor<2x5xf32>, tensor<2x5xf32>
}

// -----

// The residual of a gradient that is scattered is of the whole gradient, and has the sharding that other axes give it.
// CHECK-LABEL: func.func @scattered(
// CHECK-SAME: tensor<1x8x3xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}, {"tp"}]>, dtc.global_shape = array<i64: 2, 8, 6>, dtc.state = "residual", dtc.state_of = "p"}
// CHECK: dist.quantize_blocks %{{.*}} {bits = 8 : i64, block = 3 : i64, dim = 0 : i64, parts = 2 : i64} : (tensor<8x3xf32>) -> tensor<8x2xi32>
// CHECK: dist.dequantize_blocks %{{.*}} {bits = 8 : i64, block = 3 : i64, dim = 0 : i64, parts = 2 : i64} : (tensor<8x2xi32>) -> tensor<8x3xf32>
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @scattered(%p: tensor<4x3xf32> {dtc.param = "p", dtc.global_shape = array<i64: 8, 6>, dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>}, %m: tensor<4x3xf32> {dtc.state = "momentum", dtc.state_of = "p", dtc.global_shape = array<i64: 8, 6>, dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>}, %g: tensor<8x3xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> (tensor<4x3xf32> {dtc.updates = 0}, tensor<4x3xf32> {dtc.updates = 1}) {
  %sum = dist.reduce_scatter sum %g dim 0 over @mesh ["dp"] : (tensor<8x3xf32>) -> tensor<4x3xf32>
  %new, %newm = dtc.sgd %p, %sum, %m, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return %new, %newm : tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// A gradient that ZeRO leaves partial over another axis is summed before it is rounded, and not after.
// CHECK-LABEL: func.func @partial(
// CHECK-SAME: tensor<1x8x3xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}, {}]>, dtc.global_shape = array<i64: 2, 8, 3>, dtc.state = "residual", dtc.state_of = "p"}
// CHECK: %[[WHOLE:.*]] = dist.all_reduce sum %{{.*}} over @mesh ["cp"]
// CHECK: dtc.add %[[WHOLE]],
// CHECK: dist.quantize_blocks
// CHECK-NOT: dist.all_reduce
// CHECK: return
dist.mesh @mesh <"dp"=2, "cp"=2>
func.func @partial(%p: tensor<4x3xf32> {dtc.param = "p", dtc.global_shape = array<i64: 8, 3>, dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>}, %m: tensor<4x3xf32> {dtc.state = "momentum", dtc.state_of = "p", dtc.global_shape = array<i64: 8, 3>, dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>}, %g: tensor<8x3xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> (tensor<4x3xf32> {dtc.updates = 0}, tensor<4x3xf32> {dtc.updates = 1}) {
  %scattered = dist.reduce_scatter sum %g dim 0 over @mesh ["dp"] : (tensor<8x3xf32>) -> tensor<4x3xf32>
  %sum = dist.all_reduce sum %scattered over @mesh ["cp"] : tensor<4x3xf32>
  %new, %newm = dtc.sgd %p, %sum, %m, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return %new, %newm : tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// If each device along tp has a part of a gradient until the parts are gathered, there is a residual for each part.
// CHECK-LABEL: func.func @gathered(
// CHECK-SAME: tensor<1x2x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp", "tp"}, {}, {}]>, dtc.global_shape = array<i64: 4, 2, 8>, dtc.state = "residual", dtc.state_of = "p"}
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @gathered(%p: tensor<4x8xf32> {dtc.param = "p"}, %m: tensor<4x8xf32> {dtc.state = "momentum", dtc.state_of = "p", dist.sharding = #dist.sharding<@mesh, [{}, {}]>}, %g: tensor<2x8xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> (tensor<4x8xf32> {dtc.updates = 0}, tensor<4x8xf32> {dtc.updates = 1}) {
  %part = dist.all_reduce sum %g over @mesh ["dp"] : tensor<2x8xf32>
  %sum = dist.all_gather %part dim 0 over @mesh ["tp"] : (tensor<2x8xf32>) -> tensor<4x8xf32>
  %new, %newm = dtc.sgd %p, %sum, %m, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return %new, %newm : tensor<4x8xf32>, tensor<4x8xf32>
}
