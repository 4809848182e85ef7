// RUN: dtc-opt %s --split-input-file --dtc-compress-gradients="axis=dp method=powersgd rank=2 feedback" 2>/dev/null | FileCheck %s
// RUN: not dtc-opt %s --split-input-file --dtc-compress-gradients="axis=dp method=powersgd rank=20" 2>&1 | FileCheck %s --check-prefix RANK
// RUN: dtc-opt %s --split-input-file --dtc-compress-gradients="axis=dp method=powersgd rank=2 feedback" --verify-diagnostics --mlir-print-op-on-diagnostic=false -o /dev/null
// RANK: error: no gradient is smaller as factors of rank 20; choose a smaller rank, or leave the compression out

// P = M Q, made orthonormal, Q = M^T P; the residual is what P (M^T P)^T of this device leaves.
// CHECK-LABEL: func.func @all_reduce(
// CHECK-SAME: %[[G:[^:]*]]: tensor<6x8xf32>, %{{[^:]*}}: tensor<f32>, %[[APPLY:[^:]*]]: tensor<i1>,
// CHECK-SAME: %[[E:[^:]*]]: tensor<1x6x8xf32> {{{.*}}dtc.state = "residual"
// CHECK-SAME: %[[Q:[^:]*]]: tensor<8x2xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}]>, dtc.global_shape = array<i64: 8, 2>, dtc.state = "powersgd_factor", dtc.state_of = "p"}
// CHECK: %[[M:.*]] = dtc.add %[[G]],
// CHECK: %[[MQ:.*]] = dtc.einsum "ij,jk->ik" %[[M]], %[[Q]] : (tensor<6x8xf32>, tensor<8x2xf32>) -> tensor<6x2xf32>
// CHECK-NEXT: %[[P0:.*]] = dist.all_reduce sum %[[MQ]] over @mesh ["dp"] : tensor<6x2xf32>
// CHECK: %[[P:.*]] = dtc.concat %{{.*}}, %{{.*}} dim 1 : (tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<6x2xf32>
// CHECK: %[[OWN:.*]] = dtc.einsum "ij,ik->jk" %[[M]], %[[P]]
// CHECK-NEXT: %[[KEPT:.*]] = dtc.einsum "ik,jk->ij" %[[P]], %[[OWN]]
// CHECK-NEXT: %[[NEWQ:.*]] = dist.all_reduce sum %[[OWN]] over @mesh ["dp"] : tensor<8x2xf32>
// CHECK-NEXT: %[[LOST:.*]] = dtc.sub %[[M]], %[[KEPT]]
// CHECK: %[[NEXT:.*]] = dtc.select %{{.*}}, %[[Q]], %[[NEWQ]]
// CHECK: %[[SUM:.*]] = dtc.einsum "ik,jk->ij" %[[P]], %[[NEWQ]]
// CHECK: dtc.sgd %{{.*}}, %[[SUM]],
dist.mesh @mesh <"dp"=2>
func.func @all_reduce(%p: tensor<6x8xf32> {dtc.param = "p"}, %m: tensor<6x8xf32> {dtc.state = "momentum", dtc.state_of = "p", dist.sharding = #dist.sharding<@mesh, [{}, {}]>}, %g: tensor<6x8xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> (tensor<6x8xf32> {dtc.updates = 0}, tensor<6x8xf32> {dtc.updates = 1}) {
  %sum = dist.all_reduce sum %g over @mesh ["dp"] : tensor<6x8xf32>
  %new, %newm = dtc.sgd %p, %sum, %m, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<6x8xf32>, tensor<6x8xf32>)
  return %new, %newm : tensor<6x8xf32>, tensor<6x8xf32>
}

// -----

// Rows that tp splits are gathered to be made orthonormal; the sum of the columns is over both axes. With ZeRO a device has a
// part of the sum.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME: tensor<10x2xf32> {{{.*}}dtc.state = "powersgd_factor"
// CHECK: dist.all_reduce sum %{{.*}} over @mesh ["dp"] : tensor<4x2xf32>
// CHECK: dist.all_gather %{{.*}} dim 0 over @mesh ["tp"] : (tensor<4x2xf32>) -> tensor<8x2xf32>
// CHECK: dist.shard_slice %{{.*}} dim 0 over @mesh ["tp"] : (tensor<8x2xf32>) -> tensor<4x2xf32>
// CHECK: dist.all_reduce sum %{{.*}} over @mesh ["tp"] : tensor<10x2xf32>
// CHECK: dist.all_reduce sum %{{.*}} over @mesh ["dp"] : tensor<10x2xf32>
// CHECK: dist.shard_slice %{{.*}} dim 1 over @mesh ["dp"] : (tensor<4x10xf32>) -> tensor<4x5xf32>
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @rows(%p: tensor<4x5xf32> {dtc.param = "p", dtc.global_shape = array<i64: 8, 10>, dist.sharding = #dist.sharding<@mesh, [{"tp"}, {"dp"}]>}, %m: tensor<4x5xf32> {dtc.state = "momentum", dtc.state_of = "p", dtc.global_shape = array<i64: 8, 10>, dist.sharding = #dist.sharding<@mesh, [{"tp"}, {"dp"}]>}, %g: tensor<4x10xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> tensor<4x5xf32> {
  %sum = dist.reduce_scatter sum %g dim 1 over @mesh ["dp"] : (tensor<4x10xf32>) -> tensor<4x5xf32>
  %new, %newm = dtc.sgd %p, %sum, %m, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x5xf32>, tensor<4x5xf32>)
  return %new : tensor<4x5xf32>
}

// -----

// Columns of three dimensions, one of them split by tp: the factor is split as they are, and the sum of the rows is
// over both.
// CHECK-LABEL: func.func @columns(
// CHECK-SAME: tensor<3x2x2xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}, {}]>, dtc.global_shape = array<i64: 3, 4, 2>, {{.*}}dtc.state = "powersgd_factor"
// CHECK: dtc.einsum "ij,jk->ik" %{{.*}} : (tensor<10x6xf32>, tensor<6x2xf32>) -> tensor<10x2xf32>
// CHECK-NEXT: dist.all_reduce sum %{{.*}} over @mesh ["dp", "tp"] : tensor<10x2xf32>
// CHECK-NOT: all_gather
// CHECK: dist.all_reduce sum %{{.*}} over @mesh ["dp"] : tensor<6x2xf32>
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @columns(%p: tensor<10x3x2xf32> {dtc.param = "p", dtc.global_shape = array<i64: 10, 3, 4>}, %m: tensor<10x3x2xf32> {dtc.state = "momentum", dtc.state_of = "p", dtc.global_shape = array<i64: 10, 3, 4>, dist.sharding = #dist.sharding<@mesh, [{}, {}, {"tp"}]>}, %g: tensor<10x3x2xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> tensor<10x3x2xf32> {
  %sum = dist.all_reduce sum %g over @mesh ["dp"] : tensor<10x3x2xf32>
  %new, %newm = dtc.sgd %p, %sum, %m, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<10x3x2xf32>, tensor<10x3x2xf32>, tensor<10x3x2xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<10x3x2xf32>, tensor<10x3x2xf32>)
  return %new : tensor<10x3x2xf32>
}

// -----

// CHECK-LABEL: func.func @in_full(
// CHECK: dtc.concat
// CHECK: dist.all_reduce sum %{{.*}} over @mesh ["dp"] : tensor<8xf32>
// CHECK: dist.all_reduce sum %{{.*}} over @mesh ["dp"] : tensor<3x4xf32>
dist.mesh @mesh <"dp"=2>
func.func @in_full(%p: tensor<6x8xf32> {dtc.param = "p"}, %m: tensor<6x8xf32> {dtc.state = "momentum", dtc.state_of = "p", dist.sharding = #dist.sharding<@mesh, [{}, {}]>}, %g: tensor<6x8xf32>, %q: tensor<8xf32> {dtc.param = "q"}, %h: tensor<8xf32>, %r: tensor<3x4xf32> {dtc.param = "r"}, %n: tensor<3x4xf32> {dtc.state = "momentum", dtc.state_of = "r", dist.sharding = #dist.sharding<@mesh, [{}, {}]>}, %k: tensor<3x4xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> (tensor<6x8xf32>, tensor<8xf32>, tensor<3x4xf32>) {
  %sum = dist.all_reduce sum %g over @mesh ["dp"] : tensor<6x8xf32>
  %new, %newm = dtc.sgd %p, %sum, %m, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<6x8xf32>, tensor<6x8xf32>)
  // expected-remark@+1 {{is summed over "dp" in full, as it has fewer than two dimensions}}
  %0 = dist.all_reduce sum %h over @mesh ["dp"] : tensor<8xf32>
  %1, %2 = dtc.sgd %q, %0, %q, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>)
  // expected-remark@+1 {{is summed over "dp" in full, as factors of rank 2 of a matrix of 3 rows and 4 columns are no smaller}}
  %3 = dist.all_reduce sum %k over @mesh ["dp"] : tensor<3x4xf32>
  %4, %5 = dtc.sgd %r, %3, %n, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<3x4xf32>, tensor<3x4xf32>)
  return %new, %1, %4 : tensor<6x8xf32>, tensor<8xf32>, tensor<3x4xf32>
}
