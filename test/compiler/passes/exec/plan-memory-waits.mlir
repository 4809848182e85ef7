// RUN: dtc-opt %s --split-input-file --dtc-plan-memory | FileCheck %s

// Between its start and its wait a collective uses all its buffers: %c, which is in use then, lies beside both. Without the
// wait the arena would be 128 bytes.
// CHECK-LABEL: exec.program @running
// CHECK-SAME: {arena_bytes = 192 : i64, arena_lower_bound = 192 : i64
dist.mesh @mesh <"dp"=2>
exec.program @running on @mesh {
  %a = exec.buffer activation : memref<8xf32>
  %g = exec.buffer activation : memref<16xf32>
  %c = exec.buffer activation : memref<8xf32>
  exec.task @t {
    exec.kernel "fill"() to (%a) {} : () -> memref<8xf32>
    %t = exec.collective all_gather over ["dp"] (%a) to (%g) dims [0] split_dims [0] : (memref<8xf32>) -> memref<16xf32> async !exec.token
    exec.kernel "fill"() to (%c) {} : () -> memref<8xf32>
    exec.kernel "exp"(%c) to (%c) {} : (memref<8xf32>) -> memref<8xf32>
    exec.wait %t
    exec.kernel "neg"(%g) to (%g) {} : (memref<16xf32>) -> memref<16xf32>
  }
  exec.run @t
}

// -----

// The same program with a collective that is not asynchronous: %c takes %a's place.
// CHECK-LABEL: exec.program @done
// CHECK-SAME: {arena_bytes = 128 : i64, arena_lower_bound = 128 : i64
dist.mesh @mesh <"dp"=2>
exec.program @done on @mesh {
  %a = exec.buffer activation : memref<8xf32>
  %g = exec.buffer activation : memref<16xf32>
  %c = exec.buffer activation : memref<8xf32>
  exec.task @t {
    exec.kernel "fill"() to (%a) {} : () -> memref<8xf32>
    exec.collective all_gather over ["dp"] (%a) to (%g) dims [0] split_dims [0] : (memref<8xf32>) -> memref<16xf32>
    exec.kernel "fill"() to (%c) {} : () -> memref<8xf32>
    exec.kernel "exp"(%c) to (%c) {} : (memref<8xf32>) -> memref<8xf32>
    exec.kernel "neg"(%g) to (%g) {} : (memref<16xf32>) -> memref<16xf32>
  }
  exec.run @t
}

// -----

// After the wait a place is free again.
// CHECK-LABEL: exec.program @after_wait
// CHECK-SAME: {arena_bytes = 192 : i64, arena_lower_bound = 192 : i64
dist.mesh @mesh <"dp"=2>
exec.program @after_wait on @mesh {
  %a = exec.buffer activation : memref<8xf32>
  %g = exec.buffer activation : memref<16xf32>
  %c = exec.buffer activation : memref<8xf32>
  %d = exec.buffer activation : memref<8xf32>
  exec.task @t {
    exec.kernel "fill"() to (%a) {} : () -> memref<8xf32>
    %t = exec.collective all_gather over ["dp"] (%a) to (%g) dims [0] split_dims [0] : (memref<8xf32>) -> memref<16xf32> async !exec.token
    exec.kernel "fill"() to (%c) {} : () -> memref<8xf32>
    exec.wait %t
    exec.kernel "fill"() to (%d) {} : () -> memref<8xf32>
    exec.kernel "use"(%c, %d, %g) to (%c) {} : (memref<8xf32>, memref<8xf32>, memref<16xf32>) -> memref<8xf32>
  }
  exec.run @t
}

// -----

// Results that nothing reads are written until the wait all the same.
// CHECK-LABEL: exec.program @unread
// CHECK-SAME: {arena_bytes = 128 : i64, arena_lower_bound = 128 : i64
dist.mesh @mesh <"dp"=2>
exec.program @unread on @mesh {
  %a = exec.buffer activation : memref<8xf32>
  %c = exec.buffer activation : memref<8xf32>
  exec.task @t {
    exec.kernel "fill"() to (%a) {} : () -> memref<8xf32>
    %t = exec.collective all_reduce reducing sum over ["dp"] (%a) to (%a) dims [0] split_dims [0] : (memref<8xf32>) -> memref<8xf32> async !exec.token
    exec.kernel "fill"() to (%c) {} : () -> memref<8xf32>
    exec.wait %t
  }
  exec.run @t
}
