// RUN: dtc-opt %s | dtc-opt | FileCheck %s

// CHECK-LABEL: func.func @conv
func.func @conv(%x: tensor<8x3x32x30xf32>, %w: tensor<16x3x3x5xf32>, %line: tensor<2x4x9xf64>, %v: tensor<6x4x2xf64>, %volume: tensor<1x2x5x6x7xbf16>, %u: tensor<3x2x1x2x3xbf16>) {
  // CHECK: dtc.conv {{%[^ ,]+}}, {{%[^ ,]+}} strides [2, 1] padding [1, 2] dilations [1, 1] : (tensor<8x3x32x30xf32>, tensor<16x3x3x5xf32>) -> tensor<8x16x16x30xf32>
  %0 = dtc.conv %x, %w strides [2, 1] padding [1, 2] dilations [1, 1] : (tensor<8x3x32x30xf32>, tensor<16x3x3x5xf32>) -> tensor<8x16x16x30xf32>
  // CHECK: dtc.conv {{.*}} strides [3] padding [0] dilations [4] : (tensor<2x4x9xf64>, tensor<6x4x2xf64>) -> tensor<2x6x2xf64>
  %1 = dtc.conv %line, %v strides [3] padding [0] dilations [4] : (tensor<2x4x9xf64>, tensor<6x4x2xf64>) -> tensor<2x6x2xf64>
  // CHECK: dtc.conv {{.*}} (tensor<1x2x5x6x7xbf16>, tensor<3x2x1x2x3xbf16>) -> tensor<1x3x3x5x7xbf16>
  %2 = dtc.conv %volume, %u strides [2, 1, 1] padding [0, 0, 1] dilations [1, 1, 1] : (tensor<1x2x5x6x7xbf16>, tensor<3x2x1x2x3xbf16>) -> tensor<1x3x3x5x7xbf16>
  return
}

// Groups are a dimension of their own; the second convolution is depthwise.
// CHECK-LABEL: func.func @conv_groups
func.func @conv_groups(%x: tensor<8x2x3x9x9xf32>, %w: tensor<2x4x3x3x3xf32>, %y: tensor<8x6x1x9x9xf32>, %v: tensor<6x1x1x7x7xf32>) {
  // CHECK: dtc.conv {{.*}} (tensor<8x2x3x9x9xf32>, tensor<2x4x3x3x3xf32>) -> tensor<8x2x4x9x9xf32>
  %0 = dtc.conv %x, %w strides [1, 1] padding [1, 1] dilations [1, 1] : (tensor<8x2x3x9x9xf32>, tensor<2x4x3x3x3xf32>) -> tensor<8x2x4x9x9xf32>
  // CHECK: dtc.conv {{.*}} (tensor<8x6x1x9x9xf32>, tensor<6x1x1x7x7xf32>) -> tensor<8x6x1x9x9xf32>
  %1 = dtc.conv %y, %v strides [1, 1] padding [3, 3] dilations [1, 1] : (tensor<8x6x1x9x9xf32>, tensor<6x1x1x7x7xf32>) -> tensor<8x6x1x9x9xf32>
  return
}

// CHECK-LABEL: func.func @conv_gradients
func.func @conv_gradients(%x: tensor<8x3x32x30xbf16>, %w: tensor<16x3x3x5xbf16>, %dy: tensor<8x16x16x30xbf16>) {
  // CHECK: dtc.conv_input_grad {{%[^ ,]+}}, {{%[^ ,]+}} strides [2, 1] padding [1, 2] dilations [1, 1] : (tensor<8x16x16x30xbf16>, tensor<16x3x3x5xbf16>) -> tensor<8x3x32x30xbf16>
  %0 = dtc.conv_input_grad %dy, %w strides [2, 1] padding [1, 2] dilations [1, 1] : (tensor<8x16x16x30xbf16>, tensor<16x3x3x5xbf16>) -> tensor<8x3x32x30xbf16>
  // CHECK: dtc.conv_weight_grad {{.*}} : (tensor<8x3x32x30xbf16>, tensor<8x16x16x30xbf16>) -> tensor<16x3x3x5xf32>
  %1 = dtc.conv_weight_grad %x, %dy strides [2, 1] padding [1, 2] dilations [1, 1] : (tensor<8x3x32x30xbf16>, tensor<8x16x16x30xbf16>) -> tensor<16x3x3x5xf32>
  return
}

// CHECK-LABEL: func.func @max_pool
func.func @max_pool(%x: tensor<8x3x32x30xf32>, %dy: tensor<8x3x16x28xf32>, %line: tensor<9xf64>) {
  // CHECK: dtc.max_pool {{%[^ ]+}} window [3, 3] strides [2, 1] padding [1, 0] dilations [1, 1] : (tensor<8x3x32x30xf32>) -> tensor<8x3x16x28xf32>
  %0 = dtc.max_pool %x window [3, 3] strides [2, 1] padding [1, 0] dilations [1, 1] : (tensor<8x3x32x30xf32>) -> tensor<8x3x16x28xf32>
  // CHECK: dtc.max_pool_grad {{%[^ ,]+}}, {{%[^ ]+}} window [3, 3] strides [2, 1] padding [1, 0] dilations [1, 1] : (tensor<8x3x32x30xf32>, tensor<8x3x16x28xf32>) -> tensor<8x3x32x30xf32>
  %1 = dtc.max_pool_grad %x, %dy window [3, 3] strides [2, 1] padding [1, 0] dilations [1, 1] : (tensor<8x3x32x30xf32>, tensor<8x3x16x28xf32>) -> tensor<8x3x32x30xf32>
  // CHECK: dtc.max_pool {{.*}} : (tensor<9xf64>) -> tensor<3xf64>
  %2 = dtc.max_pool %line window [2] strides [3] padding [0] dilations [2] : (tensor<9xf64>) -> tensor<3xf64>
  return
}
