// RUN: dtc-opt %s --split-input-file --dtc-split-mesh-axes="shard=heads=tp,kv_heads=tp default-shard=batch=dp" | FileCheck %s

// Two key-value heads on four devices: tp is two axes of two. Shardings that name tp mean both parts, in their order, with
// what they say of open dimensions and priorities.
// CHECK: dist.mesh @mesh <"dp"=2, "tp.0"=2 of "tp" link 1.000000e+09 1.250000e-01, "tp.1"=2 of "tp" link 1.000000e+09 1.250000e-01, "micro"=2 temporal>
// CHECK-LABEL: func.func @gqa(
// CHECK-SAME: tensor<4x8xf32> {dtc.axes = ["heads", ""]
// CHECK-SAME: tensor<2x8xf32> {dtc.axes = ["kv_heads", ""]
// CHECK-SAME: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp", "tp.0", "tp.1"}, {?}]>
// CHECK-SAME: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp.0", "tp.1"}p1]>
// CHECK-SAME: -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"tp.0", "tp.1"}, {}]>})
// CHECK: dist.constrain %{{.*}} to <@mesh, [{"tp.0", "tp.1"}, {"dp"}]>
dist.mesh @mesh <"dp"=2, "tp"=4 link 1.0e9 0.125, "micro"=2 temporal>
func.func @gqa(%q: tensor<4x8xf32> {dtc.param = "q", dtc.axes = ["heads", ""]},
               %k: tensor<2x8xf32> {dtc.param = "k", dtc.axes = ["kv_heads", ""]},
               %x: tensor<8x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp", "tp"}, {?}]>},
               %y: tensor<8x8xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}p1]>})
    -> (tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>}) {
  %0 = dist.constrain %x to <@mesh, [{"tp"}, {"dp"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Where it divides, nothing happens: four and eight heads on four devices.
// CHECK: dist.mesh @mesh <"dp"=2, "tp"=4>
// CHECK-LABEL: func.func @divides(
// CHECK: [{"dp", "tp"}, {}]
dist.mesh @mesh <"dp"=2, "tp"=4>
func.func @divides(%q: tensor<8x8xf32> {dtc.param = "q", dtc.axes = ["heads", ""]},
                   %k: tensor<4x8xf32> {dtc.param = "k", dtc.axes = ["kv_heads", ""]},
                   %x: tensor<8x8xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp", "tp"}, {}]>}) {
  return
}

// -----

// Nor where padding is the better way, six heads on four devices, or the only one, three.
// CHECK: dist.mesh @mesh <"dp"=2, "tp"=4>
// CHECK-LABEL: func.func @padded(
dist.mesh @mesh <"dp"=2, "tp"=4>
func.func @padded(%q: tensor<6x8xf32> {dtc.param = "q", dtc.axes = ["heads", ""]},
                  %k: tensor<3x8xf32> {dtc.param = "k", dtc.axes = ["kv_heads", ""]},
                  %m: tensor<1x8xf32> {dtc.param = "m", dtc.axes = ["kv_heads", ""]}) {
  return
}

// -----

// Several cuts of one axis: two and four heads on eight devices. An op's axes count as well.
// CHECK: dist.mesh @mesh <"dp"=2, "tp.0"=2 of "tp", "tp.1"=2 of "tp", "tp.2"=2 of "tp">
// CHECK-LABEL: func.func @cuts(
dist.mesh @mesh <"dp"=2, "tp"=8>
func.func @cuts(%q: tensor<4x8xf32> {dtc.param = "q", dtc.axes = ["heads", ""]},
                %x: tensor<16xf32> {dtc.input = "x"}) {
  %0 = dtc.reshape %x {dtc.axes = ["kv_heads", ""]} : (tensor<16xf32>) -> tensor<2x8xf32>
  return
}

// -----

// A batch of two on a dp of two is as it should be; the axis of microbatches is not cut.
// CHECK: dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=4 temporal>
// CHECK-LABEL: func.func @batch(
dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=4 temporal>
func.func @batch(%x: tensor<2x8xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}) {
  return
}
