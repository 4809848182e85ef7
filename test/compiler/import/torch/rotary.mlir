// Rotary positions: x cos + rotate_half(x) sin, with the cosine and sine of positions times frequencies, is dtc.rotary. With
// another table it stays in its parts.

// RUN: split-file %s %t
// RUN: dtc-import %t/rotary.mlir | FileCheck %s
// RUN: sed 's/"aten.neg"/"aten.abs"/' %t/rotary.mlir > %t/abs.mlir && dtc-import %t/abs.mlir | FileCheck %s --check-prefix PARTS
// RUN: sed 's/"aten.sin"/"aten.cos"/' %t/rotary.mlir > %t/cos.mlir && dtc-import %t/cos.mlir | FileCheck %s --check-prefix PARTS

// Positions may be those of the batch.
// RUN: sed 's/%w: tensor/%given: tensor<2x3xi64> {torch.input = "p"}, %w: tensor/; /aten.arange/d; s/"aten.view"(%i) {.*/"aten.unsqueeze"(%given) {dim = 2 : i64, operands = ["self"]} : (tensor<2x3xi64>) -> tensor<1x3x1xi64>/; s/tensor<1x3x/tensor<2x3x/g; s/tensor<1x1x3x4xf32>/tensor<2x1x3x4xf32>/g' %t/rotary.mlir > %t/positions.mlir
// RUN: dtc-import %t/positions.mlir | FileCheck %s --check-prefix POSITIONS
// RUN: sed 's/"aten.sin"/"aten.cos"/' %t/positions.mlir > %t/cosines.mlir && not dtc-import %t/cosines.mlir 2>&1 | FileCheck %s --check-prefix COSINES
// RUN: sed 's/"aten.mul"\(.*frequencies\)/"aten.maximum"\1/' %t/positions.mlir > %t/maximum.mlir && not dtc-import %t/maximum.mlir 2>&1 | FileCheck %s --check-prefix COSINES
// The halves may be written apart, and may be the elements of x by turns.
// RUN: dtc-import %t/halves.mlir | FileCheck %s --check-prefix HALVES
// RUN: sed 's/start = 0 : i64, end = 2 : i64, step = 1/start = 0 : i64, end = 4 : i64, step = 2/; s/start = 2 : i64, end = 4 : i64, step = 1/start = 1 : i64, end = 4 : i64, step = 2/' %t/halves.mlir > %t/turns.mlir && dtc-import %t/turns.mlir | FileCheck %s --check-prefix TURNS
// RUN: sed 's/"aten.sub"(%ac/"aten.add"(%ac/' %t/halves.mlir > %t/sum.mlir && dtc-import %t/sum.mlir | FileCheck %s --check-prefix PARTS

// POSITIONS: dtc.rotary %{{.*}} from %p : tensor<2x3xi32> {factor = 2.000000e+00 : f64, frequencies = array<f64: 1.000000e+00, 1.250000e-01>, inverse = false}
// COSINES: 'aten.cos' has no rule
// HALVES: %[[X:.*]] = dtc.mul %x,
// HALVES-NEXT: dtc.rotary %[[X]] {frequencies = array<f64: 1.000000e+00, 1.250000e-01>, inverse = false}
// TURNS: dtc.transpose {{.*}} : (tensor<2x{{.*}}x2x2xf32>)
// TURNS: dtc.rotary
// TURNS-NOT: dtc.concat

// The transposes of the model and those around the op cancel.
// CHECK: %[[X:.*]] = dtc.mul %x, %{{.*}} : tensor<2x3x5x4xf32>
// CHECK-NEXT: %[[Y:.*]] = dtc.rotary %[[X]] {factor = 2.000000e+00 : f64, frequencies = array<f64: 1.000000e+00, 1.250000e-01>, inverse = false}
// CHECK-NEXT: dtc.reduce sum %[[Y]]
// PARTS-NOT: dtc.rotary
// PARTS: dtc.concat

//--- rotary.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<4xf32> {torch.parameter = "w"}, %x: tensor<2x3x5x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %frequencies = "torch.constant"() {value = dense<[1.0, 0.125]> : tensor<2xf32>} : () -> tensor<2xf32>
  %i = "aten.arange"() {end = 3 : i64} : () -> tensor<3xi64>
  %column = "aten.view"(%i) {size = array<i64: 1, 3, 1>, operands = ["self"]} : (tensor<3xi64>) -> tensor<1x3x1xi64>
  %positions = "aten.to"(%column) {dtype = f32, operands = ["self"]} : (tensor<1x3x1xi64>) -> tensor<1x3x1xf32>
  %half = "aten.mul"(%positions, %frequencies) {operands = ["self", "other"]} : (tensor<1x3x1xf32>, tensor<2xf32>) -> tensor<1x3x2xf32>
  %angles = "aten.cat"(%half, %half) {dim = -1 : i64, operands = ["tensors.0", "tensors.1"]} : (tensor<1x3x2xf32>, tensor<1x3x2xf32>) -> tensor<1x3x4xf32>
  %cos0 = "aten.cos"(%angles) {operands = ["self"]} : (tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
  %cos1 = "aten.mul"(%cos0) {other = 2.0 : f64, operands = ["self"]} : (tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
  %cos = "aten.unsqueeze"(%cos1) {dim = 1 : i64, operands = ["self"]} : (tensor<1x3x4xf32>) -> tensor<1x1x3x4xf32>
  %sin0 = "aten.sin"(%angles) {operands = ["self"]} : (tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
  %sin1 = "aten.mul"(%sin0) {other = 2.0 : f64, operands = ["self"]} : (tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
  %sin = "aten.unsqueeze"(%sin1) {dim = 1 : i64, operands = ["self"]} : (tensor<1x3x4xf32>) -> tensor<1x1x3x4xf32>

  %scaled = "aten.mul"(%x, %w) {operands = ["self", "other"]} : (tensor<2x3x5x4xf32>, tensor<4xf32>) -> tensor<2x3x5x4xf32>
  %heads = "aten.transpose"(%scaled) {dim0 = 1 : i64, dim1 = 2 : i64, operands = ["self"]} : (tensor<2x3x5x4xf32>) -> tensor<2x5x3x4xf32>
  %low = "aten.slice"(%heads) {dim = 3 : i64, start = 0 : i64, end = 2 : i64, step = 1 : i64, operands = ["self"]} : (tensor<2x5x3x4xf32>) -> tensor<2x5x3x2xf32>
  %high = "aten.slice"(%heads) {dim = -1 : i64, start = 2 : i64, end = 9223372036854775807 : i64, step = 1 : i64, operands = ["self"]} : (tensor<2x5x3x4xf32>) -> tensor<2x5x3x2xf32>
  %neg = "aten.neg"(%high) {operands = ["self"]} : (tensor<2x5x3x2xf32>) -> tensor<2x5x3x2xf32>
  %rotated = "aten.cat"(%neg, %low) {dim = -1 : i64, operands = ["tensors.0", "tensors.1"]} : (tensor<2x5x3x2xf32>, tensor<2x5x3x2xf32>) -> tensor<2x5x3x4xf32>
  %a = "aten.mul"(%heads, %cos) {operands = ["self", "other"]} : (tensor<2x5x3x4xf32>, tensor<1x1x3x4xf32>) -> tensor<2x5x3x4xf32>
  %b = "aten.mul"(%rotated, %sin) {operands = ["self", "other"]} : (tensor<2x5x3x4xf32>, tensor<1x1x3x4xf32>) -> tensor<2x5x3x4xf32>
  %y = "aten.add"(%a, %b) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<2x5x3x4xf32>, tensor<2x5x3x4xf32>) -> tensor<2x5x3x4xf32>
  %z = "aten.transpose"(%y) {dim0 = 1 : i64, dim1 = 2 : i64, operands = ["self"]} : (tensor<2x5x3x4xf32>) -> tensor<2x3x5x4xf32>
  %sum = "aten.sum"(%z) {operands = ["self"]} : (tensor<2x3x5x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- halves.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<4xf32> {torch.parameter = "w"}, %x: tensor<2x3x5x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %frequencies = "torch.constant"() {value = dense<[1.0, 0.125]> : tensor<2xf32>} : () -> tensor<2xf32>
  %i = "aten.arange"() {end = 3 : i64} : () -> tensor<3xi64>
  %column = "aten.view"(%i) {size = array<i64: 1, 3, 1, 1>, operands = ["self"]} : (tensor<3xi64>) -> tensor<1x3x1x1xi64>
  %positions = "aten.to"(%column) {dtype = f32, operands = ["self"]} : (tensor<1x3x1x1xi64>) -> tensor<1x3x1x1xf32>
  %angles = "aten.mul"(%positions, %frequencies) {operands = ["self", "other"]} : (tensor<1x3x1x1xf32>, tensor<2xf32>) -> tensor<1x3x1x2xf32>
  %cos = "aten.cos"(%angles) {operands = ["self"]} : (tensor<1x3x1x2xf32>) -> tensor<1x3x1x2xf32>
  %sin = "aten.sin"(%angles) {operands = ["self"]} : (tensor<1x3x1x2xf32>) -> tensor<1x3x1x2xf32>
  %y = "aten.mul"(%x, %w) {operands = ["self", "other"]} : (tensor<2x3x5x4xf32>, tensor<4xf32>) -> tensor<2x3x5x4xf32>
  %a = "aten.slice"(%y) {dim = 3 : i64, start = 0 : i64, end = 2 : i64, step = 1 : i64, operands = ["self"]} : (tensor<2x3x5x4xf32>) -> tensor<2x3x5x2xf32>
  %b = "aten.slice"(%y) {dim = 3 : i64, start = 2 : i64, end = 4 : i64, step = 1 : i64, operands = ["self"]} : (tensor<2x3x5x4xf32>) -> tensor<2x3x5x2xf32>
  %ac = "aten.mul"(%a, %cos) {operands = ["self", "other"]} : (tensor<2x3x5x2xf32>, tensor<1x3x1x2xf32>) -> tensor<2x3x5x2xf32>
  %bs = "aten.mul"(%b, %sin) {operands = ["self", "other"]} : (tensor<2x3x5x2xf32>, tensor<1x3x1x2xf32>) -> tensor<2x3x5x2xf32>
  %bc = "aten.mul"(%b, %cos) {operands = ["self", "other"]} : (tensor<2x3x5x2xf32>, tensor<1x3x1x2xf32>) -> tensor<2x3x5x2xf32>
  %as = "aten.mul"(%sin, %a) {operands = ["self", "other"]} : (tensor<1x3x1x2xf32>, tensor<2x3x5x2xf32>) -> tensor<2x3x5x2xf32>
  %low = "aten.sub"(%ac, %bs) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<2x3x5x2xf32>, tensor<2x3x5x2xf32>) -> tensor<2x3x5x2xf32>
  %high = "aten.add"(%as, %bc) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<2x3x5x2xf32>, tensor<2x3x5x2xf32>) -> tensor<2x3x5x2xf32>
  %z = "aten.cat"(%low, %high) {dim = -1 : i64, operands = ["tensors.0", "tensors.1"]} : (tensor<2x3x5x2xf32>, tensor<2x3x5x2xf32>) -> tensor<2x3x5x4xf32>
  %sum = "aten.sum"(%z) {operands = ["self"]} : (tensor<2x3x5x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}
