// RUN: dtc-opt %s --dtc-align-collectives | FileCheck %s
// RUN: dtc-opt %s --dtc-align-collectives --dtc-optimize-collectives | FileCheck %s --check-prefix=BUCKET
// RUN: dtc-opt %s --dtc-align-collectives=bucket-bytes=40 | FileCheck %s --check-prefix=SMALL
// RUN: dtc-opt %s --dtc-align-collectives=bucket-bytes=0 | FileCheck %s --check-prefix=NONE
// RUN: not dtc-opt %s --dtc-align-collectives=bucket-bytes=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE

dist.mesh @mesh <"dp"=2>

// The first collectives of all three chains come together, then the second ones with the ops before them.
// CHECK-LABEL: @chains
// CHECK-NEXT: %[[A:.*]] = dist.reduce_scatter sum %arg0
// CHECK-NEXT: %[[DOUBLED:.*]] = dtc.add %arg1, %arg1
// CHECK-NEXT: %[[B:.*]] = dist.reduce_scatter sum %[[DOUBLED]]
// CHECK-NEXT: %[[C:.*]] = dist.reduce_scatter sum %arg2
// CHECK-NEXT: %[[NEG_A:.*]] = dtc.neg %[[A]]
// CHECK-NEXT: %[[WHOLE_A:.*]] = dist.all_gather %[[NEG_A]]
// CHECK-NEXT: %[[NEG_B:.*]] = dtc.neg %[[B]]
// CHECK-NEXT: %[[WHOLE_B:.*]] = dist.all_gather %[[NEG_B]]
// CHECK-NEXT: dtc.neg %[[C]]
// CHECK-NEXT: dist.all_gather
// CHECK-NEXT: dtc.exp %[[WHOLE_A]]
// CHECK-NEXT: dtc.exp %[[WHOLE_B]]
// CHECK-NEXT: dtc.exp
// CHECK-NEXT: return

// BUCKET-LABEL: @chains
// BUCKET: dist.bucket
// BUCKET-COUNT-3: dist.reduce_scatter
// BUCKET: dist.bucket
// BUCKET-COUNT-3: dist.all_gather
// BUCKET-NOT: dist.bucket

// A stretch has 32 bytes of first collectives: two chains, and then one.
// SMALL-LABEL: @chains
// SMALL-COUNT-2: dist.reduce_scatter
// SMALL-COUNT-2: dist.all_gather
// SMALL: dist.reduce_scatter
// SMALL: dist.all_gather

// NONE-LABEL: @chains
// NONE-NEXT: dist.reduce_scatter
// NONE-NEXT: dtc.neg
// NONE-NEXT: dist.all_gather
// NONE-NEXT: dtc.exp

// NEGATIVE: bucket-bytes is -1, expected at least 0
func.func @chains(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = dist.reduce_scatter sum %arg0 dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<2xf32>
  %a1 = dtc.neg %a : tensor<2xf32>
  %a2 = dist.all_gather %a1 dim 0 over @mesh ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
  %a3 = dtc.exp %a2 : tensor<4xf32>
  %doubled = dtc.add %arg1, %arg1 : tensor<4xf32>
  %b = dist.reduce_scatter sum %doubled dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<2xf32>
  %b1 = dtc.neg %b : tensor<2xf32>
  %b2 = dist.all_gather %b1 dim 0 over @mesh ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
  %b3 = dtc.exp %b2 : tensor<4xf32>
  %c = dist.reduce_scatter sum %arg2 dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<2xf32>
  %c1 = dtc.neg %c : tensor<2xf32>
  %c2 = dist.all_gather %c1 dim 0 over @mesh ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
  %c3 = dtc.exp %c2 : tensor<4xf32>
  return %a3, %b3, %c3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
