// RUN: dtc-opt %s --dtc-gather-parameters-per-use="axes=dp prefetch=1" | FileCheck %s

// The ops on a gathered parameter are at the visit; only the gather is ahead of it.
// CHECK-LABEL: func.func @cut
// CHECK: dist.all_gather %{{.*}} : (tensor<2xf32>)
// CHECK-NEXT: %[[G:.*]] = dist.all_gather %{{.*}} : (tensor<4xf32>)
// CHECK-NEXT: dtc.exp
// CHECK-NEXT: dtc.slice %[[G]]
// CHECK-NEXT: dtc.neg
dist.mesh @mesh <"dp"=2>
func.func @cut(%v: tensor<2xf32> {dtc.param = "v"}, %w: tensor<4xf32> {dtc.param = "w"}) -> (tensor<4xf32>, tensor<7xf32>) {
  %gv = dist.all_gather %v dim 0 over @mesh ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
  %gw = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
  %cw = dtc.slice %gw offsets [0] sizes [7] : (tensor<8xf32>) -> tensor<7xf32>
  %a = dtc.exp %gv : tensor<4xf32> loc("h.0")
  %b = dtc.neg %cw : tensor<7xf32> loc("h.1")
  return %a, %b : tensor<4xf32>, tensor<7xf32>
}
