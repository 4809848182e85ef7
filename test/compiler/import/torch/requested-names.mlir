// Names that are asked for stay where a product gives heads in place of the dimension that was reshaped into them, and the
// other way round.

// RUN: split-file %s %t
// RUN: dtc-import %t/heads.mlir 2> %t/heads.log | FileCheck %s --check-prefix HEADS
// RUN: not grep lost %t/heads.log
// HEADS: dtc.einsum "{{.*}}" %x, {{.*}} {dtc.axes = ["data", "", "model", ""]} {{.*}} -> tensor<8x6x3x4xf32>
// The part of the sum is named as the sum that was asked for.
// HEADS: dtc.add {{.*}} {dtc.axes = ["data", "", "model", ""]} : tensor<8x6x3x4xf32>
// HEADS: dtc.tanh {{.*}} {dtc.axes = ["rows", "", "inner", ""]} : tensor<8x6x3x4xf32>

// Parts of a product are named as the product is.
// RUN: dtc-import %t/joined.mlir | FileCheck %s --check-prefix JOINED
// JOINED-COUNT-2: dtc.einsum "{{.*}}" %x, {{.*}} {dtc.axes = ["", "model", ""]} {{.*}} -> tensor<8x3x4xf32>

// RUN: dtc-import %t/rows.mlir 2> %t/rows.log | FileCheck %s --check-prefix ROWS
// RUN: FileCheck %s --check-prefix LOST --input-file %t/rows.log
// Of two rows of heads the inner ones begin nowhere in the merged dimension.
// ROWS: dtc.exp {{.*}} {dtc.axes = ["data", "", ""]} : tensor<8x3x4xf32>
// ROWS: dtc.tanh {{.*}} {dtc.axes = ["data", "", "inner"]} : tensor<8x3x4xf32>
// ROWS: dtc.reshape {{.*}} {dtc.axes = ["data", ""]} : (tensor<8x3x4xf32>) -> tensor<8x12xf32>
// LOST: warning: {{.*}}rows.mlir: loss (model.py:7): the dimension 'other' of a sharding constraint is lost: the value is computed within another operator, or lies in another way already; constrain what the operator gives
// LOST-NOT: lost

//--- heads.mlir
module attributes {torch.capture = {version = 1 : i64, jax = "0.10.2"}} {
func.func @loss(
    %w: tensor<5x12xf32> {torch.parameter = "w"} loc("w"),
    %b: tensor<12xf32> {torch.parameter = "b"} loc("b"),
    %o: tensor<12x5xf32> {torch.parameter = "o"} loc("o"),
    %x: tensor<8x6x5xf32> {torch.input = "x"} loc("x")) -> tensor<f32> {
  %product = "aten.matmul"(%x, %w) {operands = ["self", "other"]} : (tensor<8x6x5xf32>, tensor<5x12xf32>) -> tensor<8x6x12xf32>
  %named = "aten.alias"(%product) {axes = ["data", "", "model"], operands = ["self"]} : (tensor<8x6x12xf32>) -> tensor<8x6x12xf32>
  %sum = "aten.add"(%named, %b) {operands = ["self", "other"]} : (tensor<8x6x12xf32>, tensor<12xf32>) -> tensor<8x6x12xf32>
  %too = "aten.alias"(%sum) {axes = ["data", "", "model"], operands = ["self"]} : (tensor<8x6x12xf32>) -> tensor<8x6x12xf32>
  %heads = "aten.view"(%too) {size = array<i64: 8, 6, 3, 4>, operands = ["self"]} : (tensor<8x6x12xf32>) -> tensor<8x6x3x4xf32>
  %tanh = "aten.tanh"(%heads) {operands = ["self"]} : (tensor<8x6x3x4xf32>) -> tensor<8x6x3x4xf32>
  %merged = "aten.view"(%tanh) {size = array<i64: 8, 6, 12>, operands = ["self"]} : (tensor<8x6x3x4xf32>) -> tensor<8x6x12xf32>
  %inner = "aten.alias"(%merged) {axes = ["rows", "", "inner"], operands = ["self"]} : (tensor<8x6x12xf32>) -> tensor<8x6x12xf32>
  %out = "aten.matmul"(%inner, %o) {operands = ["self", "other"]} : (tensor<8x6x12xf32>, tensor<12x5xf32>) -> tensor<8x6x5xf32>
  %loss = "aten.sum"(%out) {dim = array<i64>, operands = ["self"]} : (tensor<8x6x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

//--- joined.mlir
module attributes {torch.capture = {version = 1 : i64, jax = "0.10.2"}} {
func.func @loss(
    %w: tensor<6x24xf32> {torch.parameter = "w"} loc("w"),
    %x: tensor<8x6xf32> {torch.input = "x"} loc("x")) -> tensor<f32> {
  %product = "aten.mm"(%x, %w) {operands = ["self", "mat2"]} : (tensor<8x6xf32>, tensor<6x24xf32>) -> tensor<8x24xf32>
  %named = "aten.alias"(%product) {axes = ["", "model"], operands = ["self"]} : (tensor<8x24xf32>) -> tensor<8x24xf32>
  %first = "aten.slice"(%named) {dim = 1 : i64, start = 0 : i64, end = 12 : i64, operands = ["self"]} : (tensor<8x24xf32>) -> tensor<8x12xf32>
  %second = "aten.slice"(%named) {dim = 1 : i64, start = 12 : i64, end = 24 : i64, operands = ["self"]} : (tensor<8x24xf32>) -> tensor<8x12xf32>
  %a = "aten.view"(%first) {size = array<i64: 8, 3, 4>, operands = ["self"]} : (tensor<8x12xf32>) -> tensor<8x3x4xf32>
  %b = "aten.view"(%second) {size = array<i64: 8, 3, 4>, operands = ["self"]} : (tensor<8x12xf32>) -> tensor<8x3x4xf32>
  %both = "aten.mul"(%a, %b) {operands = ["self", "other"]} : (tensor<8x3x4xf32>, tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %loss = "aten.sum"(%both) {dim = array<i64>, operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

//--- rows.mlir
module attributes {torch.capture = {version = 1 : i64, jax = "0.10.2"}} {
func.func @loss(%x: tensor<8x3x4xf32> {torch.input = "x"} loc("x")) -> tensor<f32> {
  %exp = "aten.exp"(%x) {operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %data = "aten.alias"(%exp) {axes = ["data", "", ""], operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %other = "aten.alias"(%data) {axes = ["other", "", ""], operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32> loc("loss"("model.py":7:0))
  %tanh = "aten.tanh"(%other) {operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %inner = "aten.alias"(%tanh) {axes = ["data", "", "inner"], operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %rows = "aten.view"(%inner) {size = array<i64: 8, 12>, operands = ["self"]} : (tensor<8x3x4xf32>) -> tensor<8x12xf32>
  %loss = "aten.sum"(%rows) {dim = array<i64>, operands = ["self"]} : (tensor<8x12xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
