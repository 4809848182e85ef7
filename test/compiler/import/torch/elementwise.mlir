// Arithmetic, activations, comparisons and choices. Operands take the type of the result and are broadcast to its shape;
// integers are i32.

// RUN: dtc-import %s | FileCheck %s

// CHECK-LABEL: func.func @loss(
// CHECK-SAME: %w: tensor<3x4xf32> {dtc.init = #dtc.normal<2.000000e-02>, dtc.param = "w"}
// CHECK-SAME: %b: tensor<4xf32> {dtc.frozen, dtc.init = #dtc.zeros, dtc.param = "b"}
// CHECK-SAME: %s: tensor<4xf32> {dtc.frozen, dtc.init = #dtc.ones, dtc.param = "s"}
// CHECK-SAME: %ids: tensor<3x4xi32> {dtc.axes = ["batch", ""], dtc.input = "ids"}

module attributes {torch.capture = {version = 1 : i64, torch = "2.15.0"}} {
func.func @loss(
    %w: tensor<3x4xf32> {torch.parameter = "w"} loc("w"),
    %b: tensor<4xf32> {torch.parameter = "b", torch.frozen = "unit"} loc("b"),
    %s: tensor<4xf32> {torch.buffer = "s", torch.init = "ones"} loc("s"),
    %ids: tensor<3x4xi64> {torch.input = "ids"} loc("ids")) -> tensor<f32> {

  // x + 0 is x; the factor of an operand is a product.
  // CHECK-DAG: %[[TWO:.*]] = dtc.constant dense<2.000000e+00> : tensor<3x4xf32>
  // CHECK-DAG: %[[ONES:.*]] = dtc.constant dense<1> : tensor<3x4xi32>
  // CHECK-DAG: %[[NONE:.*]] = dtc.constant dense<0> : tensor<3x4xi32>
  // CHECK-DAG: %[[HALF:.*]] = dtc.constant dense<5.000000e-01> : tensor<4xf32>
  // CHECK: %[[PART:.*]] = dtc.mul %b, %[[HALF]]
  // CHECK: %[[ROWS:.*]] = dtc.broadcast %[[PART]] dims [1] : (tensor<4xf32>) -> tensor<3x4xf32>
  // CHECK: %[[ADD:.*]] = dtc.add %w, %[[ROWS]]
  %zero = "aten.add"(%w) {other = 0 : i64, alpha = 1 : i64, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %half = "aten.mul"(%b) {other = 0.5 : f64, operands = ["self"]} : (tensor<4xf32>) -> tensor<4xf32>
  %add = "aten.add"(%zero, %half) {alpha = 1 : i64, operands = ["self", "other"]}
    : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>

  // An integer and a float.
  // CHECK: %[[FLOAT:.*]] = dtc.convert %ids : (tensor<3x4xi32>) -> tensor<3x4xf32>
  // CHECK: %[[SUB:.*]] = dtc.sub %[[ADD]], %[[FLOAT]]
  %sub = "aten.sub"(%add, %ids) {alpha = 1 : i64, operands = ["self", "other"]}
    : (tensor<3x4xf32>, tensor<3x4xi64>) -> tensor<3x4xf32>

  // 2 - x
  // CHECK: %[[RSUB:.*]] = dtc.sub %[[TWO]], %[[SUB]]
  %rsub = "aten.rsub"(%sub) {other = 2 : i64, alpha = 1 : i64, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>

  // CHECK: %[[GELU:.*]] = dtc.gelu none %[[RSUB]]
  // CHECK: %[[SQUARE:.*]] = dtc.mul %[[GELU]], %[[GELU]]
  // CHECK: %[[CUBE:.*]] = dtc.mul %[[SQUARE]], %[[GELU]]
  %gelu = "aten.gelu"(%rsub) {approximate = "none", operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %cube = "aten.pow"(%gelu) {exponent = 3 : i64, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>

  // CHECK: %[[EQ:.*]] = dtc.compare eq %ids, %[[ONES]]
  // CHECK: %[[POS:.*]] = dtc.compare gt %[[CUBE]],
  %eq = "aten.eq"(%ids) {other = 1 : i64, operands = ["self"]} : (tensor<3x4xi64>) -> tensor<3x4xi1>
  %pos = "aten.gt"(%cube) {other = 0 : i64, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xi1>

  // Truth values are combined as numbers.
  // CHECK: %[[A:.*]] = dtc.convert %[[EQ]] : (tensor<3x4xi1>) -> tensor<3x4xi32>
  // CHECK: %[[B:.*]] = dtc.convert %[[POS]] : (tensor<3x4xi1>) -> tensor<3x4xi32>
  // CHECK: %[[MIN:.*]] = dtc.minimum %[[A]], %[[B]]
  // CHECK: %[[AND:.*]] = dtc.compare ne %[[MIN]], %[[NONE]]
  // CHECK: %[[SELECT:.*]] = dtc.select %[[AND]], %[[CUBE]],
  %and = "aten.__and__"(%eq, %pos) {operands = ["self", "other"]} : (tensor<3x4xi1>, tensor<3x4xi1>) -> tensor<3x4xi1>
  %where = "aten.where"(%and, %cube, %s) {operands = ["condition", "self", "other"]}
    : (tensor<3x4xi1>, tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>

  // At zero the derivative is that from below.
  // CHECK: %[[BELOW:.*]] = dtc.mul %[[SELECT]], %{{.*}} : tensor<3x4xf32>
  // CHECK: %[[ABOVE:.*]] = dtc.compare gt %[[SELECT]], %[[ZEROS:.*]] : tensor<3x4xf32>
  // CHECK: %[[LEAKY:.*]] = dtc.select %[[ABOVE]], %[[SELECT]], %[[BELOW]]
  // CHECK: %[[POSITIVE:.*]] = dtc.compare gt %[[LEAKY]], %[[ZEROS]]
  // CHECK: %[[NEGATIVE:.*]] = dtc.select %[[POSITIVE]], %[[ZEROS]], %[[LEAKY]]
  // CHECK: dtc.exp %[[NEGATIVE]]
  // CHECK: %[[ELU:.*]] = dtc.add
  %leaky = "aten.leaky_relu"(%where) {negative_slope = 0.1 : f64, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %elu = "aten.elu"(%leaky) {alpha = 0.5 : f64, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>

  // At a bound that is a number there is no gradient; a bound that is a tensor has half of it.
  // CHECK: %[[LOW:.*]] = dtc.compare le %[[ELU]], %[[BOUND:.*]] : tensor<3x4xf32>
  // CHECK: %[[LIMITED:.*]] = dtc.select %[[LOW]], %[[BOUND]], %[[ELU]]
  // CHECK: %[[CLAMP:.*]] = dtc.minimum %[[LIMITED]],
  %clamp = "aten.clamp"(%elu) {min = -1.5 : f64, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %limited = "aten.clamp"(%clamp, %s) {operands = ["self", "max"]} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>

  // A view of the same shape, dropout outside of training, and a conversion to the same type are nothing.
  // CHECK-NEXT: dtc.reduce sum %[[CLAMP]] dims [0, 1]
  %view = "aten.view"(%limited) {size = array<i64: 3, 4>, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %eval = "aten.dropout"(%view) {p = 0.1 : f64, train = false, operands = ["input"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %to = "aten.to"(%eval) {dtype = f32, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %sum = "aten.sum"(%to) {operands = ["self"]} : (tensor<3x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}
