// RUN: dtc-opt %s | dtc-opt | FileCheck %s
// RUN: dtc-opt %s --mlir-print-op-generic | dtc-opt | FileCheck %s
// RUN: dtc-opt %s --emit-bytecode | dtc-opt | FileCheck %s

// Parts of an axis, and links: alone, together, and with numbers that have no short decimal form.
// CHECK: dist.mesh @parts <"dp"=2, "tp.0"=2 of "tp", "tp.1"=4 of "tp", "micro"=8 temporal>
dist.mesh @parts <"dp"=2, "tp.0"=2 of "tp", "tp.1"=4 of "tp", "micro"=8 temporal>
// CHECK: dist.mesh @links <"dp"=2 link 2.500000e+10 1.000000e-05, "tp.0"=2 of "tp" link 3.000000e+11 0.000000e+00, "micro.1"=2 temporal of "micro">
dist.mesh @links <"dp"=2 link 25.0e9 1.0e-5, "tp.0"=2 of "tp" link 3.0e11 0.0, "micro.1"=2 temporal of "micro">
// CHECK: dist.mesh @exact <"dp"=2 link 1.000000e-01 0.33333333333333331>
dist.mesh @exact <"dp"=2 link 0.1 0.33333333333333333>

// The attribute alone.
// CHECK: dist.mesh @noted <> {axis = #dist.axis<"tp.0"=2 of "tp" link 1.000000e+09 2.000000e-06>}
dist.mesh @noted <> {axis = #dist.axis<"tp.0"=2 of "tp" link 1.0e9 2.0e-6>}

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

// CHECK-LABEL: func.func @requests(
// CHECK-SAME: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp", ?}, {?}]>}
// CHECK-SAME: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}p1, {"tp", ?}p20]>}
// CHECK-SAME: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{?}p3, {}p1]>}
// CHECK-SAME: tensor<f32> {dist.sharding = #dist.sharding<@mesh, []>}
func.func @requests(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp", ?}, {?}]>},
                  %b: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}p1, {"tp", ?}p20]>},
                  %c: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{?}p3, {}p1]>},
                  %s: tensor<f32> {dist.sharding = #dist.sharding<@mesh, []>}) {
  // CHECK: dist.constrain %{{.*}} to <@mesh, [{"dp", "micro", ?}, {}p2]> : tensor<8x4xf32>
  %0 = dist.constrain %a to <@mesh, [{"dp", "micro", ?}, {}p2]> : tensor<8x4xf32>
  return
}

// Priority 0 is the default of a dimension, and is not printed; the two attributes are one.
// CHECK-LABEL: func.func @priority_zero(
// CHECK-SAME: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>}
// CHECK-SAME: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}p1, {}]>}
func.func @priority_zero(%a: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}p0, {}p0]>},
                         %b: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}p1, {}p0]>}) {
  return
}
