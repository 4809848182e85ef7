// RUN: dtc-opt %s --dtc-recompute-activations=mode=full --dtc-gather-parameters-per-use="axes=dp prefetch=0" 2>/dev/null | FileCheck %s

// A parameter that is split over dp. What is recomputed uses a gather of its own, in the backward pass; no gathered
// parameter is used in both passes.
// CHECK: %[[G:.*]] = dist.all_gather %[[W:.*]] dim 0 over @mesh ["dp"]
// CHECK: %[[M:.*]] = dtc.einsum {{.*}}, %[[G]] {dist.stage = #dist.stage<0 forward>}
// CHECK-NEXT: %[[E:.*]] = dtc.exp %[[M]]
// CHECK-NEXT: %[[Y:.*]] = dtc.tanh %[[E]]
// CHECK-NEXT: dtc.mul %[[Y]], %[[Y]]
// CHECK-NOT: %[[G]]
// CHECK: %[[GB:.*]] = dist.all_gather %[[W]] dim 0 over @mesh ["dp"]
// CHECK: %[[MB:.*]] = dtc.einsum {{.*}}, %[[GB]] {dist.stage = #dist.stage<0 backward>}
// CHECK-NEXT: %[[EB:.*]] = dtc.exp %[[MB]]
// CHECK-NEXT: %[[D:.*]] = dtc.mul %{{.*}}, %[[EB]]
// CHECK-NEXT: dtc.einsum {{.*}}%[[D]], %[[GB]]
dist.mesh @mesh <"dp"=2, "micro"=1 temporal>
func.func @zero3(%x: tensor<64x64xf32> {dtc.input = "x"}, %w: tensor<32x64xf32> {dtc.param = "w"}) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0:2 = dist.microbatch_loop @mesh "micro" : tensor<64x64xf32>, tensor<64x64xf32> {
    %g = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<32x64xf32>) -> tensor<64x64xf32> loc("h.0.mlp")
    %m = dtc.einsum "bi,io->bo" %x, %g {dist.stage = #dist.stage<0 forward>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("h.0.mlp")
    %e = dtc.exp %m {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32> loc("h.0.mlp")
    %y = dtc.tanh %e {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32> loc("h.0.mlp")
    %l = dtc.mul %y, %y {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32> loc("h.1.mlp")
    %k = dtc.mul %l, %x {dist.stage = #dist.stage<0 backward>} : tensor<64x64xf32> loc("h.1.mlp")
    %d = dtc.mul %k, %e {dist.stage = #dist.stage<0 backward>} : tensor<64x64xf32> loc("h.0.mlp")
    %i = dtc.einsum "bo,io->bi" %d, %g {dist.stage = #dist.stage<0 backward>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("h.0.mlp")
    dist.yield %l, %i : tensor<64x64xf32>, tensor<64x64xf32>
  }
  return %0#0, %0#1 : tensor<64x64xf32>, tensor<64x64xf32>
}
