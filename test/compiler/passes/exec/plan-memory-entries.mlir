// RUN: dtc-opt %s --split-input-file --dtc-plan-memory | FileCheck %s

// All programs have the same states in the same order at the same offsets: those that one of them lacks are added, the
// rest of each arena follows them.
// CHECK-LABEL: exec.program @step on
// CHECK-DAG: %[[W:.*]] = exec.buffer parameter at 0 : memref<16xf32>
// CHECK-DAG: %[[M:.*]] = exec.buffer optimizer_state at 64 : memref<20xf32>
// CHECK-DAG: %[[C:.*]] = exec.buffer cache at 192 : memref<4xf32>
// CHECK: exec.state "w" = %[[W]]
// CHECK-NEXT: exec.state "w.m" of "w" = %[[M]]
// CHECK-NEXT: exec.state "keys" cache = %[[C]]
// CHECK: exec.run @step
// CHECK-LABEL: exec.program @evaluate on @mesh entry "evaluate"
// CHECK-SAME: {arena_bytes = 320 : i64, arena_lower_bound = 320 : i64, memory_by_kind = {activation = 64 : i64, cache = 64 : i64, optimizer_state = 128 : i64, parameter = 64 : i64}}
// CHECK-DAG: %[[W:.*]] = exec.buffer parameter at 0 : memref<16xf32>
// CHECK-DAG: %[[M:.*]] = exec.buffer optimizer_state at 64 : memref<20xf32>
// CHECK-DAG: %[[C:.*]] = exec.buffer cache at 192 : memref<4xf32>
// CHECK-DAG: exec.buffer activation at 256 : memref<16xf32>
// CHECK: exec.state "w" = %[[W]]
// CHECK-NEXT: exec.state "w.m" of "w" = %[[M]] shape [20] file_shape [20]
// CHECK-NEXT: exec.state "keys" cache = %[[C]]
dist.mesh @mesh <>
exec.program @step on @mesh {
  %w = exec.buffer parameter : memref<16xf32>
  exec.state "w" = %w shape [16] file_shape [16] sharding <@mesh, [{}]> : memref<16xf32>
  %m = exec.buffer optimizer_state : memref<20xf32>
  exec.state "w.m" of "w" = %m shape [20] file_shape [20] sharding <@mesh, [{}]> : memref<20xf32>
  exec.task @step {
    exec.kernel "use"(%m) to (%w) {} : (memref<20xf32>) -> memref<16xf32>
  }
  exec.run @step
}
exec.program @evaluate on @mesh entry "evaluate" {
  %c = exec.buffer cache : memref<4xf32>
  exec.state "keys" cache = %c shape [4] file_shape [4] sharding <@mesh, [{}]> : memref<4xf32>
  %w = exec.buffer parameter : memref<16xf32>
  exec.state "w" = %w shape [16] file_shape [16] sharding <@mesh, [{}]> : memref<16xf32>
  %a = exec.buffer activation : memref<16xf32>
  exec.task @step {
    exec.kernel "use"(%w, %c) to (%a) {} : (memref<16xf32>, memref<4xf32>) -> memref<16xf32>
  }
  exec.run @step
}

// -----

// The programs of a pipeline share the states of their coordinate alone.
// CHECK-LABEL: exec.program @step.0 on
// CHECK: exec.state "a"
// CHECK-NOT: exec.state
// CHECK-LABEL: exec.program @step.1 on
// CHECK: exec.state "b"
// CHECK-NOT: exec.state
// CHECK-LABEL: exec.program @evaluate.0 on
// CHECK: exec.buffer parameter at 0 : memref<4xf32>
// CHECK: exec.state "a"
// CHECK-NOT: exec.state
// CHECK-LABEL: exec.program @evaluate.1 on
// CHECK: exec.state "b"
// CHECK-NOT: exec.state
dist.mesh @mesh <"pp"=2 pipeline>
exec.program @step.0 on @mesh {
  %a = exec.buffer parameter : memref<4xf32>
  exec.state "a" = %a shape [4] file_shape [4] sharding <@mesh, [{}]> : memref<4xf32>
}
exec.program @step.1 on @mesh {
  %b = exec.buffer parameter : memref<8xf32>
  exec.state "b" = %b shape [8] file_shape [8] sharding <@mesh, [{}]> : memref<8xf32>
}
exec.program @evaluate.0 on @mesh entry "evaluate" {
}
exec.program @evaluate.1 on @mesh entry "evaluate" {
  %b = exec.buffer parameter : memref<8xf32>
  exec.state "b" = %b shape [8] file_shape [8] sharding <@mesh, [{}]> : memref<8xf32>
}

// -----

// The loop may run again: its sums, its inputs and values from before it are there until its end, so that nothing takes
// their place; values that one run makes for itself are not.
// CHECK-LABEL: exec.program @loop
// CHECK: exec.buffer input at [[#X:]] : memref<16xf32>
// CHECK: exec.buffer activation at [[#K:]] : memref<16xf32>
// CHECK: exec.buffer activation at [[#A:]] : memref<16xf32>
// CHECK: exec.buffer activation at [[#B:]] : memref<16xf32>
// CHECK: exec.buffer activation at [[#A]] : memref<16xf32>
// CHECK: exec.run @prepare{{$}}
// CHECK-NEXT: exec.run @body in_loop
dist.mesh @mesh <>
exec.program @loop on @mesh {
  %x = exec.buffer input : memref<16xf32>
  exec.input "data" "x" = %x shape [16] sharding <@mesh, [{}]> : memref<16xf32>
  %k = exec.buffer activation : memref<16xf32>
  %a = exec.buffer activation : memref<16xf32>
  %b = exec.buffer activation : memref<16xf32>
  %c = exec.buffer activation : memref<16xf32>
  exec.task @prepare {
    exec.kernel "fill"() to (%k) {} : () -> memref<16xf32>
  }
  exec.task @body {
    exec.kernel "use"(%x, %k) to (%a) {} : (memref<16xf32>, memref<16xf32>) -> memref<16xf32>
    exec.kernel "exp"(%a) to (%b) {} : (memref<16xf32>) -> memref<16xf32>
    exec.kernel "exp"(%b) to (%c) {} : (memref<16xf32>) -> memref<16xf32>
  }
  exec.run @prepare
  exec.run @body in_loop
}
