// RUN: dtc-opt %s --dtc-recompute-activations=mode=selective 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix REMARK < %t

// The backward pass reads what goes into the norm, and two of its three results: the large one and the means. The first is
// kept, and one clone makes the two.
// REMARK: a device keeps 16384 of 33024 bytes for the backward pass and recomputes 1 ops
// CHECK: %[[M:.*]] = dtc.einsum {{.*}}<0 forward>
// CHECK-NEXT: %[[Y:.*]], %[[MEAN:.*]], %{{.*}} = dtc.layer_norm %[[M]], {{.*}}<0 forward>
// CHECK-NEXT: dtc.exp %[[Y]]
// CHECK-NEXT: %[[YB:.*]], %[[MEANB:.*]], %{{.*}} = dtc.layer_norm %[[M]], {{.*}}<0 backward>
// CHECK-NEXT: dtc.mul %[[M]], %[[YB]]
// CHECK-NEXT: dtc.mul %[[YB]], %[[YB]]
// CHECK-NEXT: dtc.reduce
// CHECK-NEXT: dtc.add %{{.*}}, %[[MEANB]]
// CHECK-NEXT: return
dist.mesh @mesh <"micro"=1 temporal>
func.func @norm(%x: tensor<64x64xf32> {dtc.input = "x"}, %w: tensor<64x64xf32> {dtc.param = "w"}, %s: tensor<64xf32> {dtc.param = "s"}) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>) {
  %0:3 = dist.microbatch_loop @mesh "micro" : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32> {
    %m = dtc.einsum "bi,io->bo" %x, %w {dist.stage = #dist.stage<0 forward>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("h.0.mlp")
    %n:3 = dtc.layer_norm %m, %s, %s {eps = 1.0e-5, dist.stage = #dist.stage<0 forward>} : (tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>) loc("h.0.ln")
    %e = dtc.exp %n#0 {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32> loc("h.0.mlp")
    %a = dtc.mul %m, %n#0 {dist.stage = #dist.stage<0 backward>} : tensor<64x64xf32> loc("h.0.mlp")
    %b = dtc.mul %n#0, %n#0 {dist.stage = #dist.stage<0 backward>} : tensor<64x64xf32> loc("h.0.mlp")
    %r = dtc.reduce sum %b dims [1] {dist.stage = #dist.stage<0 backward>} : (tensor<64x64xf32>) -> tensor<64xf32> loc("h.0.mlp")
    %c = dtc.add %r, %n#1 {dist.stage = #dist.stage<0 backward>} : tensor<64xf32> loc("h.0.mlp")
    dist.yield %e, %a, %c : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>
  }
  return %0#0, %0#1, %0#2 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>
}
