// RUN: dtc-opt %s --dtc-separate-replicas="axis=dp clients=true" | FileCheck %s
// RUN: dtc-opt %s --dtc-separate-replicas="axis=dp" | FileCheck %s --check-prefix=ALONE

// A replica decides by its own norm, and takes no step where it is not active. The counter of steps goes by all norms. The loss of
// each replica is an output.
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME:    %[[W:[^:]*]]: tensor<f32>
// CHECK-SAME:    %[[ACTIVE:[^:]*]]: tensor<1xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}]>, dtc.global_shape = array<i64: 2>, dtc.input = "client_active"})
// CHECK-SAME:    tensor<1xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}]>, dtc.global_shape = array<i64: 2>, dtc.output = "client_losses"})
// CHECK:         %[[LOSS:.*]] = dtc.mul
// CHECK-NEXT:    %[[ABS:.*]] = dtc.abs %[[LOSS]] {dtc.agreed}
// CHECK-NEXT:    %[[NORM:.*]] = dist.all_reduce max %[[ABS]] over @mesh ["tp"]
// CHECK-NEXT:    %[[OWN:.*]] = dtc.reshape %[[ACTIVE]]
// CHECK:         %[[TAKES:.*]] = dtc.compare gt %[[OWN]],
// CHECK:         %[[BOUND:.*]] = dtc.select %[[TAKES]], %[[NORM]],
// CHECK:         %[[COULD:.*]] = dtc.compare lt %[[NORM]],
// CHECK-NEXT:    %[[APPLIES:.*]] = dtc.compare lt %[[BOUND]],
// CHECK-NEXT:    %[[ONE:.*]] = dtc.convert %[[COULD]] {dtc.agreed}
// CHECK-NEXT:    %[[ANY:.*]] = dist.all_reduce max %[[ONE]] over @mesh ["dp", "tp"]
// CHECK-NEXT:    %[[COUNT:.*]] = dtc.convert %[[ANY]]
// CHECK-NEXT:    dtc.add %{{.*}}, %[[COUNT]]
// CHECK-NEXT:    dtc.select %[[APPLIES]], %[[NORM]], %[[W]]
// CHECK-NEXT:    %[[LOSSES:.*]] = dtc.broadcast %[[LOSS]]
// CHECK:         return %{{.*}}, %{{.*}}, %{{.*}}, %[[LOSSES]]

// Without clients nothing goes between replicas: the norm is completed inside a replica, and the loss is that of the replica.
// ALONE-NOT:     {{client_|"dp".*all_reduce|all_reduce.*"dp"}}
// ALONE:         %[[LOSS:.*]] = dtc.mul
// ALONE-NEXT:    %[[ABS:.*]] = dtc.abs %[[LOSS]]
// ALONE-NEXT:    %[[NORM:.*]] = dist.all_reduce max %[[ABS]] over @mesh ["tp"]
// ALONE-NOT:     all_reduce{{.*}}"dp"
// ALONE:         %[[APPLIES:.*]] = dtc.compare lt %[[NORM]],
// ALONE-NOT:     all_reduce{{.*}}"dp"
// ALONE:         return %[[LOSS]],

dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @train_step(%w: tensor<f32> {dtc.param = "w", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
                      %n: tensor<i32> {dtc.step_state = "applied_steps", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
                      %x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 8>, dist.sharding = #dist.sharding<@mesh, [{"dp"}]>})
    -> (tensor<f32> {dtc.output = "loss", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>}, tensor<f32> {dtc.updates = 0 : i64}, tensor<i32> {dtc.updates = 1 : i64}) {
  %0 = dtc.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = dist.all_reduce sum %0 over @mesh ["dp"] : tensor<f32>
  %2 = dtc.abs %1 {dtc.agreed} : tensor<f32>
  %3 = dist.all_reduce max %2 over @mesh ["dp", "tp"] : tensor<f32>
  %inf = dtc.constant dense<0x7F800000> : tensor<f32>
  %4 = dtc.compare lt %3, %inf : tensor<f32>
  %5 = dtc.convert %4 {dtc.agreed} : (tensor<i1>) -> tensor<f32>
  %6 = dist.all_reduce max %5 over @mesh ["dp", "tp"] : tensor<f32>
  %7 = dtc.convert %6 : (tensor<f32>) -> tensor<i32>
  %8 = dtc.add %n, %7 : tensor<i32>
  %9 = dtc.select %4, %3, %w : tensor<f32>
  return %1, %9, %8 : tensor<f32>, tensor<f32>, tensor<i32>
}
