// RUN: dtc-opt %s --split-input-file --dtc-narrow-gradient-reductions | FileCheck %s
// RUN: dtc-opt %s --split-input-file --dtc-narrow-gradient-reductions=dtype=f16 | FileCheck %s --check-prefix=F16
// RUN: not dtc-opt %s --split-input-file --dtc-narrow-gradient-reductions=dtype=f32 2>&1 | FileCheck %s --check-prefix=DTYPE

// DTYPE: error: unknown dtype 'f32'; known are bf16 and f16

// A gradient is rounded before it is summed and widened after it. The sum is the same for its norm and for the optimizer; the
// sum of the loss is left alone.
// CHECK-LABEL: func.func @all_reduce(
// CHECK-SAME: %[[P:[^:]*]]: tensor<4xf32>, %[[G:[^:]*]]: tensor<4xf32>, %[[L:[^:]*]]: tensor<f32>
// CHECK: %[[LOW:.*]] = dtc.convert %[[G]] : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK-NEXT: %[[SUM:.*]] = dist.all_reduce sum %[[LOW]] over @mesh ["dp"] : tensor<4xbf16>
// CHECK-NEXT: %[[WIDE:.*]] = dtc.convert %[[SUM]] : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK-NEXT: dtc.einsum "a,a->" %[[WIDE]], %[[WIDE]]
// CHECK-NEXT: dtc.sgd %[[P]], %[[WIDE]],
// CHECK-NEXT: dist.all_reduce sum %[[L]] over @mesh ["dp"] : tensor<f32>

// F16-LABEL: func.func @all_reduce(
// F16: dist.all_reduce sum {{.*}} : tensor<4xf16>
// F16-NEXT: dtc.convert {{.*}} : (tensor<4xf16>) -> tensor<4xf32>
dist.mesh @mesh <"dp"=2>
func.func @all_reduce(%p: tensor<4xf32>, %g: tensor<4xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) {
  %sum = dist.all_reduce sum %g over @mesh ["dp"] : tensor<4xf32>
  %norm = dtc.einsum "a,a->" %sum, %sum : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  %new, %m = dtc.sgd %p, %sum, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  %loss = dist.all_reduce sum %l over @mesh ["dp"] : tensor<f32>
  return %new, %m, %norm, %loss : tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>
}

// -----

// So are gradients that are scattered, and those that moved, were reshaped or added up on the way to their optimizer.
// CHECK-LABEL: func.func @scattered(
// CHECK-SAME: %[[P:[^:]*]]: tensor<4xf32>, %[[A:[^:]*]]: tensor<2x4xf32>, %[[B:[^:]*]]: tensor<8xf32>
// CHECK: %[[ALOW:.*]] = dtc.convert %[[A]] : (tensor<2x4xf32>) -> tensor<2x4xbf16>
// CHECK-NEXT: %[[ASUM:.*]] = dist.all_reduce sum %[[ALOW]] over @mesh ["tp"] : tensor<2x4xbf16>
// CHECK-NEXT: %[[AWIDE:.*]] = dtc.convert %[[ASUM]] : (tensor<2x4xbf16>) -> tensor<2x4xf32>
// CHECK-NEXT: %[[R:.*]] = dtc.reshape %[[AWIDE]] : (tensor<2x4xf32>) -> tensor<8xf32>
// CHECK-NEXT: %[[BOTH:.*]] = dtc.add %[[R]], %[[B]] : tensor<8xf32>
// CHECK-NEXT: %[[LOW:.*]] = dtc.convert %[[BOTH]] : (tensor<8xf32>) -> tensor<8xbf16>
// CHECK-NEXT: %[[SUM:.*]] = dist.reduce_scatter sum %[[LOW]] dim 0 over @mesh ["dp"] : (tensor<8xbf16>) -> tensor<4xbf16>
// CHECK-NEXT: %[[WIDE:.*]] = dtc.convert %[[SUM]] : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK-NEXT: dtc.sgd %[[P]], %[[WIDE]],
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @scattered(%p: tensor<4xf32>, %a: tensor<2x4xf32>, %b: tensor<8xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> tensor<4xf32> {
  %0 = dist.all_reduce sum %a over @mesh ["tp"] : tensor<2x4xf32>
  %1 = dtc.reshape %0 : (tensor<2x4xf32>) -> tensor<8xf32>
  %2 = dtc.add %1, %b : tensor<8xf32>
  %3 = dist.reduce_scatter sum %2 dim 0 over @mesh ["dp"] : (tensor<8xf32>) -> tensor<4xf32>
  %new, %m = dtc.sgd %p, %3, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %new : tensor<4xf32>
}

// -----

// A gradient that was made in 16 bits is summed as it was made: its widening comes after the sum.
// CHECK-LABEL: func.func @widened(
// CHECK-SAME: %[[P:[^:]*]]: tensor<4xf32>, %[[G:[^:]*]]: tensor<4xbf16>
// CHECK-NEXT: %[[SUM:.*]] = dist.all_reduce sum %[[G]] over @mesh ["dp"] : tensor<4xbf16>
// CHECK-NEXT: %[[WIDE:.*]] = dtc.convert %[[SUM]] : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK-NEXT: dtc.sgd %[[P]], %[[WIDE]],
dist.mesh @mesh <"dp"=2>
func.func @widened(%p: tensor<4xf32>, %g: tensor<4xbf16>, %l: tensor<f32>, %apply: tensor<i1>) -> tensor<4xf32> {
  %0 = dtc.convert %g : (tensor<4xbf16>) -> tensor<4xf32>
  %1 = dist.all_reduce sum %0 over @mesh ["dp"] : tensor<4xf32>
  %new, %m = dtc.sgd %p, %1, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %new : tensor<4xf32>
}

// -----

// Sums over microbatches stay wide: the results of the loop are summed between devices. A sum inside the loop of a
// value that is no gradient yet, and one that leads to no optimizer, are left alone.
// CHECK-LABEL: func.func @microbatches(
// CHECK: dist.microbatch_loop @mesh "micro" : tensor<4xf32>
// CHECK: dist.all_reduce sum %{{.*}} over @mesh ["tp"] : tensor<4xf32>
// CHECK: dist.yield %{{.*}} : tensor<4xf32>
// CHECK: dtc.convert %{{.*}} : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK-NEXT: dist.all_reduce sum %{{.*}} over @mesh ["dp"] : tensor<4xbf16>
// CHECK: dist.all_reduce max %{{.*}} over @mesh ["dp"] : tensor<4xf32>
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=2 temporal>
func.func @microbatches(%p: tensor<4xf32>, %g: tensor<4xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = dist.microbatch_loop @mesh "micro" : tensor<4xf32> {
    %3 = dist.all_reduce sum %g over @mesh ["tp"] : tensor<4xf32>
    %4 = dtc.exp %3 : tensor<4xf32>
    dist.yield %4 : tensor<4xf32>
  }
  %1 = dist.all_reduce sum %0 over @mesh ["dp"] : tensor<4xf32>
  %new, %m = dtc.sgd %p, %1, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  %2 = dist.all_reduce max %p over @mesh ["dp"] : tensor<4xf32>
  return %new, %2 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A gradient that each microbatch scatters, as ZeRO stage 2 has it, is rounded for its sum and added up wide. The other
// result of the loop leads to no optimizer.
// CHECK-LABEL: func.func @scattered_by_microbatch(
// CHECK-SAME: %{{[^:]*}}: tensor<4xf32>, %[[G:[^:]*]]: tensor<8xf32>
// CHECK: dist.microbatch_loop @mesh "micro" : tensor<f32>, tensor<4xf32>
// CHECK-NEXT: dist.all_reduce sum %{{.*}} over @mesh ["dp"] : tensor<f32>
// CHECK-NEXT: %[[LOW:.*]] = dtc.convert %[[G]] : (tensor<8xf32>) -> tensor<8xbf16>
// CHECK-NEXT: %[[SUM:.*]] = dist.reduce_scatter sum %[[LOW]] dim 0 over @mesh ["dp"] : (tensor<8xbf16>) -> tensor<4xbf16>
// CHECK-NEXT: %[[WIDE:.*]] = dtc.convert %[[SUM]] : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK-NEXT: dist.yield %{{.*}}, %[[WIDE]] : tensor<f32>, tensor<4xf32>
dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
func.func @scattered_by_microbatch(%p: tensor<4xf32>, %g: tensor<8xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> (tensor<4xf32>, tensor<f32>) {
  %0:2 = dist.microbatch_loop @mesh "micro" : tensor<f32>, tensor<4xf32> {
    %1 = dist.all_reduce sum %l over @mesh ["dp"] : tensor<f32>
    %2 = dist.reduce_scatter sum %g dim 0 over @mesh ["dp"] : (tensor<8xf32>) -> tensor<4xf32>
    dist.yield %1, %2 : tensor<f32>, tensor<4xf32>
  }
  %new, %m = dtc.sgd %p, %0#1, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %new, %0#0 : tensor<4xf32>, tensor<f32>
}

// -----

// If only a part of a parameter is used, its gradient is summed as that part, and so are parts that are joined.
// CHECK-LABEL: func.func @parts(
// CHECK: dist.all_reduce sum %{{.*}} over @mesh ["dp"] : tensor<2x3xbf16>
// CHECK: dist.all_reduce sum %{{.*}} over @mesh ["dp"] : tensor<3x1xbf16>
// CHECK: dist.all_reduce sum %{{.*}} over @mesh ["dp"] : tensor<3x3xbf16>
// CHECK: dtc.sgd
dist.mesh @mesh <"dp"=2>
func.func @parts(%p: tensor<3x4xf32>, %a: tensor<2x3xf32>, %b: tensor<3x1xf32>, %c: tensor<3x3xf32>, %l: tensor<f32>, %apply: tensor<i1>) -> tensor<3x4xf32> {
  %0 = dist.all_reduce sum %a over @mesh ["dp"] : tensor<2x3xf32>
  %1 = dtc.transpose %0 permutation [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = dtc.pad %1 low [0, 0] high [0, 2] value 0.0 : (tensor<3x2xf32>) -> tensor<3x4xf32>
  %3 = dist.all_reduce sum %b over @mesh ["dp"] : tensor<3x1xf32>
  %4 = dist.all_reduce sum %c over @mesh ["dp"] : tensor<3x3xf32>
  %5 = dtc.concat %3, %4 dim 1 : (tensor<3x1xf32>, tensor<3x3xf32>) -> tensor<3x4xf32>
  %6 = dtc.add %2, %5 : tensor<3x4xf32>
  %new, %m = dtc.sgd %p, %6, %p, %l, %l, %apply {momentum = 0.9, weight_decay = 0.0} : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<3x4xf32>, tensor<3x4xf32>)
  return %new : tensor<3x4xf32>
}
