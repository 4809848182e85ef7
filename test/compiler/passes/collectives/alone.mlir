// RUN: dtc-opt %s --split-input-file --dtc-optimize-collectives=bucket-bytes=64 | FileCheck %s

// A collective that shares its bucket with none starts early.
// CHECK-LABEL: func.func @alone
// CHECK-NEXT: %[[A:.*]] = dtc.exp
// CHECK-NEXT: dist.all_reduce sum %[[A]]
// CHECK-NEXT: dtc.neg
// CHECK-NEXT: dtc.add
dist.mesh @mesh <"dp"=2>
func.func @alone(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = dtc.exp %x : tensor<4xf32>
  %r = dist.all_reduce sum %a over @mesh ["dp"] : tensor<4xf32>
  %b = dtc.neg %x : tensor<4xf32>
  %c = dtc.add %b, %r : tensor<4xf32>
  return %c : tensor<4xf32>
}

// -----

// Nor does it undo what dtc-gather-parameters-per-use did: a gather is a visit ahead of its use.
// CHECK-LABEL: func.func @ahead
// CHECK-NEXT: dist.all_gather
// CHECK-NEXT: dtc.exp
// CHECK-NEXT: dtc.add
dist.mesh @mesh <"dp"=2>
func.func @ahead(%x: tensor<4xf32>, %w: tensor<2xf32>) -> tensor<4xf32> {
  %g = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
  %a = dtc.exp %x : tensor<4xf32>
  %b = dtc.add %a, %g : tensor<4xf32>
  return %b : tensor<4xf32>
}
