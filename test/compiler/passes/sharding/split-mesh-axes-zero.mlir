// RUN: dtc-opt %s --split-input-file --dtc-split-mesh-axes="default-shard=batch=dp,mlp=tp zero-axes=dp" | FileCheck %s

// 2 devices divide 4 and 7 divide 7: the parts of dp split two dimensions, and a device has 2 of 28 elements, not 4.
// CHECK: dist.mesh @mesh <"dp.0"=2 of "dp", "dp.1"=7 of "dp", "tp"=1>
// CHECK-LABEL: func.func @cut(
dist.mesh @mesh <"dp"=14, "tp"=1>
func.func @cut(%w: tensor<4x7xf32> {dtc.param = "w", dtc.axes = ["", ""]},
               %x: tensor<14xf32> {dtc.input = "x", dtc.axes = ["batch"]}) {
  return
}

// -----

// The splits by tp count: 7 of 14 columns are left on a device.
// CHECK: dist.mesh @mesh <"dp.0"=2 of "dp", "dp.1"=7 of "dp", "tp"=2>
// CHECK-LABEL: func.func @beside_tp(
dist.mesh @mesh <"dp"=14, "tp"=2>
func.func @beside_tp(%w: tensor<4x14xf32> {dtc.param = "w", dtc.axes = ["", "mlp"]},
                     %x: tensor<14xf32> {dtc.input = "x", dtc.axes = ["batch"]}) {
  return
}

// -----

// Where one dimension divides, nothing happens, nor where a cut saves too little or there is none.
// CHECK: dist.mesh @mesh <"dp"=14, "tp"=2>
// CHECK-LABEL: func.func @divides(
dist.mesh @mesh <"dp"=14, "tp"=2>
func.func @divides(%w: tensor<28x7xf32> {dtc.param = "w"}, %b: tensor<7xf32> {dtc.param = "b"}) {
  return
}

// -----

// CHECK: dist.mesh @mesh <"dp"=13, "tp"=1>
// CHECK-LABEL: func.func @prime(
dist.mesh @mesh <"dp"=13, "tp"=1>
func.func @prime(%w: tensor<4x7xf32> {dtc.param = "w"}) {
  return
}
