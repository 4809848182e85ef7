// RUN: dtc-opt %s | dtc-opt | FileCheck %s

// CHECK-LABEL: func.func @product
func.func @product(%x: tensor<2x16x64xbf16>, %w: tensor<64x256xf32>) -> tensor<2x16x256xf32> {
  // CHECK: dist.largest_magnitude %{{.*}} : tensor<2x16x64xbf16>
  %a = dist.largest_magnitude %x : tensor<2x16x64xbf16>
  // CHECK: dist.quantize_f8 %{{.*}} by %{{.*}} : tensor<2x16x64xbf16> -> tensor<2x16x64xf8E5M2>
  %q, %s = dist.quantize_f8 %x by %a : tensor<2x16x64xbf16> -> tensor<2x16x64xf8E5M2>
  %b = dist.largest_magnitude %w : tensor<64x256xf32>
  %r, %t = dist.quantize_f8 %w by %b : tensor<64x256xf32> -> tensor<64x256xf8E4M3FN>
  // CHECK: dist.scaled_product "bsd,df->bsf" %{{.*}}, %{{.*}} scales %{{.*}}, %{{.*}} : (tensor<2x16x64xf8E5M2>, tensor<64x256xf8E4M3FN>) -> tensor<2x16x256xf32>
  %y = dist.scaled_product "bsd,df->bsf" %q, %r scales %s, %t : (tensor<2x16x64xf8E5M2>, tensor<64x256xf8E4M3FN>) -> tensor<2x16x256xf32>
  return %y : tensor<2x16x256xf32>
}
