// RUN: dtc-opt %s --split-input-file --dtc-lower-to-exec | FileCheck %s

// An elementwise op works in place once nothing reads its operand any more; not on what is used later, not on inputs and
// not on what the caller reads.
// CHECK-LABEL: exec.program @in_place
// CHECK-NEXT: %[[V0:[^ :]*]] = exec.buffer input : memref<4xf32>
// CHECK-NEXT: exec.input "data" "x" = %[[V0]] shape [4] sharding <@mesh, [{}]> limit 7
// CHECK-NEXT: %[[V1:[^ :]*]] = exec.buffer activation : memref<4xf32>
// CHECK-NEXT: %[[V2:[^ :]*]] = exec.reuse %[[V1]] : memref<4xf32>
// CHECK-NEXT: %[[V3:[^ :]*]] = exec.buffer activation : memref<4xf32>
// CHECK-NEXT: %[[V4:[^ :]*]] = exec.buffer output : memref<4xf32>
// CHECK-NEXT: %[[V5:[^ :]*]] = exec.buffer output : memref<4xf32>
// CHECK-NEXT: exec.output "y" = %[[V5]] shape [4] sharding <@mesh, [{}]>
// CHECK-NEXT: exec.output "result1" = %[[V4]] shape [4] sharding <@mesh, [{}]>
// CHECK-NEXT: exec.task @step seconds {{.*}} {
// CHECK-NEXT: exec.kernel "exp"(%[[V0]]) to(%[[V1]]) {}
// CHECK-NEXT: exec.kernel "neg"(%[[V1]]) to(%[[V2]]) {}
// CHECK-NEXT: exec.kernel "exp"(%[[V2]]) to(%[[V3]]) {}
// CHECK-NEXT: exec.kernel "mul"(%[[V2]], %[[V3]]) to(%[[V4]]) {}
// CHECK-NEXT: exec.kernel "neg"(%[[V4]]) to(%[[V5]]) {}
// CHECK: exec.run @step
dist.mesh @mesh <>
func.func @in_place(%x: tensor<4xf32> {dtc.input = "x", dtc.index_limit = 7 : i64, dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {dtc.output = "y", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<4xf32> {dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %0 = dtc.exp %x : tensor<4xf32>
  %1 = dtc.neg %0 : tensor<4xf32>
  %2 = dtc.exp %1 : tensor<4xf32>
  %3 = dtc.mul %1, %2 : tensor<4xf32>
  %4 = dtc.neg %3 : tensor<4xf32>
  return %4, %3 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Two results of an op never take one buffer, even where its operands share one.
// CHECK-LABEL: exec.program @one_buffer_once
// CHECK-NEXT: %[[V0:[^ :]*]] = exec.buffer input : memref<4xf32>
// CHECK-NEXT: exec.input "data" "p" = %[[V0]] shape [4] sharding <@mesh, [{}]>
// CHECK-NEXT: %[[V1:[^ :]*]] = exec.buffer input : memref<f32>
// CHECK-NEXT: exec.input "batches" "batches" = %[[V1]] shape [] sharding <@mesh, []>
// CHECK-NEXT: %[[V2:[^ :]*]] = exec.buffer activation : memref<4xf32>
// CHECK-NEXT: %[[V3:[^ :]*]] = exec.buffer constant : memref<i1>
// CHECK-NEXT: %[[V4:[^ :]*]] = exec.buffer activation : memref<4xf32>
// CHECK-NEXT: %[[V5:[^ :]*]] = exec.reuse %[[V2]] : memref<4xf32>
// CHECK-NEXT: %[[V6:[^ :]*]] = exec.buffer activation : memref<4xf32>
// CHECK-NEXT: %[[V7:[^ :]*]] = exec.buffer output : memref<4xf32>
// CHECK-NEXT: exec.output "result0" = %[[V7]] shape [4] sharding <@mesh, [{}]>
// CHECK-NEXT: exec.task @step seconds {{.*}} {
// CHECK-NEXT: exec.kernel "exp"(%[[V0]]) to(%[[V2]]) {}
// CHECK-NEXT: exec.kernel "fill"() to(%[[V3]]) {value = 1.000000e+00 : f64}
// CHECK-NEXT: exec.kernel "adamw"(%[[V0]], %[[V0]], %[[V2]], %[[V2]], %[[V1]], %[[V1]], %[[V1]], %[[V3]]) to(%[[V4]], %[[V5]], %[[V6]]) {beta1 = 9.000000e-01 : f64, beta2 = 9.000000e-01 : f64, eps = 1.000000e-01 : f64, weight_decay = 0.000000e+00 : f64}
// CHECK-NEXT: exec.kernel "neg"(%[[V6]]) to(%[[V7]]) {}
// CHECK: exec.run @step
dist.mesh @mesh <>
func.func @one_buffer_once(%p: tensor<4xf32> {dtc.input = "p", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                           %s: tensor<f32> {dtc.scalar = "batches", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>})
    -> (tensor<4xf32> {dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %m = dtc.exp %p : tensor<4xf32>
  %ap = dtc.constant dense<true> : tensor<i1>
  %0:3 = dtc.adamw %p, %p, %m, %m, %s, %s, %s, %ap {beta1 = 0.9, beta2 = 0.9, eps = 0.1, weight_decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %1 = dtc.neg %0#2 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// A reshape is a view of the same bytes, which are in use as long as one of the two is.
// CHECK-LABEL: exec.program @views
// CHECK-NEXT: %[[V0:[^ :]*]] = exec.buffer input : memref<4x2xf32>
// CHECK-NEXT: exec.input "data" "x" = %[[V0]] shape [4, 2] sharding <@mesh, [{}, {}]>
// CHECK-NEXT: %[[V1:[^ :]*]] = exec.buffer activation : memref<4x2xf32>
// CHECK-NEXT: %[[V2:[^ :]*]] = exec.view %[[V1]] : memref<4x2xf32> to memref<8xf32>
// CHECK-NEXT: %[[V3:[^ :]*]] = exec.buffer activation : memref<4x2xf32>
// CHECK-NEXT: %[[V4:[^ :]*]] = exec.view %[[V3]] : memref<4x2xf32> to memref<8xf32>
// CHECK-NEXT: %[[V5:[^ :]*]] = exec.buffer output : memref<8xf32>
// CHECK-NEXT: exec.output "result0" = %[[V5]] shape [8] sharding <@mesh, [{}]>
// CHECK-NEXT: exec.task @step seconds {{.*}} {
// CHECK-NEXT: exec.kernel "exp"(%[[V0]]) to(%[[V1]]) {}
// CHECK-NEXT: exec.kernel "neg"(%[[V1]]) to(%[[V3]]) {}
// CHECK-NEXT: exec.kernel "mul"(%[[V2]], %[[V4]]) to(%[[V5]]) {}
// CHECK: exec.run @step
dist.mesh @mesh <>
func.func @views(%x: tensor<4x2xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4, 2>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
    -> (tensor<8xf32> {dtc.global_shape = array<i64: 8>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %0 = dtc.exp %x : tensor<4x2xf32>
  %1 = dtc.reshape %0 : (tensor<4x2xf32>) -> tensor<8xf32>
  %2 = dtc.neg %0 : tensor<4x2xf32>
  %3 = dtc.reshape %2 : (tensor<4x2xf32>) -> tensor<8xf32>
  %4 = dtc.mul %1, %3 : tensor<8xf32>
  return %4 : tensor<8xf32>
}

// -----

// Broadcasts that only binary elementwise ops read are no kernels: the readers are told the dimensions.
// CHECK-LABEL: exec.program @broadcasts
// CHECK-NEXT: %[[V0:[^ :]*]] = exec.buffer input : memref<2x4xf32>
// CHECK-NEXT: exec.input "data" "x" = %[[V0]] shape [2, 4] sharding <@mesh, [{}, {}]>
// CHECK-NEXT: %[[V1:[^ :]*]] = exec.buffer parameter : memref<4xf32>
// CHECK-NEXT: exec.state "b" = %[[V1]] shape [4] file_shape [4] sharding <@mesh, [{}]>
// CHECK-NEXT: %[[V2:[^ :]*]] = exec.buffer input : memref<f32>
// CHECK-NEXT: exec.input "batches" "batches" = %[[V2]] shape [] sharding <@mesh, []>
// CHECK-NEXT: %[[V3:[^ :]*]] = exec.buffer activation : memref<2x4xf32>
// CHECK-NEXT: %[[V4:[^ :]*]] = exec.buffer activation : memref<2x4xf32>
// CHECK-NEXT: %[[V5:[^ :]*]] = exec.buffer activation : memref<2x4xf32>
// CHECK-NEXT: %[[V6:[^ :]*]] = exec.reuse %[[V3]] : memref<2x4xf32>
// CHECK-NEXT: %[[V7:[^ :]*]] = exec.reuse %[[V5]] : memref<2x4xf32>
// CHECK-NEXT: %[[V8:[^ :]*]] = exec.reuse %[[V6]] : memref<2x4xf32>
// CHECK-NEXT: %[[V9:[^ :]*]] = exec.buffer output : memref<2x4xf32>
// CHECK-NEXT: exec.output "result0" = %[[V9]] shape [2, 4] sharding <@mesh, [{}, {}]>
// CHECK-NEXT: exec.task @step seconds {{.*}} {
// CHECK-NEXT: exec.kernel "add"(%[[V0]], %[[V1]]) to(%[[V3]]) {rhs_dims = array<i64: 1>}
// CHECK-NEXT: exec.kernel "maximum"(%[[V2]], %[[V1]]) to(%[[V4]]) {lhs_dims = array<i64>, rhs_dims = array<i64: 1>}
// CHECK-NEXT: exec.kernel "broadcast"(%[[V1]]) to(%[[V5]]) {dims = array<i64: 1>}
// CHECK-NEXT: exec.kernel "div"(%[[V5]], %[[V3]]) to(%[[V6]]) {}
// CHECK-NEXT: exec.kernel "exp"(%[[V5]]) to(%[[V7]]) {}
// CHECK-NEXT: exec.kernel "add"(%[[V6]], %[[V7]]) to(%[[V8]]) {}
// CHECK-NEXT: exec.kernel "sub"(%[[V8]], %[[V4]]) to(%[[V9]]) {}
// CHECK: exec.run @step
dist.mesh @mesh <>
func.func @broadcasts(%x: tensor<2x4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 2, 4>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>},
                      %b: tensor<4xf32> {dtc.param = "b", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                      %s: tensor<f32> {dtc.scalar = "batches", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>})
    -> (tensor<2x4xf32> {dtc.global_shape = array<i64: 2, 4>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>}) {
  %0 = dtc.broadcast %b dims [1] : (tensor<4xf32>) -> tensor<2x4xf32>
  %1 = dtc.add %x, %0 : tensor<2x4xf32>
  %2 = dtc.broadcast %s dims [] : (tensor<f32>) -> tensor<2x4xf32>
  %3 = dtc.maximum %2, %0 : tensor<2x4xf32>
  %4 = dtc.broadcast %b dims [1] : (tensor<4xf32>) -> tensor<2x4xf32>
  %5 = dtc.div %4, %1 : tensor<2x4xf32>
  %6 = dtc.exp %4 : tensor<2x4xf32>
  %7 = dtc.add %5, %6 : tensor<2x4xf32>
  %8 = dtc.sub %7, %3 : tensor<2x4xf32>
  return %8 : tensor<2x4xf32>
}

// -----

// States are updated in their own buffers. %m2 is too, although %p is needed until the end; %p2 cannot be and is copied.
// CHECK-LABEL: exec.program @states
// CHECK-NEXT: %[[V0:[^ :]*]] = exec.buffer parameter : memref<4xf32>
// CHECK-NEXT: exec.state "p" = %[[V0]] shape [8] file_shape [2, 4] sharding <@mesh, [{"tp"}]> init(#dtc.ones)
// CHECK-NEXT: %[[V1:[^ :]*]] = exec.buffer input : memref<4xf32>
// CHECK-NEXT: exec.input "data" "g" = %[[V1]] shape [4] sharding <@mesh, [{}]>
// CHECK-NEXT: %[[V2:[^ :]*]] = exec.buffer input : memref<f32>
// CHECK-NEXT: exec.input "batches" "batches" = %[[V2]] shape [] sharding <@mesh, []>
// CHECK-NEXT: %[[V3:[^ :]*]] = exec.buffer optimizer_state : memref<4xf32>
// CHECK-NEXT: exec.state "p.momentum_buffer" of "p" = %[[V3]] shape [8] file_shape [8] sharding <@mesh, [{"tp"}]>
// CHECK-NEXT: %[[V4:[^ :]*]] = exec.buffer gradient : memref<4xf32>
// CHECK-NEXT: %[[V5:[^ :]*]] = exec.buffer constant : memref<i1>
// CHECK-NEXT: %[[V6:[^ :]*]] = exec.buffer parameter : memref<4xf32>
// CHECK-NEXT: %[[V7:[^ :]*]] = exec.reuse %[[V3]] : memref<4xf32>
// CHECK-NEXT: %[[V8:[^ :]*]] = exec.buffer output : memref<4xf32>
// CHECK-NEXT: exec.update "p.momentum_buffer" = %[[V7]]
// CHECK-NEXT: exec.output "late" = %[[V8]] shape [8] sharding <@mesh, [{"tp"}]>
// CHECK-NEXT: %[[V9:[^ :]*]] = exec.reuse %[[V0]] : memref<4xf32>
// CHECK-NEXT: exec.update "p" = %[[V9]]
// CHECK-NEXT: exec.task @step seconds {{.*}} {
// CHECK-NEXT: exec.collective all_reduce reducing sum over ["tp"](%[[V1]]) to(%[[V4]]) dims [0] split_dims [0] {reasons = [{}]} : (memref<4xf32>) -> memref<4xf32>
// CHECK-NEXT: exec.kernel "fill"() to(%[[V5]]) {value = 1.000000e+00 : f64}
// CHECK-NEXT: exec.kernel "sgd"(%[[V0]], %[[V4]], %[[V3]], %[[V2]], %[[V2]], %[[V5]]) to(%[[V6]], %[[V7]]) {momentum = 9.000000e-01 : f64, weight_decay = 0.000000e+00 : f64}
// CHECK-NEXT: exec.kernel "exp"(%[[V0]]) to(%[[V8]]) {}
// CHECK-NEXT: exec.kernel "copy"(%[[V6]]) to(%[[V9]]) {}
// CHECK: exec.run @step
dist.mesh @mesh <"tp"=2>
func.func @states(%p: tensor<4xf32> {dtc.param = "p", dtc.init = #dtc.ones, dtc.file_shape = array<i64: 2, 4>, dtc.global_shape = array<i64: 8>, dist.sharding = #dist.sharding<@mesh, [{"tp"}]>},
                  %g: tensor<4xf32> {dtc.input = "g", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                  %lr: tensor<f32> {dtc.scalar = "batches", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
                  %m: tensor<4xf32> {dtc.state = "momentum_buffer", dtc.state_of = "p", dtc.global_shape = array<i64: 8>, dist.sharding = #dist.sharding<@mesh, [{"tp"}]>})
    -> (tensor<4xf32> {dtc.updates = 0 : i64, dtc.global_shape = array<i64: 8>, dist.sharding = #dist.sharding<@mesh, [{"tp"}]>},
        tensor<4xf32> {dtc.updates = 3 : i64, dtc.global_shape = array<i64: 8>, dist.sharding = #dist.sharding<@mesh, [{"tp"}]>},
        tensor<4xf32> {dtc.output = "late", dtc.global_shape = array<i64: 8>, dist.sharding = #dist.sharding<@mesh, [{"tp"}]>}) {
  %grad = dist.all_reduce sum %g over @mesh ["tp"] : tensor<4xf32>
  %ap = dtc.constant dense<true> : tensor<i1>
  %p2, %m2 = dtc.sgd %p, %grad, %m, %lr, %lr, %ap {momentum = 0.9, weight_decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  %late = dtc.exp %p : tensor<4xf32>
  return %p2, %m2, %late : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Values read from a state that a copy overwrites are saved first: here the old value as an output, and two states that
// change places, one of them in another shape.
// CHECK-LABEL: exec.program @old_value
// CHECK-NEXT: %[[V0:[^ :]*]] = exec.buffer parameter : memref<4xf32>
// CHECK-NEXT: exec.state "a" = %[[V0]] shape [4] file_shape [4] sharding <@mesh, [{}]>
// CHECK-NEXT: %[[V1:[^ :]*]] = exec.buffer parameter : memref<4xf32>
// CHECK-NEXT: %[[V2:[^ :]*]] = exec.buffer output : memref<4xf32>
// CHECK-NEXT: exec.output "old" = %[[V2]] shape [4] sharding <@mesh, [{}]>
// CHECK-NEXT: %[[V3:[^ :]*]] = exec.reuse %[[V0]] : memref<4xf32>
// CHECK-NEXT: exec.update "a" = %[[V3]]
// CHECK-NEXT: exec.task @step seconds {{.*}} {
// CHECK-NEXT: exec.kernel "exp"(%[[V0]]) to(%[[V1]]) {}
// CHECK-NEXT: exec.kernel "copy"(%[[V0]]) to(%[[V2]]) {}
// CHECK-NEXT: exec.kernel "copy"(%[[V1]]) to(%[[V3]]) {}
// CHECK: exec.run @step
dist.mesh @mesh <>
func.func @old_value(%a: tensor<4xf32> {dtc.param = "a", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {dtc.output = "old", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<4xf32> {dtc.updates = 0 : i64, dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %0 = dtc.exp %a : tensor<4xf32>
  return %a, %0 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: exec.program @swap
// CHECK-NEXT: %[[V0:[^ :]*]] = exec.buffer parameter : memref<4xf32>
// CHECK-NEXT: exec.state "a" = %[[V0]] shape [4] file_shape [4] sharding <@mesh, [{}]>
// CHECK-NEXT: %[[V1:[^ :]*]] = exec.buffer parameter : memref<2x2xf32>
// CHECK-NEXT: exec.state "b" = %[[V1]] shape [2, 2] file_shape [2, 2] sharding <@mesh, [{}, {}]>
// CHECK-NEXT: %[[V2:[^ :]*]] = exec.view %[[V0]] : memref<4xf32> to memref<2x2xf32>
// CHECK-NEXT: %[[V3:[^ :]*]] = exec.view %[[V1]] : memref<2x2xf32> to memref<4xf32>
// CHECK-NEXT: %[[V4:[^ :]*]] = exec.buffer activation : memref<2x2xf32>
// CHECK-NEXT: %[[V5:[^ :]*]] = exec.buffer activation : memref<4xf32>
// CHECK-NEXT: %[[V6:[^ :]*]] = exec.reuse %[[V1]] : memref<2x2xf32>
// CHECK-NEXT: exec.update "b" = %[[V6]]
// CHECK-NEXT: %[[V7:[^ :]*]] = exec.reuse %[[V0]] : memref<4xf32>
// CHECK-NEXT: exec.update "a" = %[[V7]]
// CHECK-NEXT: exec.task @step seconds {{.*}} {
// CHECK-NEXT: exec.kernel "copy"(%[[V2]]) to(%[[V4]]) {}
// CHECK-NEXT: exec.kernel "copy"(%[[V3]]) to(%[[V5]]) {}
// CHECK-NEXT: exec.kernel "copy"(%[[V4]]) to(%[[V6]]) {}
// CHECK-NEXT: exec.kernel "copy"(%[[V5]]) to(%[[V7]]) {}
// CHECK: exec.run @step
dist.mesh @mesh <>
func.func @swap(%a: tensor<4xf32> {dtc.param = "a", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                %b: tensor<2x2xf32> {dtc.param = "b", dtc.global_shape = array<i64: 2, 2>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
    -> (tensor<2x2xf32> {dtc.updates = 1 : i64, dtc.global_shape = array<i64: 2, 2>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>},
        tensor<4xf32> {dtc.updates = 0 : i64, dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %0 = dtc.reshape %a : (tensor<4xf32>) -> tensor<2x2xf32>
  %1 = dtc.reshape %b : (tensor<2x2xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<2x2xf32>, tensor<4xf32>
}

// -----

// One value is the new value of two states, and of a third that it was computed in.
// CHECK-LABEL: exec.program @two_states
// CHECK-NEXT: %[[V0:[^ :]*]] = exec.buffer parameter : memref<4xf32>
// CHECK-NEXT: exec.state "a" = %[[V0]] shape [4] file_shape [4] sharding <@mesh, [{}]>
// CHECK-NEXT: %[[V1:[^ :]*]] = exec.buffer parameter : memref<4xf32>
// CHECK-NEXT: exec.state "b" = %[[V1]] shape [4] file_shape [4] sharding <@mesh, [{}]>
// CHECK-NEXT: %[[V2:[^ :]*]] = exec.reuse %[[V0]] : memref<4xf32>
// CHECK-NEXT: exec.update "a" = %[[V2]]
// CHECK-NEXT: %[[V3:[^ :]*]] = exec.reuse %[[V1]] : memref<4xf32>
// CHECK-NEXT: exec.update "b" = %[[V3]]
// CHECK-NEXT: exec.task @step seconds {{.*}} {
// CHECK-NEXT: exec.kernel "exp"(%[[V0]]) to(%[[V2]]) {}
// CHECK-NEXT: exec.kernel "copy"(%[[V2]]) to(%[[V3]]) {}
// CHECK: exec.run @step
dist.mesh @mesh <>
func.func @two_states(%a: tensor<4xf32> {dtc.param = "a", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                      %b: tensor<4xf32> {dtc.param = "b", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {dtc.updates = 1 : i64, dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<4xf32> {dtc.updates = 0 : i64, dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %0 = dtc.exp %a : tensor<4xf32>
  return %0, %0 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A state that does not change needs no instruction.
// CHECK-LABEL: exec.program @unchanged
// CHECK-NEXT: %[[V0:[^ :]*]] = exec.buffer parameter : memref<4xf32>
// CHECK-NEXT: exec.state "a" = %[[V0]] shape [4] file_shape [4] sharding <@mesh, [{}]>
// CHECK-NEXT: exec.output "same" = %[[V0]] shape [4] sharding <@mesh, [{}]>
dist.mesh @mesh <>
func.func @unchanged(%a: tensor<4xf32> {dtc.param = "a", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {dtc.updates = 0 : i64, dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<4xf32> {dtc.output = "same", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  return %a, %a : tensor<4xf32>, tensor<4xf32>
}

// -----

// Each collective; only an all_reduce is in place.
// CHECK-LABEL: exec.program @collectives
// CHECK-NEXT: %[[V0:[^ :]*]] = exec.buffer input : memref<4x4xf32>
// CHECK-NEXT: exec.input "data" "x" = %[[V0]] shape [4, 4] sharding <@mesh, [{}, {}]>
// CHECK-NEXT: %[[V1:[^ :]*]] = exec.buffer activation : memref<4x4xf32>
// CHECK-NEXT: %[[V2:[^ :]*]] = exec.reuse %[[V1]] : memref<4x4xf32>
// CHECK-NEXT: %[[V3:[^ :]*]] = exec.buffer activation : memref<4x2xf32>
// CHECK-NEXT: %[[V4:[^ :]*]] = exec.buffer activation : memref<2x4xf32>
// CHECK-NEXT: %[[V5:[^ :]*]] = exec.buffer output : memref<4x4xf32>
// CHECK-NEXT: exec.output "result0" = %[[V5]] shape [4, 8] sharding <@mesh, [{}, {"tp"}]>
// CHECK-NEXT: exec.task @step seconds {{.*}} {
// CHECK-NEXT: exec.collective all_reduce reducing max over ["dp", "tp"](%[[V0]]) to(%[[V1]]) dims [0] split_dims [0] {reasons = [{}]} : (memref<4x4xf32>) -> memref<4x4xf32>
// CHECK-NEXT: exec.collective all_reduce reducing sum over ["dp"](%[[V1]]) to(%[[V2]]) dims [0] split_dims [0] {reasons = [{}]} : (memref<4x4xf32>) -> memref<4x4xf32>
// CHECK-NEXT: exec.collective reduce_scatter reducing sum over ["dp"](%[[V2]]) to(%[[V3]]) dims [1] split_dims [0] {reasons = [{}]} : (memref<4x4xf32>) -> memref<4x2xf32>
// CHECK-NEXT: exec.collective all_to_all over ["tp"](%[[V3]]) to(%[[V4]]) dims [1] split_dims [0] {reasons = [{}]} : (memref<4x2xf32>) -> memref<2x4xf32>
// CHECK-NEXT: exec.collective all_gather over ["dp"](%[[V4]]) to(%[[V5]]) dims [0] split_dims [0] {reasons = [{}]} : (memref<2x4xf32>) -> memref<4x4xf32>
// CHECK: exec.run @step
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @collectives(%x: tensor<4x4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4, 4>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
    -> (tensor<4x4xf32> {dtc.global_shape = array<i64: 4, 8>, dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>}) {
  %0 = dist.all_reduce max %x over @mesh ["dp", "tp"] : tensor<4x4xf32>
  %1 = dist.all_reduce sum %0 over @mesh ["dp"] : tensor<4x4xf32>
  %2 = dist.reduce_scatter sum %1 dim 1 over @mesh ["dp"] : (tensor<4x4xf32>) -> tensor<4x2xf32>
  %3 = dist.all_to_all %2 split_dim 0 dim 1 over @mesh ["tp"] : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %4 = dist.all_gather %3 dim 0 over @mesh ["dp"] : (tensor<2x4xf32>) -> tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
}

// -----

// Tasks before, in and after the loop, and their runs. A buffer of one microbatch is no place for what is there for all,
// nor the other way round. The sums grow from microbatch to microbatch, each as
// soon as there is something to add.
// CHECK-LABEL: exec.program @tasks
// CHECK-NEXT: %[[V0:[^ :]*]] = exec.buffer parameter : memref<4xf32>
// CHECK-NEXT: exec.state "w" = %[[V0]] shape [4] file_shape [4] sharding <@mesh, [{}]>
// CHECK-NEXT: %[[V1:[^ :]*]] = exec.buffer input : memref<6x4xf32>
// CHECK-NEXT: exec.input "data" "x" = %[[V1]] shape [6, 4] sharding <@mesh, [{}, {}]>
// CHECK-NEXT: %[[V2:[^ :]*]] = exec.buffer input : memref<f32>
// CHECK-NEXT: exec.input "batches" "batches" = %[[V2]] shape [] sharding <@mesh, []>
// CHECK-NEXT: %[[V3:[^ :]*]] = exec.buffer optimizer_state : memref<4xf32>
// CHECK-NEXT: exec.state "w.momentum_buffer" of "w" = %[[V3]] shape [4] file_shape [4] sharding <@mesh, [{}]>
// CHECK-NEXT: %[[V4:[^ :]*]] = exec.buffer activation : memref<4xf32>
// CHECK-NEXT: %[[V5:[^ :]*]] = exec.buffer output : memref<f32>
// CHECK-NEXT: %[[V6:[^ :]*]] = exec.buffer gradient : memref<4xf32>
// CHECK-NEXT: %[[V7:[^ :]*]] = exec.buffer activation : memref<2x4xf32>
// CHECK-NEXT: %[[V8:[^ :]*]] = exec.buffer activation : memref<i32>
// CHECK-NEXT: %[[V9:[^ :]*]] = exec.buffer activation : memref<4xf32>
// CHECK-NEXT: %[[V10:[^ :]*]] = exec.buffer activation : memref<4xf32>
// CHECK-NEXT: %[[V12:[^ :]*]] = exec.reuse %[[V9]] : memref<4xf32>
// CHECK-NEXT: %[[V11:[^ :]*]] = exec.buffer activation : memref<f32>
// CHECK-NEXT: %[[AP:[^ :]*]] = exec.buffer constant : memref<i1>
// CHECK-NEXT: %[[V13:[^ :]*]] = exec.reuse %[[V0]] : memref<4xf32>
// CHECK-NEXT: %[[V14:[^ :]*]] = exec.reuse %[[V3]] : memref<4xf32>
// CHECK-NEXT: exec.output "loss" = %[[V5]] shape [] sharding <@mesh, []>
// CHECK-NEXT: exec.update "w" = %[[V13]]
// CHECK-NEXT: exec.update "w.momentum_buffer" = %[[V14]]
// CHECK-NEXT: exec.task @prepare seconds {{.*}} {
// CHECK-NEXT: exec.kernel "exp"(%[[V0]]) to(%[[V4]]) {}
// CHECK: exec.task @microbatch seconds {{.*}} {
// CHECK-NEXT: exec.kernel "shard_slice"(%[[V1]]) to(%[[V7]]) {axes = ["micro"], dim = 0 : i64}
// CHECK-NEXT: exec.kernel "shard_offset"() to(%[[V8]]) {axes = ["micro"], size = 6 : i64}
// CHECK-NEXT: exec.kernel "neg"(%[[V4]]) to(%[[V9]]) {}
// CHECK-NEXT: exec.kernel "reduce"(%[[V7]]) to(%[[V10]]) {dims = array<i64: 0>, kind = "sum"}
// CHECK-NEXT: exec.kernel "mul"(%[[V9]], %[[V10]]) to(%[[V12]]) {}
// CHECK-NEXT: exec.kernel "accumulate"(%[[V12]]) to(%[[V6]]) {axis = "micro"}
// CHECK-NEXT: exec.kernel "reduce"(%[[V7]]) to(%[[V11]]) {dims = array<i64: 0, 1>, kind = "sum"}
// CHECK-NEXT: exec.kernel "accumulate"(%[[V11]]) to(%[[V5]]) {axis = "micro"}
// CHECK: exec.task @update seconds {{.*}} {
// CHECK-NEXT: exec.kernel "fill"() to(%[[AP]]) {value = 1.000000e+00 : f64}
// CHECK-NEXT: exec.kernel "sgd"(%[[V0]], %[[V6]], %[[V3]], %[[V2]], %[[V2]], %[[AP]]) to(%[[V13]], %[[V14]]) {momentum = 9.000000e-01 : f64, weight_decay = 0.000000e+00 : f64}
// CHECK: exec.run @prepare
// CHECK-NEXT: exec.run @microbatch
// CHECK-NEXT: exec.run @microbatch microbatch 1
// CHECK-NEXT: exec.run @microbatch microbatch 2
// CHECK-NEXT: exec.run @update
dist.mesh @mesh <"micro"=3 temporal>
func.func @tasks(%w: tensor<4xf32> {dtc.param = "w", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                 %x: tensor<6x4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 6, 4>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>},
                 %lr: tensor<f32> {dtc.scalar = "batches", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
                 %m: tensor<4xf32> {dtc.state = "momentum_buffer", dtc.state_of = "w", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<f32> {dtc.output = "loss", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
        tensor<4xf32> {dtc.updates = 0 : i64, dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<4xf32> {dtc.updates = 3 : i64, dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %0 = dtc.exp %w : tensor<4xf32>
  %loss, %grad = dist.microbatch_loop @mesh "micro" : tensor<f32>, tensor<4xf32> {
    %2 = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<6x4xf32>) -> tensor<2x4xf32>
    %start = dist.shard_offset size 6 over @mesh ["micro"] : tensor<i32>
    %3 = dtc.neg %0 : tensor<4xf32>
    %4 = dtc.reduce sum %2 dims [0] : (tensor<2x4xf32>) -> tensor<4xf32>
    %5 = dtc.mul %3, %4 : tensor<4xf32>
    %6 = dtc.reduce sum %2 dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
    dist.yield %6, %5 : tensor<f32>, tensor<4xf32>
  }
  %ap = dtc.constant dense<true> : tensor<i1>
  %w2, %m2 = dtc.sgd %w, %grad, %m, %lr, %lr, %ap {momentum = 0.9, weight_decay = 0.0} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss, %w2, %m2 : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Tasks without instructions are left out.
// CHECK-LABEL: exec.program @no_tasks
// CHECK-NEXT: %[[V0:[^ :]*]] = exec.buffer input : memref<4xf32>
// CHECK-NEXT: exec.input "data" "x" = %[[V0]] shape [4] sharding <@mesh, [{}]>
// CHECK-NEXT: exec.output "once" = %[[V0]] shape [4] sharding <@mesh, [{}]>
// CHECK-NEXT: exec.output "again" = %[[V0]] shape [4] sharding <@mesh, [{}]>
dist.mesh @mesh <"micro"=2 temporal>
func.func @no_tasks(%x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {dtc.output = "once", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<4xf32> {dtc.output = "again", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  dist.microbatch_loop @mesh "micro" {
  }
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}

// -----

// Metrics of the model.
// CHECK-LABEL: exec.program @metrics
// CHECK: exec.output "loss" = %{{.*}} shape [] sharding <@mesh, []> : memref<f32>
// CHECK-NEXT: exec.output "tokens:h.0" = %{{.*}} shape [8] sharding <@mesh, [{"ep"}]> {metric} : memref<4xf32>
// CHECK-NEXT: exec.output "lost:h.0" = %{{.*}} shape [8] sharding <@mesh, [{"ep"}]> {metric, must_be_zero} : memref<4xf32>
dist.mesh @mesh <"ep"=2>
func.func @metrics(%x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 8>, dist.sharding = #dist.sharding<@mesh, [{"ep"}]>},
                   %y: tensor<f32> {dtc.input = "y", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>})
    -> (tensor<f32> {dtc.output = "loss", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
        tensor<4xf32> {dtc.output = "tokens:h.0", dtc.metric = "tokens:h.0", dtc.global_shape = array<i64: 8>, dist.sharding = #dist.sharding<@mesh, [{"ep"}]>},
        tensor<4xf32> {dtc.output = "lost:h.0", dtc.metric = "lost:h.0", dtc.must_be_zero, dtc.global_shape = array<i64: 8>, dist.sharding = #dist.sharding<@mesh, [{"ep"}]>}) {
  %loss = dtc.exp %y : tensor<f32>
  %tokens = dtc.exp %x : tensor<4xf32>
  %lost = dtc.neg %x : tensor<4xf32>
  return %loss, %tokens, %lost : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK: func.func private @no_body(tensor<8xf32>)
dist.mesh @mesh <>
func.func private @no_body(tensor<8xf32>)
