// RUN: dtc-opt %s --split-input-file --dtc-optimize-collectives=bucket-bytes=100 | FileCheck %s

// A padded gradient is scattered as early as one that needs no padding, and shares its bucket: the padding, which is asked
// for where the optimizer reads the result, moves to where the gradient is made.
// CHECK-LABEL: func.func @pad_early
// CHECK: %[[A:.*]] = dtc.exp
// CHECK-NEXT: %[[PA:.*]] = dtc.pad %[[A]]
// CHECK-NEXT: %[[B:.*]] = dtc.neg
// CHECK-NEXT: %[[PB:.*]] = dtc.pad %[[B]]
// CHECK-NEXT: %[[S:.*]]:2 = dist.bucket
// CHECK-NEXT: dist.reduce_scatter sum %[[PA]]
// CHECK-NEXT: dist.reduce_scatter sum %[[PB]]
// CHECK: }
// CHECK-NEXT: dtc.add %{{.*}}, %[[S]]#0
// CHECK-NEXT: dtc.add %{{.*}}, %[[S]]#1
dist.mesh @mesh <"dp"=2>
func.func @pad_early(%x: tensor<3xf32>, %m: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %a = dtc.exp %x : tensor<3xf32>
  %b = dtc.neg %x : tensor<3xf32>
  %pa = dtc.pad %a low [0] high [1] value 0.0 : (tensor<3xf32>) -> tensor<4xf32>
  %sa = dist.reduce_scatter sum %pa dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<2xf32>
  %ua = dtc.add %m, %sa : tensor<2xf32>
  %pb = dtc.pad %b low [0] high [1] value 0.0 : (tensor<3xf32>) -> tensor<4xf32>
  %sb = dist.reduce_scatter sum %pb dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<2xf32>
  %ub = dtc.add %m, %sb : tensor<2xf32>
  return %ua, %ub : tensor<2xf32>, tensor<2xf32>
}

// -----

// Scatters along two dimensions, with padding between them: two buckets, not four collectives.
// CHECK-LABEL: func.func @two_dimensions
// CHECK: %[[F:.*]]:2 = dist.bucket
// CHECK-COUNT-2: dist.reduce_scatter sum %{{.*}} dim 0 over @mesh ["dp.0"]
// CHECK: }
// CHECK-NEXT: dtc.pad %[[F]]#0
// CHECK-NEXT: dtc.pad %[[F]]#1
// CHECK-NEXT: dist.bucket
// CHECK-COUNT-2: dist.reduce_scatter sum %{{.*}} dim 1 over @mesh ["dp.1"]
// CHECK: }
// CHECK-NEXT: return
dist.mesh @mesh <"dp.0"=2 of "dp", "dp.1"=2 of "dp">
func.func @two_dimensions(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>) {
  %a = dist.reduce_scatter sum %x dim 0 over @mesh ["dp.0"] : (tensor<2x3xf32>) -> tensor<1x3xf32>
  %pa = dtc.pad %a low [0, 0] high [0, 1] value 0.0 : (tensor<1x3xf32>) -> tensor<1x4xf32>
  %sa = dist.reduce_scatter sum %pa dim 1 over @mesh ["dp.1"] : (tensor<1x4xf32>) -> tensor<1x2xf32>
  %b = dist.reduce_scatter sum %y dim 0 over @mesh ["dp.0"] : (tensor<2x3xf32>) -> tensor<1x3xf32>
  %pb = dtc.pad %b low [0, 0] high [0, 1] value 0.0 : (tensor<1x3xf32>) -> tensor<1x4xf32>
  %sb = dist.reduce_scatter sum %pb dim 1 over @mesh ["dp.1"] : (tensor<1x4xf32>) -> tensor<1x2xf32>
  return %sa, %sb : tensor<1x2xf32>, tensor<1x2xf32>
}

// -----

// An op that drops padding for something else than a collective needs its bucket at once.
// CHECK-LABEL: func.func @slice_for_use
// CHECK: %[[A:.*]] = dist.all_gather
// CHECK-NEXT: dtc.slice %[[A]]
// CHECK: dtc.exp
dist.mesh @mesh <"dp"=2>
func.func @slice_for_use(%x: tensor<2xf32>) -> (tensor<3xf32>, tensor<2xf32>) {
  %a = dist.all_gather %x dim 0 over @mesh ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
  %s = dtc.slice %a offsets [0] sizes [3] : (tensor<4xf32>) -> tensor<3xf32>
  %e = dtc.exp %s : tensor<3xf32>
  %n = dtc.neg %x : tensor<2xf32>
  return %e, %n : tensor<3xf32>, tensor<2xf32>
}
