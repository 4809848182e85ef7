// RUN: dtc-opt %s --split-input-file --dtc-fold-parameter-reshapes --dtc-name-dimensions="shard=h.*.w#1=tp,h.0.w#0=,x#0=dp,batch=dp" | FileCheck %s

// A dimension has its key as its name, in place of the one that it had; a star stands for numbers alone.
// CHECK-LABEL: func.func @layers(
// CHECK-SAME: {dtc.axes = ["h.0.w#0", "h.*.w#1"], dtc.param = "h.0.w"}
// CHECK-SAME: {dtc.axes = ["embed", "h.*.w#1"], dtc.param = "h.12.w"}
// CHECK-SAME: {dtc.axes = ["embed", "mlp"], dtc.param = "h.x.w"}
// CHECK-SAME: {dtc.param = "h.0.w.more"}
// CHECK-SAME: {dtc.axes = ["x#0", "seq"], dtc.input = "x"}
func.func @layers(%0: tensor<8x8xf32> {dtc.param = "h.0.w"},
                  %1: tensor<8x8xf32> {dtc.param = "h.12.w", dtc.axes = ["embed", "mlp"]},
                  %2: tensor<8x8xf32> {dtc.param = "h.x.w", dtc.axes = ["embed", "mlp"]},
                  %3: tensor<8x8xf32> {dtc.param = "h.0.w.more"},
                  %x: tensor<4x6xf32> {dtc.input = "x", dtc.axes = ["", "seq"]}) {
  return
}

// -----

// Dimensions are counted in the shape of files: the dimensions that they are split into begin with the name.
// CHECK-LABEL: func.func @reshaped(
// CHECK-SAME: tensor<2x4x3x4xf32> {dtc.axes = ["h.0.w#0", "", "h.*.w#1", ""], dtc.file_shape = array<i64: 8, 12>, dtc.param = "h.0.w"}
// CHECK-SAME: {dtc.axes = ["x#0"], dtc.input = "x"}
func.func @reshaped(%0: tensor<8x12xf32> {dtc.param = "h.0.w"}, %x: tensor<4xf32> {dtc.input = "x"}) -> tensor<2x4x3x4xf32> {
  %1 = dtc.reshape %0 {dtc.axes = ["", "", "heads", ""]} : (tensor<8x12xf32>) -> tensor<2x4x3x4xf32>
  return %1 : tensor<2x4x3x4xf32>
}
