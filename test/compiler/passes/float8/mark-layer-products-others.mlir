// RUN: dtc-opt %s --dtc-mark-layer-products | FileCheck %s

// Neither a product of two tensors, nor of two parameters, nor of separate matrices, nor of a vector, nor one whose
// result a softmax compares.
// CHECK-LABEL: func.func @others
// CHECK-NOT: dtc.float8
// CHECK: return
func.func @others(%x: tensor<16x32xf32> {dtc.input = "x"}, %y: tensor<16x32xf32> {dtc.input = "y"},
                  %w: tensor<32x48xf32> {dtc.param = "w"}, %u: tensor<48x32xf32> {dtc.param = "u"},
                  %v: tensor<32xf32> {dtc.param = "v"}, %experts: tensor<16x32x48xf32> {dtc.param = "experts"})
    -> (tensor<16x16xf32>, tensor<32x32xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16x48xf32>) {
  %0 = dtc.einsum "ad,bd->ab" %x, %y : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<16x16xf32>
  %1 = dtc.einsum "ij,jk->ik" %w, %u : (tensor<32x48xf32>, tensor<48x32xf32>) -> tensor<32x32xf32>
  %2 = dtc.einsum "bi,bij->bj" %x, %experts : (tensor<16x32xf32>, tensor<16x32x48xf32>) -> tensor<16x48xf32>
  %3 = dtc.einsum "bi,i->b" %x, %v : (tensor<16x32xf32>, tensor<32xf32>) -> tensor<16xf32>
  %4 = dtc.einsum "bi,ij->bj" %x, %w : (tensor<16x32xf32>, tensor<32x48xf32>) -> tensor<16x48xf32>
  %5 = dtc.softmax %4 : tensor<16x48xf32>
  return %0, %1, %2, %3, %5 : tensor<16x16xf32>, tensor<32x32xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16x48xf32>
}
