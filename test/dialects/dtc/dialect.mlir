// RUN: dtc-opt %s | dtc-opt | FileCheck %s

// CHECK-LABEL: func.func @parameters
func.func @parameters(
    // CHECK-SAME: tensor<256x64xf32> {dtc.axes = ["vocab", "embed"], dtc.init = #dtc.normal<2.000000e-02>, dtc.param = "wte"}
    %0: tensor<256x64xf32> {dtc.param = "wte", dtc.axes = ["vocab", "embed"], dtc.init = #dtc.normal<2.0e-2>},
    // CHECK-SAME: tensor<64xf64> {dtc.init = #dtc.ones, dtc.param = "gamma"}
    %1: tensor<64xf64> {dtc.param = "gamma", dtc.init = #dtc.ones},
    // CHECK-SAME: tensor<64xf32> {dtc.init = #dtc.zeros, dtc.param = "beta"}
    %2: tensor<64xf32> {dtc.param = "beta", dtc.init = #dtc.zeros},
    // CHECK-SAME: tensor<f32> {dtc.init = #dtc.uniform<1.000000e-01>, dtc.param = "scale"}
    %3: tensor<f32> {dtc.param = "scale", dtc.init = #dtc.uniform<0.1>},
    // A value that six digits do not hold.
    // CHECK-SAME: tensor<f32> {dtc.init = #dtc.normal<0.3333333333333333{{[0-9]*}}>, dtc.param = "third"}
    %4: tensor<f32> {dtc.param = "third", dtc.init = #dtc.normal<0.33333333333333331>}) {
  return
}

// CHECK-LABEL: func.func @inputs
// CHECK-SAME: tensor<16x128xi32> {dtc.axes = ["batch", ""], dtc.input = "tokens"}
func.func @inputs(%tokens: tensor<16x128xi32> {dtc.input = "tokens", dtc.axes = ["batch", ""]}) {
  return
}

// An input and a parameter may have the same name, and several dimensions none.
// CHECK-LABEL: func.func private @declaration
// CHECK-SAME: dtc.param = "x"
// CHECK-SAME: dtc.axes = ["", ""]
// CHECK-SAME: dtc.input = "x"
func.func private @declaration(tensor<4xf32> {dtc.param = "x"}, tensor<4x4xf32> {dtc.input = "x", dtc.axes = ["", ""]})

// CHECK-LABEL: func.func @axes
func.func @axes(%x: tensor<16x64xf32>) -> tensor<16x64xf32> {
  // CHECK: dtc.exp %{{.*}} {dtc.axes = ["batch", "embed"]} : tensor<16x64xf32>
  %0 = dtc.exp %x {dtc.axes = ["batch", "embed"]} : tensor<16x64xf32>
  // CHECK: dtc.einsum "be,be->be" %{{.*}}, %{{.*}} {dtc.axes = ["batch", ""]} :
  %1 = dtc.einsum "be,be->be" %0, %0 {dtc.axes = ["batch", ""]} : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  // Other dialects' attributes pass.
  // CHECK: dtc.rotary %{{.*}} {dtc.axes = ["", "", "heads", ""], inverse = true, other.note = 1 : i64, theta = 1.000000e+04 : f64}
  %2 = dtc.reshape %1 : (tensor<16x64xf32>) -> tensor<2x8x4x16xf32>
  %3 = dtc.rotary %2 {inverse = true, theta = 1.0e4, dtc.axes = ["", "", "heads", ""], other.note = 1} : tensor<2x8x4x16xf32>
  return %1 : tensor<16x64xf32>
}

// Attributes that passes add to the signature of a step.
// CHECK-LABEL: func.func private @step
// CHECK-SAME: tensor<4xf32> {dtc.file_shape = array<i64: 2, 2>, dtc.global_shape = array<i64: 8>, dtc.param = "x"}
// CHECK-SAME: tensor<4xf32> {dtc.state = "m", dtc.state_of = "x"}
// CHECK-SAME: tensor<f32> {dtc.scalar = "learning_rate"}
// CHECK-SAME: tensor<4xi32> {dtc.index_limit = 256 : i64, dtc.input = "tokens"}
// CHECK-SAME: -> (tensor<f32> {dtc.output = "loss"}, tensor<4xf32> {dtc.global_shape = array<i64: 8>, dtc.updates = 0 : i64})
func.func private @step(tensor<4xf32> {dtc.param = "x", dtc.file_shape = array<i64: 2, 2>, dtc.global_shape = array<i64: 8>},
                        tensor<4xf32> {dtc.state = "m", dtc.state_of = "x"}, tensor<f32> {dtc.scalar = "learning_rate"},
                        tensor<4xi32> {dtc.input = "tokens", dtc.index_limit = 256})
    -> (tensor<f32> {dtc.output = "loss"}, tensor<4xf32> {dtc.updates = 0, dtc.global_shape = array<i64: 8>})

// Metrics of a model, and of a step.
// CHECK-LABEL: func.func private @metrics
// CHECK-SAME: -> (tensor<f32>, tensor<4xf32> {dtc.metric = "tokens:h.0"}, tensor<f32> {dtc.mean, dtc.metric = "balance"}, tensor<2xf32> {dtc.metric = "lost", dtc.must_be_zero},
// CHECK-SAME: tensor<4xf32> {dtc.global_shape = array<i64: 8>, dtc.metric = "steps", dtc.output = "steps"})
func.func private @metrics(tensor<4xf32> {dtc.param = "x"})
    -> (tensor<f32>, tensor<4xf32> {dtc.metric = "tokens:h.0"}, tensor<f32> {dtc.metric = "balance", dtc.mean}, tensor<2xf32> {dtc.metric = "lost", dtc.must_be_zero},
        tensor<4xf32> {dtc.output = "steps", dtc.metric = "steps", dtc.global_shape = array<i64: 8>})
