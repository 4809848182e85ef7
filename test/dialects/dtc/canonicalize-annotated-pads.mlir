// RUN: dtc-opt %s --canonicalize | FileCheck %s

// An annotation says something about a value, so the value stays; that of a padded part too.
// CHECK-LABEL: func.func @annotated_pads
// CHECK: dtc.pad {{.*}} {dtc.axes = ["batch", "embed"]}
// CHECK: dtc.add
func.func @annotated_pads(%x: tensor<2x2xf32>, %y: tensor<2x2xf32>) -> tensor<2x4xf32> {
  %0 = dtc.pad %x low [0, 0] high [0, 2] value 0.0 {dtc.axes = ["batch", "embed"]} : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %1 = dtc.pad %y low [0, 2] high [0, 0] value 0.0 : (tensor<2x2xf32>) -> tensor<2x4xf32>
  %2 = dtc.add %0, %1 : tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}
