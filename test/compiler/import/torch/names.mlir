// Names of dimensions stay with values that are given by other ops after the import.

// RUN: dtc-import %s | FileCheck %s

// CHECK: %x: tensor<8x6xf32> {dtc.axes = ["batch", "width"], dtc.input = "x"}
// The product gives heads by itself.
// CHECK: dtc.einsum "{{.*}}" %x, {{.*}} {dtc.axes = ["data", "model", ""]} {{.*}} -> tensor<8x3x4xf32>
// CHECK: dtc.gelu tanh {{.*}} {dtc.axes = ["data", "", "inner"]} : tensor<8x3x4xf32>
// Two requests for one value are put together; of two names of one dimension the first stays.
// CHECK: dtc.tanh {{.*}} {dtc.axes = ["data", "model", "last"]} : tensor<8x3x4xf32>
// An op with several results has no names: they are those of what it normalizes.
// CHECK: dtc.exp {{.*}} {dtc.axes = ["rows", "", ""]} : tensor<8x3x4xf32>
// CHECK: dtc.rms_norm
// CHECK-NOT: dtc.axes

module attributes {torch.capture = {version = 1 : i64, jax = "0.10.2"}} {
func.func @loss(
    %w: tensor<6x12xf32> {torch.parameter = "w"} loc("w"),
    %g: tensor<4xf32> {torch.parameter = "g"} loc("g"),
    %x: tensor<8x6xf32> {torch.input = "x"} loc("x")) -> tensor<f32> {
  %named = "aten.alias"(%x) {axes = ["", "width"], operands = ["self"]} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  %rows = "aten.mm"(%named, %w) {operands = ["self", "mat2"]} : (tensor<8x6xf32>, tensor<6x12xf32>) -> tensor<8x12xf32>
  %view = "aten.view"(%rows) {size = array<i64: 8, 3, 4>, operands = ["self"]} : (tensor<8x12xf32>) -> tensor<8x3x4xf32>
  %heads = "aten.alias"(%view) {axes = ["data", "model", ""], operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>

  %cube = "aten.pow"(%heads) {exponent = 3.0 : f64, operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %part = "aten.mul"(%cube) {other = 0.044715 : f64, operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %sum = "aten.add"(%heads, %part) {operands = ["self", "other"]} : (tensor<8x3x4xf32>, tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %inner = "aten.mul"(%sum) {other = 0.7978845608 : f64, operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %tanh = "aten.tanh"(%inner) {operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %one = "aten.add"(%tanh) {other = 1.0 : f64, operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %half = "aten.mul"(%one) {other = 0.5 : f64, operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %product = "aten.mul"(%heads, %half) {operands = ["self", "other"]} : (tensor<8x3x4xf32>, tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %gelu = "aten.alias"(%product) {axes = ["data", "", "inner"], operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>

  %second = "aten.tanh"(%gelu) {operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %first = "aten.alias"(%second) {axes = ["data", "", "last"], operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %both = "aten.alias"(%first) {axes = ["other", "model", ""], operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>

  %exp = "aten.exp"(%both) {operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %norm = "aten.rms_norm"(%exp, %g) {normalized_shape = array<i64: 4>, eps = 1.0e-05 : f64, operands = ["input", "weight"]}
    : (tensor<8x3x4xf32>, tensor<4xf32>) -> tensor<8x3x4xf32>
  %normed = "aten.alias"(%norm) {axes = ["rows", "", ""], operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %loss = "aten.sum"(%normed) {dim = array<i64>, operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
