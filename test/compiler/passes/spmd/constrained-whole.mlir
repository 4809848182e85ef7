// RUN: dtc-opt %s --verify-diagnostics --dtc-propagate-shardings --dtc-insert-reshards --dtc-spmd-partition

// A value of a microbatch that the user wants whole: microbatches cannot see each other. The value and both layouts are named.
dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
func.func @whole(%x: tensor<8x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {}]>}) -> tensor<8x4xf32> {
  // expected-error@+1 {{a value of shape 'tensor<8x4xf32>' that each microbatch has a part of ([{"dp", "micro"}, {}]) is needed as a whole ([{}, {}]); microbatches cannot see each other; use one microbatch, or an op that does not mix samples}}
  %0 = dtc.exp %x : tensor<8x4xf32>
  %1 = dist.constrain %0 to <@mesh, [{}, {}]> : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
