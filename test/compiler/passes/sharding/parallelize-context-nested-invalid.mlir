// RUN: dtc-opt %s --verify-diagnostics --dtc-parallelize-context="head-devices=2 default-shard=heads=tp,seq=cp"

// Two devices along cp and two along tp split heads.
dist.mesh @mesh <"cp.0"=2 of "cp", "cp.1"=2 of "cp", "tp"=2>
func.func @heads(%q: tensor<2x8x8x8xf32> {dtc.input = "q", dtc.axes = ["", "seq", "heads", ""]}, %k: tensor<2x8x2x8xf32> {dtc.input = "k"}) -> tensor<f32> {
  // expected-error@+1 {{groups of 2 devices along cp split heads, and 4 devices do not divide the 8 heads and 2 key-value heads; use smaller groups: --context-heads}}
  %out, %lse = dtc.attention %q, %k, %k {causal = true, scale = 0.5} : (tensor<2x8x8x8xf32>, tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>) -> (tensor<2x8x8x8xf32>, tensor<2x8x8xf32>)
  %0 = dtc.reduce sum %out dims [0, 1, 2, 3] : (tensor<2x8x8x8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
