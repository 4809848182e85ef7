// RUN: dtc-opt %s --dtc-lower-to-exec | FileCheck %s
// RUN: dtc-opt %s --dtc-lower-to-exec --dtc-plan-memory | FileCheck %s --check-prefix=MEMORY

// A task for each fragment, for the start of each receive and for the end of each send, and runs in the schedule's order. A
// receive is finished where the first fragment after it begins, a send starts at the end of the fragment before it.
// Buffers that only one task uses have no slots, others one for each microbatch that is there at once: 0 for now. What is
// sent, received or handed on to another fragment is not worked on in place: it may still be on its way, or needed.
// CHECK-LABEL: exec.program @step.0 on @mesh attributes {pipeline = {schedule = "1f1b", stages = 2 : i64}} {
// CHECK-DAG: %[[X:.*]] = exec.buffer input : memref<12xf32>
// CHECK-DAG: %[[W:.*]] = exec.buffer parameter : memref<4xf32>
// CHECK: %[[SUM:.*]] = exec.buffer activation : memref<4xf32>
// CHECK-NEXT: %[[PART:.*]] = exec.buffer activation slots 0 : memref<4xf32>
// CHECK-NEXT: %[[MUL:.*]] = exec.buffer activation slots 0 : memref<4xf32>
// CHECK-NEXT: %[[EXP:.*]] = exec.reuse %[[MUL]] : memref<4xf32>
// CHECK-NEXT: %[[NEG:.*]] = exec.buffer activation slots 0 : memref<4xf32>
// CHECK-NEXT: %[[OUT:.*]] = exec.reuse %[[NEG]] : memref<4xf32>
// CHECK-NEXT: exec.transfer @channel.0 send_to 1 channel 0(%[[OUT]]) : memref<4xf32> as [6]
// CHECK-NEXT: %[[IN:.*]] = exec.buffer activation slots 0 : memref<4xf32>
// CHECK-NEXT: exec.transfer @channel.1 receive_from 1 channel 1(%[[IN]]) : memref<4xf32>
// CHECK-NEXT: %[[LOCAL:.*]] = exec.buffer activation : memref<4xf32>
// CHECK-NEXT: %[[PRODUCT:.*]] = exec.reuse %[[LOCAL]] : memref<4xf32>
// CHECK-NEXT: %[[ONCE:.*]] = exec.buffer activation : memref<4xf32>
// CHECK-NEXT: exec.transfer @channel.2 send_to 1 channel 2(%[[ONCE]]) : memref<4xf32>
// CHECK-NEXT: %[[BACK:.*]] = exec.buffer activation : memref<4xf32>
// CHECK-NEXT: exec.transfer @channel.3 receive_from 1 channel 3(%[[BACK]]) : memref<4xf32>
// CHECK: exec.task @forward.0 pass forward 0 seconds {{[0-9.Ee-]*}} {
// CHECK-NEXT: exec.kernel "shard_slice"(%[[X]]) to(%[[PART]])
// CHECK-NEXT: exec.kernel "mul"(%[[PART]], %[[W]]) to(%[[MUL]])
// CHECK-NEXT: exec.kernel "exp"(%[[MUL]]) to(%[[EXP]])
// CHECK-NEXT: exec.kernel "neg"(%[[EXP]]) to(%[[NEG]])
// CHECK-NEXT: exec.kernel "tanh"(%[[NEG]]) to(%[[OUT]])
// CHECK-NEXT: exec.start @channel.0
// CHECK-NEXT: }
// CHECK-NEXT: exec.task @sent.0 seconds 0.000000e+00 {
// CHECK-NEXT: exec.finish @channel.0
// CHECK-NEXT: }
// CHECK-NEXT: exec.task @receive.1 seconds 0.000000e+00 {
// CHECK-NEXT: exec.start @channel.1
// CHECK-NEXT: }
// CHECK-NEXT: exec.task @backward.0 pass backward 0 seconds {{[0-9.Ee-]*}} {
// CHECK-NEXT: exec.finish @channel.1
// CHECK-NEXT: exec.kernel "mul"(%[[IN]], %[[EXP]]) to(%[[LOCAL]])
// CHECK-NEXT: exec.kernel "mul"(%[[LOCAL]], %[[PART]]) to(%[[PRODUCT]])
// CHECK-NEXT: exec.kernel "accumulate"(%[[PRODUCT]]) to(%[[SUM]]) {axis = "micro"} :{{.*$}}
// CHECK-NEXT: }
// Once a step a send starts and the instructions up to the next kernel are transfers too, so that two devices can send to
// each other.
// CHECK-NEXT: exec.task @update seconds {{[0-9.Ee-]*}} {
// CHECK-NEXT: exec.kernel "exp"(%[[W]]) to(%[[ONCE]])
// CHECK-NEXT: exec.start @channel.2
// CHECK-NEXT: exec.start @channel.3
// CHECK-NEXT: exec.finish @channel.3
// CHECK-NEXT: exec.finish @channel.2
// CHECK-NEXT: exec.kernel "add"(%[[SUM]], %[[BACK]]){{.*$}}
// CHECK-NEXT: }
// CHECK-NEXT: exec.run @receive.1
// CHECK-NEXT: exec.run @forward.0
// CHECK-NEXT: exec.run @receive.1 microbatch 1
// CHECK-NEXT: exec.run @forward.0 microbatch 1
// CHECK-NEXT: exec.run @backward.0
// CHECK-NEXT: exec.run @sent.0
// CHECK-NEXT: exec.run @receive.1 microbatch 2
// CHECK-NEXT: exec.run @forward.0 microbatch 2
// CHECK-NEXT: exec.run @backward.0 microbatch 1
// CHECK-NEXT: exec.run @backward.0 microbatch 2
// CHECK-NEXT: exec.run @sent.0 microbatch 1
// CHECK-NEXT: exec.run @sent.0 microbatch 2
// CHECK-NEXT: exec.run @update
// CHECK-NEXT: }

// CHECK-LABEL: exec.program @step.1 on @mesh
// CHECK: %[[LOSS:.*]] = exec.buffer output : memref<f32>
// CHECK-NEXT: %[[SUM:.*]] = exec.buffer activation : memref<4xf32>
// CHECK-NEXT: %[[IN:.*]] = exec.buffer activation slots 0 : memref<4xf32>
// CHECK-NEXT: exec.transfer @channel.0 receive_from 0 channel 0(%[[IN]]) : memref<4xf32> as [6]
// CHECK-NEXT: exec.buffer activation : memref<4xf32>
// CHECK-NEXT: exec.buffer activation : memref<f32>
// CHECK-NEXT: %[[OUT:.*]] = exec.buffer activation slots 0 : memref<4xf32>
// CHECK-NEXT: %[[LOCAL:.*]] = exec.buffer activation : memref<4xf32>
// CHECK-NEXT: exec.transfer @channel.1 send_to 0 channel 1(%[[OUT]])
// CHECK: exec.task @backward.1 pass backward 1
// CHECK-NEXT: exec.kernel "exp"(%{{.*}}) to(%[[OUT]])
// CHECK-NEXT: exec.kernel "mul"(%[[OUT]], %[[IN]]) to(%[[LOCAL]])
// CHECK-NEXT: exec.kernel "accumulate"(%[[LOCAL]]) to(%[[SUM]]) {axis = "micro"} :{{.*$}}
// CHECK-NEXT: exec.start @channel.1
// CHECK-NEXT: }
// CHECK: exec.task @update
// CHECK-NEXT: exec.start @channel.2
// CHECK-NEXT: exec.finish @channel.2
// CHECK-NEXT: exec.kernel "add"
// CHECK-NEXT: exec.start @channel.3
// CHECK-NEXT: exec.finish @channel.3
// CHECK-NEXT: }

// Two microbatches are between the beginning of a value's live range and its end at most: forward and backward of device 0, the
// start of a receive and its use, a value and the end of its send. What lives once a step may lie where slots were.
// MEMORY-LABEL: exec.program @step.0
// MEMORY-SAME: arena_bytes = 768 : i64, arena_lower_bound = 768 : i64
// MEMORY: exec.buffer input at {{[0-9]+}} : memref<12xf32>
// MEMORY: exec.buffer parameter at {{[0-9]+}} : memref<4xf32>
// MEMORY: exec.buffer activation at {{[0-9]+}} : memref<4xf32>
// MEMORY: exec.buffer activation at {{[0-9]+}} slots 2 : memref<4xf32>
// MEMORY: exec.buffer activation at {{[0-9]+}} slots 2 : memref<4xf32>
// MEMORY: exec.buffer activation at {{[0-9]+}} slots 2 : memref<4xf32>
// MEMORY: exec.buffer activation at {{[0-9]+}} slots 2 : memref<4xf32>
// MEMORY: exec.buffer activation at {{[0-9]+}} : memref<4xf32>
// MEMORY-LABEL: exec.program @step.1
// MEMORY-SAME: arena_bytes = 576 : i64, arena_lower_bound = 576 : i64
dist.mesh @mesh <"pp"=2 pipeline, "micro"=3 temporal>
func.func @step.0(%x: tensor<12xf32> {dtc.input = "x", dtc.global_shape = array<i64: 12>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                  %w: tensor<4xf32> {dtc.param = "w", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {dtc.output = "grad:w", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) attributes {dist.pipeline = {schedule = "1f1b", stages = 2}} {
  %0 = dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 2, 0, 0, 0, 2, 1, 0, 1, 3, 0, 1, 0, 2, 2, 0, 2, 3, 1, 3, 2, 1, 1, 1, 2>} : tensor<4xf32> {
    %1:3 = dist.fragment forward 0 -> tensor<4xf32>, tensor<4xf32>, tensor<4xf32> {
      %2 = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<12xf32>) -> tensor<4xf32>
      %3 = dtc.mul %2, %w : tensor<4xf32>
      %4 = dtc.exp %3 : tensor<4xf32>
      %5 = dtc.neg %4 : tensor<4xf32>
      %6 = dtc.tanh %5 : tensor<4xf32>
      dist.yield %6, %4, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    }
    dist.send %1#0 to 1 channel 0 : tensor<4xf32> as [6]
    %7 = dist.receive from 1 channel 1 : tensor<4xf32>
    %8 = dist.fragment backward 0 -> tensor<4xf32> {
      %9 = dtc.mul %7, %1#1 : tensor<4xf32>
      %10 = dtc.mul %9, %1#2 : tensor<4xf32>
      dist.yield %10 : tensor<4xf32>
    }
    dist.yield %8 : tensor<4xf32>
  }
  %11 = dtc.exp %w : tensor<4xf32>
  dist.send %11 to 1 channel 2 : tensor<4xf32>
  %12 = dist.receive from 1 channel 3 : tensor<4xf32>
  %13 = dtc.add %0, %12 : tensor<4xf32>
  return %13 : tensor<4xf32>
}
func.func @step.1(%w: tensor<4xf32> {dtc.param = "w", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<f32> {dtc.output = "loss", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>}) attributes {dist.pipeline = {schedule = "1f1b", stages = 2}} {
  %0:2 = dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0, 0, 1, 1, 0, 2, 0, 0, 2, 1, 1, 2, 1, 1, 2, 3, 0, 2, 2, 3, 1, 3, 2>} : tensor<f32>, tensor<4xf32> {
    %1 = dist.receive from 0 channel 0 : tensor<4xf32> as [6]
    %2 = dist.fragment forward 1 -> tensor<f32> {
      %3 = dtc.mul %1, %w : tensor<4xf32>
      %4 = dtc.reduce sum %3 dims [0] : (tensor<4xf32>) -> tensor<f32>
      dist.yield %4 : tensor<f32>
    }
    %5:2 = dist.fragment backward 1 -> tensor<4xf32>, tensor<4xf32> {
      %6 = dtc.exp %w : tensor<4xf32>
      %7 = dtc.mul %6, %1 : tensor<4xf32>
      dist.yield %6, %7 : tensor<4xf32>, tensor<4xf32>
    }
    dist.send %5#0 to 0 channel 1 : tensor<4xf32>
    dist.yield %2, %5#1 : tensor<f32>, tensor<4xf32>
  }
  %8 = dist.receive from 0 channel 2 : tensor<4xf32>
  %9 = dtc.add %0#1, %8 : tensor<4xf32>
  dist.send %9 to 0 channel 3 : tensor<4xf32>
  return %0#0 : tensor<f32>
}
