// RUN: dtc-opt %s --dtc-overlap-collectives | FileCheck %s

dist.mesh @mesh <"tp"=2, "pp"=2 pipeline, "micro"=2 temporal>

// CHECK-LABEL: exec.program @p
exec.program @p on @mesh {
  %a = exec.buffer activation : memref<4xf32>
  %b = exec.buffer activation : memref<4xf32>
  %c = exec.buffer activation : memref<4xf32>
  %d = exec.buffer activation slots 0 : memref<4xf32>
  exec.transfer @out send_to 1 channel 0 (%a) : memref<4xf32>
  exec.transfer @in receive_from 1 channel 1 (%d) : memref<4xf32>

  // The result of a collective is there before its send starts.
  // CHECK: exec.task @sends
  // CHECK-NEXT: %[[T:.*]] = exec.collective all_reduce
  // CHECK-NEXT: exec.kernel "exp"
  // CHECK-NEXT: exec.wait %[[T]]
  // CHECK-NEXT: exec.start @out
  // CHECK-NEXT: }
  exec.task @sends pass forward 0 {
    exec.collective all_reduce reducing sum over ["tp"] (%a) to (%a) dims [0] split_dims [0] : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "exp"(%b) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
    exec.start @out
  }

  // Only reading is no reason to wait: the send goes on beside the collective.
  // CHECK: exec.task @reads
  // CHECK-NEXT: %[[T:.*]] = exec.collective all_gather
  // CHECK-NEXT: exec.start @out
  // CHECK-NEXT: exec.kernel "exp"
  // CHECK-NEXT: exec.wait %[[T]]
  // CHECK-NEXT: }
  exec.task @reads pass forward 0 {
    exec.collective all_gather over ["tp"] (%a) to (%b) dims [0] split_dims [0] : (memref<4xf32>) -> memref<4xf32>
    exec.start @out
    exec.kernel "exp"(%c) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
  }

  // A receive writes when it is started, and may until it is finished: what a collective reads must be read before.
  // CHECK: exec.task @receives
  // CHECK-NEXT: %[[T:.*]] = exec.collective all_gather
  // CHECK-NEXT: exec.kernel "exp"
  // CHECK-NEXT: exec.wait %[[T]]
  // CHECK-NEXT: exec.start @in
  // CHECK-NEXT: exec.kernel "exp"
  // CHECK-NEXT: exec.finish @in
  // CHECK-NEXT: }
  exec.task @receives pass backward 0 {
    exec.collective all_gather over ["tp"] (%d) to (%b) dims [0] split_dims [0] : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "exp"(%c) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
    exec.start @in
    exec.kernel "exp"(%c) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
    exec.finish @in
  }

  // A collective may read what has come.
  // CHECK: exec.task @finished
  // CHECK-NEXT: exec.finish @in
  // CHECK-NEXT: %[[T:.*]] = exec.collective all_gather
  // CHECK-NEXT: exec.kernel "exp"
  // CHECK-NEXT: exec.wait %[[T]]
  // CHECK-NEXT: }
  exec.task @finished pass backward 0 {
    exec.finish @in
    exec.collective all_gather over ["tp"] (%d) to (%b) dims [0] split_dims [0] : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "exp"(%c) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
  }
}
