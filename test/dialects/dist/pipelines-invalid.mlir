// RUN: dtc-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{mesh axis "pp" is temporal and a pipeline, expected one of both [axis-c3]}}
dist.mesh @mesh <"pp"=2 temporal pipeline>

// -----

// expected-error@+1 {{'dist.mesh' op has 2 pipeline axes, expected at most one [mesh-c4]}}
dist.mesh @mesh <"pp"=2 pipeline, "qq"=2 pipeline>

// -----

// expected-error@+1 {{'dist.mesh' op has devices of 0.000000e+00 operations or bytes a second, expected more than 0 [mesh-c3]}}
dist.mesh @mesh <> {device_flops = 0.0}

// -----

// expected-error@+1 {{'dist.mesh' op has devices of -1.000000e+00 operations or bytes a second, expected more than 0 [mesh-c3]}}
dist.mesh @mesh <> {device_flops = 1.0, device_bandwidth = -1.0}

// -----

// expected-error@+1 {{stage -1 does not exist; stages count from 0 [stage-c1]}}
module attributes {note = #dist.stage<-1 forward>} {
}

// -----

// expected-error@+2 {{failed to parse Dist_StageAttr parameter 'pass'}}
// expected-error@+1 {{found "sideways", expected one of forward, backward, weight}}
module attributes {note = #dist.stage<0 sideways>} {
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @stage(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dtc.exp' op has 'dist.stage' = 1 : i64, expected a #dist.stage [dist-c1]}}
  %0 = dtc.exp %x {dist.stage = 1} : tensor<4xf32>
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @fragment_outside(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dist.fragment' op expects parent op 'dist.microbatch_loop'}}
  dist.fragment forward 0 {
  }
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @fragment_in_fragment(%x: tensor<4xf32>) {
  dist.microbatch_loop @mesh "micro" {
    dist.fragment forward 0 {
      // expected-error@+1 {{'dist.fragment' op expects parent op 'dist.microbatch_loop'}}
      dist.fragment forward 0 {
      }
    }
  }
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @fragment_yield(%x: tensor<4xf32>) {
  dist.microbatch_loop @mesh "micro" {
    // expected-error@+1 {{'dist.fragment' op yields values of types ('tensor<4xf32>'), expected those of its results ('tensor<2xf32>') [fragment-c2]}}
    %0 = dist.fragment forward 0 -> tensor<2xf32> {
      dist.yield %x : tensor<4xf32>
    }
  }
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @fragment_yields_nothing(%x: tensor<4xf32>) {
  dist.microbatch_loop @mesh "micro" {
    // expected-error@+1 {{'dist.fragment' op yields values of types (), expected those of its results ('tensor<4xf32>') [fragment-c2]}}
    %0 = dist.fragment forward 0 -> tensor<4xf32> {
    }
  }
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @fragment_pass(%x: tensor<4xf32>) {
  dist.microbatch_loop @mesh "micro" {
    // expected-error@+2 {{failed to parse Dist_StagePassAttr}}
    // expected-error@+1 {{found "sideways", expected one of forward, backward, weight}}
    dist.fragment sideways 0 {
    }
  }
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @other_op(%x: tensor<4xf32>) {
  dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0>} {
    // expected-error@+1 {{'dtc.exp' op cannot stand in a loop with a schedule, which holds fragments, sends and receives [microbatch_loop-c6]}}
    %0 = dtc.exp %x : tensor<4xf32>
  }
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @no_such_op(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dist.microbatch_loop' op has 2 at place 0 of its schedule, expected pairs of one of its 1 ops and one of 2 microbatches [microbatch_loop-c5]}}
  dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 2, 0>} {
    dist.fragment forward 0 {
    }
  }
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @negative_op(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dist.microbatch_loop' op has -1 at place 2 of its schedule, expected pairs of one of its 1 ops and one of 2 microbatches [microbatch_loop-c5]}}
  dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 1, -1, 0>} {
    dist.fragment forward 0 {
    }
  }
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @negative_microbatch(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dist.microbatch_loop' op has -1 at place 1 of its schedule, expected pairs of one of its 1 ops and one of 2 microbatches [microbatch_loop-c5]}}
  dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, -1>} {
    dist.fragment forward 0 {
    }
  }
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @odd(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dist.microbatch_loop' op has a schedule of 3 numbers, expected pairs [microbatch_loop-c4]}}
  dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 1, 0>} {
    dist.fragment forward 0 {
    }
  }
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @sends_nothing(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dist.send' op moves no value [send-c1]}}
  "dist.send"() <{peer = 1 : i64, channel = 0 : i64}> : () -> ()
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @receives_nothing(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dist.receive' op moves no value [receive-c1]}}
  "dist.receive"() <{peer = 1 : i64, channel = 0 : i64}> : () -> ()
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @send_peer(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dist.send' op has the peer -1 and the channel 0, expected at least 0 of each [send-c2]}}
  dist.send %x to -1 channel 0 : tensor<4xf32>
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @send_channel(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dist.send' op has the peer 1 and the channel -2, expected at least 0 of each [send-c2]}}
  dist.send %x to 1 channel -2 : tensor<4xf32>
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @receive_peer(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dist.receive' op has the peer -1 and the channel 0, expected at least 0 of each [receive-c2]}}
  %0 = dist.receive from -1 channel 0 : tensor<4xf32>
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @receive_channel(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dist.receive' op has the peer 1 and the channel -2, expected at least 0 of each [receive-c2]}}
  %0 = dist.receive from 1 channel -2 : tensor<4xf32>
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @send_numbers(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dist.send' op has the numbers [1] for 2 values, expected one of at least 0 for each [send-c3]}}
  dist.send %x, %x to 1 channel 0 : tensor<4xf32>, tensor<4xf32> as [1]
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @receive_numbers() {
  // expected-error@+1 {{'dist.receive' op has the numbers [-1] for 1 values, expected one of at least 0 for each [receive-c3]}}
  %0 = dist.receive from 1 channel 0 : tensor<4xf32> as [-1]
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @send_type(%x: tensor<4xf32>) {
  %0 = builtin.unrealized_conversion_cast to i32
  // expected-error@+1 {{'dist.send' op operand #0 must be variadic of statically shaped tensor of}}
  dist.send %0 to 1 channel 0 : i32
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @fragment_stage(%x: tensor<4xf32>) {
  dist.microbatch_loop @mesh "micro" {
    // expected-error@+1 {{'dist.fragment' op is in stage -1, which does not exist; stages count from 0 [fragment-c1]}}
    dist.fragment forward -1 {
    }
  }
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

func.func @microbatch(%x: tensor<4xf32>) {
  // expected-error@+1 {{'dist.microbatch_loop' op has 2 at place 1 of its schedule, expected pairs of one of its 1 ops and one of 2 microbatches [microbatch_loop-c5]}}
  dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 2>} {
    dist.fragment forward 0 {
    }
  }
  return
}

// -----

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>

// expected-error@+1 {{argument 0 is sharded over "pp", the pipeline, which splits no tensor [sharding-c6]}}
func.func private @split_by_the_pipeline(tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{"pp"}]>})
