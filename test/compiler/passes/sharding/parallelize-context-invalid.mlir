// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-parallelize-context="exchange=all-to-all default-shard=heads=tp,seq=cp"

// Heads are over the axis as well as over those of theirs.
dist.mesh @mesh <"cp"=2, "tp"=1>
func.func @heads(%q: tensor<2x8x3x8xf32> {dtc.input = "q", dtc.axes = ["", "seq", "heads", ""]}) -> tensor<f32> {
  // expected-error@+1 {{context parallelism by all-to-all splits heads over cp, and 2 devices do not divide the 3 heads and 3 key-value heads; use fewer, or gather keys and values: --context-exchange all-gather}}
  %out, %lse = dtc.attention %q, %q, %q {causal = true, scale = 0.5} : (tensor<2x8x3x8xf32>, tensor<2x8x3x8xf32>, tensor<2x8x3x8xf32>) -> (tensor<2x8x3x8xf32>, tensor<2x3x8xf32>)
  %0 = dtc.reduce sum %out dims [0, 1, 2, 3] : (tensor<2x8x3x8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// The heads of queries are divided, those of keys and values are not.
dist.mesh @mesh <"cp"=2, "tp"=2>
func.func @key_value_heads(%q: tensor<2x8x8x8xf32> {dtc.input = "q", dtc.axes = ["", "seq", "heads", ""]}, %k: tensor<2x8x2x8xf32> {dtc.input = "k"}) -> tensor<f32> {
  // expected-error@+1 {{context parallelism by all-to-all splits heads over cp, and 4 devices do not divide the 8 heads and 2 key-value heads; use fewer, or gather keys and values: --context-exchange all-gather}}
  %out, %lse = dtc.attention %q, %k, %k {causal = true, scale = 0.5} : (tensor<2x8x8x8xf32>, tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>) -> (tensor<2x8x8x8xf32>, tensor<2x8x8xf32>)
  %0 = dtc.reduce sum %out dims [0, 1, 2, 3] : (tensor<2x8x8x8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
