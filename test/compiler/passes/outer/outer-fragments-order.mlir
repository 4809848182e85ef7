// RUN: dtc-opt %s --dtc-build-outer-step="axis=dp fragments=2 fragment=0 part=take" | FileCheck %s --check-prefix=FIRST
// RUN: dtc-opt %s --dtc-build-outer-step="axis=dp fragments=2 fragment=1 part=take" | FileCheck %s --check-prefix=SECOND

// Layers and other parameters take turns in the order of their names, whatever that of the functions is: layers 0 and 2 are of
// fragment 0, layers 1 and 10 of fragment 1; "a" goes to fragment 0, and "b" to fragment 1.
// FIRST-LABEL: func.func @outer_take_0_stage_0(
// FIRST-COUNT-2: dtc.sub
// FIRST:         return
// FIRST-LABEL: func.func @outer_take_0_stage_1(
// FIRST-SAME:    dtc.state_of = "a"
// FIRST-COUNT-1: dtc.sub
// FIRST-NEXT:    return

// SECOND-LABEL: func.func @outer_take_1_stage_0(
// SECOND-SAME:    dtc.state_of = "b"
// SECOND-COUNT-1: dtc.sub
// SECOND-NEXT:    return
// SECOND-LABEL: func.func @outer_take_1_stage_1(
// SECOND-SAME:    dtc.state_of = "h.10.w"
// SECOND-SAME:    dtc.state_of = "h.1.w"
// SECOND-COUNT-2: dtc.sub
// SECOND-NEXT:    return

dist.mesh @mesh <"dp"=2>
func.func @stage_0(%b: tensor<f32> {dtc.param = "b", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
                   %w0: tensor<f32> {dtc.param = "h.0.w", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
                   %w2: tensor<f32> {dtc.param = "h.2.w", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>})
    -> (tensor<f32> {dtc.updates = 0 : i64}, tensor<f32> {dtc.updates = 1 : i64}, tensor<f32> {dtc.updates = 2 : i64}) {
  %0 = dtc.add %b, %b : tensor<f32>
  %1 = dtc.add %w0, %w0 : tensor<f32>
  %2 = dtc.add %w2, %w2 : tensor<f32>
  return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<f32>
}
func.func @stage_1(%w10: tensor<f32> {dtc.param = "h.10.w", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
                   %w1: tensor<f32> {dtc.param = "h.1.w", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
                   %a: tensor<f32> {dtc.param = "a", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>})
    -> (tensor<f32> {dtc.updates = 0 : i64}, tensor<f32> {dtc.updates = 1 : i64}, tensor<f32> {dtc.updates = 2 : i64}) {
  %0 = dtc.add %w10, %w10 : tensor<f32>
  %1 = dtc.add %w1, %w1 : tensor<f32>
  %2 = dtc.add %a, %a : tensor<f32>
  return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<f32>
}
