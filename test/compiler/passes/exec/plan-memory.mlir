// RUN: dtc-opt %s --split-input-file --dtc-plan-memory | FileCheck %s

// A chain of three: the first and the third are never in use at the same time. Offsets are multiples of 64.
// CHECK-LABEL: exec.program @reuse
// CHECK-SAME: {arena_bytes = 192 : i64, arena_lower_bound = 192 : i64, memory_by_kind = {activation = 192 : i64}}
// CHECK: exec.buffer activation at 0 : memref<20xf32>
// CHECK: exec.buffer activation at 128 : memref<4xf32>
// CHECK: exec.buffer activation at 0 : memref<20xf32>
dist.mesh @mesh <>
exec.program @reuse on @mesh {
  %a = exec.buffer activation : memref<20xf32>
  %b = exec.buffer activation : memref<4xf32>
  %c = exec.buffer activation : memref<20xf32>
  exec.task @step {
    exec.kernel "fill"() to (%a) {} : () -> memref<20xf32>
    exec.kernel "reduce"(%a) to (%b) {} : (memref<20xf32>) -> memref<4xf32>
    exec.kernel "broadcast"(%b) to (%c) {} : (memref<4xf32>) -> memref<20xf32>
  }
  exec.run @step
}

// -----

// States live always, inputs from the start, outputs to the end; the kinds are counted where the most bytes are alive.
// A byte holds a bool.
// CHECK-LABEL: exec.program @kinds
// CHECK-SAME: {arena_bytes = 512 : i64, arena_lower_bound = 512 : i64, memory_by_kind = {constant = 64 : i64, gradient = 128 : i64, input = 64 : i64, optimizer_state = 128 : i64, output = 64 : i64, parameter = 64 : i64}}
// CHECK: exec.buffer parameter at 0 : memref<16xf32>
// CHECK: exec.buffer optimizer_state at 64 : memref<16xf64>
// CHECK: exec.buffer input at 256 : memref<64xi1>
// CHECK: exec.buffer gradient at 384 : memref<32xf32>
// CHECK: exec.buffer constant at 320 : memref<f32>
// CHECK: exec.buffer output at 192 : memref<4xf32>
dist.mesh @mesh <>
exec.program @kinds on @mesh {
  %w = exec.buffer parameter : memref<16xf32>
  exec.state "w" = %w shape [16] file_shape [16] sharding <@mesh, [{}]> : memref<16xf32>
  %m = exec.buffer optimizer_state : memref<16xf64>
  exec.state "w.m" of "w" = %m shape [16] file_shape [16] sharding <@mesh, [{}]> : memref<16xf64>
  %x = exec.buffer input : memref<64xi1>
  exec.input "data" "x" = %x shape [64] sharding <@mesh, [{}]> : memref<64xi1>
  %g = exec.buffer gradient : memref<32xf32>
  %k = exec.buffer constant : memref<f32>
  %y = exec.buffer output : memref<4xf32>
  exec.output "y" = %y shape [4] sharding <@mesh, [{}]> : memref<4xf32>
  exec.task @step {
    exec.kernel "fill"() to (%y) {} : () -> memref<4xf32>
    exec.kernel "fill"() to (%k) {} : () -> memref<f32>
    exec.kernel "use"(%k, %x) to (%g) {} : (memref<f32>, memref<64xi1>) -> memref<32xf32>
    exec.kernel "use"(%g) to (%w) {} : (memref<32xf32>) -> memref<16xf32>
  }
  exec.run @step
}

// -----

// A view is a use of its buffer: %a stays where it is until %v is read, and %c does not take its place.
// CHECK-LABEL: exec.program @views
// CHECK-SAME: {arena_bytes = 192 : i64, arena_lower_bound = 192 : i64, memory_by_kind = {activation = 192 : i64}}
// CHECK: exec.buffer activation at 0 : memref<4x4xf32>
// CHECK: exec.buffer activation at 64 : memref<16xf32>
// CHECK: exec.buffer activation at 128 : memref<16xf32>
dist.mesh @mesh <>
exec.program @views on @mesh {
  %a = exec.buffer activation : memref<4x4xf32>
  %u = exec.view %a : memref<4x4xf32> to memref<8x2xf32>
  %v = exec.view %u : memref<8x2xf32> to memref<16xf32>
  %b = exec.buffer activation : memref<16xf32>
  %c = exec.buffer activation : memref<16xf32>
  exec.task @step {
    exec.kernel "fill"() to (%a) {} : () -> memref<4x4xf32>
    exec.kernel "fill"() to (%b) {} : () -> memref<16xf32>
    exec.kernel "exp"(%b) to (%c) {} : (memref<16xf32>) -> memref<16xf32>
    exec.kernel "add"(%v, %c) to (%c) {} : (memref<16xf32>, memref<16xf32>) -> memref<16xf32>
  }
  exec.run @step
}

// -----

// The microbatches read %x and what was prepared in %p again and again, and the sum %s grows: nothing of a microbatch may
// take their places, even after the last instruction that reads them or before the first that writes them. %a, %b and %c are of
// one microbatch only: %c takes the place of %a, and %d, which comes after, that of an input.
// CHECK-LABEL: exec.program @microbatches
// CHECK-SAME: {arena_bytes = 320 : i64, arena_lower_bound = 320 : i64, memory_by_kind = {activation = 192 : i64, gradient = 64 : i64, input = 64 : i64}}
// CHECK: exec.buffer input at 0 : memref<16xf32>
// CHECK: exec.buffer activation at 64 : memref<16xf32>
// CHECK: exec.buffer activation at 192 : memref<16xf32>
// CHECK: exec.buffer activation at 256 : memref<16xf32>
// CHECK: exec.buffer activation at 192 : memref<16xf32>
// CHECK: exec.buffer gradient at 128 : memref<16xf32>
// CHECK: exec.buffer activation at 0 : memref<16xf32>
dist.mesh @mesh <"micro"=2 temporal>
exec.program @microbatches on @mesh {
  %x = exec.buffer input : memref<16xf32>
  exec.input "data" "x" = %x shape [16] sharding <@mesh, [{}]> : memref<16xf32>
  %p = exec.buffer activation : memref<16xf32>
  %a = exec.buffer activation : memref<16xf32>
  %b = exec.buffer activation : memref<16xf32>
  %c = exec.buffer activation : memref<16xf32>
  %s = exec.buffer gradient : memref<16xf32>
  %d = exec.buffer activation : memref<16xf32>
  exec.task @prepare {
    exec.kernel "fill"() to (%p) {} : () -> memref<16xf32>
  }
  exec.task @microbatch {
    exec.kernel "add"(%x, %p) to (%a) {} : (memref<16xf32>, memref<16xf32>) -> memref<16xf32>
    exec.kernel "exp"(%a) to (%b) {} : (memref<16xf32>) -> memref<16xf32>
    exec.kernel "exp"(%b) to (%c) {} : (memref<16xf32>) -> memref<16xf32>
    exec.kernel "accumulate"(%c) to (%s) {axis = "micro"} : (memref<16xf32>) -> memref<16xf32>
  }
  exec.task @update {
    exec.kernel "exp"(%s) to (%d) {} : (memref<16xf32>) -> memref<16xf32>
  }
  exec.run @prepare
  exec.run @microbatch
  exec.run @microbatch microbatch 1
  exec.run @update
}

// -----

// A sum that nothing reads afterwards still lives from microbatch to microbatch.
// CHECK-LABEL: exec.program @only_sum
// CHECK-SAME: {arena_bytes = 128 : i64, arena_lower_bound = 128 : i64, memory_by_kind = {activation = 64 : i64, gradient = 64 : i64}}
// CHECK: exec.buffer activation at 0 : memref<16xf32>
// CHECK: exec.buffer gradient at 64 : memref<16xf32>
dist.mesh @mesh <"micro"=2 temporal>
exec.program @only_sum on @mesh {
  %a = exec.buffer activation : memref<16xf32>
  %s = exec.buffer gradient : memref<16xf32>
  exec.task @microbatch {
    exec.kernel "fill"() to (%a) {} : () -> memref<16xf32>
    exec.kernel "accumulate"(%a) to (%s) {axis = "micro"} : (memref<16xf32>) -> memref<16xf32>
  }
  exec.run @microbatch
  exec.run @microbatch microbatch 1
}

// -----

// A task that does not run uses nothing, and a program may be empty. Offsets that are there are replaced.
// CHECK-LABEL: exec.program @unused
// CHECK-SAME: {arena_bytes = 64 : i64, arena_lower_bound = 64 : i64, memory_by_kind = {activation = 64 : i64}}
// CHECK: exec.buffer activation at 0 : memref<16xf32>
dist.mesh @mesh <>
exec.program @unused on @mesh attributes {arena_bytes = 6400} {
  %a = exec.buffer activation at 6400 : memref<16xf32>
  exec.task @never {
    exec.kernel "fill"() to (%a) {} : () -> memref<16xf32>
  }
}

// -----

// CHECK: exec.program @empty on @mesh attributes {arena_bytes = 0 : i64, arena_lower_bound = 0 : i64, memory_by_kind = {}} {
dist.mesh @mesh <>
exec.program @empty on @mesh {
}
