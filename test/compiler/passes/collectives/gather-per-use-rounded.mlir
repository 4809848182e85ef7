// RUN: dtc-opt %s --dtc-gather-parameters-per-use="axes=dp prefetch=0" | FileCheck %s

// A parameter that products multiply in 8 bits is gathered and rounded for each visit of its layer: its 8 bits are no more
// kept from the forward pass to the backward pass than its 16.
// CHECK-LABEL: func.func @layer
// CHECK: %[[G0:.*]] = dist.all_gather %arg1
// CHECK: %[[L0:.*]] = dist.largest_magnitude %[[G0]]
// CHECK: %[[A0:.*]] = dist.all_reduce max %[[L0]] over @mesh ["tp"]
// CHECK: %[[Q0:.*]], %[[S0:.*]] = dist.quantize_f8 %[[G0]] by %[[A0]]
// CHECK: dist.scaled_product "bi,io->bo" %arg0, %[[Q0]] scales %arg3, %[[S0]]
// CHECK: dtc.add
// CHECK: %[[G1:.*]] = dist.all_gather %arg1
// CHECK: %[[L1:.*]] = dist.largest_magnitude %[[G1]]
// CHECK: %[[A1:.*]] = dist.all_reduce max %[[L1]] over @mesh ["tp"]
// CHECK: %[[Q1:.*]], %[[S1:.*]] = dist.quantize_f8 %[[G1]] by %[[A1]]
// CHECK: dist.scaled_product "bo,io->bi" %arg2, %[[Q1]] scales %arg3, %[[S1]]
// CHECK-NOT: dist.quantize_f8
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @layer(%x: tensor<16x32xf8E4M3FN>, %w: tensor<16x48xbf16> {dtc.param = "w"}, %g: tensor<16x48xf8E5M2>,
                 %s: tensor<f32>, %v: tensor<24xbf16> {dtc.param = "v"}) -> (tensor<16x48xbf16>, tensor<16x32xbf16>) {
  %whole = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<16x48xbf16>) -> tensor<32x48xbf16> loc("h.0.w")
  %l = dist.largest_magnitude %whole : tensor<32x48xbf16> loc("h.0.mlp")
  %a = dist.all_reduce max %l over @mesh ["tp"] : tensor<f32> loc("h.0.mlp")
  %q, %t = dist.quantize_f8 %whole by %a : tensor<32x48xbf16> -> tensor<32x48xf8E4M3FN> loc("h.0.mlp")
  %y = dist.scaled_product "bi,io->bo" %x, %q scales %s, %t : (tensor<16x32xf8E4M3FN>, tensor<32x48xf8E4M3FN>) -> tensor<16x48xbf16> loc("h.0.mlp")
  %other = dist.all_gather %v dim 0 over @mesh ["dp"] : (tensor<24xbf16>) -> tensor<48xbf16> loc("h.1.v")
  %rows = dtc.broadcast %other dims [1] : (tensor<48xbf16>) -> tensor<16x48xbf16> loc("h.1.mlp")
  %z = dtc.add %y, %rows : tensor<16x48xbf16> loc("h.1.mlp")
  %dx = dist.scaled_product "bo,io->bi" %g, %q scales %s, %t : (tensor<16x48xf8E5M2>, tensor<32x48xf8E4M3FN>) -> tensor<16x32xbf16> loc("h.0.mlp")
  return %z, %dx : tensor<16x48xbf16>, tensor<16x32xbf16>
}
