// The largest elements of rows, and the experts of tokens that they choose.

// RUN: split-file %s %t
// RUN: dtc-import %t/put-back.mlir | FileCheck %s --check-prefix PUT-BACK
// RUN: dtc-import %t/softmax.mlir | FileCheck %s --check-prefix SOFTMAX
// RUN: not dtc-import %t/order.mlir 2>&1 | FileCheck %s --check-prefix ORDER
// RUN: not dtc-import %t/order-of-tensor.mlir 2>&1 | FileCheck %s --check-prefix ORDER-OF-TENSOR
// RUN: not dtc-import %t/smallest.mlir 2>&1 | FileCheck %s --check-prefix SMALLEST
// RUN: not dtc-import %t/two.mlir 2>&1 | FileCheck %s --check-prefix TWO
// RUN: not dtc-import %t/not-chosen.mlir 2>&1 | FileCheck %s --check-prefix NOT-CHOSEN
// RUN: not dtc-import %t/samples.mlir 2>&1 | FileCheck %s --check-prefix SAMPLES
// RUN: not dtc-import %t/product.mlir 2>&1 | FileCheck %s --check-prefix PRODUCT
// RUN: not dtc-import %t/scatter.mlir 2>&1 | FileCheck %s --check-prefix SCATTER
// RUN: sed 's/{dim = 1 : i64, operands = \["self", "index", "src"\]}/{dim = 1 : i64, reduce = "add", operands = ["self", "index", "src"]}/' %t/put-back.mlir > %t/adds.mlir
// RUN: not dtc-import %t/adds.mlir 2>&1 | FileCheck %s --check-prefix ADDS
// RUN: dtc-import %t/views.mlir | FileCheck %s --check-prefix VIEWS

// The k largest elements in their places, and zeros elsewhere: one choice, as the two results are of one top_k.
// PUT-BACK: %[[IS:.*]] = dtc.top_k %[[X:.*]] {k = 2 : i64} : tensor<3x4xf32>
// PUT-BACK: %[[Y:.*]] = dtc.select %[[IS]], %[[X]],
// PUT-BACK: dtc.select %[[IS]], %[[Y]],
// PUT-BACK-NOT: dtc.top_k

// A softmax of the largest elements alone hides the others.
// SOFTMAX-DAG: %[[HIDDEN:.*]] = dtc.constant dense<0xFF800000> : tensor<3x4xf32>
// SOFTMAX: %[[SCORES:.*]] = dtc.select %{{.*}}, %{{.*}}, %[[HIDDEN]]
// SOFTMAX: %[[SHARES:.*]] = dtc.softmax %[[SCORES]]
// SOFTMAX: dtc.reduce sum %[[SHARES]] dims [1]

// ORDER: error: {{.*}}order.mlir: h.1 (a.py:7): 'aten.slice' takes the result of torch.topk, whose elements dtc knows, but not their order; weigh them, divide them by their sum, add them up or put them back by scatter, and give them to dtc.torch.experts()
// ORDER-OF-TENSOR: 'aten.mul' combines the largest elements of rows with a tensor by their order, which dtc does not know; compute with one number for each row
// SMALLEST: 'aten.topk' takes the smallest elements, or not along the last dimension of floats, for which there is no rule; negate or transpose the operand
// TWO: 'aten.add' combines the results of several torch.topk, or repeats them, for which there is no rule
// NOT-CHOSEN: 'torch.expert_rows' has experts that torch.topk did not choose; choose the experts of a token by the largest of their scores
// SAMPLES: 'torch.expert_rows' has tokens that are not those of all samples, or that chose no experts
// PRODUCT: 'torch.expert_product' multiplies rows and weights of shapes or types that do not fit
// SCATTER: 'aten.scatter' has a rule for the numbers that torch.topk gives alone; compare numbers with torch.arange, and choose by torch.where
// ADDS: 'aten.scatter' adds to or multiplies what is there, for which there is no rule; scatter into zeros, and add or multiply the result

// Views of both results fit where they have the same shape.
// VIEWS: %[[IS:.*]] = dtc.top_k %{{.*}} {k = 2 : i64} : tensor<2x3x4xf32>
// VIEWS: %[[ROWS:.*]] = dtc.reshape %[[IS]] : (tensor<2x3x4xi1>) -> tensor<6x4xi1>
// VIEWS-NOT: dtc.reshape %[[IS]]
// VIEWS: dtc.select %[[ROWS]],

//--- put-back.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<3x4xf32> {torch.parameter = "w"}, %x: tensor<3x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %t:2 = "aten.topk"(%w) {k = 2 : i64, dim = -1 : i64, operands = ["self"]} : (tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  %y = "aten.scatter"(%x, %t#1, %t#0) {dim = 1 : i64, operands = ["self", "index", "src"]} : (tensor<3x4xf32>, tensor<3x2xi64>, tensor<3x2xf32>) -> tensor<3x4xf32>
  %z = "aten.sum"(%y) {operands = ["self"]} : (tensor<3x4xf32>) -> tensor<f32>
  return %z : tensor<f32>
}
}

//--- views.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<2x3x4xf32> {torch.parameter = "w"}, %x: tensor<6x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %t:2 = "aten.topk"(%w) {k = 2 : i64, dim = -1 : i64, operands = ["self"]} : (tensor<2x3x4xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xi64>)
  %v = "aten.view"(%t#0) {size = array<i64: 6, 2>, operands = ["self"]} : (tensor<2x3x2xf32>) -> tensor<6x2xf32>
  %i = "aten.view"(%t#1) {size = array<i64: 6, 2>, operands = ["self"]} : (tensor<2x3x2xi64>) -> tensor<6x2xi64>
  %y = "aten.scatter"(%x, %i, %v) {dim = 1 : i64, operands = ["self", "index", "src"]} : (tensor<6x4xf32>, tensor<6x2xi64>, tensor<6x2xf32>) -> tensor<6x4xf32>
  %z = "aten.sum"(%y) {operands = ["self"]} : (tensor<6x4xf32>) -> tensor<f32>
  return %z : tensor<f32>
}
}

//--- softmax.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<3x4xf32> {torch.parameter = "w"}, %x: tensor<3x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %t:2 = "aten.topk"(%w) {k = 2 : i64, dim = 1 : i64, largest = true, operands = ["self"]} : (tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  %s = "aten.softmax"(%t#0) {dim = 1 : i64, operands = ["self"]} : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %y = "aten.sum"(%s) {dim = array<i64: -1>, operands = ["self"]} : (tensor<3x2xf32>) -> tensor<3xf32>
  %z = "aten.sum"(%y) {operands = ["self"]} : (tensor<3xf32>) -> tensor<f32>
  return %z : tensor<f32>
}
}

//--- order.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<3x4xf32> {torch.parameter = "w"}, %x: tensor<3x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %t:2 = "aten.topk"(%w) {k = 2 : i64, dim = -1 : i64, operands = ["self"]} : (tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  %y = "aten.slice"(%t#0) {dim = 1 : i64, end = 1 : i64, operands = ["self"]} : (tensor<3x2xf32>) -> tensor<3x1xf32> loc("h.1"("a.py":7:0))
  %z = "aten.sum"(%y) {operands = ["self"]} : (tensor<3x1xf32>) -> tensor<f32>
  return %z : tensor<f32>
}
}

//--- order-of-tensor.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<3x4xf32> {torch.parameter = "w"}, %x: tensor<3x2xf32> {torch.input = "x"}) -> tensor<f32> {
  %t:2 = "aten.topk"(%w) {k = 2 : i64, dim = -1 : i64, operands = ["self"]} : (tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  %y = "aten.mul"(%t#0, %x) {operands = ["self", "other"]} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %z = "aten.sum"(%y) {operands = ["self"]} : (tensor<3x2xf32>) -> tensor<f32>
  return %z : tensor<f32>
}
}

//--- smallest.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<3x4xf32> {torch.parameter = "w"}, %x: tensor<3x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %t:2 = "aten.topk"(%w) {k = 2 : i64, dim = -1 : i64, largest = false, operands = ["self"]} : (tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  %z = "aten.sum"(%t#0) {operands = ["self"]} : (tensor<3x2xf32>) -> tensor<f32>
  return %z : tensor<f32>
}
}

//--- two.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<3x4xf32> {torch.parameter = "w"}, %x: tensor<3x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %a:2 = "aten.topk"(%w) {k = 2 : i64, dim = -1 : i64, operands = ["self"]} : (tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  %b:2 = "aten.topk"(%x) {k = 2 : i64, dim = -1 : i64, operands = ["self"]} : (tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  %y = "aten.add"(%a#0, %b#0) {operands = ["self", "other"]} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %z = "aten.sum"(%y) {operands = ["self"]} : (tensor<3x2xf32>) -> tensor<f32>
  return %z : tensor<f32>
}
}

//--- not-chosen.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<3x2xf32> {torch.parameter = "w"}, %x: tensor<3x2xi64> {torch.input = "x"}) -> tensor<f32> {
  %r:3 = "torch.expert_rows"(%x, %w) {experts = 4 : i64, samples = 3 : i64, operands = ["chosen", "weights"]} : (tensor<3x2xi64>, tensor<3x2xf32>) -> (tensor<4x3x1xi64>, tensor<4x3x1xi64>, tensor<4x3x1xf32>)
  %z = "aten.sum"(%r#2) {operands = ["self"]} : (tensor<4x3x1xf32>) -> tensor<f32>
  return %z : tensor<f32>
}
}

//--- samples.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<3x4xf32> {torch.parameter = "w"}, %x: tensor<3x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %t:2 = "aten.topk"(%w) {k = 2 : i64, dim = -1 : i64, operands = ["self"]} : (tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  %r:3 = "torch.expert_rows"(%t#1, %t#0) {experts = 4 : i64, samples = 2 : i64, operands = ["chosen", "weights"]} : (tensor<3x2xi64>, tensor<3x2xf32>) -> (tensor<4x3x1xi64>, tensor<4x3x1xi64>, tensor<4x3x1xf32>)
  %z = "aten.sum"(%r#2) {operands = ["self"]} : (tensor<4x3x1xf32>) -> tensor<f32>
  return %z : tensor<f32>
}
}

//--- product.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<3x4xf32> {torch.parameter = "w"}, %v: tensor<4x6x5xf32> {torch.parameter = "v"}, %x: tensor<3x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %t:2 = "aten.topk"(%w) {k = 2 : i64, dim = -1 : i64, operands = ["self"]} : (tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  %r:3 = "torch.expert_rows"(%t#1, %t#0) {experts = 4 : i64, samples = 3 : i64, operands = ["chosen", "weights"]} : (tensor<3x2xi64>, tensor<3x2xf32>) -> (tensor<4x3x1xi64>, tensor<4x3x1xi64>, tensor<4x3x1xf32>)
  %d = "torch.dispatch_rows"(%x, %r#0) {operands = ["x", "rows"]} : (tensor<3x4xf32>, tensor<4x3x1xi64>) -> tensor<4x3x1x4xf32>
  %p = "torch.expert_product"(%d, %v, %r#1) {selected = 2 : i64, transposed = false, operands = ["x", "weight", "rows"]} : (tensor<4x3x1x4xf32>, tensor<4x6x5xf32>, tensor<4x3x1xi64>) -> tensor<4x3x1x6xf32>
  %z = "aten.sum"(%p) {operands = ["self"]} : (tensor<4x3x1x6xf32>) -> tensor<f32>
  return %z : tensor<f32>
}
}

//--- scatter.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<3x4xf32> {torch.parameter = "w"}, %x: tensor<3x2xi64> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.scatter"(%w, %x) {dim = 1 : i64, value = 1 : i64, operands = ["self", "index"]} : (tensor<3x4xf32>, tensor<3x2xi64>) -> tensor<3x4xf32>
  %z = "aten.sum"(%y) {operands = ["self"]} : (tensor<3x4xf32>) -> tensor<f32>
  return %z : tensor<f32>
}
}
