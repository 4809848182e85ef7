// RUN: dtc-opt %s --dtc-recompute-activations=mode=gathers 2>/dev/null | FileCheck %s --check-prefixes CHECK,AGAIN
// RUN: dtc-opt %s --dtc-recompute-activations=mode=none 2>/dev/null | FileCheck %s --check-prefixes CHECK,ONCE
// RUN: dtc-opt %s --dtc-recompute-activations=mode=gathers 2>&1 >/dev/null | FileCheck %s --check-prefix REMARK

// Each device has a part of the positions and gathers them for a product, whose gradient needs the whole again. Only that
// gather is repeated, from the part that is kept: neither the norm before it, nor the gather of a parameter, nor the sum.
// CHECK: %[[G:.*]] = dist.all_gather %[[W:.*]] dim 0 over @mesh ["dp"]
// CHECK: %[[P:.*]] = dtc.exp %{{.*}} {dist.stage = #dist.stage<0 forward>}
// CHECK-NEXT: %[[A:.*]] = dist.all_gather %[[P]] dim 0 over @mesh ["tp"] {dist.stage = #dist.stage<0 forward>}
// CHECK-NEXT: dtc.einsum "bi,io->bo" %[[A]], %[[G]]
// CHECK-NEXT: %[[S:.*]] = dist.all_reduce sum
// AGAIN-NEXT: %[[B:.*]] = dist.all_gather %[[P]] dim 0 over @mesh ["tp"] {dist.stage = #dist.stage<0 backward>}
// AGAIN-NEXT: dtc.einsum "bi,bo->io" %[[B]], %[[S]]
// ONCE-NEXT: dtc.einsum "bi,bo->io" %[[A]], %[[S]]
// CHECK-NEXT: dtc.einsum "bo,io->bi" %[[S]], %[[G]]
// CHECK-NEXT: dtc.mul %{{.*}}, %[[P]]
// CHECK-NEXT: return

// 32 x 64 of the part and 64 x 64 of the sum, instead of 64 x 64 of the whole besides.
// REMARK: a device keeps 24576 of 40960 bytes for the backward pass and recomputes 1 ops
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=1 temporal>
func.func @sequence(%x: tensor<32x64xf32> {dtc.input = "x"}, %w: tensor<32x64xf32> {dtc.param = "w"}) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<32x64xf32>) {
  %0:3 = dist.microbatch_loop @mesh "micro" : tensor<64x64xf32>, tensor<64x64xf32>, tensor<32x64xf32> {
    %g = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<32x64xf32>) -> tensor<64x64xf32>
    %p = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<32x64xf32>
    %a = dist.all_gather %p dim 0 over @mesh ["tp"] {dist.stage = #dist.stage<0 forward>} : (tensor<32x64xf32>) -> tensor<64x64xf32>
    %m = dtc.einsum "bi,io->bo" %a, %g {dist.stage = #dist.stage<0 forward>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %s = dist.all_reduce sum %m over @mesh ["tp"] {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32>
    %dw = dtc.einsum "bi,bo->io" %a, %s {dist.stage = #dist.stage<0 backward>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %da = dtc.einsum "bo,io->bi" %s, %g {dist.stage = #dist.stage<0 backward>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %dx = dtc.mul %p, %p {dist.stage = #dist.stage<0 backward>} : tensor<32x64xf32>
    dist.yield %dw, %da, %dx : tensor<64x64xf32>, tensor<64x64xf32>, tensor<32x64xf32>
  }
  return %0#0, %0#1, %0#2 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<32x64xf32>
}
