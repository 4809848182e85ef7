// RUN: dtc-opt %s --split-input-file --dtc-compress-gradients="axis=dp method=topk block=8 share=0.25 feedback" 2>/dev/null | FileCheck %s
// RUN: dtc-opt %s --split-input-file --dtc-compress-gradients="axis=dp method=topk block=8 share=0.25 feedback" --verify-diagnostics --mlir-print-op-on-diagnostic=false -o /dev/null

// Two elements of each of two blocks go to all devices; the second block is filled up with zeros. The others stay.
// CHECK-LABEL: func.func @all_reduce(
// CHECK-SAME: %[[G:[^:]*]]: tensor<2x5xf32>, %{{[^:]*}}: tensor<f32>, %[[APPLY:[^:]*]]: tensor<i1>,
// CHECK-SAME: %[[E:[^:]*]]: tensor<1x2x5xf32> {{.*}}dtc.state = "residual"
// CHECK: %[[ADDEND:.*]] = dtc.add %[[G]], %
// CHECK: %[[ROWS:.*]] = dtc.reshape %{{.*}} : (tensor<16xf32>) -> tensor<2x8xf32>
// CHECK-NEXT: %[[SIZES:.*]] = dtc.abs %[[ROWS]]
// CHECK-NEXT: %[[MASK:.*]] = dtc.top_k %[[SIZES]] {k = 2 : i64} : tensor<2x8xf32>
// CHECK-NEXT: %[[PLACES:.*]] = dtc.nonzero %[[MASK]] : tensor<2x8xi1> -> tensor<2x2xi32>
// CHECK-NEXT: %[[TABLE:.*]] = dtc.reshape %[[ROWS]] : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
// CHECK-NEXT: %[[TAKEN:.*]] = dtc.embedding %[[TABLE]], %[[PLACES]]
// CHECK-NEXT: %[[VALUES:.*]] = dtc.reshape %[[TAKEN]] : (tensor<2x2x1xf32>) -> tensor<2x2xf32>
// CHECK-NEXT: %[[ALL:.*]] = dist.all_gather %[[VALUES]] dim 1 over @mesh ["dp"] : (tensor<2x2xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: %[[WHERE:.*]] = dist.all_gather %[[PLACES]] dim 1 over @mesh ["dp"] : (tensor<2x2xi32>) -> tensor<2x4xi32>
// CHECK: %[[KEPT:.*]] = dtc.select %[[MASK]], %[[ROWS]], %
// CHECK: %[[LOST:.*]] = dtc.sub %[[ADDEND]], %
// CHECK: %[[EACH:.*]] = dtc.reshape %[[ALL]] : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
// CHECK-NEXT: %[[SUM:.*]] = dtc.embedding_grad %[[WHERE]], %[[EACH]] : (tensor<2x4xi32>, tensor<2x4x1xf32>) -> tensor<2x8x1xf32>
// CHECK: dtc.sgd
// CHECK-NOT: dist.all_reduce
dist.mesh @mesh <"dp"=2>
func.func @all_reduce(%p: tensor<2x5xf32> {dtc.param = "p"}, %m: tensor<2x5xf32> {dtc.state = "momentum", dtc.state_of = "p", dist.sharding = #dist.sharding<@mesh, [{}, {}]>}, %g: tensor<2x5xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> (tensor<2x5xf32> {dtc.updates = 0}, tensor<2x5xf32> {dtc.updates = 1}) {
  %sum = dist.all_reduce sum %g over @mesh ["dp"] : tensor<2x5xf32>
  %new, %newm = dtc.sgd %p, %sum, %m, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<2x5xf32>, tensor<2x5xf32>)
  return %new, %newm : tensor<2x5xf32>, tensor<2x5xf32>
}

// -----

// Of a part of the columns, each device gets what the devices send of it.
// CHECK-LABEL: func.func @scattered(
// CHECK: dtc.reshape %{{.*}} : (tensor<3x16xf32>) -> tensor<3x2x8xf32>
// CHECK-NEXT: dtc.transpose %{{.*}} permutation [1, 0, 2] : (tensor<3x2x8xf32>) -> tensor<2x3x8xf32>
// CHECK-NEXT: dtc.reshape %{{.*}} : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
// CHECK: dist.all_to_all %{{.*}} split_dim 0 dim 1 over @mesh ["dp"] : (tensor<6x2xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: dist.all_to_all %{{.*}} split_dim 0 dim 1 over @mesh ["dp"] : (tensor<6x2xi32>) -> tensor<3x4xi32>
// CHECK: dtc.embedding_grad %{{.*}} -> tensor<3x8x1xf32>
// CHECK-NOT: all_gather
dist.mesh @mesh <"dp"=2>
func.func @scattered(%p: tensor<3x8xf32> {dtc.param = "p", dtc.global_shape = array<i64: 3, 16>, dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>}, %m: tensor<3x8xf32> {dtc.state = "momentum", dtc.state_of = "p", dtc.global_shape = array<i64: 3, 16>, dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>}, %g: tensor<3x16xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> tensor<3x8xf32> {
  %sum = dist.reduce_scatter sum %g dim 1 over @mesh ["dp"] : (tensor<3x16xf32>) -> tensor<3x8xf32>
  %new, %newm = dtc.sgd %p, %sum, %m, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<3x8xf32>, tensor<3x8xf32>)
  return %new : tensor<3x8xf32>
}

// -----

// CHECK-LABEL: func.func @in_full(
// CHECK-NOT: top_k
// CHECK: return
dist.mesh @mesh <"dp"=2>
func.func @in_full(%p: tensor<2xf32> {dtc.param = "p"}, %m: tensor<2xf32> {dtc.state = "momentum", dtc.state_of = "p", dist.sharding = #dist.sharding<@mesh, [{}]>}, %g: tensor<2xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> tensor<2xf32> {
  // expected-remark@+1 {{is summed over "dp" in full, as 1 of the 2 elements of a block with their places are no smaller}}
  %sum = dist.all_reduce sum %g over @mesh ["dp"] : tensor<2xf32>
  %new, %newm = dtc.sgd %p, %sum, %m, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>)
  return %new : tensor<2xf32>
}
