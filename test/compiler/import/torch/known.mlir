// Values that do not depend on inputs are computed at import: numbers are compared in the type of the tensor, rows are counted
// from the end, and repeated elements are written once.

// RUN: split-file %s %t
// RUN: dtc-import %t/compare.mlir | FileCheck %s --check-prefix COMPARE
// RUN: dtc-import %t/rows.mlir | FileCheck %s --check-prefix ROWS
// RUN: dtc-import %t/repeated.mlir | FileCheck %s --check-prefix REPEATED

// An f32 of 0.1 is 0.1, and not less than it.
// COMPARE-DAG: dtc.constant dense<[true, false, false]> : tensor<3xi1>
// COMPARE-DAG: dtc.constant dense<[false, true, true]> : tensor<3xi1>

// Of five rows -1 is row 4, and -2 and -1 are a slice.
// ROWS: %[[IDS:.*]] = dtc.constant dense<[0, 4]> : tensor<2xi32>
// ROWS-DAG: dtc.embedding %w, %[[IDS]]
// ROWS-DAG: dtc.slice %w offsets [3, 0] sizes [2, 4]

// REPEATED: %[[KNOWN:.*]] = dtc.constant dense<"0x{{[0-9A-F]+}}"> : tensor<1x2100xf32>
// REPEATED: %[[ROW:.*]] = dtc.reshape %[[KNOWN]]
// REPEATED: dtc.broadcast %[[ROW]] dims [1] : (tensor<2100xf32>) -> tensor<3x2100xf32>

//--- compare.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<3xf32> {torch.parameter = "w"}, %x: tensor<2x3xf32> {torch.input = "x"}) -> tensor<f32> {
  %numbers = "torch.constant"() {value = dense<[0.1, 0.2, 0.3]> : tensor<3xf32>} : () -> tensor<3xf32>
  %equal = "aten.eq"(%numbers) {other = 0.1 : f64, operands = ["self"]} : (tensor<3xf32>) -> tensor<3xi1>
  %more = "aten.gt"(%numbers) {other = 0.1 : f64, operands = ["self"]} : (tensor<3xf32>) -> tensor<3xi1>
  %a = "aten.where"(%equal, %w, %x) {operands = ["condition", "self", "other"]}
    : (tensor<3xi1>, tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = "aten.where"(%more, %a, %x) {operands = ["condition", "self", "other"]}
    : (tensor<3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %sum = "aten.sum"(%b) {operands = ["self"]} : (tensor<2x3xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- rows.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<5x4xf32> {torch.parameter = "w"}) -> tensor<f32> {
  %ends = "torch.constant"() {value = dense<[0, -1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %last = "torch.constant"() {value = dense<[-2, -1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %a = "aten.index"(%w, %ends) {operands = ["self", "indices.0"]} : (tensor<5x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  %b = "aten.index"(%w, %last) {operands = ["self", "indices.0"]} : (tensor<5x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  %y = "aten.mul"(%a, %b) {operands = ["self", "other"]} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<2x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- repeated.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<2100xf32> {torch.parameter = "w"}, %x: tensor<3x2100xf32> {torch.input = "x"}) -> tensor<f32> {
  %i = "aten.arange"() {end = 2100 : i64} : () -> tensor<2100xf32>
  %rows = "aten.expand"(%i) {size = array<i64: 3, 2100>, operands = ["self"]} : (tensor<2100xf32>) -> tensor<3x2100xf32>
  %y = "aten.mul"(%x, %rows) {operands = ["self", "other"]} : (tensor<3x2100xf32>, tensor<3x2100xf32>) -> tensor<3x2100xf32>
  %z = "aten.mul"(%y, %w) {operands = ["self", "other"]} : (tensor<3x2100xf32>, tensor<2100xf32>) -> tensor<3x2100xf32>
  %sum = "aten.sum"(%z) {operands = ["self"]} : (tensor<3x2100xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}
