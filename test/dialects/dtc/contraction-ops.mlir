// RUN: dtc-opt %s | dtc-opt | FileCheck %s

// CHECK-LABEL: func.func @einsum
func.func @einsum(%x: tensor<16x128x64xf32>, %w: tensor<64x256xf32>, %s: tensor<f64>, %a: tensor<3xf32>, %b: tensor<5xf32>) {
  // CHECK: dtc.einsum "bsd,df->bsf" {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<16x128x64xf32>, tensor<64x256xf32>) -> tensor<16x128x256xf32>
  %0 = dtc.einsum "bsd,df->bsf" %x, %w : (tensor<16x128x64xf32>, tensor<64x256xf32>) -> tensor<16x128x256xf32>
  // CHECK: dtc.einsum ",->" {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %1 = dtc.einsum ",->" %s, %s : (tensor<f64>, tensor<f64>) -> tensor<f64>
  // CHECK: dtc.einsum "a,b->ba" {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<3xf32>, tensor<5xf32>) -> tensor<5x3xf32>
  %2 = dtc.einsum "a,b->ba" %a, %b : (tensor<3xf32>, tensor<5xf32>) -> tensor<5x3xf32>
  // CHECK: dtc.einsum "a,a->" {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
  %3 = dtc.einsum "a,a->" %a, %a : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
  // CHECK: dtc.einsum "bsd,bsd->b" {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<16x128x64xf32>, tensor<16x128x64xf32>) -> tensor<16xf32>
  %4 = dtc.einsum "bsd,bsd->b" %x, %x : (tensor<16x128x64xf32>, tensor<16x128x64xf32>) -> tensor<16xf32>
  return
}

// CHECK-LABEL: func.func @reduce
func.func @reduce(%x: tensor<16x128x64xf32>) {
  // CHECK: dtc.reduce sum {{%[^ ,]+}} dims [0, 1] : (tensor<16x128x64xf32>) -> tensor<64xf32>
  %0 = dtc.reduce sum %x dims [0, 1] : (tensor<16x128x64xf32>) -> tensor<64xf32>
  // CHECK: dtc.reduce max {{%[^ ,]+}} dims [2] : (tensor<16x128x64xf32>) -> tensor<16x128xf32>
  %1 = dtc.reduce max %x dims [2] : (tensor<16x128x64xf32>) -> tensor<16x128xf32>
  // CHECK: dtc.reduce min {{%[^ ,]+}} dims [0, 1, 2] : (tensor<16x128x64xf32>) -> tensor<f32>
  %2 = dtc.reduce min %x dims [0, 1, 2] : (tensor<16x128x64xf32>) -> tensor<f32>
  // CHECK: dtc.reduce sum {{%[^ ,]+}} dims [] : (tensor<16x128x64xf32>) -> tensor<16x128x64xf32>
  %3 = dtc.reduce sum %x dims [] : (tensor<16x128x64xf32>) -> tensor<16x128x64xf32>
  // Any order means the same.
  // CHECK: dtc.reduce sum {{%[^ ,]+}} dims [0, 2] : (tensor<16x128x64xf32>) -> tensor<128xf32>
  %4 = dtc.reduce sum %x dims [2, 0] : (tensor<16x128x64xf32>) -> tensor<128xf32>
  return
}

// CHECK-LABEL: func.func @grouped_product
func.func @grouped_product(%x: tensor<4x2x3x8xf32>, %w: tensor<4x5x8xf32>, %v: tensor<4x8x5xf32>, %rows: tensor<4x2x3xi32>) {
  // CHECK: dtc.grouped_product "xbcd,xfd->xbcf" {{%[^ ,]+}}, {{%[^ ,]+}} rows {{%[^ ,]+}} {occupancy = 5.000000e-01 : f64} : (tensor<4x2x3x8xf32>, tensor<4x5x8xf32>, tensor<4x2x3xi32>) -> tensor<4x2x3x5xf32>
  %0 = dtc.grouped_product "xbcd,xfd->xbcf" %x, %w rows %rows {occupancy = 5.0e-1 : f64} : (tensor<4x2x3x8xf32>, tensor<4x5x8xf32>, tensor<4x2x3xi32>) -> tensor<4x2x3x5xf32>
  // CHECK: dtc.grouped_product "abcd,ade->abce"
  %1 = dtc.grouped_product "abcd,ade->abce" %x, %v rows %rows : (tensor<4x2x3x8xf32>, tensor<4x8x5xf32>, tensor<4x2x3xi32>) -> tensor<4x2x3x5xf32>
  // CHECK: dtc.grouped_product "xbcd,xbcf->xfd" {{.*}} -> tensor<4x5x8xf32>
  %2 = dtc.grouped_product "xbcd,xbcf->xfd" %x, %0 rows %rows : (tensor<4x2x3x8xf32>, tensor<4x2x3x5xf32>, tensor<4x2x3xi32>) -> tensor<4x5x8xf32>
  // CHECK: dtc.grouped_product "xbcd,xbcf->xdf" {{.*}} -> tensor<4x8x5xf32>
  %3 = dtc.grouped_product "xbcd,xbcf->xdf" %x, %0 rows %rows : (tensor<4x2x3x8xf32>, tensor<4x2x3x5xf32>, tensor<4x2x3xi32>) -> tensor<4x8x5xf32>
  return
}
