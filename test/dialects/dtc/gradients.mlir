// RUN: dtc-opt %s --test-build-vjps | FileCheck %s
//
// For each op what its vector-Jacobian product builds; the last arguments are the cotangents.

// CHECK-LABEL: func.func @neg_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.neg %[[ARG0]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.neg %[[ARG1]]
// CHECK: return %[[V1]]
func.func @neg(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %y = dtc.neg %x : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @abs_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.abs %[[ARG0]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.constant dense<0.000000e+00> : tensor<2x3xf32>
// CHECK: %[[V2:[^ ,:)]+]] = dtc.neg %[[ARG1]]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.compare lt %[[ARG0]], %[[V1]]
// CHECK: %[[V4:[^ ,:)]+]] = dtc.select %[[V3]], %[[V2]], %[[V1]]
// CHECK: %[[V5:[^ ,:)]+]] = dtc.compare gt %[[ARG0]], %[[V1]]
// CHECK: %[[V6:[^ ,:)]+]] = dtc.select %[[V5]], %[[ARG1]], %[[V4]]
// CHECK: return %[[V6]]
func.func @abs(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %y = dtc.abs %x : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @exp_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.exp %[[ARG0]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.mul %[[ARG1]], %[[V0]]
// CHECK: return %[[V1]]
func.func @exp(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %y = dtc.exp %x : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @log_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.log %[[ARG0]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.div %[[ARG1]], %[[ARG0]]
// CHECK: return %[[V1]]
func.func @log(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %y = dtc.log %x : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @sqrt_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.sqrt %[[ARG0]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.constant dense<5.000000e-01> : tensor<2x3xf32>
// CHECK: %[[V2:[^ ,:)]+]] = dtc.mul %[[ARG1]], %[[V1]]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.div %[[V2]], %[[V0]]
// CHECK: return %[[V3]]
func.func @sqrt(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %y = dtc.sqrt %x : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @rsqrt_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.rsqrt %[[ARG0]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.mul %[[V0]], %[[V0]]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.mul %[[V0]], %[[V1]]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.constant dense<-5.000000e-01> : tensor<2x3xf32>
// CHECK: %[[V4:[^ ,:)]+]] = dtc.mul %[[ARG1]], %[[V3]]
// CHECK: %[[V5:[^ ,:)]+]] = dtc.mul %[[V4]], %[[V2]]
// CHECK: return %[[V5]]
func.func @rsqrt(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %y = dtc.rsqrt %x : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @tanh_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.tanh %[[ARG0]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.mul %[[V0]], %[[V0]]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.constant dense<1.000000e+00> : tensor<2x3xf32>
// CHECK: %[[V3:[^ ,:)]+]] = dtc.sub %[[V2]], %[[V1]]
// CHECK: %[[V4:[^ ,:)]+]] = dtc.mul %[[ARG1]], %[[V3]]
// CHECK: return %[[V4]]
func.func @tanh(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %y = dtc.tanh %x : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @sigmoid_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.sigmoid %[[ARG0]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.constant dense<1.000000e+00> : tensor<2x3xf32>
// CHECK: %[[V2:[^ ,:)]+]] = dtc.sub %[[V1]], %[[V0]]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.mul %[[V0]], %[[V2]]
// CHECK: %[[V4:[^ ,:)]+]] = dtc.mul %[[ARG1]], %[[V3]]
// CHECK: return %[[V4]]
func.func @sigmoid(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %y = dtc.sigmoid %x : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @softplus_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.sigmoid %[[ARG0]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.mul %[[ARG1]], %[[V0]]
// CHECK: return %[[V1]]
func.func @softplus(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %y = dtc.softplus %x : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @relu_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.relu %[[ARG0]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.constant dense<0.000000e+00> : tensor<2x3xf32>
// CHECK: %[[V2:[^ ,:)]+]] = dtc.compare gt %[[ARG0]], %[[V1]]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.select %[[V2]], %[[ARG1]], %[[V1]]
// CHECK: return %[[V3]]
func.func @relu(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %y = dtc.relu %x : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @silu_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.silu %[[ARG0]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.silu_grad %[[ARG0]], %[[ARG1]]
// CHECK: return %[[V1]]
func.func @silu(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %y = dtc.silu %x : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @gelu_tanh_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.gelu tanh %[[ARG0]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.gelu_grad tanh %[[ARG0]], %[[ARG1]]
// CHECK: return %[[V1]]
func.func @gelu_tanh(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %y = dtc.gelu tanh %x : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @gelu_none_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.gelu none %[[ARG0]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.gelu_grad none %[[ARG0]], %[[ARG1]]
// CHECK: return %[[V1]]
func.func @gelu_none(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %y = dtc.gelu none %x : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @add_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.add %[[ARG0]], %[[ARG1]]
// CHECK: return %[[ARG2]], %[[ARG2]]
func.func @add(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %z = dtc.add %x, %y : tensor<2x3xf32>
  return %z : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @sub_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.sub %[[ARG0]], %[[ARG1]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.neg %[[ARG2]]
// CHECK: return %[[ARG2]], %[[V1]]
func.func @sub(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %z = dtc.sub %x, %y : tensor<2x3xf32>
  return %z : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @mul_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.mul %[[ARG0]], %[[ARG1]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.mul %[[ARG2]], %[[ARG1]]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.mul %[[ARG2]], %[[ARG0]]
// CHECK: return %[[V1]], %[[V2]]
func.func @mul(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %z = dtc.mul %x, %y : tensor<2x3xf32>
  return %z : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @div_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.div %[[ARG0]], %[[ARG1]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.div %[[ARG2]], %[[ARG1]]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.mul %[[V1]], %[[V0]]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.neg %[[V2]]
// CHECK: return %[[V1]], %[[V3]]
func.func @div(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %z = dtc.div %x, %y : tensor<2x3xf32>
  return %z : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @maximum_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.maximum %[[ARG0]], %[[ARG1]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.constant dense<0.000000e+00> : tensor<2x3xf32>
// CHECK: %[[V2:[^ ,:)]+]] = dtc.constant dense<5.000000e-01> : tensor<2x3xf32>
// CHECK: %[[V3:[^ ,:)]+]] = dtc.mul %[[ARG2]], %[[V2]]
// CHECK: %[[V4:[^ ,:)]+]] = dtc.compare eq %[[ARG0]], %[[ARG1]]
// CHECK: %[[V5:[^ ,:)]+]] = dtc.select %[[V4]], %[[V3]], %[[V1]]
// CHECK: %[[V6:[^ ,:)]+]] = dtc.compare gt %[[ARG0]], %[[ARG1]]
// CHECK: %[[V7:[^ ,:)]+]] = dtc.select %[[V6]], %[[ARG2]], %[[V5]]
// CHECK: %[[V8:[^ ,:)]+]] = dtc.compare gt %[[ARG1]], %[[ARG0]]
// CHECK: %[[V9:[^ ,:)]+]] = dtc.select %[[V8]], %[[ARG2]], %[[V5]]
// CHECK: return %[[V7]], %[[V9]]
func.func @maximum(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %z = dtc.maximum %x, %y : tensor<2x3xf32>
  return %z : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @minimum_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.minimum %[[ARG0]], %[[ARG1]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.constant dense<0.000000e+00> : tensor<2x3xf32>
// CHECK: %[[V2:[^ ,:)]+]] = dtc.constant dense<5.000000e-01> : tensor<2x3xf32>
// CHECK: %[[V3:[^ ,:)]+]] = dtc.mul %[[ARG2]], %[[V2]]
// CHECK: %[[V4:[^ ,:)]+]] = dtc.compare eq %[[ARG0]], %[[ARG1]]
// CHECK: %[[V5:[^ ,:)]+]] = dtc.select %[[V4]], %[[V3]], %[[V1]]
// CHECK: %[[V6:[^ ,:)]+]] = dtc.compare lt %[[ARG0]], %[[ARG1]]
// CHECK: %[[V7:[^ ,:)]+]] = dtc.select %[[V6]], %[[ARG2]], %[[V5]]
// CHECK: %[[V8:[^ ,:)]+]] = dtc.compare lt %[[ARG1]], %[[ARG0]]
// CHECK: %[[V9:[^ ,:)]+]] = dtc.select %[[V8]], %[[ARG2]], %[[V5]]
// CHECK: return %[[V7]], %[[V9]]
func.func @minimum(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %z = dtc.minimum %x, %y : tensor<2x3xf32>
  return %z : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @convert_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf64>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.convert %[[ARG0]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.convert %[[ARG1]]
// CHECK: return %[[V1]]
func.func @convert(%x: tensor<2x3xf32>) -> (tensor<2x3xf64>) {
  %z = dtc.convert %x : (tensor<2x3xf32>) -> tensor<2x3xf64>
  return %z : tensor<2x3xf64>
}

// CHECK-LABEL: func.func @select_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xi1>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG3:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.select %[[ARG0]], %[[ARG1]], %[[ARG2]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.constant dense<0.000000e+00> : tensor<2x3xf32>
// CHECK: %[[V2:[^ ,:)]+]] = dtc.select %[[ARG0]], %[[ARG3]], %[[V1]]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.select %[[ARG0]], %[[V1]], %[[ARG3]]
// CHECK: return %[[V2]], %[[V3]]
func.func @select(%c: tensor<2x3xi1>, %x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %z = dtc.select %c, %x, %y : tensor<2x3xf32>
  return %z : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @broadcast_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3x4xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.broadcast %[[ARG0]] dims [1]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.reduce sum %[[ARG1]] dims [0, 2]
// CHECK: return %[[V1]]
func.func @broadcast(%x: tensor<3xf32>) -> (tensor<2x3x4xf32>) {
  %z = dtc.broadcast %x dims [1] : (tensor<3xf32>) -> tensor<2x3x4xf32>
  return %z : tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @reshape_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<3x2xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.reshape %[[ARG0]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.reshape %[[ARG1]]
// CHECK: return %[[V1]]
func.func @reshape(%x: tensor<2x3xf32>) -> (tensor<3x2xf32>) {
  %z = dtc.reshape %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %z : tensor<3x2xf32>
}

// CHECK-LABEL: func.func @transpose_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<4x2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.transpose %[[ARG0]] permutation [2, 0, 1]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.transpose %[[ARG1]] permutation [1, 2, 0]
// CHECK: return %[[V1]]
func.func @transpose(%x: tensor<2x3x4xf32>) -> (tensor<4x2x3xf32>) {
  %z = dtc.transpose %x permutation [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  return %z : tensor<4x2x3xf32>
}

// CHECK-LABEL: func.func @zigzag_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x12x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x12x4xf32>
// CHECK: %[[V1:[^ ,:)]+]] = dtc.zigzag %[[ARG1]] {dim = 1 : i64, inverse = true, parts = 3 : i64}
// CHECK: return %[[V1]]
func.func @zigzag(%x: tensor<2x12x4xf32>) -> (tensor<2x12x4xf32>) {
  %z = dtc.zigzag %x {dim = 1, inverse = false, parts = 3} : tensor<2x12x4xf32>
  return %z : tensor<2x12x4xf32>
}

// CHECK-LABEL: func.func @zigzag_inverse_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x12x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x12x4xf32>
// CHECK: %[[V1:[^ ,:)]+]] = dtc.zigzag %[[ARG1]] {dim = 1 : i64, inverse = false, parts = 3 : i64}
// CHECK: return %[[V1]]
func.func @zigzag_inverse(%x: tensor<2x12x4xf32>) -> (tensor<2x12x4xf32>) {
  %z = dtc.zigzag %x {dim = 1, inverse = true, parts = 3} : tensor<2x12x4xf32>
  return %z : tensor<2x12x4xf32>
}

// CHECK-LABEL: func.func @slice_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x1xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.slice %[[ARG0]] offsets [0, 1] sizes [2, 1]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.pad %[[ARG1]] low [0, 1] high [0, 1] value 0.000000e+00
// CHECK: return %[[V1]]
func.func @slice(%x: tensor<2x3xf32>) -> (tensor<2x1xf32>) {
  %z = dtc.slice %x offsets [0, 1] sizes [2, 1] : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return %z : tensor<2x1xf32>
}

// CHECK-LABEL: func.func @pad_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<4x5xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.pad %[[ARG0]] low [0, 1] high [2, 1] value 1.500000e+00
// CHECK: %[[V1:[^ ,:)]+]] = dtc.slice %[[ARG1]] offsets [0, 1] sizes [2, 3]
// CHECK: return %[[V1]]
func.func @pad(%x: tensor<2x3xf32>) -> (tensor<4x5xf32>) {
  %z = dtc.pad %x low [0, 1] high [2, 1] value 1.5 : (tensor<2x3xf32>) -> tensor<4x5xf32>
  return %z : tensor<4x5xf32>
}

// CHECK-LABEL: func.func @concat_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x1xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2x7xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.concat %[[ARG0]], %[[ARG1]], %[[ARG0]] dim 1
// CHECK: %[[V1:[^ ,:)]+]] = dtc.slice %[[ARG2]] offsets [0, 0] sizes [2, 3]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.slice %[[ARG2]] offsets [0, 3] sizes [2, 1]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.slice %[[ARG2]] offsets [0, 4] sizes [2, 3]
// CHECK: %[[V4:[^ ,:)]+]] = dtc.add %[[V1]], %[[V3]]
// CHECK: return %[[V4]], %[[V2]]
func.func @concat(%x: tensor<2x3xf32>, %y: tensor<2x1xf32>) -> (tensor<2x7xf32>) {
  %z = dtc.concat %x, %y, %x dim 1 : (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x3xf32>) -> tensor<2x7xf32>
  return %z : tensor<2x7xf32>
}

// CHECK-LABEL: func.func @reduce_sum_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.reduce sum %[[ARG0]] dims [0, 2]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.broadcast %[[ARG1]] dims [1]
// CHECK: return %[[V1]]
func.func @reduce_sum(%x: tensor<2x3x4xf32>) -> (tensor<3xf32>) {
  %z = dtc.reduce sum %x dims [0, 2] : (tensor<2x3x4xf32>) -> tensor<3xf32>
  return %z : tensor<3xf32>
}

// CHECK-LABEL: func.func @reduce_max_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.reduce max %[[ARG0]] dims [0, 2]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.broadcast %[[V0]] dims [1]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.compare eq %[[ARG0]], %[[V1]]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.convert %[[V2]]
// CHECK: %[[V4:[^ ,:)]+]] = dtc.reduce sum %[[V3]] dims [0, 2]
// CHECK: %[[V5:[^ ,:)]+]] = dtc.div %[[ARG1]], %[[V4]]
// CHECK: %[[V6:[^ ,:)]+]] = dtc.broadcast %[[V5]] dims [1]
// CHECK: %[[V7:[^ ,:)]+]] = dtc.constant dense<0.000000e+00> : tensor<2x3x4xf32>
// CHECK: %[[V8:[^ ,:)]+]] = dtc.select %[[V2]], %[[V6]], %[[V7]]
// CHECK: return %[[V8]]
func.func @reduce_max(%x: tensor<2x3x4xf32>) -> (tensor<3xf32>) {
  %z = dtc.reduce max %x dims [0, 2] : (tensor<2x3x4xf32>) -> tensor<3xf32>
  return %z : tensor<3xf32>
}

// CHECK-LABEL: func.func @reduce_min_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.reduce min %[[ARG0]] dims [0, 2]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.broadcast %[[V0]] dims [1]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.compare eq %[[ARG0]], %[[V1]]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.convert %[[V2]]
// CHECK: %[[V4:[^ ,:)]+]] = dtc.reduce sum %[[V3]] dims [0, 2]
// CHECK: %[[V5:[^ ,:)]+]] = dtc.div %[[ARG1]], %[[V4]]
// CHECK: %[[V6:[^ ,:)]+]] = dtc.broadcast %[[V5]] dims [1]
// CHECK: %[[V7:[^ ,:)]+]] = dtc.constant dense<0.000000e+00> : tensor<2x3x4xf32>
// CHECK: %[[V8:[^ ,:)]+]] = dtc.select %[[V2]], %[[V6]], %[[V7]]
// CHECK: return %[[V8]]
func.func @reduce_min(%x: tensor<2x3x4xf32>) -> (tensor<3xf32>) {
  %z = dtc.reduce min %x dims [0, 2] : (tensor<2x3x4xf32>) -> tensor<3xf32>
  return %z : tensor<3xf32>
}

// CHECK-LABEL: func.func @einsum0_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<4x5xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2x3x5xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.einsum "bsd,df->bsf" %[[ARG0]], %[[ARG1]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.einsum "bsf,df->bsd" %[[ARG2]], %[[ARG1]]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.einsum "bsd,bsf->df" %[[ARG0]], %[[ARG2]]
// CHECK: return %[[V1]], %[[V2]]
func.func @einsum0(%x: tensor<2x3x4xf32>, %y: tensor<4x5xf32>) -> (tensor<2x3x5xf32>) {
  %z = dtc.einsum "bsd,df->bsf" %x, %y : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
  return %z : tensor<2x3x5xf32>
}

// CHECK-LABEL: func.func @einsum1_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<f32>, %[[ARG1:[^ ,:)]+]]: tensor<f32>, %[[ARG2:[^ ,:)]+]]: tensor<f32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.einsum ",->" %[[ARG0]], %[[ARG1]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.einsum ",->" %[[ARG2]], %[[ARG1]]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.einsum ",->" %[[ARG0]], %[[ARG2]]
// CHECK: return %[[V1]], %[[V2]]
func.func @einsum1(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<f32>) {
  %z = dtc.einsum ",->" %x, %y : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %z : tensor<f32>
}

// CHECK-LABEL: func.func @einsum2_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2xf32>, %[[ARG1:[^ ,:)]+]]: tensor<3xf32>, %[[ARG2:[^ ,:)]+]]: tensor<3x2xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.einsum "a,b->ba" %[[ARG0]], %[[ARG1]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.einsum "ba,b->a" %[[ARG2]], %[[ARG1]]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.einsum "a,ba->b" %[[ARG0]], %[[ARG2]]
// CHECK: return %[[V1]], %[[V2]]
func.func @einsum2(%x: tensor<2xf32>, %y: tensor<3xf32>) -> (tensor<3x2xf32>) {
  %z = dtc.einsum "a,b->ba" %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<3x2xf32>
  return %z : tensor<3x2xf32>
}

// CHECK-LABEL: func.func @einsum3_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<3x4x2xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2x2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.einsum "abc,bcd->dab" %[[ARG0]], %[[ARG1]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.einsum "dab,bcd->abc" %[[ARG2]], %[[ARG1]]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.einsum "abc,dab->bcd" %[[ARG0]], %[[ARG2]]
// CHECK: return %[[V1]], %[[V2]]
func.func @einsum3(%x: tensor<2x3x4xf32>, %y: tensor<3x4x2xf32>) -> (tensor<2x2x3xf32>) {
  %z = dtc.einsum "abc,bcd->dab" %x, %y : (tensor<2x3x4xf32>, tensor<3x4x2xf32>) -> tensor<2x2x3xf32>
  return %z : tensor<2x2x3xf32>
}

// CHECK-LABEL: func.func @conv_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x5x6xf32>, %[[ARG1:[^ ,:)]+]]: tensor<4x3x3x2xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2x4x2x6xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.conv_input_grad %[[ARG2]], %[[ARG1]] strides [2, 1] padding [0, 1] dilations [1, 2] : (tensor<2x4x2x6xf32>, tensor<4x3x3x2xf32>) -> tensor<2x3x5x6xf32>
// CHECK: %[[V1:[^ ,:)]+]] = dtc.conv_weight_grad %[[ARG0]], %[[ARG2]] strides [2, 1] padding [0, 1] dilations [1, 2] : (tensor<2x3x5x6xf32>, tensor<2x4x2x6xf32>) -> tensor<4x3x3x2xf32>
// CHECK: return %[[V0]], %[[V1]]
func.func @conv(%x: tensor<2x3x5x6xf32>, %y: tensor<4x3x3x2xf32>) -> (tensor<2x4x2x6xf32>) {
  %z = dtc.conv %x, %y strides [2, 1] padding [0, 1] dilations [1, 2] : (tensor<2x3x5x6xf32>, tensor<4x3x3x2xf32>) -> tensor<2x4x2x6xf32>
  return %z : tensor<2x4x2x6xf32>
}

// CHECK-LABEL: func.func @conv_input_grad_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x4x2x6xf32>, %[[ARG1:[^ ,:)]+]]: tensor<4x3x3x2xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2x3x5x6xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.conv %[[ARG2]], %[[ARG1]] strides [2, 1] padding [0, 1] dilations [1, 2]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.conv_weight_grad %[[ARG2]], %[[ARG0]] strides [2, 1] padding [0, 1] dilations [1, 2]
// CHECK: return %[[V0]], %[[V1]]
func.func @conv_input_grad(%x: tensor<2x4x2x6xf32>, %y: tensor<4x3x3x2xf32>) -> (tensor<2x3x5x6xf32>) {
  %z = dtc.conv_input_grad %x, %y strides [2, 1] padding [0, 1] dilations [1, 2] : (tensor<2x4x2x6xf32>, tensor<4x3x3x2xf32>) -> tensor<2x3x5x6xf32>
  return %z : tensor<2x3x5x6xf32>
}

// CHECK-LABEL: func.func @conv_weight_grad_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x5x6xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x4x2x6xf32>, %[[ARG2:[^ ,:)]+]]: tensor<4x3x3x2xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.conv_input_grad %[[ARG1]], %[[ARG2]] strides [2, 1] padding [0, 1] dilations [1, 2]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.conv %[[ARG0]], %[[ARG2]] strides [2, 1] padding [0, 1] dilations [1, 2]
// CHECK: return %[[V0]], %[[V1]]
func.func @conv_weight_grad(%x: tensor<2x3x5x6xf32>, %y: tensor<2x4x2x6xf32>) -> (tensor<4x3x3x2xf32>) {
  %z = dtc.conv_weight_grad %x, %y strides [2, 1] padding [0, 1] dilations [1, 2] : (tensor<2x3x5x6xf32>, tensor<2x4x2x6xf32>) -> tensor<4x3x3x2xf32>
  return %z : tensor<4x3x3x2xf32>
}

// CHECK-LABEL: func.func @max_pool_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x5x6xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3x3x4xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.max_pool_grad %[[ARG0]], %[[ARG1]] window [3, 2] strides [2, 1] padding [1, 0] dilations [1, 2]
// CHECK: return %[[V0]]
func.func @max_pool(%x: tensor<2x3x5x6xf32>) -> (tensor<2x3x3x4xf32>) {
  %z = dtc.max_pool %x window [3, 2] strides [2, 1] padding [1, 0] dilations [1, 2] : (tensor<2x3x5x6xf32>) -> tensor<2x3x3x4xf32>
  return %z : tensor<2x3x3x4xf32>
}

// CHECK-LABEL: func.func @embedding_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<5x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x4xi32>, %[[ARG2:[^ ,:)]+]]: tensor<2x4x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.embedding %[[ARG0]], %[[ARG1]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.embedding_grad %[[ARG1]], %[[ARG2]]
// CHECK: return %[[V1]]
func.func @embedding(%t: tensor<5x3xf32>, %i: tensor<2x4xi32>) -> (tensor<2x4x3xf32>) {
  %z = dtc.embedding %t, %i : (tensor<5x3xf32>, tensor<2x4xi32>) -> tensor<2x4x3xf32>
  return %z : tensor<2x4x3xf32>
}

// A table for each sample.
// CHECK-LABEL: func.func @batched_embedding_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<4x5x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x4x6xi32>, %[[ARG2:[^ ,:)]+]]: tensor<2x4x6x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.embedding %[[ARG0]], %[[ARG1]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.embedding_grad %[[ARG1]], %[[ARG2]] : (tensor<2x4x6xi32>, tensor<2x4x6x3xf32>) -> tensor<4x5x3xf32>
// CHECK: return %[[V1]]
func.func @batched_embedding(%t: tensor<4x5x3xf32>, %i: tensor<2x4x6xi32>) -> (tensor<2x4x6x3xf32>) {
  %z = dtc.embedding %t, %i : (tensor<4x5x3xf32>, tensor<2x4x6xi32>) -> tensor<2x4x6x3xf32>
  return %z : tensor<2x4x6x3xf32>
}

// A summand of a row has the gradient of the row.
// CHECK-LABEL: func.func @embedding_grad_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x4xi32>, %[[ARG1:[^ ,:)]+]]: tensor<2x4x3xf32>, %[[ARG2:[^ ,:)]+]]: tensor<5x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.embedding_grad %[[ARG0]], %[[ARG1]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.embedding %[[ARG2]], %[[ARG0]] : (tensor<5x3xf32>, tensor<2x4xi32>) -> tensor<2x4x3xf32>
// CHECK: return %[[V1]]
func.func @embedding_grad(%i: tensor<2x4xi32>, %y: tensor<2x4x3xf32>) -> (tensor<5x3xf32>) {
  %z = dtc.embedding_grad %i, %y : (tensor<2x4xi32>, tensor<2x4x3xf32>) -> tensor<5x3xf32>
  return %z : tensor<5x3xf32>
}

// CHECK-LABEL: func.func @half_batched_embedding_grad_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x4x6xi32>, %[[ARG1:[^ ,:)]+]]: tensor<2x4x6x3xbf16>, %[[ARG2:[^ ,:)]+]]: tensor<4x5x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.embedding_grad %[[ARG0]], %[[ARG1]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.convert %[[ARG2]] : (tensor<4x5x3xf32>) -> tensor<4x5x3xbf16>
// CHECK: %[[V2:[^ ,:)]+]] = dtc.embedding %[[V1]], %[[ARG0]] : (tensor<4x5x3xbf16>, tensor<2x4x6xi32>) -> tensor<2x4x6x3xbf16>
// CHECK: return %[[V2]]
func.func @half_batched_embedding_grad(%i: tensor<2x4x6xi32>, %y: tensor<2x4x6x3xbf16>) -> (tensor<4x5x3xf32>) {
  %z = dtc.embedding_grad %i, %y : (tensor<2x4x6xi32>, tensor<2x4x6x3xbf16>) -> tensor<4x5x3xf32>
  return %z : tensor<4x5x3xf32>
}

// CHECK-LABEL: func.func @pick_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x4x5xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x4xi32>, %[[ARG2:[^ ,:)]+]]: tensor<2x4xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.pick %[[ARG0]], %[[ARG1]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.pick_grad %[[ARG1]], %[[ARG2]]
// CHECK: return %[[V1]]
func.func @pick(%t: tensor<2x4x5xf32>, %i: tensor<2x4xi32>) -> (tensor<2x4xf32>) {
  %z = dtc.pick %t, %i : (tensor<2x4x5xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  return %z : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @softmax_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3x4xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.softmax %[[ARG0]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.softmax_grad %[[V0]], %[[ARG1]]
// CHECK: return %[[V1]]
func.func @softmax(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>) {
  %z = dtc.softmax %x : tensor<2x3x4xf32>
  return %z : tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @causal_softmax_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3x4xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.softmax %[[ARG0]] {causal = true, scale = 1.250000e-01 : f64}
// CHECK: %[[V1:[^ ,:)]+]] = dtc.softmax_grad %[[V0]], %[[ARG1]] {scale = 1.250000e-01 : f64}
// CHECK: return %[[V1]]
func.func @causal_softmax(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>) {
  %z = dtc.softmax %x {causal = true, scale = 0.125} : tensor<2x3x4xf32>
  return %z : tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @layer_norm_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<4xf32>, %[[ARG2:[^ ,:)]+]]: tensor<4xf32>, %[[ARG3:[^ ,:)]+]]: tensor<2x3x4xf32>
// CHECK: %[[Y:[^ ,:)]+]], %[[MEAN:[^ ,:)]+]], %[[RSTD:[^ ,:)]+]] = dtc.layer_norm %[[ARG0]], %[[ARG1]], %[[ARG2]] {eps = 1.000000e-05 : f64}
// CHECK: %[[DX:[^ ,:)]+]], %[[DGAMMA:[^ ,:)]+]], %[[DBETA:[^ ,:)]+]] = dtc.layer_norm_grad %[[ARG0]], %[[ARG1]], %[[MEAN]], %[[RSTD]], %[[ARG3]]
// CHECK: return %[[DX]], %[[DGAMMA]], %[[DBETA]]
func.func @layer_norm(%x: tensor<2x3x4xf32>, %g: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<2x3x4xf32>) {
  %y, %m, %r = dtc.layer_norm %x, %g, %b {eps = 1.0e-5} : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  return %y : tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @rms_norm_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<4xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2x3x4xf32>
// CHECK: %[[Y:[^ ,:)]+]], %[[RSTD:[^ ,:)]+]] = dtc.rms_norm %[[ARG0]], %[[ARG1]] {eps = 1.000000e-05 : f64}
// CHECK: %[[DX:[^ ,:)]+]], %[[DGAMMA:[^ ,:)]+]] = dtc.rms_norm_grad %[[ARG0]], %[[ARG1]], %[[RSTD]], %[[ARG2]]
// CHECK: return %[[DX]], %[[DGAMMA]]
func.func @rms_norm(%x: tensor<2x3x4xf32>, %g: tensor<4xf32>) -> (tensor<2x3x4xf32>) {
  %y, %r = dtc.rms_norm %x, %g {eps = 1.0e-5} : (tensor<2x3x4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>)
  return %y : tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @rotary_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x2x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3x2x4xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.rotary %[[ARG0]] {inverse = false, theta = 1.000000e+02 : f64}
// CHECK: %[[V1:[^ ,:)]+]] = dtc.rotary %[[ARG1]] {inverse = true, theta = 1.000000e+02 : f64}
// CHECK: return %[[V1]]
func.func @rotary(%x: tensor<2x3x2x4xf32>) -> (tensor<2x3x2x4xf32>) {
  %y = dtc.rotary %x {inverse = false, theta = 100.0} : tensor<2x3x2x4xf32>
  return %y : tensor<2x3x2x4xf32>
}

// CHECK-LABEL: func.func @rotary_from_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x2x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xi32>, %[[ARG2:[^ ,:)]+]]: tensor<2x3x2x4xf32>
// CHECK: %[[V1:[^ ,:)]+]] = dtc.rotary %[[ARG2]] from %[[ARG1]] : tensor<2x3xi32> {inverse = true, theta = 1.000000e+02 : f64}
// CHECK: return %[[V1]]
func.func @rotary_from(%x: tensor<2x3x2x4xf32>, %positions: tensor<2x3xi32>) -> (tensor<2x3x2x4xf32>) {
  %y = dtc.rotary %x from %positions : tensor<2x3xi32> {inverse = false, theta = 100.0} : tensor<2x3x2x4xf32>
  return %y : tensor<2x3x2x4xf32>
}

// CHECK-LABEL: func.func @rotary_order_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x4x2x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x4x2x4xf32>
// CHECK: %[[V1:[^ ,:)]+]] = dtc.rotary %[[ARG1]] {inverse = true, sequence = 8 : i64, sequence_axes = ["cp"], theta = 1.000000e+02 : f64, zigzag = 2 : i64}
// CHECK: return %[[V1]]
func.func @rotary_order(%x: tensor<2x4x2x4xf32>) -> (tensor<2x4x2x4xf32>) {
  %y = dtc.rotary %x {inverse = false, sequence = 8, sequence_axes = ["cp"], theta = 100.0, zigzag = 2} : tensor<2x4x2x4xf32>
  return %y : tensor<2x4x2x4xf32>
}

// CHECK-LABEL: func.func @attention_order_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x4x4x2xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x8x2x2xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2x8x2x2xf32>, %[[ARG3:[^ ,:)]+]]: tensor<2x4x4x2xf32>
// CHECK: %[[OUT:[^ ,:)]+]], %[[LSE:[^ ,:)]+]] = dtc.attention %[[ARG0]], %[[ARG1]], %[[ARG2]] {causal = true, scale = 1.000000e+00 : f64, sequence = 8 : i64, sequence_axes = ["cp"], zigzag = 2 : i64}
// CHECK: %[[DQ:[^ ,:)]+]], %[[DK:[^ ,:)]+]], %[[DV:[^ ,:)]+]] = dtc.attention_grad %[[ARG0]], %[[ARG1]], %[[ARG2]], %[[OUT]], %[[LSE]], %[[ARG3]] {causal = true, scale = 1.000000e+00 : f64, sequence = 8 : i64, sequence_axes = ["cp"], zigzag = 2 : i64}
// CHECK: return %[[DQ]], %[[DK]], %[[DV]]
func.func @attention_order(%q: tensor<2x4x4x2xf32>, %k: tensor<2x8x2x2xf32>, %v: tensor<2x8x2x2xf32>) -> (tensor<2x4x4x2xf32>) {
  %o, %l = dtc.attention %q, %k, %v {causal = true, scale = 1.0, sequence = 8, sequence_axes = ["cp"], zigzag = 2} : (tensor<2x4x4x2xf32>, tensor<2x8x2x2xf32>, tensor<2x8x2x2xf32>) -> (tensor<2x4x4x2xf32>, tensor<2x4x4xf32>)
  return %o : tensor<2x4x4x2xf32>
}

// CHECK-LABEL: func.func @attention_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4x2xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3x2x2xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2x3x2x2xf32>, %[[ARG3:[^ ,:)]+]]: tensor<2x3x4x2xf32>
// CHECK: %[[OUT:[^ ,:)]+]], %[[LSE:[^ ,:)]+]] = dtc.attention %[[ARG0]], %[[ARG1]], %[[ARG2]] {causal = true, scale = 0.69999999999999996 : f64}
// CHECK: %[[DQ:[^ ,:)]+]], %[[DK:[^ ,:)]+]], %[[DV:[^ ,:)]+]] = dtc.attention_grad %[[ARG0]], %[[ARG1]], %[[ARG2]], %[[OUT]], %[[LSE]], %[[ARG3]] {causal = true, scale = 0.69999999999999996 : f64}
// CHECK: return %[[DQ]], %[[DK]], %[[DV]]
func.func @attention(%q: tensor<2x3x4x2xf32>, %k: tensor<2x3x2x2xf32>, %v: tensor<2x3x2x2xf32>) -> (tensor<2x3x4x2xf32>) {
  %o, %l = dtc.attention %q, %k, %v {causal = true, scale = 0.7} : (tensor<2x3x4x2xf32>, tensor<2x3x2x2xf32>, tensor<2x3x2x2xf32>) -> (tensor<2x3x4x2xf32>, tensor<2x4x3xf32>)
  return %o : tensor<2x3x4x2xf32>
}

// CHECK-LABEL: func.func @cross_entropy_loss_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x4x5xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x4xi32>, %[[ARG2:[^ ,:)]+]]: tensor<2x4xf32>
// CHECK: %[[LOSS:[^ ,:)]+]], %[[LSE:[^ ,:)]+]] = dtc.cross_entropy %[[ARG0]], %[[ARG1]]
// CHECK: %[[V0:[^ ,:)]+]] = dtc.cross_entropy_grad %[[ARG0]], %[[ARG1]], %[[LSE]], %[[ARG2]]
// CHECK: return %[[V0]]
func.func @cross_entropy_loss(%x: tensor<2x4x5xf32>, %l: tensor<2x4xi32>) -> (tensor<2x4xf32>) {
  %loss, %lse = dtc.cross_entropy %x, %l : (tensor<2x4x5xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  return %loss : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @cross_entropy_lse_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x4x5xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x4xi32>, %[[ARG2:[^ ,:)]+]]: tensor<2x4xf32>
// CHECK: %[[LOSS:[^ ,:)]+]], %[[LSE:[^ ,:)]+]] = dtc.cross_entropy %[[ARG0]], %[[ARG1]]
// No class is the label: the gradient of lse is the softmax.
// CHECK: %[[NONE:[^ ,:)]+]] = dtc.constant dense<-1> : tensor<2x4xi32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.cross_entropy_grad %[[ARG0]], %[[NONE]], %[[LSE]], %[[ARG2]] :
// CHECK: return %[[V0]]
func.func @cross_entropy_lse(%x: tensor<2x4x5xf32>, %l: tensor<2x4xi32>) -> (tensor<2x4xf32>) {
  %loss, %lse = dtc.cross_entropy %x, %l : (tensor<2x4x5xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  return %lse : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @cross_entropy_both_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x4x5xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x4xi32>, %[[ARG2:[^ ,:)]+]]: tensor<2x4xf32>, %[[ARG3:[^ ,:)]+]]: tensor<2x4xf32>
// CHECK: %[[LOSS:[^ ,:)]+]], %[[LSE:[^ ,:)]+]] = dtc.cross_entropy %[[ARG0]], %[[ARG1]]
// CHECK: %[[V0:[^ ,:)]+]] = dtc.cross_entropy_grad %[[ARG0]], %[[ARG1]], %[[LSE]], %[[ARG2]]
// CHECK: %[[NONE:[^ ,:)]+]] = dtc.constant dense<-1> : tensor<2x4xi32>
// CHECK: %[[V1:[^ ,:)]+]] = dtc.cross_entropy_grad %[[ARG0]], %[[NONE]], %[[LSE]], %[[ARG3]] :
// CHECK: %[[V2:[^ ,:)]+]] = dtc.add %[[V0]], %[[V1]]
// CHECK: return %[[V2]]
func.func @cross_entropy_both(%x: tensor<2x4x5xf32>, %l: tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %loss, %lse = dtc.cross_entropy %x, %l : (tensor<2x4x5xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  return %loss, %lse : tensor<2x4xf32>, tensor<2x4xf32>
}

// The smoothing is that of the loss alone, and the gradient knows the number of classes, which a shard of it does not.
// CHECK-LABEL: func.func @label_smoothing_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x4x5xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x4xi32>, %[[ARG2:[^ ,:)]+]]: tensor<2x4xf32>, %[[ARG3:[^ ,:)]+]]: tensor<2x4xf32>
// CHECK: %[[LOSS:[^ ,:)]+]], %[[LSE:[^ ,:)]+]] = dtc.cross_entropy %[[ARG0]], %[[ARG1]] {label_smoothing = 2.500000e-01 : f64}
// CHECK: %[[V0:[^ ,:)]+]] = dtc.cross_entropy_grad %[[ARG0]], %[[ARG1]], %[[LSE]], %[[ARG2]] {classes = 5 : i64, label_smoothing = 2.500000e-01 : f64}
// CHECK: %[[NONE:[^ ,:)]+]] = dtc.constant dense<-1> : tensor<2x4xi32>
// CHECK: %[[V1:[^ ,:)]+]] = dtc.cross_entropy_grad %[[ARG0]], %[[NONE]], %[[LSE]], %[[ARG3]] :
// CHECK: %[[V2:[^ ,:)]+]] = dtc.add %[[V0]], %[[V1]]
// CHECK: return %[[V2]]
func.func @label_smoothing(%x: tensor<2x4x5xf32>, %l: tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %loss, %lse = dtc.cross_entropy %x, %l {label_smoothing = 0.25} : (tensor<2x4x5xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  return %loss, %lse : tensor<2x4xf32>, tensor<2x4xf32>
}

// The gradient draws the mask again: the same op with the same number.
// CHECK-LABEL: func.func @dropout_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2xi32>, %[[ARG2:[^ ,:)]+]]: tensor<2x3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.dropout %[[ARG0]], %[[ARG1]] {number = 3 : i64, rate = 2.500000e-01 : f64}
// CHECK: %[[V1:[^ ,:)]+]] = dtc.dropout %[[ARG2]], %[[ARG1]] {number = 3 : i64, rate = 2.500000e-01 : f64}
// CHECK: return %[[V1]]
func.func @dropout(%x: tensor<2x3xf32>, %key: tensor<2xi32>) -> (tensor<2x3xf32>) {
  %y = dtc.dropout %x, %key {number = 3, rate = 0.25} : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @attention_dropout_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4x2xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3x2x2xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2xi32>, %[[ARG3:[^ ,:)]+]]: tensor<2x3x4x2xf32>
// CHECK: %[[OUT:[^ ,:)]+]], %[[LSE:[^ ,:)]+]] = dtc.attention %[[ARG0]], %[[ARG1]], %[[ARG1]] key %[[ARG2]] {causal = true, dropout = 2.500000e-01 : f64, number = 5 : i64, scale = 1.000000e+00 : f64}
// CHECK: %[[DQ:[^ ,:)]+]], %[[DK:[^ ,:)]+]], %[[DV:[^ ,:)]+]] = dtc.attention_grad %[[ARG0]], %[[ARG1]], %[[ARG1]], %[[OUT]], %[[LSE]], %[[ARG3]] key %[[ARG2]] {causal = true, dropout = 2.500000e-01 : f64, number = 5 : i64, scale = 1.000000e+00 : f64}
// CHECK: %[[SUM:[^ ,:)]+]] = dtc.add %[[DK]], %[[DV]]
// CHECK: return %[[DQ]], %[[SUM]]
func.func @attention_dropout(%q: tensor<2x3x4x2xf32>, %k: tensor<2x3x2x2xf32>, %key: tensor<2xi32>) -> (tensor<2x3x4x2xf32>) {
  %o, %l = dtc.attention %q, %k, %k key %key {causal = true, scale = 1.0, dropout = 0.25, number = 5} : (tensor<2x3x4x2xf32>, tensor<2x3x2x2xf32>, tensor<2x3x2x2xf32>, tensor<2xi32>) -> (tensor<2x3x4x2xf32>, tensor<2x4x3xf32>)
  return %o : tensor<2x3x4x2xf32>
}

// CHECK-LABEL: func.func @attention_segments_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4x2xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x5x2x2xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2x5xi32>, %[[ARG3:[^ ,:)]+]]: tensor<2x3x4x2xf32>
// CHECK: %[[OUT:[^ ,:)]+]], %[[LSE:[^ ,:)]+]] = dtc.attention %[[ARG0]], %[[ARG1]], %[[ARG1]] segments %[[ARG2]] {causal = false, scale = 1.000000e+00 : f64}
// CHECK: %[[DQ:[^ ,:)]+]], %[[DK:[^ ,:)]+]], %[[DV:[^ ,:)]+]] = dtc.attention_grad %[[ARG0]], %[[ARG1]], %[[ARG1]], %[[OUT]], %[[LSE]], %[[ARG3]] segments %[[ARG2]] {causal = false, scale = 1.000000e+00 : f64}
// CHECK: %[[SUM:[^ ,:)]+]] = dtc.add %[[DK]], %[[DV]]
// CHECK: return %[[DQ]], %[[SUM]]
func.func @attention_segments(%q: tensor<2x3x4x2xf32>, %k: tensor<2x5x2x2xf32>, %segments: tensor<2x5xi32>) -> (tensor<2x3x4x2xf32>) {
  %o, %l = dtc.attention %q, %k, %k segments %segments {causal = false, scale = 1.0} : (tensor<2x3x4x2xf32>, tensor<2x5x2x2xf32>, tensor<2x5x2x2xf32>, tensor<2x5xi32>) -> (tensor<2x3x4x2xf32>, tensor<2x4x3xf32>)
  return %o : tensor<2x3x4x2xf32>
}

// A sink has the share exp(sink - lse) and no value: its gradient is that share times -sum(dout out), summed over samples
// and queries.
// CHECK-LABEL: func.func @attention_sinks_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4x2xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3x2x2xf32>, %[[ARG2:[^ ,:)]+]]: tensor<4xf32>, %[[ARG3:[^ ,:)]+]]: tensor<2x3x4x2xf32>
// CHECK: %[[OUT:[^ ,:)]+]], %[[LSE:[^ ,:)]+]] = dtc.attention %[[ARG0]], %[[ARG1]], %[[ARG1]] sinks %[[ARG2]] {causal = true, scale = 1.000000e+00 : f64}
// CHECK: %[[DQ:[^ ,:)]+]], %[[DK:[^ ,:)]+]], %[[DV:[^ ,:)]+]] = dtc.attention_grad %[[ARG0]], %[[ARG1]], %[[ARG1]], %[[OUT]], %[[LSE]], %[[ARG3]] {causal = true, scale = 1.000000e+00 : f64}
// CHECK-NEXT: %[[PRODUCTS:[^ ,:)]+]] = dtc.mul %[[ARG3]], %[[OUT]] : tensor<2x3x4x2xf32>
// CHECK-NEXT: %[[SUMS:[^ ,:)]+]] = dtc.reduce sum %[[PRODUCTS]] dims [3] : (tensor<2x3x4x2xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %[[OFROWS:[^ ,:)]+]] = dtc.transpose %[[SUMS]] permutation [0, 2, 1]
// CHECK-NEXT: %[[LOGITS:[^ ,:)]+]] = dtc.broadcast %[[ARG2]] dims [1] : (tensor<4xf32>) -> tensor<2x4x3xf32>
// CHECK-NEXT: %[[LESS:[^ ,:)]+]] = dtc.sub %[[LOGITS]], %[[LSE]]
// CHECK-NEXT: %[[SHARES:[^ ,:)]+]] = dtc.exp %[[LESS]]
// CHECK-NEXT: %[[PARTS:[^ ,:)]+]] = dtc.mul %[[SHARES]], %[[OFROWS]] : tensor<2x4x3xf32>
// CHECK-NEXT: %[[NEGATIVE:[^ ,:)]+]] = dtc.neg %[[PARTS]]
// CHECK-NEXT: %[[DSINKS:[^ ,:)]+]] = dtc.reduce sum %[[NEGATIVE]] dims [0, 2] : (tensor<2x4x3xf32>) -> tensor<4xf32>
// CHECK: %[[SUM:[^ ,:)]+]] = dtc.add %[[DK]], %[[DV]]
// CHECK: return %[[DQ]], %[[SUM]], %[[DSINKS]]
func.func @attention_sinks(%q: tensor<2x3x4x2xf32>, %k: tensor<2x3x2x2xf32>, %sinks: tensor<4xf32>) -> (tensor<2x3x4x2xf32>) {
  %o, %l = dtc.attention %q, %k, %k sinks %sinks {causal = true, scale = 1.0} : (tensor<2x3x4x2xf32>, tensor<2x3x2x2xf32>, tensor<2x3x2x2xf32>, tensor<4xf32>) -> (tensor<2x3x4x2xf32>, tensor<2x4x3xf32>)
  return %o : tensor<2x3x4x2xf32>
}

// With 16 bits, the sum and its factor are f32; the gradient has the type of the sinks.
// CHECK-LABEL: func.func @attention_sinks_low_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4x2xbf16>, %[[ARG1:[^ ,:)]+]]: tensor<2xi32>, %[[ARG2:[^ ,:)]+]]: tensor<4xbf16>, %[[ARG3:[^ ,:)]+]]: tensor<2x3x4x2xbf16>
// CHECK: %[[OUT:[^ ,:)]+]], %[[LSE:[^ ,:)]+]] = dtc.attention %[[ARG0]], %[[ARG0]], %[[ARG0]] key %[[ARG1]] sinks %[[ARG2]] {causal = true, dropout = 2.500000e-01 : f64, scale = 1.000000e+00 : f64}
// CHECK: dtc.attention_grad %[[ARG0]], %[[ARG0]], %[[ARG0]], %[[OUT]], %[[LSE]], %[[ARG3]] key %[[ARG1]] {causal = true, dropout = 2.500000e-01 : f64, scale = 1.000000e+00 : f64}
// CHECK-NEXT: %[[PRODUCTS:[^ ,:)]+]] = dtc.mul %[[ARG3]], %[[OUT]] : tensor<2x3x4x2xbf16>
// CHECK-NEXT: %[[SUMS:[^ ,:)]+]] = dtc.reduce sum %[[PRODUCTS]] dims [3] : (tensor<2x3x4x2xbf16>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %[[OFROWS:[^ ,:)]+]] = dtc.transpose %[[SUMS]] permutation [0, 2, 1]
// CHECK-NEXT: %[[WIDE:[^ ,:)]+]] = dtc.convert %[[ARG2]] : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK-NEXT: dtc.broadcast %[[WIDE]] dims [1] : (tensor<4xf32>) -> tensor<2x4x3xf32>
// CHECK: %[[DSINKS:[^ ,:)]+]] = dtc.reduce sum %{{[^ ,:)]+}} dims [0, 2] : (tensor<2x4x3xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[LOW:[^ ,:)]+]] = dtc.convert %[[DSINKS]] : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK: return %{{[^ ,:)]+}}, %[[LOW]]
func.func @attention_sinks_low(%q: tensor<2x3x4x2xbf16>, %key: tensor<2xi32>, %sinks: tensor<4xbf16>) -> (tensor<2x3x4x2xbf16>) {
  %o, %l = dtc.attention %q, %q, %q key %key sinks %sinks {causal = true, dropout = 0.25, scale = 1.0} : (tensor<2x3x4x2xbf16>, tensor<2x3x4x2xbf16>, tensor<2x3x4x2xbf16>, tensor<2xi32>, tensor<4xbf16>) -> (tensor<2x3x4x2xbf16>, tensor<2x4x3xf32>)
  return %o : tensor<2x3x4x2xbf16>
}

// The cotangent of a wide result is rounded, and spread over the elements then.
// CHECK-LABEL: func.func @reduce_low_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xbf16>, %[[ARG1:[^ ,:)]+]]: tensor<2xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.convert %[[ARG1]] : (tensor<2xf32>) -> tensor<2xbf16>
// CHECK: %[[V1:[^ ,:)]+]] = dtc.broadcast %[[V0]] dims [0] : (tensor<2xbf16>) -> tensor<2x3xbf16>
// CHECK: return %[[V1]]
func.func @reduce_low(%x: tensor<2x3xbf16>) -> tensor<2xf32> {
  %y = dtc.reduce sum %x dims [1] : (tensor<2x3xbf16>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// CHECK-LABEL: func.func @einsum_wide_vjp(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3xf16>, %[[ARG1:[^ ,:)]+]]: tensor<3x4xf16>, %[[ARG2:[^ ,:)]+]]: tensor<2x4xf32>
// CHECK: dtc.einsum "bi,io->bo" %[[ARG0]], %[[ARG1]] {wide}
// CHECK: %[[DY:[^ ,:)]+]] = dtc.convert %[[ARG2]] : (tensor<2x4xf32>) -> tensor<2x4xf16>
// CHECK: %[[DX:[^ ,:)]+]] = dtc.einsum "bo,io->bi" %[[DY]], %[[ARG1]] : (tensor<2x4xf16>, tensor<3x4xf16>) -> tensor<2x3xf16>
// CHECK: %[[DW:[^ ,:)]+]] = dtc.einsum "bi,bo->io" %[[ARG0]], %[[DY]] : (tensor<2x3xf16>, tensor<2x4xf16>) -> tensor<3x4xf16>
// CHECK: return %[[DX]], %[[DW]]
func.func @einsum_wide(%x: tensor<2x3xf16>, %w: tensor<3x4xf16>) -> tensor<2x4xf32> {
  %y = dtc.einsum "bi,io->bo" %x, %w {wide} : (tensor<2x3xf16>, tensor<3x4xf16>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
