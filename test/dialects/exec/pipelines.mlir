// RUN: dtc-opt %s | dtc-opt | FileCheck %s
// RUN: dtc-opt %s --mlir-print-op-generic | dtc-opt | FileCheck %s
// RUN: dtc-opt %s --emit-bytecode | dtc-opt | FileCheck %s
// RUN: dtc-opt %s | FileCheck %s --check-prefix SPACES --strict-whitespace

// SPACES: exec.transfer @channel.0 send_to 1 channel 0
// SPACES: exec.task @forward.0 pass forward 0 seconds

dist.mesh @mesh <"pp"=2 pipeline, "micro"=4 temporal>

// CHECK-LABEL: exec.program @step.0 on @mesh attributes {pipeline = {schedule = "1f1b", stages = 2 : i64}} {
exec.program @step.0 on @mesh attributes {pipeline = {schedule = "1f1b", stages = 2}} {
  // Slots are 0 until memory is planned.
  // CHECK: %[[A:.*]] = exec.buffer activation slots 0 : memref<4x8xf32>
  %a = exec.buffer activation slots 0 : memref<4x8xf32>
  // CHECK: %[[B:.*]] = exec.buffer activation at 64 slots 3 : memref<2xi32>
  %b = exec.buffer activation at 64 slots 3 : memref<2xi32>
  // CHECK: exec.buffer activation at 576 slots 4 map [3, 0, 1, 3] {note = 1 : i64} : memref<4x8xf32>
  exec.buffer activation at 576 slots 4 map [3, 0, 1, 3] {note = 1} : memref<4x8xf32>
  // CHECK: %[[C:.*]] = exec.buffer activation at 320 : memref<4x8xf32>
  %c = exec.buffer activation at 320 : memref<4x8xf32>
  // CHECK: exec.transfer @channel.0 send_to 1 channel 0(%[[A]], %[[B]]) : memref<4x8xf32>, memref<2xi32> as [0, 7]
  exec.transfer @channel.0 send_to 1 channel 0 (%a, %b) : memref<4x8xf32>, memref<2xi32> as [0, 7]
  // CHECK: exec.transfer @channel.7 receive_from 1 channel 7(%[[C]]) {note = 1 : i64} : memref<4x8xf32>
  exec.transfer @channel.7 receive_from 1 channel 7 (%c) {note = 1} : memref<4x8xf32>
  // A task with all that it may have, and with some of it.
  // CHECK: exec.task @forward.0 pass forward 0 seconds 2.500000e-03 {
  exec.task @forward.0 pass forward 0 seconds 2.5e-3 {
    // CHECK-NEXT: exec.kernel "fill"
    exec.kernel "fill"() to (%a) {} : () -> memref<4x8xf32>
    // CHECK-NEXT: exec.start @channel.0
    exec.start @channel.0
    // CHECK-NEXT: exec.start @channel.7 {note = 1 : i64}
    exec.start @channel.7 {note = 1}
  }
  // CHECK: exec.task @backward.0 pass backward 0 {
  exec.task @backward.0 pass backward 0 {
    // CHECK-NEXT: exec.finish @channel.7
    exec.finish @channel.7
  }
  // CHECK: exec.task @weight.1 pass weight 1 attributes {note = 1 : i64} {
  exec.task @weight.1 pass weight 1 attributes {note = 1} {
  }
  // CHECK: exec.task @sent.0 seconds 0.000000e+00 {
  exec.task @sent.0 seconds 0.0 {
    // CHECK-NEXT: exec.finish @channel.0 {note = 1 : i64}
    exec.finish @channel.0 {note = 1}
  }
  // CHECK: exec.task @update {
  exec.task @update {
  }
  exec.run @forward.0
  exec.run @backward.0
  exec.run @sent.0
}

// Names and channels are those of one program.
// CHECK-LABEL: exec.program @step.1 on @mesh {
exec.program @step.1 on @mesh {
  %a = exec.buffer activation slots 0 : memref<4x8xf32>
  // CHECK: exec.transfer @channel.0 receive_from 0 channel 0
  exec.transfer @channel.0 receive_from 0 channel 0 (%a) : memref<4x8xf32>
}
