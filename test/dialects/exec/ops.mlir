// RUN: dtc-opt %s | dtc-opt | FileCheck %s
// RUN: dtc-opt %s --mlir-print-op-generic | dtc-opt | FileCheck %s
// RUN: dtc-opt %s --emit-bytecode | dtc-opt | FileCheck %s

dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=4 temporal>

// CHECK-LABEL: exec.program @step on @mesh {
exec.program @step on @mesh {
  // CHECK: %[[W:.*]] = exec.buffer parameter : memref<4x8xf32>
  %w = exec.buffer parameter : memref<4x8xf32>
  // CHECK: exec.state "w" = %[[W]] shape [8, 8] file_shape [64] sharding <@mesh, [{"tp"}, {}]> init(#dtc.normal<2.000000e-02>) : memref<4x8xf32>
  exec.state "w" = %w shape [8, 8] file_shape [64] sharding <@mesh, [{"tp"}, {}]> init(#dtc.normal<2.0e-2>) : memref<4x8xf32>
  // CHECK: %[[M:.*]] = exec.buffer optimizer_state : memref<4x8xf32>
  %m = exec.buffer optimizer_state : memref<4x8xf32>
  // CHECK: exec.state "w.exp_avg" of "w" = %[[M]] shape [8, 8] file_shape [8, 8] sharding <@mesh, [{"tp"}, {}]> : memref<4x8xf32>
  exec.state "w.exp_avg" of "w" = %m shape [8, 8] file_shape [8, 8] sharding <@mesh, [{"tp"}, {}]> : memref<4x8xf32>
  // CHECK: %[[X:.*]] = exec.buffer input : memref<8xi32>
  %x = exec.buffer input : memref<8xi32>
  // CHECK: exec.input "data" "tokens" = %[[X]] shape [16] sharding <@mesh, [{"dp"}]> limit 256 : memref<8xi32>
  exec.input "data" "tokens" = %x shape [16] sharding <@mesh, [{"dp"}]> limit 256 : memref<8xi32>
  // CHECK: %[[RATE:.*]] = exec.buffer input : memref<f32>
  %rate = exec.buffer input : memref<f32>
  // CHECK: exec.input "batches" "batches" = %[[RATE]] shape [] sharding <@mesh, []> : memref<f32>
  exec.input "batches" "batches" = %rate shape [] sharding <@mesh, []> : memref<f32>
  // CHECK: %[[STEP:.*]] = exec.buffer input : memref<f32>
  %step = exec.buffer input : memref<f32>
  // CHECK: exec.input "batches" "another" = %[[STEP]]
  exec.input "batches" "another" = %step shape [] sharding <@mesh, []> : memref<f32>

  // CHECK: %[[G:.*]] = exec.buffer gradient : memref<8x8xf64>
  %g = exec.buffer gradient : memref<8x8xf64>
  // CHECK: %[[A:.*]] = exec.buffer activation : memref<8x8xf64>
  %a = exec.buffer activation : memref<8x8xf64>
  // CHECK: %[[R:.*]] = exec.reuse %[[A]] : memref<8x8xf64>
  %r = exec.reuse %a : memref<8x8xf64>
  // CHECK: %[[U:.*]] = exec.reuse %[[W]] : memref<4x8xf32>
  %u = exec.reuse %w : memref<4x8xf32>
  // CHECK: exec.update "w" = %[[U]] : memref<4x8xf32>
  exec.update "w" = %u : memref<4x8xf32>
  // CHECK: %[[V:.*]] = exec.view %[[A]] : memref<8x8xf64> to memref<64xf64>
  %v = exec.view %a : memref<8x8xf64> to memref<64xf64>
  // CHECK: exec.buffer constant : memref<i1>
  %c = exec.buffer constant : memref<i1>
  // CHECK: %[[O:.*]] = exec.buffer output : memref<64xf64>
  %o = exec.buffer output : memref<64xf64>
  // CHECK: exec.output "loss" = %[[O]] shape [64] sharding <@mesh, [{}]> : memref<64xf64>
  exec.output "loss" = %o shape [64] sharding <@mesh, [{}]> : memref<64xf64>
  // CHECK: exec.output "counts" = %[[O]] shape [64] sharding <@mesh, [{}]> {metric} : memref<64xf64>
  exec.output "counts" = %o shape [64] sharding <@mesh, [{}]> {metric} : memref<64xf64>
  // CHECK: exec.output "lost" = %[[O]] shape [128] sharding <@mesh, [{"tp"}]> {metric, must_be_zero} : memref<64xf64>
  exec.output "lost" = %o shape [128] sharding <@mesh, [{"tp"}]> {must_be_zero, metric} : memref<64xf64>

  // CHECK: exec.task @microbatch {
  exec.task @microbatch {
    // CHECK: exec.kernel "add"(%[[G]], %[[A]]) to(%[[R]]) {} : (memref<8x8xf64>, memref<8x8xf64>) -> memref<8x8xf64>
    exec.kernel "add"(%g, %a) to (%r) {} : (memref<8x8xf64>, memref<8x8xf64>) -> memref<8x8xf64>
    // CHECK: exec.kernel "fill"() to(%[[V]], %[[O]]) {note = "x", value = 1.000000e+00 : f64} {flops = 6.400000e+01 : f64} : () -> (memref<64xf64>, memref<64xf64>)
    exec.kernel "fill"() to (%v, %o) {value = 1.0, note = "x"} {flops = 64.0} : () -> (memref<64xf64>, memref<64xf64>)
  }
  // CHECK: exec.task @update {
  exec.task @update {
    // CHECK: exec.collective all_reduce reducing sum over ["dp", "tp"](%[[V]]) to(%[[O]]) dims [0] split_dims [0] : (memref<64xf64>) -> memref<64xf64>
    exec.collective all_reduce reducing sum over ["dp", "tp"] (%v) to (%o) dims [0] split_dims [0] : (memref<64xf64>) -> memref<64xf64>
    // CHECK: exec.collective reduce_scatter reducing max over ["dp"](%[[W]]) to(%[[W]]) dims [1] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32>
    exec.collective reduce_scatter reducing max over ["dp"] (%w) to (%w) dims [1] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32>
    // CHECK: exec.collective all_gather over ["tp"](%[[W]]) to(%[[M]]) dims [0] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32>
    exec.collective all_gather over ["tp"] (%w) to (%m) dims [0] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32>
    // CHECK: exec.collective all_to_all over ["tp"](%[[W]]) to(%[[M]]) dims [1] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32>
    exec.collective all_to_all over ["tp"] (%w) to (%m) dims [1] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32>
  }
  // CHECK: exec.run @microbatch
  // CHECK-NEXT: exec.run @microbatch microbatch 1
  // CHECK-NEXT: exec.run @update
  exec.run @microbatch
  exec.run @microbatch microbatch 1
  exec.run @update
}

// Buckets, permutations, reasons, and collectives that overlap with kernels.
// CHECK-LABEL: exec.program @collectives on @mesh {
exec.program @collectives on @mesh {
  // CHECK: %[[A:.*]] = exec.buffer activation : memref<4x8xf32>
  %a = exec.buffer activation : memref<4x8xf32>
  // CHECK: %[[B:.*]] = exec.buffer activation : memref<6xf32>
  %b = exec.buffer activation : memref<6xf32>
  // CHECK: %[[C:.*]] = exec.buffer activation : memref<8x8xf32>
  %c = exec.buffer activation : memref<8x8xf32>
  // CHECK: %[[D:.*]] = exec.buffer activation : memref<12xf32>
  %d = exec.buffer activation : memref<12xf32>
  // CHECK: exec.task @t {
  exec.task @t {
    // CHECK-NEXT: exec.collective all_gather over ["dp"](%[[A]], %[[B]]) to(%[[C]], %[[D]]) dims [1, 0] split_dims [0, 0] {reasons = [{op = "dtc.add"}, {}]} : (memref<4x8xf32>, memref<6xf32>) -> (memref<8x8xf32>, memref<12xf32>)
    exec.collective all_gather over ["dp"] (%a, %b) to (%c, %d) dims [1, 0] split_dims [0, 0] {reasons = [{op = "dtc.add"}, {}]} : (memref<4x8xf32>, memref<6xf32>) -> (memref<8x8xf32>, memref<12xf32>)
    // CHECK-NEXT: exec.collective permute over ["dp", "tp"] from ["tp", "dp"](%[[A]]) to(%[[A]]) dims [0] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32>
    exec.collective permute over ["dp", "tp"] from ["tp", "dp"] (%a) to (%a) dims [0] split_dims [0] : (memref<4x8xf32>) -> memref<4x8xf32>
  }
}

// CHECK-LABEL: exec.program @planned on @mesh attributes {arena_bytes = 128 : i64, arena_lower_bound = 128 : i64, memory_by_kind = {activation = 64 : i64}} {
exec.program @planned on @mesh attributes {arena_bytes = 128, arena_lower_bound = 128, memory_by_kind = {activation = 64}} {
  // CHECK: exec.buffer activation at 64 : memref<2xf32>
  %a = exec.buffer activation at 64 : memref<2xf32>
}

// CHECK-LABEL: exec.program @empty on @mesh {
// CHECK-NEXT: }
exec.program @empty on @mesh {
}

// A further entry point, what lives across steps beside parameters, and a loop that may run again.
// CHECK-LABEL: exec.program @decode on @mesh entry "decode" {
// CHECK-NEXT: %[[C:.*]] = exec.buffer cache : memref<4xf32>
// CHECK-NEXT: exec.state "keys" cache = %[[C]] shape [4] file_shape [4]
// CHECK: exec.input "batches" "batches"
// CHECK: exec.run @t in_loop
// CHECK-NEXT: exec.run @t microbatch 1 in_loop
// CHECK-NEXT: exec.run @t{{$}}
exec.program @decode on @mesh entry "decode" {
  %c = exec.buffer cache : memref<4xf32>
  exec.state "keys" cache = %c shape [4] file_shape [4] sharding <@mesh, [{}]> : memref<4xf32>
  %n = exec.buffer input : memref<f32>
  exec.input "batches" "batches" = %n shape [] sharding <@mesh, []> : memref<f32>
  exec.task @t {
  }
  exec.run @t in_loop
  exec.run @t microbatch 1 in_loop
  exec.run @t
}
