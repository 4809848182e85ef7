// RUN: dtc-opt %s | dtc-opt | FileCheck %s

// CHECK-LABEL: func.func @embedding
func.func @embedding(%table: tensor<256x64xf32>, %ids: tensor<16x128xi32>, %id: tensor<i32>, %tables: tensor<16x128x64xf32>, %rows: tensor<8x16x32xi32>, %nested: tensor<8x16x128x64xf16>) {
  // CHECK: dtc.embedding {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<256x64xf32>, tensor<16x128xi32>) -> tensor<16x128x64xf32>
  %0 = dtc.embedding %table, %ids : (tensor<256x64xf32>, tensor<16x128xi32>) -> tensor<16x128x64xf32>
  // CHECK: dtc.embedding {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<256x64xf32>, tensor<i32>) -> tensor<64xf32>
  %1 = dtc.embedding %table, %id : (tensor<256x64xf32>, tensor<i32>) -> tensor<64xf32>
  // A table for each sample: the dimensions of ids before its last one are those of samples, or end
  // with them.
  // CHECK: dtc.embedding {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<16x128x64xf32>, tensor<16x128xi32>) -> tensor<16x128x64xf32>
  %2 = dtc.embedding %tables, %ids : (tensor<16x128x64xf32>, tensor<16x128xi32>) -> tensor<16x128x64xf32>
  // CHECK: dtc.embedding {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<16x128x64xf32>, tensor<8x16x32xi32>) -> tensor<8x16x32x64xf32>
  %3 = dtc.embedding %tables, %rows : (tensor<16x128x64xf32>, tensor<8x16x32xi32>) -> tensor<8x16x32x64xf32>
  // CHECK: dtc.embedding {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<8x16x128x64xf16>, tensor<8x16x32xi32>) -> tensor<8x16x32x64xf16>
  %4 = dtc.embedding %nested, %rows : (tensor<8x16x128x64xf16>, tensor<8x16x32xi32>) -> tensor<8x16x32x64xf16>
  return
}

// CHECK-LABEL: func.func @embedding_grad
func.func @embedding_grad(%ids: tensor<16x128xi32>, %dy: tensor<16x128x64xf32>, %rows: tensor<8x16x32xi32>, %dz: tensor<8x16x32x64xf32>) {
  // CHECK: dtc.embedding_grad {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<16x128xi32>, tensor<16x128x64xf32>) -> tensor<256x64xf32>
  %0 = dtc.embedding_grad %ids, %dy : (tensor<16x128xi32>, tensor<16x128x64xf32>) -> tensor<256x64xf32>
  // CHECK: dtc.embedding_grad {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<8x16x32xi32>, tensor<8x16x32x64xf32>) -> tensor<16x128x64xf32>
  %1 = dtc.embedding_grad %rows, %dz : (tensor<8x16x32xi32>, tensor<8x16x32x64xf32>) -> tensor<16x128x64xf32>
  // CHECK: dtc.embedding_grad {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<8x16x32xi32>, tensor<8x16x32x64xf32>) -> tensor<8x16x5x64xf32>
  %2 = dtc.embedding_grad %rows, %dz : (tensor<8x16x32xi32>, tensor<8x16x32x64xf32>) -> tensor<8x16x5x64xf32>
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

// CHECK-LABEL: func.func @top_k
func.func @top_k(%x: tensor<16x128x8xf32>, %row: tensor<8xf64>) {
  // CHECK: dtc.top_k {{%[^ ,]+}} {k = 2 : i64} : tensor<16x128x8xf32>
  %0 = dtc.top_k %x {k = 2} : tensor<16x128x8xf32>
  // CHECK: dtc.top_k {{%[^ ,]+}} {k = 8 : i64} : tensor<8xf64>
  %1 = dtc.top_k %row {k = 8} : tensor<8xf64>
  // The result is a mask of the operand's shape.
  // CHECK: dtc.select {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} : tensor<16x128x8xf32>
  %2 = dtc.select %0, %x, %x : tensor<16x128x8xf32>
  return
}

// CHECK-LABEL: func.func @nonzero
func.func @nonzero(%mask: tensor<8x16x128xi1>, %row: tensor<7xi1>) {
  // CHECK: dtc.nonzero {{%[^ ,]+}} : tensor<8x16x128xi1> -> tensor<8x16x32xi32>
  %0 = dtc.nonzero %mask : tensor<8x16x128xi1> -> tensor<8x16x32xi32>
  // CHECK: dtc.nonzero {{%[^ ,]+}} : tensor<7xi1> -> tensor<7xi32>
  %1 = dtc.nonzero %row : tensor<7xi1> -> tensor<7xi32>
  return
}
