// PyTorch has heads before positions, dtc after them: the ops between the two transposes are computed after both, where
// they cancel.

// RUN: split-file %s %t
// RUN: dtc-import %t/thirds.mlir | FileCheck %s --check-prefix THIRDS
// Two parts of a product of their own are not queries, keys and values.
// RUN: sed 's|start = 4 : i64, end = 6|start = 2 : i64, end = 4|' %t/thirds.mlir > %t/twice.mlir
// RUN: dtc-import %t/twice.mlir | FileCheck %s --check-prefix TWICE

// Each head has its queries, keys and values; the keys are normalized, and queries are cut and put together again.
// THIRDS: %[[W:.*]] = dtc.reshape %w {dtc.axes = ["heads", "", ""]} : (tensor<12x5xf32>) -> tensor<2x6x5xf32>
// THIRDS: dtc.slice %[[W]] offsets [0, 0, 0] sizes [2, 2, 5]
// THIRDS: dtc.slice %[[W]] offsets [0, 2, 0] sizes [2, 2, 5]
// THIRDS: dtc.slice %[[W]] offsets [0, 4, 0] sizes [2, 2, 5]
// THIRDS-NOT: dtc.transpose
// THIRDS-COUNT-3: dtc.einsum
// THIRDS-DAG: dtc.concat {{.*}} (tensor<3x4x2x1xf32>, tensor<3x4x2x1xf32>) -> tensor<3x4x2x2xf32>
// THIRDS-DAG: dtc.rms_norm {{.*}} (tensor<3x4x2x2xf32>, tensor<2xf32>)
// THIRDS: dtc.attention
// THIRDS-NOT: dtc.transpose
// THIRDS: return

// TWICE-COUNT-1: dtc.einsum "{{[a-z]+}},{{[a-z]+}}->{{[a-z]+}}" %x
// TWICE-NOT: dtc.einsum {{.*}} %x
// TWICE: dtc.attention

//--- thirds.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<12x5xf32> {torch.parameter = "w"}, %scale: tensor<2xf32> {torch.parameter = "scale"}, %x: tensor<3x4x5xf32> {torch.input = "x"}) -> tensor<f32> {
  %all = "aten.linear"(%x, %w) {operands = ["input", "weight"]} : (tensor<3x4x5xf32>, tensor<12x5xf32>) -> tensor<3x4x12xf32>
  %split = "aten.view"(%all) {size = array<i64: 3, 4, 2, 6>, operands = ["self"]} : (tensor<3x4x12xf32>) -> tensor<3x4x2x6xf32>
  %heads = "aten.transpose"(%split) {dim0 = 1 : i64, dim1 = 2 : i64, operands = ["self"]} : (tensor<3x4x2x6xf32>) -> tensor<3x2x4x6xf32>
  %q = "aten.slice"(%heads) {dim = 3 : i64, start = 0 : i64, end = 2 : i64, operands = ["self"]} : (tensor<3x2x4x6xf32>) -> tensor<3x2x4x2xf32>
  %k = "aten.slice"(%heads) {dim = 3 : i64, start = 2 : i64, end = 4 : i64, operands = ["self"]} : (tensor<3x2x4x6xf32>) -> tensor<3x2x4x2xf32>
  %v = "aten.slice"(%heads) {dim = 3 : i64, start = 4 : i64, end = 6 : i64, operands = ["self"]} : (tensor<3x2x4x6xf32>) -> tensor<3x2x4x2xf32>
  %first = "aten.slice"(%q) {dim = 3 : i64, start = 0 : i64, end = 1 : i64, operands = ["self"]} : (tensor<3x2x4x2xf32>) -> tensor<3x2x4x1xf32>
  %second = "aten.slice"(%q) {dim = 3 : i64, start = 1 : i64, end = 2 : i64, operands = ["self"]} : (tensor<3x2x4x2xf32>) -> tensor<3x2x4x1xf32>
  %swapped = "aten.cat"(%second, %first) {dim = 3 : i64, operands = ["tensors.0", "tensors.1"]} : (tensor<3x2x4x1xf32>, tensor<3x2x4x1xf32>) -> tensor<3x2x4x2xf32>
  %normed = "aten.rms_norm"(%k, %scale) {normalized_shape = array<i64: 2>, eps = 1.0e-6 : f64, operands = ["input", "weight"]} : (tensor<3x2x4x2xf32>, tensor<2xf32>) -> tensor<3x2x4x2xf32>
  %y = "aten.scaled_dot_product_attention"(%swapped, %normed, %v) {is_causal = true, operands = ["query", "key", "value"]} : (tensor<3x2x4x2xf32>, tensor<3x2x4x2xf32>, tensor<3x2x4x2xf32>) -> tensor<3x2x4x2xf32>
  %back = "aten.transpose"(%y) {dim0 = 1 : i64, dim1 = 2 : i64, operands = ["self"]} : (tensor<3x2x4x2xf32>) -> tensor<3x4x2x2xf32>
  %loss = "aten.sum"(%back) {operands = ["self"]} : (tensor<3x4x2x2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
