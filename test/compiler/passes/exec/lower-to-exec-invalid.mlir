// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-lower-to-exec

// expected-error@+1 {{'builtin.module' op has no dist.mesh}}
module {
}

// -----

dist.mesh @mesh <>
// expected-error@+1 {{'dist.mesh' op is a second mesh beside @mesh}}
dist.mesh @other <>

// -----

dist.mesh @mesh <>
// expected-error@+1 {{'func.func' op is not partitioned: argument 0 has no global shape; run dtc-spmd-partition first}}
func.func @argument(%x: tensor<4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  return
}

// -----

dist.mesh @mesh <>
// expected-error@+1 {{'func.func' op is not partitioned: result 0 has no global shape; run dtc-spmd-partition first}}
func.func @result() -> tensor<4xf32> {
  %0 = dtc.constant dense<1.0> : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <>
// expected-error@+1 {{'func.func' op argument 0 is neither a parameter nor an input; give it dtc.param or dtc.input}}
func.func @nameless(%x: tensor<4xf32> {dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  return
}

// -----

dist.mesh @mesh <>
// expected-error@+1 {{'func.func' op argument 0 is a part of the optimizer's state and does not say of which parameter; give it dtc.state_of}}
func.func @slot(%x: tensor<4xf32> {dtc.state = "exp_avg", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  return
}

// -----

dist.mesh @mesh <>
func.func private @g() -> tensor<4xf32>
func.func @call() {
  // expected-error@+1 {{'func.call' op has no kernel; implement KernelOpInterface}}
  %0 = func.call @g() : () -> tensor<4xf32>
  return
}

// -----

dist.mesh @mesh <>
func.func @memref() {
  // expected-error@+1 {{'memref.alloc' op result 0 has type 'memref<4xf32>', expected a ranked tensor}}
  %0 = memref.alloc() : memref<4xf32>
  return
}

// -----

dist.mesh @mesh <>
// expected-error@+1 {{'func.func' op has branches, expected straight-line code}}
func.func @branches() {
  return
^unreachable:
  return
}

// -----

dist.mesh @mesh <"micro"=2 temporal>
func.func @two_loops() {
  dist.microbatch_loop @mesh "micro" {
  }
  // expected-error@+1 {{'dist.microbatch_loop' op is a second loop over microbatches, expected one in a program}}
  dist.microbatch_loop @mesh "micro" {
  }
  return
}

// -----

dist.mesh @mesh <"micro"=2 temporal>
func.func @nested_loops() {
  dist.microbatch_loop @mesh "micro" {
    // expected-error@+1 {{'dist.microbatch_loop' op is a second loop over microbatches}}
    dist.microbatch_loop @mesh "micro" {
    }
  }
  return
}

// -----

// The new value of a state is a state.
dist.mesh @mesh <>
// expected-error@+1 {{'func.func' op result 0 updates argument 0, expected a parameter, a part of the optimizer's state, a cache or a step state}}
func.func @updates(%x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {dtc.updates = 0, dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  return %x : tensor<4xf32>
}

// -----

dist.mesh @mesh <>
func.func @one_name(%x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {dtc.output = "y", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<4xf32> {dtc.output = "y", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  // expected-error@+1 {{'exec.output' op repeats the name 'y'}}
  %0 = dtc.exp %x : tensor<4xf32>
  return %0, %0 : tensor<4xf32>, tensor<4xf32>
}
