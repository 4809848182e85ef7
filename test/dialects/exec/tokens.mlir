// RUN: dtc-opt %s | dtc-opt | FileCheck %s
// RUN: dtc-opt %s --mlir-print-op-generic | dtc-opt | FileCheck %s
// RUN: dtc-opt %s --emit-bytecode | dtc-opt | FileCheck %s

dist.mesh @mesh <"dp"=2, "tp"=2>

exec.program @tokens on @mesh {
  %a = exec.buffer activation : memref<4x8xf32>
  %b = exec.buffer activation : memref<6xf32>
  %d = exec.buffer activation : memref<12xf32>
  exec.task @t {
    // CHECK: %[[T:.*]] = exec.collective all_reduce reducing sum over ["dp"](%{{.*}}, %{{.*}}) to(%{{.*}}, %{{.*}}) dims [0, 0] split_dims [0, 0] : (memref<4x8xf32>, memref<6xf32>) -> (memref<4x8xf32>, memref<6xf32>) async !exec.token
    %t = exec.collective all_reduce reducing sum over ["dp"] (%a, %b) to (%a, %b) dims [0, 0] split_dims [0, 0] : (memref<4x8xf32>, memref<6xf32>) -> (memref<4x8xf32>, memref<6xf32>) async !exec.token
    // CHECK-NEXT: %[[U:.*]] = exec.collective all_gather over ["tp"](%{{.*}}) to(%{{.*}})
    %u = exec.collective all_gather over ["tp"] (%b) to (%d) dims [0] split_dims [0] : (memref<6xf32>) -> memref<12xf32> async !exec.token
    // Waits need not have the order of the starts.
    // CHECK-NEXT: exec.wait %[[U]]
    exec.wait %u
    // CHECK-NEXT: exec.kernel "exp"
    exec.kernel "exp"(%d) to (%d) {} : (memref<12xf32>) -> memref<12xf32>
    // CHECK-NEXT: exec.wait %[[T]] {note = 1 : i64}
    exec.wait %t {note = 1}
  }
}

exec.program @host on @mesh {
  %a = exec.buffer activation : memref<4xf32>
  // CHECK: exec.buffer activation : memref<4xf32, "host">
  %h = exec.buffer activation : memref<4xf32, "host">
  exec.task @t {
    // CHECK: %[[T:.*]] = exec.kernel "copy"(%{{.*}}) to(%{{.*}}) {} : (memref<4xf32>) -> memref<4xf32, "host"> async !exec.token
    %t = exec.kernel "copy"(%a) to(%h) {} : (memref<4xf32>) -> memref<4xf32, "host"> async !exec.token
    // CHECK-NEXT: %[[U:.*]] = exec.kernel "exp"(%{{.*}}) to(%{{.*}}) {} after(%[[T]]) : {{.*}} async !exec.token
    %u = exec.kernel "exp"(%h) to(%h) {} after(%t) : (memref<4xf32, "host">) -> memref<4xf32, "host"> async !exec.token
    // CHECK-NEXT: exec.wait %[[T]]
    exec.wait %t
    // CHECK-NEXT: exec.wait %[[U]]
    exec.wait %u
  }
}
