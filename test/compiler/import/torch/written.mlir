// Tensors that are written part by part, tensors that indices spread over others, differences and maxima.

// RUN: split-file %s %t
// RUN: dtc-import %t/written.mlir | FileCheck %s --check-prefix WRITTEN
// RUN: dtc-import %t/spread.mlir | FileCheck %s --check-prefix SPREAD
// RUN: sed 's/end = 3 : i64/start = 1 : i64, end = 4 : i64/' %t/spread.mlir > %t/later.mlir && not dtc-import %t/later.mlir 2>&1 | FileCheck %s --check-prefix LATER
// RUN: dtc-import %t/reduced.mlir | FileCheck %s --check-prefix REDUCED

// Both parts are all of it.
// WRITTEN: %[[A:.*]] = dtc.mul %x,
// WRITTEN: %[[ALL:.*]] = dtc.concat {{.*}}%[[A]]{{.*}} : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<2x7xf32>
// WRITTEN-NEXT: dtc.slice %[[ALL]] offsets [0, 0] sizes [2, 1]
// WRITTEN-NEXT: dtc.slice %[[ALL]] offsets [0, 3] sizes [2, 4]

// SPREAD: dtc.broadcast %{{.*}} dims [0, 2] : (tensor<2x3xi1>) -> tensor<2x1x3xi1>
// LATER: 'aten.index' has indices of several dimensions

// REDUCED: dtc.reduce max %x dims [1]
// REDUCED: dtc.sub %{{.*}} : tensor<2x5xi32>

//--- written.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<4xf32> {torch.parameter = "w"}, %x: tensor<2x4xf32> {torch.input = "x"}, %y: tensor<2x3xf32> {torch.input = "y"}, %z: tensor<2x2xf32> {torch.input = "z"}) -> tensor<f32> {
  %a = "aten.mul"(%x, %w) {operands = ["self", "other"]} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %empty = "aten.empty"() {size = array<i64: 2, 7>, dtype = f32} : () -> tensor<2x7xf32>
  %low = "aten.slice"(%empty) {dim = 1 : i64, start = 0 : i64, end = 4 : i64, step = 1 : i64, operands = ["self"]} : (tensor<2x7xf32>) -> tensor<2x4xf32>
  %copy = "aten.copy"(%low, %a) {operands = ["self", "src"]} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %first = "aten.slice_scatter"(%empty, %copy) {dim = 1 : i64, start = 0 : i64, end = 4 : i64, step = 1 : i64, operands = ["self", "src"]} : (tensor<2x7xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
  %both = "aten.slice_scatter"(%first, %y) {dim = 1 : i64, start = 4 : i64, end = 9223372036854775807 : i64, step = 1 : i64, operands = ["self", "src"]} : (tensor<2x7xf32>, tensor<2x3xf32>) -> tensor<2x7xf32>
  %begin = "aten.slice"(%both) {dim = 1 : i64, start = 0 : i64, end = 1 : i64, step = 1 : i64, operands = ["self"]} : (tensor<2x7xf32>) -> tensor<2x1xf32>
  %end = "aten.slice"(%both) {dim = 1 : i64, start = 3 : i64, end = 7 : i64, step = 1 : i64, operands = ["self"]} : (tensor<2x7xf32>) -> tensor<2x4xf32>
  %joined = "aten.cat"(%begin, %z, %end) {dim = 1 : i64, operands = ["tensors.0", "tensors.1", "tensors.2"]} : (tensor<2x1xf32>, tensor<2x2xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
  %sum = "aten.sum"(%joined) {operands = ["self"]} : (tensor<2x7xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- spread.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<3xf32> {torch.parameter = "w"}, %m: tensor<2x3xi64> {torch.input = "m"}) -> tensor<f32> {
  %truth = "aten.to"(%m) {dtype = i1, operands = ["self"]} : (tensor<2x3xi64>) -> tensor<2x3xi1>
  %two = "aten.arange"() {end = 2 : i64} : () -> tensor<2xi64>
  %three = "aten.arange"() {end = 3 : i64} : () -> tensor<3xi64>
  %rows = "aten.view"(%two) {size = array<i64: 2, 1, 1>, operands = ["self"]} : (tensor<2xi64>) -> tensor<2x1x1xi64>
  %spread = "aten.index"(%truth, %rows, %three) {operands = ["self", "indices.0", "indices.1"]} : (tensor<2x3xi1>, tensor<2x1x1xi64>, tensor<3xi64>) -> tensor<2x1x3xi1>
  %kept = "aten.where"(%spread, %w) {other = 0.0 : f64, operands = ["condition", "self"]} : (tensor<2x1x3xi1>, tensor<3xf32>) -> tensor<2x1x3xf32>
  %sum = "aten.sum"(%kept) {operands = ["self"]} : (tensor<2x1x3xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- reduced.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<2xf32> {torch.parameter = "w"}, %x: tensor<2x4xf32> {torch.input = "x"}, %p: tensor<2x4xi64> {torch.input = "p"}, %q: tensor<2x2xi64> {torch.input = "q"}) -> tensor<f32> {
  %most:2 = "aten.max"(%x) {dim = -1 : i64, keepdim = false, operands = ["self"]} : (tensor<2x4xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  %larger = "aten.max"(%most#0, %w) {operands = ["self", "other"]} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %diff = "aten.diff"(%p, %q) {n = 1 : i64, dim = -1 : i64, operands = ["self", "prepend"]} : (tensor<2x4xi64>, tensor<2x2xi64>) -> tensor<2x5xi64>
  %float = "aten.to"(%diff) {dtype = f32, operands = ["self"]} : (tensor<2x5xi64>) -> tensor<2x5xf32>
  %a = "aten.sum"(%float) {operands = ["self"]} : (tensor<2x5xf32>) -> tensor<f32>
  %b = "aten.sum"(%larger) {operands = ["self"]} : (tensor<2xf32>) -> tensor<f32>
  %sum = "aten.mul"(%a, %b) {operands = ["self", "other"]} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}
