// Variances and norms.

// RUN: split-file %s %t
// RUN: dtc-import %t/var.mlir | FileCheck %s --check-prefix VAR
// RUN: dtc-import %t/rms.mlir | FileCheck %s --check-prefix RMS
// RUN: sed 's/1.0e-05/0x7FF0000000000000/' %t/rms.mlir > %t/infinity.mlir && dtc-import %t/infinity.mlir | FileCheck %s --check-prefix PARTS
// RUN: sed 's/1.0e-05/0x7FF8000000000000/' %t/rms.mlir > %t/nan.mlir && dtc-import %t/nan.mlir | FileCheck %s --check-prefix PARTS

// The sum of squares is divided by the count, or by the count less one.
// VAR-DAG: %[[FOURTH:.*]] = dtc.constant dense<2.500000e-01> : tensor<3xf32>
// VAR-DAG: %[[THIRD:.*]] = dtc.constant dense<0.333333343> : tensor<3xf32>
// VAR: %[[A:.*]] = dtc.mul %{{.*}}, %[[FOURTH]] : tensor<3xf32>
// VAR: %[[B:.*]] = dtc.mul %{{.*}}, %[[THIRD]] : tensor<3xf32>
// VAR: dtc.sub %[[A]], %[[B]]

// RMS: dtc.rms_norm
// PARTS-NOT: dtc.rms_norm
// PARTS: dtc.rsqrt

//--- var.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<3x4xf32> {torch.parameter = "w"}) -> tensor<f32> {
  %a = "aten.var"(%w) {dim = array<i64: 1>, unbiased = false, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3xf32>
  %b = "aten.var"(%w) {dim = array<i64: 1>, unbiased = true, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3xf32>
  %y = "aten.sub"(%a, %b) {operands = ["self", "other"]} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<3xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- rms.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<3x4xf32> {torch.parameter = "w"}) -> tensor<f32> {
  %square = "aten.pow"(%w) {exponent = 2 : i64, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %mean = "aten.mean"(%square) {dim = array<i64: -1>, keepdim = true, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %add = "aten.add"(%mean) {other = 1.0e-05 : f64, operands = ["self"]} : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %root = "aten.rsqrt"(%add) {operands = ["self"]} : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %y = "aten.mul"(%w, %root) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<3x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}
