// RUN: dtc-opt %s --dtc-plan-memory | FileCheck %s

// The loop over microbatches may run again, and the caller writes all inputs before it does: one that nothing reads must
// not share bytes with a sum.
// CHECK: exec.program @step on @mesh attributes {arena_bytes = 320 : i64
// CHECK: %[[X:.*]] = exec.buffer input at [[AT:[0-9]+]] : memref<4xf32>
// CHECK-NOT: at [[AT]] :
// CHECK: exec.task
dist.mesh @mesh <"micro"=2 temporal>
exec.program @step on @mesh {
  %x = exec.buffer input : memref<4xf32>
  exec.input "data" "unread" = %x shape [4] sharding <@mesh, [{}]> : memref<4xf32>
  %w = exec.buffer parameter : memref<4xf32>
  exec.state "w" = %w shape [4] file_shape [4] sharding <@mesh, [{}]> : memref<4xf32>
  %before = exec.buffer activation : memref<4xf32>
  %part = exec.buffer activation : memref<4xf32>
  %sum = exec.buffer output : memref<4xf32>
  exec.output "sum" = %sum shape [4] sharding <@mesh, [{}]> : memref<4xf32>
  exec.task @prepare {
    exec.kernel "exp"(%w) to (%before) {} : (memref<4xf32>) -> memref<4xf32>
  }
  exec.task @microbatch {
    exec.kernel "neg"(%before) to (%part) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "accumulate"(%part) to (%sum) {axis = "micro"} : (memref<4xf32>) -> memref<4xf32>
  }
  exec.run @prepare
  exec.run @microbatch in_loop
  exec.run @microbatch microbatch 1 in_loop
}
