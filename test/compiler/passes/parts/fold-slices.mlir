// RUN: dtc-opt %s --split-input-file --dtc-fold-slices | FileCheck %s

// Forward and backward, with fewer heads of keys and values.
// CHECK-LABEL: exec.program @both
// CHECK-NOT: memref<1x4x1x8xf32>
// CHECK: exec.kernel "exp"(%{{.*}}) to(%[[X:.*]]) {}
// CHECK-NEXT: exec.kernel "joined_attention"(%[[X]]) to(%[[OUT:.*]], %[[LSE:.*]]) {causal = true, scale = 5.000000e-01 : f64} {flops = 7.000000e+00 : f64}
// CHECK-NEXT: exec.kernel "joined_attention_grad"(%[[X]], %[[OUT]], %[[LSE]], %{{.*}}) to(%[[DX:.*]]) {causal = true, scale = 5.000000e-01 : f64} : (memref<1x4x4x8xf32>, memref<1x4x2x8xf32>, memref<1x2x4xf32>, memref<1x4x2x8xf32>) -> memref<1x4x4x8xf32>
// CHECK-NEXT: exec.kernel "neg"(%[[DX]])
dist.mesh @mesh <>
exec.program @both on @mesh {
  %y = exec.buffer activation : memref<1x4x4x8xf32>
  %x = exec.buffer activation : memref<1x4x4x8xf32>
  %q = exec.buffer activation : memref<1x4x2x8xf32>
  %k = exec.buffer activation : memref<1x4x1x8xf32>
  %v = exec.buffer activation : memref<1x4x1x8xf32>
  %out = exec.buffer activation : memref<1x4x2x8xf32>
  %lse = exec.buffer activation : memref<1x2x4xf32>
  %dout = exec.buffer activation : memref<1x4x2x8xf32>
  %dq = exec.buffer activation : memref<1x4x2x8xf32>
  %dk = exec.buffer activation : memref<1x4x1x8xf32>
  %dv = exec.buffer activation : memref<1x4x1x8xf32>
  %dx = exec.buffer activation : memref<1x4x4x8xf32>
  %n = exec.buffer activation : memref<1x4x4x8xf32>
  exec.task @step {
    exec.kernel "exp"(%y) to(%x) {} : (memref<1x4x4x8xf32>) -> memref<1x4x4x8xf32>
    exec.kernel "slice"(%x) to(%q) {offsets = array<i64: 0, 0, 0, 0>} : (memref<1x4x4x8xf32>) -> memref<1x4x2x8xf32>
    exec.kernel "slice"(%x) to(%k) {offsets = array<i64: 0, 0, 2, 0>} : (memref<1x4x4x8xf32>) -> memref<1x4x1x8xf32>
    exec.kernel "slice"(%x) to(%v) {offsets = array<i64: 0, 0, 3, 0>} : (memref<1x4x4x8xf32>) -> memref<1x4x1x8xf32>
    exec.kernel "attention"(%q, %k, %v) to(%out, %lse) {causal = true, scale = 0.5} {flops = 7.0} : (memref<1x4x2x8xf32>, memref<1x4x1x8xf32>, memref<1x4x1x8xf32>) -> (memref<1x4x2x8xf32>, memref<1x2x4xf32>)
    exec.kernel "attention_grad"(%q, %k, %v, %out, %lse, %dout) to(%dq, %dk, %dv) {causal = true, scale = 0.5} : (memref<1x4x2x8xf32>, memref<1x4x1x8xf32>, memref<1x4x1x8xf32>, memref<1x4x2x8xf32>, memref<1x2x4xf32>, memref<1x4x2x8xf32>) -> (memref<1x4x2x8xf32>, memref<1x4x1x8xf32>, memref<1x4x1x8xf32>)
    exec.kernel "concat"(%dq, %dk, %dv) to(%dx) {dim = 2} : (memref<1x4x2x8xf32>, memref<1x4x1x8xf32>, memref<1x4x1x8xf32>) -> memref<1x4x4x8xf32>
    exec.kernel "neg"(%dx) to(%n) {} : (memref<1x4x4x8xf32>) -> memref<1x4x4x8xf32>
  }
  exec.run @step
}

// -----

// Rows that are not divided into heads are read as heads; a slice that something else reads stays.
// CHECK-LABEL: exec.program @rows
// CHECK: %[[X:.*]] = exec.buffer activation : memref<1x4x48xf32>
// CHECK: %[[ROWS:.*]] = exec.view %[[X]] : memref<1x4x48xf32> to memref<1x4x6x8xf32>
// CHECK: exec.kernel "slice"(%[[X]]) to(%[[V:.*]]) {offsets = array<i64: 0, 0, 32>}
// CHECK-NEXT: exec.kernel "joined_attention"(%[[ROWS]])
// CHECK-NEXT: exec.kernel "neg"(%[[V]])
dist.mesh @mesh <>
exec.program @rows on @mesh {
  %x = exec.buffer activation : memref<1x4x48xf32>
  %0 = exec.buffer activation : memref<1x4x16xf32>
  %q = exec.view %0 : memref<1x4x16xf32> to memref<1x4x2x8xf32>
  %1 = exec.buffer activation : memref<1x4x16xf32>
  %k = exec.view %1 : memref<1x4x16xf32> to memref<1x4x2x8xf32>
  %2 = exec.buffer activation : memref<1x4x16xf32>
  %v = exec.view %2 : memref<1x4x16xf32> to memref<1x4x2x8xf32>
  %out = exec.buffer activation : memref<1x4x2x8xf32>
  %lse = exec.buffer activation : memref<1x2x4xf32>
  %n = exec.buffer activation : memref<1x4x16xf32>
  exec.task @step {
    exec.kernel "slice"(%x) to(%0) {offsets = array<i64: 0, 0, 0>} : (memref<1x4x48xf32>) -> memref<1x4x16xf32>
    exec.kernel "slice"(%x) to(%1) {offsets = array<i64: 0, 0, 16>} : (memref<1x4x48xf32>) -> memref<1x4x16xf32>
    exec.kernel "slice"(%x) to(%2) {offsets = array<i64: 0, 0, 32>} : (memref<1x4x48xf32>) -> memref<1x4x16xf32>
    exec.kernel "attention"(%q, %k, %v) to(%out, %lse) {causal = true, scale = 0.5} : (memref<1x4x2x8xf32>, memref<1x4x2x8xf32>, memref<1x4x2x8xf32>) -> (memref<1x4x2x8xf32>, memref<1x2x4xf32>)
    exec.kernel "neg"(%2) to(%n) {} : (memref<1x4x16xf32>) -> memref<1x4x16xf32>
  }
  exec.run @step
}

// -----

// Another order, and bytes of the whole tensor that another value takes.
// CHECK-LABEL: exec.program @order
// CHECK: exec.kernel "attention"
// CHECK-LABEL: exec.program @reused
// CHECK: exec.kernel "attention"
dist.mesh @mesh <>
exec.program @order on @mesh {
  %x = exec.buffer activation : memref<1x4x6x8xf32>
  %q = exec.buffer activation : memref<1x4x2x8xf32>
  %k = exec.buffer activation : memref<1x4x2x8xf32>
  %v = exec.buffer activation : memref<1x4x2x8xf32>
  %out = exec.buffer activation : memref<1x4x2x8xf32>
  %lse = exec.buffer activation : memref<1x2x4xf32>
  exec.task @step {
    exec.kernel "slice"(%x) to(%k) {offsets = array<i64: 0, 0, 0, 0>} : (memref<1x4x6x8xf32>) -> memref<1x4x2x8xf32>
    exec.kernel "slice"(%x) to(%q) {offsets = array<i64: 0, 0, 2, 0>} : (memref<1x4x6x8xf32>) -> memref<1x4x2x8xf32>
    exec.kernel "slice"(%x) to(%v) {offsets = array<i64: 0, 0, 4, 0>} : (memref<1x4x6x8xf32>) -> memref<1x4x2x8xf32>
    exec.kernel "attention"(%q, %k, %v) to(%out, %lse) {causal = true, scale = 0.5} : (memref<1x4x2x8xf32>, memref<1x4x2x8xf32>, memref<1x4x2x8xf32>) -> (memref<1x4x2x8xf32>, memref<1x2x4xf32>)
  }
  exec.run @step
}
exec.program @reused on @mesh {
  %x = exec.buffer activation : memref<1x4x6x8xf32>
  %q = exec.buffer activation : memref<1x4x2x8xf32>
  %k = exec.buffer activation : memref<1x4x2x8xf32>
  %v = exec.buffer activation : memref<1x4x2x8xf32>
  %n = exec.reuse %x : memref<1x4x6x8xf32>
  %out = exec.buffer activation : memref<1x4x2x8xf32>
  %lse = exec.buffer activation : memref<1x2x4xf32>
  exec.task @step {
    exec.kernel "slice"(%x) to(%q) {offsets = array<i64: 0, 0, 0, 0>} : (memref<1x4x6x8xf32>) -> memref<1x4x2x8xf32>
    exec.kernel "slice"(%x) to(%k) {offsets = array<i64: 0, 0, 2, 0>} : (memref<1x4x6x8xf32>) -> memref<1x4x2x8xf32>
    exec.kernel "slice"(%x) to(%v) {offsets = array<i64: 0, 0, 4, 0>} : (memref<1x4x6x8xf32>) -> memref<1x4x2x8xf32>
    exec.kernel "neg"(%x) to(%n) {} : (memref<1x4x6x8xf32>) -> memref<1x4x6x8xf32>
    exec.kernel "attention"(%q, %k, %v) to(%out, %lse) {causal = true, scale = 0.5} : (memref<1x4x2x8xf32>, memref<1x4x2x8xf32>, memref<1x4x2x8xf32>) -> (memref<1x4x2x8xf32>, memref<1x2x4xf32>)
  }
  exec.run @step
}

// -----

// Where each microbatch has its slices, each has the whole, whatever bytes it takes.
// CHECK-LABEL: exec.program @slots
// CHECK: %[[Y:.*]] = exec.buffer activation slots 0 : memref<1x4x6x8xf32>
// CHECK: %[[X:.*]] = exec.reuse %[[Y]]
// CHECK: exec.task @backward
// CHECK-NEXT: exec.kernel "joined_attention_grad"(%[[X]]
dist.mesh @mesh <>
exec.program @slots on @mesh {
  %y = exec.buffer activation : memref<1x4x6x8xf32>
  %x = exec.reuse %y : memref<1x4x6x8xf32>
  %q = exec.buffer activation slots 0 : memref<1x4x2x8xf32>
  %k = exec.buffer activation slots 0 : memref<1x4x2x8xf32>
  %v = exec.buffer activation slots 0 : memref<1x4x2x8xf32>
  %out = exec.buffer activation slots 0 : memref<1x4x2x8xf32>
  %lse = exec.buffer activation slots 0 : memref<1x2x4xf32>
  %dq = exec.buffer activation : memref<1x4x2x8xf32>
  %dk = exec.buffer activation : memref<1x4x2x8xf32>
  %dv = exec.buffer activation : memref<1x4x2x8xf32>
  %dx = exec.buffer activation : memref<1x4x6x8xf32>
  exec.task @forward {
    exec.kernel "neg"(%y) to(%x) {} : (memref<1x4x6x8xf32>) -> memref<1x4x6x8xf32>
    exec.kernel "slice"(%x) to(%q) {offsets = array<i64: 0, 0, 0, 0>} : (memref<1x4x6x8xf32>) -> memref<1x4x2x8xf32>
    exec.kernel "slice"(%x) to(%k) {offsets = array<i64: 0, 0, 2, 0>} : (memref<1x4x6x8xf32>) -> memref<1x4x2x8xf32>
    exec.kernel "slice"(%x) to(%v) {offsets = array<i64: 0, 0, 4, 0>} : (memref<1x4x6x8xf32>) -> memref<1x4x2x8xf32>
    exec.kernel "attention"(%q, %k, %v) to(%out, %lse) {causal = true, scale = 0.5} : (memref<1x4x2x8xf32>, memref<1x4x2x8xf32>, memref<1x4x2x8xf32>) -> (memref<1x4x2x8xf32>, memref<1x2x4xf32>)
  }
  exec.task @backward {
    exec.kernel "attention_grad"(%q, %k, %v, %out, %lse, %out) to(%dq, %dk, %dv) {causal = true, scale = 0.5} : (memref<1x4x2x8xf32>, memref<1x4x2x8xf32>, memref<1x4x2x8xf32>, memref<1x4x2x8xf32>, memref<1x2x4xf32>, memref<1x4x2x8xf32>) -> (memref<1x4x2x8xf32>, memref<1x4x2x8xf32>, memref<1x4x2x8xf32>)
    exec.kernel "concat"(%dq, %dk, %dv) to(%dx) {dim = 2} : (memref<1x4x2x8xf32>, memref<1x4x2x8xf32>, memref<1x4x2x8xf32>) -> memref<1x4x6x8xf32>
  }
  exec.run @forward
  exec.run @backward
}
