// RUN: dtc-opt %s --dtc-plan-memory | FileCheck %s

// Both memories have an arena of their own, whose offsets begin at 0; the state comes first.
// CHECK-LABEL: exec.program @p on @mesh
// CHECK-SAME: arena_bytes = 128
// CHECK-SAME: host_arena_bytes = 192
// CHECK-SAME: host_memory_by_kind = {activation = 128 : i64, optimizer_state = 64 : i64}
// CHECK-SAME: memory_by_kind = {activation = 128 : i64}
// CHECK: exec.buffer activation at 0 : memref<4xf32>
// CHECK: exec.buffer activation at 64 : memref<4xf32>
// CHECK: exec.buffer activation at 64 : memref<4xf32, "host">
// CHECK: exec.buffer activation at 128 : memref<4xf32, "host">
// CHECK: exec.buffer optimizer_state at 0 : memref<4xf32, "host">
// CHECK: exec.buffer activation at 64 : memref<4xf32, "host">
dist.mesh @mesh <>
exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4xf32>
  %b = exec.buffer activation : memref<4xf32>
  %h = exec.buffer activation : memref<4xf32, "host">
  %i = exec.buffer activation : memref<4xf32, "host">
  %m = exec.buffer optimizer_state : memref<4xf32, "host">
  %late = exec.buffer activation : memref<4xf32, "host">
  exec.state "m" = %m shape [4] file_shape [4] sharding <@mesh, [{} ]> : memref<4xf32, "host">
  exec.task @t {
    exec.kernel "fill"() to(%a) {} : () -> memref<4xf32>
    // The copy reads %a and writes %h until the wait, also where nothing else does.
    %c = exec.kernel "copy"(%a) to(%h) {} : (memref<4xf32>) -> memref<4xf32, "host"> async !exec.token
    exec.kernel "fill"() to(%b) {} : () -> memref<4xf32>
    exec.kernel "fill"() to(%i) {} : () -> memref<4xf32, "host">
    exec.wait %c
    exec.kernel "exp"(%i) to(%late) {} : (memref<4xf32, "host">) -> memref<4xf32, "host">
    exec.kernel "exp"(%late) to(%m) {} : (memref<4xf32, "host">) -> memref<4xf32, "host">
  }
  exec.run @t
}
