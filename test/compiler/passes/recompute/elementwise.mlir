// RUN: dtc-opt %s --dtc-recompute-activations=mode=elementwise 2>/dev/null | FileCheck %s
// RUN: dtc-opt %s --dtc-recompute-activations=mode=elementwise 2>&1 >/dev/null | FileCheck %s --check-prefix REMARK

// The gradient of the activation needs its operand anyway, which is kept: the result is made again of that. A softmax, which
// reads whole rows, and a sum of two tensors, of which neither is kept otherwise, are not.
// CHECK: %[[G:.*]] = dtc.einsum "bi,io->bo" %{{.*}}, %{{.*}} {dist.stage = #dist.stage<0 forward>}
// CHECK-NEXT: dtc.silu %[[G]] {dist.stage = #dist.stage<0 forward>}
// CHECK: %[[S:.*]] = dtc.softmax
// CHECK: %[[A:.*]] = dtc.add
// CHECK: dtc.mul %[[G]], %[[G]] {dist.stage = #dist.stage<0 backward>}
// CHECK-NEXT: %[[AGAIN:.*]] = dtc.silu %[[G]] {dist.stage = #dist.stage<0 backward>}
// CHECK-NEXT: dtc.mul %[[AGAIN]], %[[S]]
// CHECK-NEXT: dtc.mul %{{.*}}, %[[A]]
// CHECK-NEXT: return

// The product, the softmax and the sum, each of 64 x 64.
// REMARK: a device keeps 49152 of 65536 bytes for the backward pass and recomputes 1 ops
dist.mesh @mesh <"dp"=1, "micro"=1 temporal>
func.func @gate(%x: tensor<64x64xf32> {dtc.input = "x"}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<64x64xf32> {
  %0 = dist.microbatch_loop @mesh "micro" : tensor<64x64xf32> {
    %g = dtc.einsum "bi,io->bo" %x, %w {dist.stage = #dist.stage<0 forward>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %a = dtc.silu %g {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32>
    %p = dtc.einsum "bi,io->bo" %a, %w {dist.stage = #dist.stage<0 forward>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %s = dtc.softmax %p {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32>
    %q = dtc.einsum "bi,io->bo" %p, %w {dist.stage = #dist.stage<0 forward>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %b = dtc.add %q, %p {dist.stage = #dist.stage<0 forward>} : tensor<64x64xf32>
    %1 = dtc.mul %g, %g {dist.stage = #dist.stage<0 backward>} : tensor<64x64xf32>
    %2 = dtc.mul %a, %s {dist.stage = #dist.stage<0 backward>} : tensor<64x64xf32>
    %3 = dtc.mul %2, %b {dist.stage = #dist.stage<0 backward>} : tensor<64x64xf32>
    dist.yield %3 : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}
