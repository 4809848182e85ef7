// Samples and positions that a model merges, [B, S, ...] as [B * S, ...], stay dimensions of what works on rows. Other
// reshapes stay where they are, and so does what is not known for each sample.

// RUN: split-file %s %t
// RUN: dtc-import %t/elementwise.mlir | FileCheck %s --check-prefix ELEMENTWISE --implicit-check-not 'tensor<6x'
// RUN: dtc-import %t/pairs.mlir | FileCheck %s --check-prefix PAIRS
// RUN: dtc-import %t/softmax.mlir | FileCheck %s --check-prefix SOFTMAX --implicit-check-not dtc.reshape
// RUN: dtc-import %t/top-k.mlir | FileCheck %s --check-prefix TOP-K --implicit-check-not dtc.reshape
// RUN: dtc-import %t/reduce.mlir | FileCheck %s --check-prefix REDUCE --implicit-check-not 'tensor<6x'
// RUN: dtc-import %t/broadcast.mlir | FileCheck %s --check-prefix BROADCAST --implicit-check-not dtc.reshape
// RUN: dtc-import %t/norms.mlir | FileCheck %s --check-prefix NORMS --implicit-check-not dtc.reshape
// RUN: dtc-import %t/unsplit.mlir | FileCheck %s --check-prefix UNSPLIT
// RUN: dtc-import %t/lookup.mlir | FileCheck %s --check-prefix LOOKUP --implicit-check-not dtc.reshape
// RUN: dtc-import %t/layer.mlir | FileCheck %s --check-prefix LAYER --implicit-check-not dtc.reshape

// Another merge, a number, what all rows share, and conditions are known for each sample. %z is split as the rows are.
// ELEMENTWISE-DAG: %[[HALF:.*]] = dtc.constant dense<5.000000e-01> : tensor<2x3x4xf32>
// ELEMENTWISE-DAG: %[[Z:.*]] = dtc.reshape %z : (tensor<2x3x2x2xf32>) -> tensor<2x3x4xf32>
// ELEMENTWISE: %[[SUM:.*]] = dtc.add %x, %[[Z]] : tensor<2x3x4xf32>
// ELEMENTWISE: %[[A:.*]] = dtc.mul %[[SUM]], %[[HALF]] : tensor<2x3x4xf32>
// ELEMENTWISE: %[[P:.*]] = dtc.broadcast %p dims [2] : (tensor<4xf32>) -> tensor<2x3x4xf32>
// ELEMENTWISE: %[[LESS:.*]] = dtc.sub %[[P]], %[[A]] : tensor<2x3x4xf32>
// ELEMENTWISE: %[[S:.*]] = dtc.sigmoid %[[LESS]] : tensor<2x3x4xf32>
// ELEMENTWISE: %[[IS:.*]] = dtc.compare gt %x, %[[S]] : tensor<2x3x4xf32>
// ELEMENTWISE: dtc.select %[[IS]], %[[S]], %[[A]] : tensor<2x3x4xf32>

// Each row less each other: the rows that are the columns of all are shared by the rows.
// PAIRS: %[[FLAT:.*]] = dtc.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
// PAIRS: %[[ROWS:.*]] = dtc.broadcast %x dims [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x6xf32>
// PAIRS: %[[EACH:.*]] = dtc.broadcast %[[FLAT]] dims [2] : (tensor<6xf32>) -> tensor<2x3x6xf32>
// PAIRS: dtc.sub %[[ROWS]], %[[EACH]] : tensor<2x3x6xf32>

// SOFTMAX: dtc.softmax %x : tensor<2x3x4xf32>
// TOP-K: dtc.top_k %x {k = 2 : i64} : tensor<2x3x4xf32>

// Over rows, within each row, and both.
// REDUCE: dtc.reduce sum %{{.*}} dims [0, 1] : (tensor<2x3x2x2xf32>) -> tensor<2x2xf32>
// REDUCE: %[[MOST:.*]] = dtc.reduce max %{{.*}} dims [3] : (tensor<2x3x2x2xf32>) -> tensor<2x3x2xf32>
// REDUCE: dtc.reduce sum %{{.*}} dims [0, 1, 2] : (tensor<2x3x2x2xf32>) -> tensor<2xf32>
// REDUCE: dtc.reduce sum %[[MOST]] dims [0, 1] : (tensor<2x3x2xf32>) -> tensor<2xf32>

// BROADCAST: dtc.broadcast %x dims [0, 1, 3] : (tensor<2x3x2xf32>) -> tensor<2x3x5x2xf32>

// NORMS: %[[Y:[a-z_0-9]+]], {{.*}} = dtc.rms_norm %x, %g {{{.*}}} : (tensor<2x3x4xf32>, tensor<4xf32>)
// NORMS: dtc.layer_norm %[[Y]], %g, %b {{{.*}}} : (tensor<2x3x4xf32>,

// One sample is a dimension, too. Where no reshape splits the rows again, the merge comes last.
// UNSPLIT: %[[Y:.*]] = dtc.tanh %x : tensor<1x6x4xf32>
// UNSPLIT: dtc.reshape %[[Y]] : (tensor<1x6x4xf32>) -> tensor<4x6xf32>

// What is computed of a parameter has samples, in three dimensions here.
// LOOKUP: %[[E:.*]] = dtc.embedding %w, %x
// LOOKUP: dtc.tanh %[[E]] : tensor<2x3x2x4xf32>

// LAYER: %[[PRODUCT:.*]] = dtc.einsum {{.*}} %x, %w
// LAYER: dtc.silu %{{.*}} : tensor<2x3x4xf32>
// LAYER: %[[Y:[a-z_0-9]+]], {{.*}} = dtc.layer_norm {{.*}} : (tensor<2x3x4xf32>,
// LAYER: dtc.add %[[Y]], %x : tensor<2x3x4xf32>
// LAYER: dtc.reduce sum %{{.*}} dims [0, 1, 2]

// What is left alone.
// RUN: dtc-import %t/leading.mlir | FileCheck %s --check-prefix LEADING
// RUN: dtc-import %t/order.mlir | FileCheck %s --check-prefix ORDER
// RUN: dtc-import %t/constant.mlir | FileCheck %s --check-prefix CONSTANT
// RUN: dtc-import %t/along.mlir | FileCheck %s --check-prefix ALONG
// RUN: dtc-import %t/plain.mlir | FileCheck %s --check-prefix PLAIN
// RUN: dtc-import %t/parameter.mlir | FileCheck %s --check-prefix PARAMETER
// RUN: dtc-import %t/row-softmax.mlir | FileCheck %s --check-prefix ROW-SOFTMAX
// RUN: dtc-import %t/row-top-k.mlir | FileCheck %s --check-prefix ROW-TOP-K
// RUN: dtc-import %t/row-norm.mlir | FileCheck %s --check-prefix ROW-RMS-NORM
// RUN: sed 's|aten.rms_norm|aten.layer_norm|' %t/row-norm.mlir > %t/row-layer-norm.mlir
// RUN: dtc-import %t/row-layer-norm.mlir | FileCheck %s --check-prefix ROW-LAYER-NORM
// RUN: dtc-import %t/columns.mlir | FileCheck %s --check-prefix COLUMNS
// RUN: dtc-import %t/second.mlir | FileCheck %s --check-prefix SECOND
// RUN: dtc-import %t/straddle.mlir | FileCheck %s --check-prefix STRADDLE
// RUN: sed 's|4, 6|1, 24|; s|4x6|1x24|g' %t/straddle.mlir > %t/one.mlir
// RUN: dtc-import %t/one.mlir | FileCheck %s --check-prefix ONE
// RUN: sed 's|4, 6|2, 12|; s|4x6|2x12|g' %t/straddle.mlir > %t/samples.mlir
// RUN: dtc-import %t/samples.mlir | FileCheck %s --check-prefix SAMPLES
// RUN: dtc-import %t/scalar.mlir | FileCheck %s --check-prefix SCALAR

// Merges of other dimensions, and of the same ones in another order.
// LEADING: %[[X:.*]] = dtc.reshape %x : (tensor<2x6x4xf32>) -> tensor<12x4xf32>
// LEADING: %[[Z:.*]] = dtc.reshape %z : (tensor<2x3x2x4xf32>) -> tensor<12x4xf32>
// LEADING: dtc.add %[[X]], %[[Z]] : tensor<12x4xf32>
// ORDER: %[[X:.*]] = dtc.reshape %x : (tensor<2x6x4xf32>) -> tensor<12x4xf32>
// ORDER: %[[TURNED:.*]] = dtc.transpose %x permutation [1, 0, 2]
// ORDER: %[[Z:.*]] = dtc.reshape %[[TURNED]] : (tensor<6x2x4xf32>) -> tensor<12x4xf32>
// ORDER: dtc.add %[[X]], %[[Z]] : tensor<12x4xf32>

// A constant that has other numbers for each row, a number for each row, and a tensor of rows.
// CONSTANT: %[[C:.*]] = dtc.constant dense<{{.*}}> : tensor<6x2xf32>
// CONSTANT: %[[X:.*]] = dtc.reshape %x : (tensor<2x3x2xf32>) -> tensor<6x2xf32>
// CONSTANT: dtc.mul %[[X]], %[[C]] : tensor<6x2xf32>
// ALONG: %[[X:.*]] = dtc.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
// ALONG: %[[P:.*]] = dtc.broadcast %p dims [0] : (tensor<6xf32>) -> tensor<6x4xf32>
// ALONG: dtc.mul %[[X]], %[[P]] : tensor<6x4xf32>
// PLAIN: %[[X:.*]] = dtc.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
// PLAIN: dtc.mul %[[X]], %p : tensor<6x4xf32>

// A parameter has no samples, nor has a part of one.
// PARAMETER: %[[P:.*]] = dtc.reshape %p : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
// PARAMETER: dtc.sigmoid %[[P]] : tensor<6x4xf32>
// PARAMETER: %[[PART:.*]] = dtc.slice %q offsets [2, 0, 0] sizes [2, 3, 4]
// PARAMETER: %[[Q:.*]] = dtc.reshape %[[PART]] : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
// PARAMETER: dtc.tanh %[[Q]] : tensor<6x4xf32>

// What works on all that is merged as on one row.
// ROW-SOFTMAX: %[[X:.*]] = dtc.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
// ROW-SOFTMAX: dtc.softmax %[[X]] : tensor<6xf32>
// ROW-TOP-K: %[[X:.*]] = dtc.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
// ROW-TOP-K: dtc.top_k %[[X]] {k = 2 : i64} : tensor<6xf32>
// ROW-RMS-NORM: %[[X:.*]] = dtc.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
// ROW-RMS-NORM: dtc.rms_norm %[[X]], %{{.*}} : (tensor<6xf32>,
// ROW-LAYER-NORM: %[[X:.*]] = dtc.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
// ROW-LAYER-NORM: dtc.layer_norm %[[X]], %{{.*}} : (tensor<6xf32>,

// A transpose, which exchanges rows for columns.
// COLUMNS: %[[X:.*]] = dtc.reshape %x : (tensor<2x2x4xf32>) -> tensor<4x4xf32>
// COLUMNS: %[[T:.*]] = dtc.transpose %[[X]] permutation [1, 0] : (tensor<4x4xf32>)
// COLUMNS: dtc.softmax %[[T]] : tensor<4x4xf32>

// A broadcast that makes columns of rows.
// SECOND: %[[X:.*]] = dtc.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
// SECOND: %[[WIDE:.*]] = dtc.broadcast %[[X]] dims [1] : (tensor<6xf32>) -> tensor<6x6xf32>
// SECOND: dtc.tanh %[[WIDE]] : tensor<6x6xf32>

// A first dimension that is no product of the first ones, that merges none of them, that is the samples alone, or that is
// not there.
// STRADDLE: %[[X:.*]] = dtc.reshape %x : (tensor<2x3x4xf32>) -> tensor<4x6xf32>
// STRADDLE: dtc.tanh %[[X]] : tensor<4x6xf32>
// ONE: %[[X:.*]] = dtc.reshape %x : (tensor<2x3x4xf32>) -> tensor<1x24xf32>
// ONE: dtc.tanh %[[X]] : tensor<1x24xf32>
// SAMPLES: %[[X:.*]] = dtc.reshape %x : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
// SAMPLES: dtc.tanh %[[X]] : tensor<2x12xf32>
// SCALAR: %[[X:.*]] = dtc.reshape %x : (tensor<1x1xf32>) -> tensor<f32>
// SCALAR: dtc.tanh %[[X]] : tensor<f32>

//--- elementwise.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x3x4xf32> {torch.input = "x"}, %z: tensor<2x3x2x2xf32> {torch.input = "z"}, %p: tensor<4xf32> {torch.parameter = "p"}) -> tensor<f32> {
  %rows = "aten.view"(%x) {size = array<i64: 6, 4>, operands = ["self"]} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %others = "aten.view"(%z) {size = array<i64: 6, 4>, operands = ["self"]} : (tensor<2x3x2x2xf32>) -> tensor<6x4xf32>
  %add = "aten.add"(%rows, %others) {operands = ["self", "other"]} : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  %half = "aten.mul"(%add) {other = 0.5 : f64, operands = ["self"]} : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %shifted = "aten.sub"(%p, %half) {operands = ["self", "other"]} : (tensor<4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  %s = "aten.sigmoid"(%shifted) {operands = ["self"]} : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %is = "aten.gt"(%rows, %s) {operands = ["self", "other"]} : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xi1>
  %chosen = "aten.where"(%is, %s, %half) {operands = ["condition", "self", "other"]} : (tensor<6x4xi1>, tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  %y = "aten.view"(%chosen) {size = array<i64: 2, 3, 4>, operands = ["self"]} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<2x3x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- pairs.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x3xf32> {torch.input = "x"}) -> tensor<f32> {
  %rows = "aten.view"(%x) {size = array<i64: 6>, operands = ["self"]} : (tensor<2x3xf32>) -> tensor<6xf32>
  %column = "aten.view"(%rows) {size = array<i64: 6, 1>, operands = ["self"]} : (tensor<6xf32>) -> tensor<6x1xf32>
  %pairs = "aten.sub"(%column, %rows) {operands = ["self", "other"]} : (tensor<6x1xf32>, tensor<6xf32>) -> tensor<6x6xf32>
  %y = "aten.view"(%pairs) {size = array<i64: 2, 3, 6>, operands = ["self"]} : (tensor<6x6xf32>) -> tensor<2x3x6xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<2x3x6xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- softmax.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x3x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %rows = "aten.view"(%x) {size = array<i64: 6, 4>, operands = ["self"]} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %s = "aten.softmax"(%rows) {dim = -1 : i64, operands = ["self"]} : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %y = "aten.view"(%s) {size = array<i64: 2, 3, 4>, operands = ["self"]} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<2x3x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- top-k.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x3x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %rows = "aten.view"(%x) {size = array<i64: 6, 4>, operands = ["self"]} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %t:2 = "aten.topk"(%rows) {k = 2 : i64, dim = -1 : i64, operands = ["self"]} : (tensor<6x4xf32>) -> (tensor<6x2xf32>, tensor<6x2xi64>)
  %s = "aten.scatter"(%rows, %t#1, %t#0) {dim = 1 : i64, operands = ["self", "index", "src"]} : (tensor<6x4xf32>, tensor<6x2xi64>, tensor<6x2xf32>) -> tensor<6x4xf32>
  %y = "aten.view"(%s) {size = array<i64: 2, 3, 4>, operands = ["self"]} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<2x3x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- reduce.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x3x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %rows = "aten.view"(%x) {size = array<i64: 6, 2, 2>, operands = ["self"]} : (tensor<2x3x4xf32>) -> tensor<6x2x2xf32>
  %over = "aten.sum"(%rows) {dim = array<i64: 0>, operands = ["self"]} : (tensor<6x2x2xf32>) -> tensor<2x2xf32>
  %within = "aten.amax"(%rows) {dim = array<i64: 2>, operands = ["self"]} : (tensor<6x2x2xf32>) -> tensor<6x2xf32>
  %both = "aten.sum"(%rows) {dim = array<i64: 0, 1>, operands = ["self"]} : (tensor<6x2x2xf32>) -> tensor<2xf32>
  %w = "aten.view"(%within) {size = array<i64: 2, 3, 2>, operands = ["self"]} : (tensor<6x2xf32>) -> tensor<2x3x2xf32>
  %ws = "aten.sum"(%w) {dim = array<i64: 0, 1>, operands = ["self"]} : (tensor<2x3x2xf32>) -> tensor<2xf32>
  %a = "aten.mul"(%over, %ws) {operands = ["self", "other"]} : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %b = "aten.mul"(%a, %both) {operands = ["self", "other"]} : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  %sum = "aten.sum"(%b) {operands = ["self"]} : (tensor<2x2xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- broadcast.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x3x2xf32> {torch.input = "x"}) -> tensor<f32> {
  %rows = "aten.view"(%x) {size = array<i64: 6, 2>, operands = ["self"]} : (tensor<2x3x2xf32>) -> tensor<6x2xf32>
  %ones = "aten.view"(%rows) {size = array<i64: 6, 1, 2>, operands = ["self"]} : (tensor<6x2xf32>) -> tensor<6x1x2xf32>
  %wide = "aten.expand"(%ones) {size = array<i64: 6, 5, 2>, operands = ["self"]} : (tensor<6x1x2xf32>) -> tensor<6x5x2xf32>
  %y = "aten.view"(%wide) {size = array<i64: 2, 3, 5, 2>, operands = ["self"]} : (tensor<6x5x2xf32>) -> tensor<2x3x5x2xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<2x3x5x2xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- norms.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x3x4xf32> {torch.input = "x"}, %g: tensor<4xf32> {torch.parameter = "g"}, %b: tensor<4xf32> {torch.parameter = "b"}) -> tensor<f32> {
  %rows = "aten.view"(%x) {size = array<i64: 6, 4>, operands = ["self"]} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %r = "aten.rms_norm"(%rows, %g) {normalized_shape = array<i64: 4>, eps = 1.0e-05 : f64, operands = ["input", "weight"]} : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
  %n = "aten.layer_norm"(%r, %g, %b) {normalized_shape = array<i64: 4>, eps = 1.0e-05 : f64, operands = ["input", "weight", "bias"]} : (tensor<6x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
  %y = "aten.view"(%n) {size = array<i64: 2, 3, 4>, operands = ["self"]} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<2x3x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- unsplit.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<1x6x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %rows = "aten.view"(%x) {size = array<i64: 6, 4>, operands = ["self"]} : (tensor<1x6x4xf32>) -> tensor<6x4xf32>
  %t = "aten.tanh"(%rows) {operands = ["self"]} : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %y = "aten.view"(%t) {size = array<i64: 4, 6>, operands = ["self"]} : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %c = "aten.sum"(%y) {dim = array<i64: 1>, operands = ["self"]} : (tensor<4x6xf32>) -> tensor<4xf32>
  %e = "aten.exp"(%c) {operands = ["self"]} : (tensor<4xf32>) -> tensor<4xf32>
  %sum = "aten.sum"(%e) {operands = ["self"]} : (tensor<4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- lookup.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x3x2xi64> {torch.input = "x"}, %w: tensor<5x4xf32> {torch.parameter = "w"}) -> tensor<f32> {
  %e = "aten.embedding"(%w, %x) {operands = ["weight", "indices"]} : (tensor<5x4xf32>, tensor<2x3x2xi64>) -> tensor<2x3x2x4xf32>
  %rows = "aten.view"(%e) {size = array<i64: 12, 4>, operands = ["self"]} : (tensor<2x3x2x4xf32>) -> tensor<12x4xf32>
  %y = "aten.tanh"(%rows) {operands = ["self"]} : (tensor<12x4xf32>) -> tensor<12x4xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<12x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- layer.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x3x4xf32> {torch.input = "x"}, %w: tensor<4x4xf32> {torch.parameter = "w"}, %b: tensor<4xf32> {torch.parameter = "b"}, %g: tensor<4xf32> {torch.parameter = "g"}) -> tensor<f32> {
  %rows = "aten.view"(%x) {size = array<i64: 6, 4>, operands = ["self"]} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %p = "aten.linear"(%rows, %w, %b) {operands = ["input", "weight", "bias"]} : (tensor<6x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
  %s = "aten.silu"(%p) {operands = ["self"]} : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %n = "aten.layer_norm"(%s, %g, %b) {normalized_shape = array<i64: 4>, eps = 1.0e-05 : f64, operands = ["input", "weight", "bias"]} : (tensor<6x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
  %y = "aten.add"(%n, %rows) {operands = ["self", "other"]} : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<6x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- leading.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x6x4xf32> {torch.input = "x"}, %z: tensor<2x3x2x4xf32> {torch.input = "z"}) -> tensor<f32> {
  %rows = "aten.view"(%x) {size = array<i64: 12, 4>, operands = ["self"]} : (tensor<2x6x4xf32>) -> tensor<12x4xf32>
  %others = "aten.view"(%z) {size = array<i64: 12, 4>, operands = ["self"]} : (tensor<2x3x2x4xf32>) -> tensor<12x4xf32>
  %y = "aten.add"(%rows, %others) {operands = ["self", "other"]} : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<12x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- order.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x6x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %rows = "aten.view"(%x) {size = array<i64: 12, 4>, operands = ["self"]} : (tensor<2x6x4xf32>) -> tensor<12x4xf32>
  %turned = "aten.transpose"(%x) {dim0 = 0 : i64, dim1 = 1 : i64, operands = ["self"]} : (tensor<2x6x4xf32>) -> tensor<6x2x4xf32>
  %others = "aten.reshape"(%turned) {shape = array<i64: 12, 4>, operands = ["self"]} : (tensor<6x2x4xf32>) -> tensor<12x4xf32>
  %y = "aten.add"(%rows, %others) {operands = ["self", "other"]} : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<12x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- constant.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x3x2xf32> {torch.input = "x"}) -> tensor<f32> {
  %rows = "aten.view"(%x) {size = array<i64: 6, 2>, operands = ["self"]} : (tensor<2x3x2xf32>) -> tensor<6x2xf32>
  %c = "torch.constant"() {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [9.0, 10.0], [11.0, 12.0]]> : tensor<6x2xf32>} : () -> tensor<6x2xf32>
  %y = "aten.mul"(%rows, %c) {operands = ["self", "other"]} : (tensor<6x2xf32>, tensor<6x2xf32>) -> tensor<6x2xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<6x2xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- along.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x3x4xf32> {torch.input = "x"}, %p: tensor<6xf32> {torch.parameter = "p"}) -> tensor<f32> {
  %rows = "aten.view"(%x) {size = array<i64: 6, 4>, operands = ["self"]} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %column = "aten.view"(%p) {size = array<i64: 6, 1>, operands = ["self"]} : (tensor<6xf32>) -> tensor<6x1xf32>
  %y = "aten.mul"(%rows, %column) {operands = ["self", "other"]} : (tensor<6x4xf32>, tensor<6x1xf32>) -> tensor<6x4xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<6x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- plain.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x3x4xf32> {torch.input = "x"}, %p: tensor<6x4xf32> {torch.parameter = "p"}) -> tensor<f32> {
  %rows = "aten.view"(%x) {size = array<i64: 6, 4>, operands = ["self"]} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %y = "aten.mul"(%rows, %p) {operands = ["self", "other"]} : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<6x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- parameter.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2xf32> {torch.input = "x"}, %p: tensor<2x3x4xf32> {torch.parameter = "p"}, %q: tensor<4x3x4xf32> {torch.parameter = "q"}) -> tensor<f32> {
  %rows = "aten.view"(%p) {size = array<i64: 6, 4>, operands = ["self"]} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %s = "aten.sigmoid"(%rows) {operands = ["self"]} : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %part = "aten.slice"(%q) {dim = 0 : i64, start = 2 : i64, end = 4 : i64, operands = ["self"]} : (tensor<4x3x4xf32>) -> tensor<2x3x4xf32>
  %others = "aten.view"(%part) {size = array<i64: 6, 4>, operands = ["self"]} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %t = "aten.tanh"(%others) {operands = ["self"]} : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %y = "aten.mul"(%s, %t) {operands = ["self", "other"]} : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<6x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- row-softmax.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x3xf32> {torch.input = "x"}) -> tensor<f32> {
  %row = "aten.view"(%x) {size = array<i64: 6>, operands = ["self"]} : (tensor<2x3xf32>) -> tensor<6xf32>
  %y = "aten.softmax"(%row) {dim = 0 : i64, operands = ["self"]} : (tensor<6xf32>) -> tensor<6xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<6xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- row-top-k.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x3xf32> {torch.input = "x"}) -> tensor<f32> {
  %row = "aten.view"(%x) {size = array<i64: 6>, operands = ["self"]} : (tensor<2x3xf32>) -> tensor<6xf32>
  %t:2 = "aten.topk"(%row) {k = 2 : i64, dim = -1 : i64, operands = ["self"]} : (tensor<6xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  %sum = "aten.sum"(%t#0) {operands = ["self"]} : (tensor<2xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- row-norm.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x3xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.rms_norm"(%x) {normalized_shape = array<i64: 2, 3>, eps = 1.0e-05 : f64, operands = ["input"]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %z = "aten.tanh"(%y) {operands = ["self"]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %sum = "aten.sum"(%z) {operands = ["self"]} : (tensor<2x3xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- columns.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x2x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %rows = "aten.view"(%x) {size = array<i64: 4, 4>, operands = ["self"]} : (tensor<2x2x4xf32>) -> tensor<4x4xf32>
  %y = "aten.softmax"(%rows) {dim = 0 : i64, operands = ["self"]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<4x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- second.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x3xf32> {torch.input = "x"}) -> tensor<f32> {
  %rows = "aten.view"(%x) {size = array<i64: 6>, operands = ["self"]} : (tensor<2x3xf32>) -> tensor<6xf32>
  %wide = "aten.expand"(%rows) {size = array<i64: 6, 6>, operands = ["self"]} : (tensor<6xf32>) -> tensor<6x6xf32>
  %y = "aten.tanh"(%wide) {operands = ["self"]} : (tensor<6x6xf32>) -> tensor<6x6xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<6x6xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- straddle.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<2x3x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %rows = "aten.view"(%x) {size = array<i64: 4, 6>, operands = ["self"]} : (tensor<2x3x4xf32>) -> tensor<4x6xf32>
  %y = "aten.tanh"(%rows) {operands = ["self"]} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<4x6xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- scalar.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<1x1xf32> {torch.input = "x"}) -> tensor<f32> {
  %number = "aten.view"(%x) {size = array<i64>, operands = ["self"]} : (tensor<1x1xf32>) -> tensor<f32>
  %sum = "aten.tanh"(%number) {operands = ["self"]} : (tensor<f32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}
