// RUN: dtc-opt %s --split-input-file --dtc-gather-parameters-per-use="axes=dp prefetch=0" | FileCheck %s

// Two parameters of one visit, gathered together and then cut: padding has this form.
// CHECK-LABEL: func.func @cut
// CHECK: %[[G:.*]]:2 = dist.bucket
// CHECK: }
// CHECK-DAG: %[[A:.*]] = dtc.slice %[[G]]#0
// CHECK-DAG: %[[B:.*]] = dtc.slice %[[G]]#1
// CHECK: dtc.mul %[[A]], %[[B]]
dist.mesh @mesh <"dp"=2>
func.func @cut(%v: tensor<4xf32> {dtc.param = "v"}, %w: tensor<4xf32> {dtc.param = "w"}) -> tensor<7xf32> {
  %gv = dist.all_gather %v dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
  %cv = dtc.slice %gv offsets [0] sizes [7] : (tensor<8xf32>) -> tensor<7xf32>
  %gw = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
  %cw = dtc.slice %gw offsets [0] sizes [7] : (tensor<8xf32>) -> tensor<7xf32>
  %a = dtc.mul %cv, %cw : tensor<7xf32> loc("h.0")
  return %a : tensor<7xf32>
}

// -----

// One of the two is gathered over a second axis as well.
// CHECK-LABEL: func.func @second_axis
// CHECK: %[[G:.*]]:2 = dist.bucket
// CHECK: }
// CHECK: %[[A:.*]] = dist.all_gather %[[G]]#0 dim 0 over @mesh ["tp"]
// CHECK: dtc.mul %[[A]], %[[A]]
// CHECK: dtc.neg %[[G]]#1
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @second_axis(%v: tensor<2xf32> {dtc.param = "v"}, %w: tensor<4xf32> {dtc.param = "w"}) -> (tensor<8xf32>, tensor<8xf32>) {
  %gv = dist.all_gather %v dim 0 over @mesh ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
  %hv = dist.all_gather %gv dim 0 over @mesh ["tp"] : (tensor<4xf32>) -> tensor<8xf32>
  %gw = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
  %a = dtc.mul %hv, %hv : tensor<8xf32> loc("h.0")
  %b = dtc.neg %gw : tensor<8xf32> loc("h.0")
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}
