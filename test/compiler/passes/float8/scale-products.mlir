// RUN: dtc-opt %s --split-input-file --dtc-scale-products 2>/dev/null | FileCheck %s
// RUN: dtc-opt %s --split-input-file --dtc-scale-products -o /dev/null 2>&1 | FileCheck %s --check-prefix REMARK

// RUN: dtc-opt %s --split-input-file --dtc-scale-products=outer=dp 2>/dev/null | FileCheck %s --check-prefix OUTER --implicit-check-not all_reduce

// Replicas along an outer axis have scales of their own.
// OUTER-COUNT-3: dist.quantize_f8
// OUTER: func.func @stay

// A tensor that is split over dp has the largest magnitude of all its parts; one that two products multiply is rounded
// once.
// CHECK-LABEL: func.func @two
// CHECK: %[[LX:.*]] = dist.largest_magnitude %arg0 : tensor<16x32xbf16>
// CHECK-NEXT: %[[AX:.*]] = dist.all_reduce max %[[LX]] over @mesh ["dp"] : tensor<f32>
// CHECK-NEXT: %[[X:.*]], %[[SX:.*]] = dist.quantize_f8 %arg0 by %[[AX]] : tensor<16x32xbf16> -> tensor<16x32xf8E4M3FN>
// CHECK-NEXT: %[[LW:.*]] = dist.largest_magnitude %arg1 : tensor<32x48xbf16>
// CHECK-NEXT: %[[W:.*]], %[[SW:.*]] = dist.quantize_f8 %arg1 by %[[LW]] : tensor<32x48xbf16> -> tensor<32x48xf8E4M3FN>
// CHECK-NEXT: dist.scaled_product "bi,io->bo" %[[X]], %[[W]] scales %[[SX]], %[[SW]] : (tensor<16x32xf8E4M3FN>, tensor<32x48xf8E4M3FN>) -> tensor<16x48xbf16>
// CHECK: dist.largest_magnitude %arg2
// CHECK-NEXT: dist.all_reduce max
// CHECK-NEXT: %[[G:.*]], %[[SG:.*]] = dist.quantize_f8 %arg2 {{.*}} -> tensor<16x48xf8E5M2>
// CHECK-NEXT: dist.scaled_product "bi,bo->io" %[[X]], %[[G]] scales %[[SX]], %[[SG]] : (tensor<16x32xf8E4M3FN>, tensor<16x48xf8E5M2>) -> tensor<32x48xf32>
// CHECK-NOT: dtc.float8
// REMARK: remark: 2 of 2 products of linear layers and their gradients have operands of 8 bits; embeddings, logits, routers, attention and norms keep 16
dist.mesh @mesh <"dp"=2>
func.func @two(%x: tensor<16x32xbf16>, %w: tensor<32x48xbf16>, %g: tensor<16x48xbf16>) -> (tensor<16x48xbf16>, tensor<32x48xf32>) {
  %0 = dtc.einsum "bi,io->bo" %x, %w {dtc.float8 = [f8E4M3FN, f8E4M3FN], dist.operand_axes = [["dp"], []]}
    : (tensor<16x32xbf16>, tensor<32x48xbf16>) -> tensor<16x48xbf16>
  %1 = dtc.einsum "bi,bo->io" %x, %g {wide, dtc.float8 = [f8E4M3FN, f8E5M2], dist.operand_axes = [["dp"], ["dp"]]}
    : (tensor<16x32xbf16>, tensor<16x48xbf16>) -> tensor<32x48xf32>
  return %0, %1 : tensor<16x48xbf16>, tensor<32x48xf32>
}

// -----

// A product without multiples of 16 stays, and so does one in f32.
// CHECK-LABEL: func.func @stay
// CHECK: dtc.einsum "bi,io->bo" %arg0, %arg1 : (
// CHECK: dtc.einsum "bi,io->bo" %arg2, %arg3 : (
// REMARK: remark: the product "bi,io->bo" stays in 16 bits: it has 24 products to sum on a device, and GPUs compute in 8 bits with multiples of 16
// REMARK: remark: the product "bi,io->bo" stays in 16 bits: an operand is not in bf16
// REMARK: warning: 0 of 2 products of linear layers and their gradients have operands of 8 bits; the first stays in 16 because it has 24 products to sum
dist.mesh @mesh <"dp"=2>
func.func @stay(%x: tensor<16x24xbf16>, %w: tensor<24x48xbf16>, %y: tensor<16x32xf32>, %v: tensor<32x48xf32>) -> (tensor<16x48xbf16>, tensor<16x48xf32>) {
  %0 = dtc.einsum "bi,io->bo" %x, %w {dtc.float8 = [f8E4M3FN, f8E4M3FN], dist.operand_axes = [["dp"], []]}
    : (tensor<16x24xbf16>, tensor<24x48xbf16>) -> tensor<16x48xbf16>
  %1 = dtc.einsum "bi,io->bo" %y, %v {dtc.float8 = [f8E4M3FN, f8E4M3FN], dist.operand_axes = [["dp"], []]}
    : (tensor<16x32xf32>, tensor<32x48xf32>) -> tensor<16x48xf32>
  return %0, %1 : tensor<16x48xbf16>, tensor<16x48xf32>
}

// -----

// The largest magnitude of a tensor is next to the op that makes it.
// CHECK-LABEL: func.func @next
// CHECK: %[[X:.*]] = dtc.neg %arg0
// CHECK-NEXT: %[[LX:.*]] = dist.largest_magnitude %[[X]]
// CHECK-NEXT: dtc.neg %arg1
// CHECK-NEXT: dist.quantize_f8 %[[X]] by %[[LX]]
// CHECK-NEXT: dist.largest_magnitude %arg2
dist.mesh @mesh <"dp"=2>
func.func @next(%x: tensor<16x32xbf16>, %y: tensor<16x48xbf16>, %w: tensor<32x48xbf16>) -> (tensor<16x48xbf16>, tensor<16x48xbf16>) {
  %0 = dtc.neg %x : tensor<16x32xbf16>
  %1 = dtc.neg %y : tensor<16x48xbf16>
  %2 = dtc.einsum "bi,io->bo" %0, %w {dtc.float8 = [f8E4M3FN, f8E4M3FN], dist.operand_axes = [[], []]}
    : (tensor<16x32xbf16>, tensor<32x48xbf16>) -> tensor<16x48xbf16>
  return %1, %2 : tensor<16x48xbf16>, tensor<16x48xbf16>
}
