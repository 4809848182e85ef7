// RUN: dtc-opt %s | dtc-opt | FileCheck %s

// CHECK-LABEL: func.func @embedding
func.func @embedding(%table: tensor<256x64xf32>, %ids: tensor<16x128xi32>, %id: tensor<i32>) {
  // CHECK: dtc.embedding {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<256x64xf32>, tensor<16x128xi32>) -> tensor<16x128x64xf32>
  %0 = dtc.embedding %table, %ids : (tensor<256x64xf32>, tensor<16x128xi32>) -> tensor<16x128x64xf32>
  // CHECK: dtc.embedding {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<256x64xf32>, tensor<i32>) -> tensor<64xf32>
  %1 = dtc.embedding %table, %id : (tensor<256x64xf32>, tensor<i32>) -> tensor<64xf32>
  return
}

// CHECK-LABEL: func.func @embedding_grad
func.func @embedding_grad(%ids: tensor<16x128xi32>, %dy: tensor<16x128x64xf32>) {
  // CHECK: dtc.embedding_grad {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<16x128xi32>, tensor<16x128x64xf32>) -> tensor<256x64xf32>
  %0 = dtc.embedding_grad %ids, %dy : (tensor<16x128xi32>, tensor<16x128x64xf32>) -> tensor<256x64xf32>
  return
}

// CHECK-LABEL: func.func @pick
func.func @pick(%x: tensor<16x128x256xf32>, %ids: tensor<16x128xi32>) {
  // CHECK: dtc.pick {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<16x128x256xf32>, tensor<16x128xi32>) -> tensor<16x128xf32>
  %0 = dtc.pick %x, %ids : (tensor<16x128x256xf32>, tensor<16x128xi32>) -> tensor<16x128xf32>
  return
}

// CHECK-LABEL: func.func @pick_grad
func.func @pick_grad(%ids: tensor<16x128xi32>, %dy: tensor<16x128xf64>) {
  // CHECK: dtc.pick_grad {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<16x128xi32>, tensor<16x128xf64>) -> tensor<16x128x256xf64>
  %0 = dtc.pick_grad %ids, %dy : (tensor<16x128xi32>, tensor<16x128xf64>) -> tensor<16x128x256xf64>
  return
}
