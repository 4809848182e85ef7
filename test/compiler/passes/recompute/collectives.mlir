// RUN: dtc-opt %s --dtc-recompute-activations=mode=selective 2>/dev/null | FileCheck %s --check-prefixes CHECK,SELECTIVE
// RUN: dtc-opt %s --dtc-recompute-activations=mode=full 2>/dev/null | FileCheck %s --check-prefixes CHECK,FULL
// RUN: dtc-opt %s --dtc-recompute-activations="mode=auto keep-bytes=16384" 2>/dev/null | FileCheck %s --check-prefixes CHECK,AUTO
// RUN: dtc-opt %s --dtc-recompute-activations="mode=auto keep-bytes=0" 2>/dev/null | FileCheck %s --check-prefixes CHECK,FULL

// A sum over devices in the forward pass. Selective keeps it and computes exp again from it; so does auto where there is room
// for it, as the sum takes longer than exp. Full, and auto where there is no room, sum again.
// CHECK: %[[M:.*]] = dtc.einsum {{.*}}<0 forward>
// CHECK-NEXT: %[[S:.*]] = dist.all_reduce sum %[[M]] over @mesh ["tp"] {dist.stage = #dist.stage<0 forward>}
// CHECK-NEXT: %[[E:.*]] = dtc.exp %[[S]]
// CHECK-NEXT: %[[L:.*]] = dtc.reduce sum %[[E]]
// SELECTIVE-NEXT: %[[EB:.*]] = dtc.exp %[[S]] {dist.stage = #dist.stage<0 backward>}
// SELECTIVE-NEXT: dtc.mul %[[EB]], %[[S]]
// AUTO-NEXT: %[[EB:.*]] = dtc.exp %[[S]] {dist.stage = #dist.stage<0 backward>}
// AUTO-NEXT: dtc.mul %[[EB]], %[[S]]
// FULL-NEXT: %[[MB:.*]] = dtc.einsum {{.*}}<0 backward>
// FULL-NEXT: %[[SB:.*]] = dist.all_reduce sum %[[MB]] over @mesh ["tp"] {dist.stage = #dist.stage<0 backward>}
// FULL-NEXT: %[[EB:.*]] = dtc.exp %[[SB]]
// FULL-NEXT: dtc.mul %[[EB]], %[[SB]]
// CHECK-NEXT: return
dist.mesh @mesh <"tp"=2, "micro"=1 temporal>
func.func @sum(%x: tensor<64x64xf32> {dtc.input = "x"}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> (tensor<f32>, tensor<64x64xf32>) {
  %0:2 = dist.microbatch_loop @mesh "micro" : tensor<f32>, tensor<64x64xf32> {
    %m = dtc.einsum "bi,io->bo" %x, %w {dist.stage = #dist.stage<0 forward>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("h.0.mlp")
    %s = dist.all_reduce sum %m over @mesh ["tp"] {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32> loc("h.0.mlp")
    %e = dtc.exp %s {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32> loc("h.0.mlp")
    %l = dtc.reduce sum %e dims [0, 1] {dist.stage = #dist.stage<0 forward>} : (tensor<64x64xf32>) -> tensor<f32> loc("h.0.mlp")
    %d = dtc.mul %e, %s {dist.stage = #dist.stage<0 backward>} : tensor<64x64xf32> loc("h.0.mlp")
    dist.yield %l, %d : tensor<f32>, tensor<64x64xf32>
  }
  return %0#0, %0#1 : tensor<f32>, tensor<64x64xf32>
}
