// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-lower-to-exec

// A send starts with the end of the fragment before it.
dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
func.func @send_first(%w: tensor<4xf32> {dtc.param = "w", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0>} {
    // expected-error@+1 {{'dist.send' op has no fragment before it in the loop}}
    dist.send %w to 1 channel 0 : tensor<4xf32>
  }
  return
}

// -----

// Also where a receive is before it.
dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
func.func @receive_first() {
  dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0, 1, 0>} {
    %0 = dist.receive from 1 channel 1 : tensor<4xf32>
    // expected-error@+1 {{'dist.send' op has no fragment before it in the loop}}
    dist.send %0 to 1 channel 0 : tensor<4xf32>
  }
  return
}

// -----

// One loop in a program, with a schedule or without.
dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
func.func @two_loops() {
  dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0>} {
    dist.fragment forward 0 {
    }
  }
  // expected-error@+1 {{'dist.microbatch_loop' op is a second loop over microbatches, expected one in a program}}
  dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0>} {
    dist.fragment forward 0 {
    }
  }
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
func.func @nested() {
  dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0>} {
    dist.fragment forward 0 {
      // expected-error@+1 {{'dist.microbatch_loop' op is a second loop over microbatches}}
      dist.microbatch_loop @mesh "micro" {
      }
    }
  }
  return
}
