// RUN: dtc-opt %s --dtc-fold-parameter-reshapes | FileCheck %s

dist.mesh @mesh <"tp"=2>

// All uses are one reshape: the parameter takes its shape and its axes, the file's shape is remembered.
// CHECK-LABEL: func.func @all_uses(
// CHECK-SAME: %[[W:.*]]: tensor<8x4x2xf32> {dtc.axes = ["embed", "heads", ""], dtc.file_shape = array<i64: 8, 8>, dtc.init = #dtc.zeros, dtc.param = "w"}) -> (tensor<8x4x2xf32>, tensor<8x4x2xf32>)
// CHECK-NEXT: %[[E:.*]] = dtc.exp %[[W]] : tensor<8x4x2xf32>
// CHECK-NEXT: return %[[E]], %[[W]]
func.func @all_uses(%w: tensor<8x8xf32> {dtc.param = "w", dtc.init = #dtc.zeros, dtc.axes = ["embed", ""]}) -> (tensor<8x4x2xf32>, tensor<8x4x2xf32>) {
  %0 = dtc.reshape %w {dtc.axes = ["embed", "heads", ""]} : (tensor<8x8xf32>) -> tensor<8x4x2xf32>
  %1 = dtc.reshape %w {dtc.axes = ["embed", "heads", ""]} : (tensor<8x8xf32>) -> tensor<8x4x2xf32>
  %2 = dtc.exp %0 : tensor<8x4x2xf32>
  return %2, %1 : tensor<8x4x2xf32>, tensor<8x4x2xf32>
}

// Weights files have the first shape of all.
// CHECK-LABEL: func.func @folded_before(
// CHECK-SAME: %{{.*}}: tensor<64xf32> {dtc.file_shape = array<i64: 2, 32>, dtc.param = "w"}
func.func @folded_before(%w: tensor<8x8xf32> {dtc.param = "w", dtc.file_shape = array<i64: 2, 32>}) -> tensor<64xf32> {
  %0 = dtc.reshape %w : (tensor<8x8xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// CHECK-LABEL: func.func @other_shapes(
// CHECK-SAME: tensor<8x8xf32> {dtc.param = "w"}
// CHECK-COUNT-2: dtc.reshape
func.func @other_shapes(%w: tensor<8x8xf32> {dtc.param = "w"}) -> (tensor<64xf32>, tensor<16x4xf32>) {
  %0 = dtc.reshape %w : (tensor<8x8xf32>) -> tensor<64xf32>
  %1 = dtc.reshape %w : (tensor<8x8xf32>) -> tensor<16x4xf32>
  return %0, %1 : tensor<64xf32>, tensor<16x4xf32>
}

// CHECK-LABEL: func.func @other_axes(
// CHECK-SAME: tensor<8x8xf32> {dtc.param = "w"}
// CHECK-COUNT-2: dtc.reshape
func.func @other_axes(%w: tensor<8x8xf32> {dtc.param = "w"}) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = dtc.reshape %w {dtc.axes = ["mlp"]} : (tensor<8x8xf32>) -> tensor<64xf32>
  %1 = dtc.reshape %w {dtc.axes = ["heads"]} : (tensor<8x8xf32>) -> tensor<64xf32>
  return %0, %1 : tensor<64xf32>, tensor<64xf32>
}

// CHECK-LABEL: func.func @other_use(
// CHECK-SAME: tensor<8x8xf32> {dtc.param = "w"}
// CHECK: dtc.reshape
func.func @other_use(%w: tensor<8x8xf32> {dtc.param = "w"}) -> (tensor<64xf32>, tensor<8x8xf32>) {
  %0 = dtc.reshape %w : (tensor<8x8xf32>) -> tensor<64xf32>
  return %0, %w : tensor<64xf32>, tensor<8x8xf32>
}

// A name of a dimension that the other shape does not give again would be lost.
// CHECK-LABEL: func.func @named_argument(
// CHECK-SAME: tensor<8x8xf32> {dtc.axes = ["", "mlp"], dtc.param = "w"}
// CHECK: dtc.reshape
func.func @named_argument(%w: tensor<8x8xf32> {dtc.param = "w", dtc.axes = ["", "mlp"]}) -> tensor<8x4x2xf32> {
  %0 = dtc.reshape %w : (tensor<8x8xf32>) -> tensor<8x4x2xf32>
  return %0 : tensor<8x4x2xf32>
}

// Shardings are about the shape that they were written for.
// CHECK-LABEL: func.func @sharded_argument(
// CHECK-SAME: tensor<8x8xf32>
// CHECK: dtc.reshape
func.func @sharded_argument(%w: tensor<8x8xf32> {dtc.param = "w", dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>}) -> tensor<64xf32> {
  %0 = dtc.reshape %w : (tensor<8x8xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// CHECK-LABEL: func.func @sharded_reshape(
// CHECK-SAME: tensor<8x8xf32>
// CHECK: dtc.reshape
func.func @sharded_reshape(%w: tensor<8x8xf32> {dtc.param = "w"}) -> tensor<64xf32> {
  %0 = dtc.reshape %w {dist.sharding = #dist.sharding<@mesh, [{"tp"}]>} : (tensor<8x8xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// Only parameters come from weights files.
// CHECK-LABEL: func.func @inputs(
// CHECK-SAME: tensor<8x8xf32> {dtc.input = "x"}, %{{.*}}: tensor<8x8xf32> {dtc.param = "unused"}
// CHECK: dtc.reshape
func.func @inputs(%x: tensor<8x8xf32> {dtc.input = "x"}, %unused: tensor<8x8xf32> {dtc.param = "unused"}) -> tensor<64xf32> {
  %0 = dtc.reshape %x : (tensor<8x8xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// CHECK: func.func private @no_body
func.func private @no_body(tensor<8x8xf32> {dtc.param = "w"}) -> tensor<64xf32>
