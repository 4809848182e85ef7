// RUN: dtc-opt %s --split-input-file --dtc-overlap-collectives | FileCheck %s

// The wait is before the first instruction that reads what the collective writes.
// CHECK-LABEL: exec.program @reader
// CHECK: exec.task @t {
// CHECK-NEXT: %[[T:.*]] = exec.collective all_gather over ["dp"]({{.*}}) to({{.*}}) dims [0] split_dims [0] {reasons = [{op = "x"}]} : {{.*}} async !exec.token
// CHECK-NEXT: exec.kernel "exp"
// CHECK-NEXT: exec.kernel "neg"
// CHECK-NEXT: exec.wait %[[T]]
// CHECK-NEXT: exec.kernel "reduce"
// CHECK-NEXT: exec.kernel "abs"
dist.mesh @mesh <"dp"=2, "tp"=2>
exec.program @reader on @mesh {
  %a = exec.buffer activation : memref<4xf32>
  %g = exec.buffer activation : memref<8xf32>
  %c = exec.buffer activation : memref<4xf32>
  %s = exec.buffer activation : memref<f32>
  exec.task @t {
    exec.collective all_gather over ["dp"] (%a) to (%g) dims [0] split_dims [0] {reasons = [{op = "x"}]} : (memref<4xf32>) -> memref<8xf32>
    // Reading the operands of the collective is no reason to wait.
    exec.kernel "exp"(%a) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "neg"(%c) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "reduce"(%g) to (%s) {} : (memref<8xf32>) -> memref<f32>
    exec.kernel "abs"(%c) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
  }
  exec.run @t
}

// -----

// ... or overwrites what it reads, here through a view, or what it writes.
// CHECK-LABEL: exec.program @writers
// CHECK: exec.task @inputs {
// CHECK-NEXT: %[[T:.*]] = exec.collective
// CHECK-NEXT: exec.kernel "exp"
// CHECK-NEXT: exec.wait %[[T]]
// CHECK-NEXT: exec.kernel "fill"
// CHECK: exec.task @outputs {
// CHECK-NEXT: %[[U:.*]] = exec.collective
// CHECK-NEXT: exec.kernel "exp"
// CHECK-NEXT: exec.wait %[[U]]
// CHECK-NEXT: exec.kernel "fill"
dist.mesh @mesh <"dp"=2, "tp"=2>
exec.program @writers on @mesh {
  %a = exec.buffer activation : memref<4xf32>
  %v = exec.view %a : memref<4xf32> to memref<2x2xf32>
  %g = exec.buffer activation : memref<8xf32>
  %c = exec.buffer activation : memref<4xf32>
  exec.task @inputs {
    exec.collective all_gather over ["dp"] (%a) to (%g) dims [0] split_dims [0] : (memref<4xf32>) -> memref<8xf32>
    exec.kernel "exp"(%c) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "fill"() to (%v) {} : () -> memref<2x2xf32>
  }
  exec.task @outputs {
    exec.collective all_gather over ["dp"] (%a) to (%g) dims [0] split_dims [0] : (memref<4xf32>) -> memref<8xf32>
    exec.kernel "exp"(%c) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "fill"() to (%g) {} : () -> memref<8xf32>
  }
  exec.run @inputs
  exec.run @outputs
}

// -----

// Where no kernel would overlap with it, a collective is what it was: needed at once, or only followed by collectives.
// CHECK-LABEL: exec.program @nothing_beside
// CHECK-NOT: exec.token
// CHECK-NOT: exec.wait
// CHECK: exec.run @last
dist.mesh @mesh <"dp"=2, "tp"=2>
exec.program @nothing_beside on @mesh {
  %a = exec.buffer activation : memref<4xf32>
  %b = exec.buffer activation : memref<4xf32>
  %g = exec.buffer activation : memref<8xf32>
  exec.task @at_once {
    exec.kernel "exp"(%b) to (%a) {} : (memref<4xf32>) -> memref<4xf32>
    exec.collective all_gather over ["dp"] (%a) to (%g) dims [0] split_dims [0] : (memref<4xf32>) -> memref<8xf32>
    exec.kernel "reduce"(%g) to (%a) {} : (memref<8xf32>) -> memref<4xf32>
  }
  exec.task @last {
    exec.kernel "exp"(%b) to (%a) {} : (memref<4xf32>) -> memref<4xf32>
    exec.collective all_reduce reducing sum over ["dp"] (%a) to (%a) dims [0] split_dims [0] : (memref<4xf32>) -> memref<4xf32>
    exec.collective all_reduce reducing sum over ["dp"] (%b) to (%b) dims [0] split_dims [0] : (memref<4xf32>) -> memref<4xf32>
  }
  exec.run @at_once
  exec.run @last
}

// -----

// Not needed in its task at all: the wait is at the task's end, since the next task may need it. Two that run at the same
// time end one by one; a collective that needs another's result waits for it.
// CHECK-LABEL: exec.program @several
// CHECK: exec.task @end {
// CHECK-NEXT: %[[T:.*]] = exec.collective all_reduce
// CHECK-NEXT: exec.kernel "exp"
// CHECK-NEXT: exec.wait %[[T]]
// CHECK-NEXT: {{^ *}}}
// CHECK: exec.task @two {
// CHECK-NEXT: %[[A:.*]] = exec.collective all_reduce
// CHECK-NEXT: %[[B:.*]] = exec.collective all_gather
// CHECK-NEXT: exec.kernel "exp"
// CHECK-NEXT: exec.wait %[[B]]
// CHECK-NEXT: exec.kernel "neg"
// CHECK-NEXT: exec.wait %[[A]]
// CHECK-NEXT: exec.kernel "abs"
// CHECK: exec.task @chain {
// CHECK-NEXT: %[[C:.*]] = exec.collective all_reduce
// CHECK-NEXT: exec.kernel "exp"
// CHECK-NEXT: exec.wait %[[C]]
// CHECK-NEXT: exec.collective all_gather
// CHECK-NEXT: exec.kernel "neg"
dist.mesh @mesh <"dp"=2, "tp"=2>
exec.program @several on @mesh {
  %a = exec.buffer activation : memref<4xf32>
  %b = exec.buffer activation : memref<4xf32>
  %c = exec.buffer activation : memref<4xf32>
  %g = exec.buffer activation : memref<8xf32>
  exec.task @end {
    exec.collective all_reduce reducing sum over ["dp"] (%a) to (%a) dims [0] split_dims [0] : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "exp"(%c) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
  }
  exec.task @two {
    exec.collective all_reduce reducing sum over ["dp"] (%a) to (%a) dims [0] split_dims [0] : (memref<4xf32>) -> memref<4xf32>
    exec.collective all_gather over ["dp"] (%b) to (%g) dims [0] split_dims [0] : (memref<4xf32>) -> memref<8xf32>
    exec.kernel "exp"(%c) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "neg"(%g) to (%g) {} : (memref<8xf32>) -> memref<8xf32>
    exec.kernel "abs"(%a) to (%a) {} : (memref<4xf32>) -> memref<4xf32>
  }
  exec.task @chain {
    exec.collective all_reduce reducing sum over ["dp"] (%a) to (%a) dims [0] split_dims [0] : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "exp"(%c) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
    exec.collective all_gather over ["dp"] (%a) to (%g) dims [0] split_dims [0] : (memref<4xf32>) -> memref<8xf32>
    exec.kernel "neg"(%g) to (%g) {} : (memref<8xf32>) -> memref<8xf32>
  }
  exec.run @end
  exec.run @two
  exec.run @chain
}

// -----

// A bucket ends when its first tensor is needed. A permutation keeps its axes, and running the pass again changes nothing.
// CHECK-LABEL: exec.program @buckets
// CHECK: %[[T:.*]] = exec.collective permute over ["dp", "tp"] from ["tp", "dp"](%{{.*}}, %{{.*}}) to(%{{.*}}, %{{.*}}) dims [0, 0] split_dims [0, 0] {{.*}}async !exec.token
// CHECK-NEXT: exec.kernel "exp"
// CHECK-NEXT: exec.wait %[[T]]
// CHECK-NEXT: exec.kernel "neg"
// CHECK-NEXT: exec.kernel "abs"
// CHECK-NOT: exec.wait
// CHECK: exec.run
dist.mesh @mesh <"dp"=2, "tp"=2>
exec.program @buckets on @mesh {
  %a = exec.buffer activation : memref<4xf32>
  %b = exec.buffer activation : memref<4xf32>
  %c = exec.buffer activation : memref<4xf32>
  %d = exec.buffer activation : memref<4xf32>
  %e = exec.buffer activation : memref<4xf32>
  exec.task @t {
    exec.collective permute over ["dp", "tp"] from ["tp", "dp"] (%a, %b) to (%c, %d) dims [0, 0] split_dims [0, 0] : (memref<4xf32>, memref<4xf32>) -> (memref<4xf32>, memref<4xf32>)
    exec.kernel "exp"(%e) to (%e) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "neg"(%d) to (%d) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "abs"(%c) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
  }
  exec.run @t
}

// -----

// Shards of states live anyway: three gathers of parameters run or wait at once. Of three that keep memory which could
// be used again, the first ends before the third starts; of three chunks (dist.chunk), which hold no more than the whole would, none
// does.
// CHECK-LABEL: exec.program @kept
// CHECK: exec.task @states {
// CHECK-NEXT: %[[A:.*]] = exec.collective
// CHECK-NEXT: %[[B:.*]] = exec.collective
// CHECK-NEXT: %[[C:.*]] = exec.collective
// CHECK-NEXT: exec.kernel "exp"
// CHECK: exec.task @activations {
// CHECK-NEXT: %{{.*}} = exec.collective
// CHECK-NEXT: exec.kernel "exp"
// CHECK-NEXT: %{{.*}} = exec.collective
// CHECK-NEXT: exec.wait
// CHECK-NEXT: %{{.*}} = exec.collective
// CHECK: exec.task @chunks {
// CHECK-NEXT: %{{.*}} = exec.collective
// CHECK-NEXT: exec.kernel "exp"
// CHECK-NEXT: %{{.*}} = exec.collective
// CHECK-NEXT: %{{.*}} = exec.collective
// CHECK-NEXT: exec.kernel "exp"
dist.mesh @mesh <"dp"=2>
exec.program @kept on @mesh {
  %w = exec.buffer parameter : memref<4xf32>
  exec.state "w" = %w shape [8] file_shape [8] sharding <@mesh, [{"dp"}]> : memref<4xf32>
  %a = exec.buffer activation : memref<4xf32>
  %c = exec.buffer activation : memref<4xf32>
  %g1 = exec.buffer activation : memref<8xf32>
  %g2 = exec.buffer activation : memref<8xf32>
  %g3 = exec.buffer activation : memref<8xf32>
  exec.task @states {
    exec.collective all_gather over ["dp"] (%w) to (%g1) dims [0] split_dims [0] : (memref<4xf32>) -> memref<8xf32>
    exec.collective all_gather over ["dp"] (%w) to (%g2) dims [0] split_dims [0] : (memref<4xf32>) -> memref<8xf32>
    exec.collective all_gather over ["dp"] (%w) to (%g3) dims [0] split_dims [0] : (memref<4xf32>) -> memref<8xf32>
    exec.kernel "exp"(%c) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
  }
  exec.task @activations {
    exec.collective all_gather over ["dp"] (%a) to (%g1) dims [0] split_dims [0] : (memref<4xf32>) -> memref<8xf32>
    exec.kernel "exp"(%c) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
    exec.collective all_gather over ["dp"] (%a) to (%g2) dims [0] split_dims [0] : (memref<4xf32>) -> memref<8xf32>
    exec.collective all_gather over ["dp"] (%a) to (%g3) dims [0] split_dims [0] : (memref<4xf32>) -> memref<8xf32>
    exec.kernel "exp"(%c) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
  }
  exec.task @chunks {
    exec.collective all_gather over ["dp"] (%a) to (%g1) dims [0] split_dims [0] {dist.chunk = 0 : i64} : (memref<4xf32>) -> memref<8xf32>
    exec.kernel "exp"(%c) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
    exec.collective all_gather over ["dp"] (%a) to (%g2) dims [0] split_dims [0] {dist.chunk = 1 : i64} : (memref<4xf32>) -> memref<8xf32>
    exec.collective all_gather over ["dp"] (%a) to (%g3) dims [0] split_dims [0] {dist.chunk = 2 : i64} : (memref<4xf32>) -> memref<8xf32>
    exec.kernel "exp"(%c) to (%c) {} : (memref<4xf32>) -> memref<4xf32>
  }
  exec.run @states
  exec.run @activations
  exec.run @chunks
}
