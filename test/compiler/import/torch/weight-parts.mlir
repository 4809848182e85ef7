// Parts of parameters: equal ones become a dimension, rows of different numbers parameters of their own, and others stay slices.

// RUN: split-file %s %t
// RUN: dtc-import %t/equal.mlir | FileCheck %s --check-prefix EQUAL
// RUN: dtc-import %t/equal.mlir -o %t/m.mlir && dtc-compile %t/m.mlir --mesh tp=2 -o %t/m.plan && dtc-plan show %t/m.plan | FileCheck %s --check-prefix PLAN
// RUN: dtc-import %t/rows.mlir | FileCheck %s --check-prefix ROWS
// The last four rows are not used, two ranges overlap, or the ranges are of columns.
// RUN: sed 's|end = 12|end = 8|; s|tensor<6x5xf32>|tensor<2x5xf32>|; s|tensor<7x6xf32>|tensor<7x2xf32>|; s|array<i64: 0, 6>|array<i64: 0, 2>|' %t/rows.mlir > %t/unused.mlir
// RUN: dtc-import %t/unused.mlir | FileCheck %s --check-prefix SLICES
// RUN: sed 's|start = 4 : i64, end = 6|start = 3 : i64, end = 5|' %t/rows.mlir > %t/overlap.mlir
// RUN: dtc-import %t/overlap.mlir | FileCheck %s --check-prefix SLICES
// RUN: dtc-import %t/one.mlir | FileCheck %s --check-prefix ONE

// The second half is used first. Both are of one reshape, in their order, so that their gradients are concatenated.
// EQUAL: %[[HALVES:.*]] = dtc.reshape %w {dtc.axes = ["", "mlp", ""]} : (tensor<8x5xf32>) -> tensor<2x4x5xf32>
// EQUAL: dtc.slice %[[HALVES]] offsets [0, 0, 0] sizes [1, 4, 5]
// EQUAL: dtc.slice %[[HALVES]] offsets [1, 0, 0] sizes [1, 4, 5]
// EQUAL-NOT: dtc.reshape %w
// PLAN-NOT: pad
// PLAN: concat

// ROWS: tensor<4x5xf32> {{[^}]*}}dtc.param = "qkv[0:4]"}
// ROWS-SAME: tensor<2x5xf32> {{[^}]*}}dtc.param = "qkv[4:6]"}
// ROWS-SAME: tensor<6x5xf32> {{[^}]*}}dtc.param = "qkv[6:12]"}
// ROWS-SAME: tensor<7x5xf32> {{[^}]*}}dtc.input = "x"}
// ROWS-NOT: dtc.slice

// SLICES: tensor<12x5xf32> {{[^}]*}}dtc.param = "qkv"}
// SLICES-COUNT-3: dtc.slice %qkv

// One half of a parameter is no part of a dimension.
// ONE: dtc.slice %w offsets [4, 0] sizes [4, 5]
// ONE-NOT: dtc.reshape %w

//--- equal.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<8x5xf32> {torch.parameter = "w"}, %down: tensor<5x4xf32> {torch.parameter = "down"}, %x: tensor<7x5xf32> {torch.input = "x"}) -> tensor<f32> {
  %both = "aten.linear"(%x, %w) {operands = ["input", "weight"]} : (tensor<7x5xf32>, tensor<8x5xf32>) -> tensor<7x8xf32>
  %up = "aten.slice"(%both) {dim = 1 : i64, start = 4 : i64, end = 8 : i64, operands = ["self"]} : (tensor<7x8xf32>) -> tensor<7x4xf32>
  %gate = "aten.slice"(%both) {dim = 1 : i64, start = 0 : i64, end = 4 : i64, operands = ["self"]} : (tensor<7x8xf32>) -> tensor<7x4xf32>
  %active = "aten.silu"(%gate) {operands = ["self"]} : (tensor<7x4xf32>) -> tensor<7x4xf32>
  %inner = "aten.mul"(%up, %active) {operands = ["self", "other"]} : (tensor<7x4xf32>, tensor<7x4xf32>) -> tensor<7x4xf32>
  %y = "aten.linear"(%inner, %down) {operands = ["input", "weight"]} : (tensor<7x4xf32>, tensor<5x4xf32>) -> tensor<7x5xf32>
  %loss = "aten.sum"(%y) {operands = ["self"]} : (tensor<7x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

//--- rows.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%qkv: tensor<12x5xf32> {torch.parameter = "qkv"}, %x: tensor<7x5xf32> {torch.input = "x"}) -> tensor<f32> {
  %all = "aten.linear"(%x, %qkv) {operands = ["input", "weight"]} : (tensor<7x5xf32>, tensor<12x5xf32>) -> tensor<7x12xf32>
  %v = "aten.slice"(%all) {dim = 1 : i64, start = 6 : i64, end = 12 : i64, operands = ["self"]} : (tensor<7x12xf32>) -> tensor<7x6xf32>
  %q = "aten.slice"(%all) {dim = 1 : i64, start = 0 : i64, end = 4 : i64, operands = ["self"]} : (tensor<7x12xf32>) -> tensor<7x4xf32>
  %k = "aten.slice"(%all) {dim = 1 : i64, start = 4 : i64, end = 6 : i64, operands = ["self"]} : (tensor<7x12xf32>) -> tensor<7x2xf32>
  %a = "aten.sum"(%q) {operands = ["self"]} : (tensor<7x4xf32>) -> tensor<f32>
  %b = "aten.sum"(%k) {operands = ["self"]} : (tensor<7x2xf32>) -> tensor<f32>
  %c = "aten.sum"(%v) {operands = ["self"]} : (tensor<7x6xf32>) -> tensor<f32>
  %d = "aten.mul"(%a, %b) {operands = ["self", "other"]} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %loss = "aten.mul"(%c, %d) {operands = ["self", "other"]} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

//--- one.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<8x5xf32> {torch.parameter = "w"}, %x: tensor<7x5xf32> {torch.input = "x"}) -> tensor<f32> {
  %both = "aten.linear"(%x, %w) {operands = ["input", "weight"]} : (tensor<7x5xf32>, tensor<8x5xf32>) -> tensor<7x8xf32>
  %up = "aten.slice"(%both) {dim = 1 : i64, start = 4 : i64, end = 8 : i64, operands = ["self"]} : (tensor<7x8xf32>) -> tensor<7x4xf32>
  %loss = "aten.sum"(%up) {operands = ["self"]} : (tensor<7x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
