// RUN: dtc-opt %s --dtc-recompute-activations=mode=full 2>/dev/null | FileCheck %s
// RUN: dtc-opt %s --dtc-recompute-activations=mode=full 2>&1 >/dev/null | FileCheck %s --check-prefix REMARK

// No location names a layer: the four ops that take time are two parts of two. The value that goes from one to the
// other is kept, once.
// REMARK: a device keeps 16384 of 65536 bytes for the backward pass and recomputes 3 ops
// CHECK: %[[A:.*]] = dtc.exp %{{.*}}<0 forward>
// CHECK-NEXT: %[[B:.*]] = dtc.tanh %[[A]]
// CHECK-NEXT: %[[C:.*]] = dtc.exp %[[B]]
// CHECK-NEXT: %[[D:.*]] = dtc.tanh %[[C]]
// CHECK-NEXT: %[[CB:.*]] = dtc.exp %[[B]] {dist.stage = #dist.stage<0 backward>}
// CHECK-NEXT: %[[DB:.*]] = dtc.tanh %[[CB]] {dist.stage = #dist.stage<0 backward>}
// CHECK-NEXT: dtc.mul %[[DB]], %[[CB]]
// CHECK-NEXT: dtc.mul %{{.*}}, %[[B]]
// CHECK-NEXT: %[[AB:.*]] = dtc.exp %{{.*}} {dist.stage = #dist.stage<0 backward>}
// CHECK-NEXT: dtc.mul %{{.*}}, %[[AB]]
// CHECK-NEXT: return %[[D]]
dist.mesh @mesh <"micro"=1 temporal>
func.func @chain(%x: tensor<64x64xf32> {dtc.input = "x"}) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0:2 = dist.microbatch_loop @mesh "micro" : tensor<64x64xf32>, tensor<64x64xf32> {
    %a = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32>
    %b = dtc.tanh %a {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32>
    %c = dtc.exp %b {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32>
    %d = dtc.tanh %c {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32>
    %e = dtc.mul %d, %c {dist.stage = #dist.stage<0 backward>} : tensor<64x64xf32>
    %f = dtc.mul %e, %b {dist.stage = #dist.stage<0 backward>} : tensor<64x64xf32>
    %g = dtc.mul %f, %a {dist.stage = #dist.stage<0 backward>} : tensor<64x64xf32>
    dist.yield %d, %g : tensor<64x64xf32>, tensor<64x64xf32>
  }
  return %0#0, %0#1 : tensor<64x64xf32>, tensor<64x64xf32>
}
