// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-schedule-pipeline

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
// expected-error@+1 {{'func.func' op has 0 loops over microbatches, expected one without a schedule; run dtc-spmd-partition first}}
func.func @no_loop(%x: tensor<4xf32> {dtc.input = "x"}) {
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
// expected-error@+1 {{'func.func' op has 2 loops over microbatches, expected one without a schedule}}
func.func @two_loops(%x: tensor<4xf32> {dtc.input = "x"}) {
  dist.microbatch_loop @mesh "micro" {
  }
  dist.microbatch_loop @mesh "micro" {
  }
  return
}

// -----

// A pipeline is scheduled once.
dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
// expected-error@+1 {{'func.func' op has 1 loops over microbatches, expected one without a schedule}}
func.func @scheduled(%x: tensor<4xf32> {dtc.input = "x"}) {
  dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0>} {
    dist.fragment forward 0 {
    }
  }
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline>
// expected-error@+1 {{a pipeline works on microbatches, and the mesh has no temporal axis}}
func.func @no_time(%x: tensor<4xf32> {dtc.input = "x"}) {
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
func.func @too_few_stages(%x: tensor<4xf32> {dtc.input = "x"}) {
  // expected-error@+1 {{'dist.microbatch_loop' op has 1 stages, expected 2 for 2 devices of 1; run dtc-partition-stages with as many chunks}}
  dist.microbatch_loop @mesh "micro" {
    %0 = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
  }
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
func.func @too_many_stages(%x: tensor<4xf32> {dtc.input = "x"}) {
  // expected-error@+1 {{'dist.microbatch_loop' op has 4 stages, expected 2 for 2 devices of 1}}
  dist.microbatch_loop @mesh "micro" {
    %0 = dtc.exp %x {dist.stage = #dist.stage<3 forward>} : tensor<4xf32>
  }
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
func.func @no_stages(%x: tensor<4xf32> {dtc.input = "x"}) {
  // expected-error@+1 {{'dist.microbatch_loop' op has 0 stages, expected 2 for 2 devices of 1}}
  dist.microbatch_loop @mesh "micro" {
    %0 = dtc.exp %x : tensor<4xf32>
  }
  return
}

// -----

// Values flow forward along the stages and back again.
dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
func.func @against(%x: tensor<4xf32> {dtc.input = "x"}) {
  dist.microbatch_loop @mesh "micro" {
    // expected-note@+1 {{the value is made here}}
    %0 = dtc.exp %x {dist.stage = #dist.stage<1 forward>} : tensor<4xf32>
    // expected-error@+1 {{runs in the forward pass of stage 0 and needs a value of the forward pass of stage 1, which comes later}}
    %1 = dtc.exp %0 {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
  }
  return
}

// -----

// Also through an op that has no stage of its own.
dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
func.func @backwards(%x: tensor<4xf32> {dtc.input = "x"}) {
  dist.microbatch_loop @mesh "micro" {
    // expected-note@+1 {{the value is made here}}
    %0 = dtc.exp %x {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
    // expected-error@+1 {{runs in the backward pass of stage 1 and needs a value of the backward pass of stage 0, which comes later}}
    %1 = dtc.exp %0 {dist.stage = #dist.stage<1 backward>} : tensor<4xf32>
  }
  return
}
