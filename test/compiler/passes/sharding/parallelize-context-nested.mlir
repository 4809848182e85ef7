// RUN: dtc-opt %s --dtc-parallelize-context="head-devices=2 exchange=ring default-shard=heads=tp,seq=cp" | FileCheck %s --check-prefixes=CHECK,RING
// RUN: dtc-opt %s --dtc-parallelize-context="head-devices=2 exchange=all-gather default-shard=heads=tp,seq=cp" | FileCheck %s --check-prefixes=CHECK,GATHER
// RUN: dtc-opt %s --dtc-parallelize-context="head-devices=2 exchange=ring shard=heads=cp.1+tp default-shard=seq=cp" | FileCheck %s --check-prefixes=CHECK,RING
// RUN: not dtc-opt %s --dtc-parallelize-context="head-devices=3 default-shard=heads=tp,seq=cp" 2>&1 | FileCheck %s --check-prefix=THREE
// RUN: not dtc-opt %s --dtc-parallelize-context="head-devices=8 default-shard=heads=tp,seq=cp" 2>&1 | FileCheck %s --check-prefix=EIGHT

// Two neighbours split heads, which tp splits before; the four pairs split the sequence all the same. Between the pairs
// keys and values go round, or are gathered in the order of their sequence. The zigzag order is that of the pairs.
// THREE: head-devices is 3, expected the devices along the last sub-axes of cp, but not along all of them
// EIGHT: head-devices is 8, expected the devices along the last sub-axes of cp, but not along all of them
dist.mesh @mesh <"cp.0"=4 of "cp", "cp.1"=2 of "cp", "tp"=2>
// CHECK-LABEL: func.func @nested(
// CHECK: %[[Q:[^ ]*]] = dtc.zigzag %{{.*}} parts = 4
// CHECK: %[[PLACED:[^ ]*]] = dist.constrain %[[Q]] to <@mesh, [{?}, {"cp.0", "cp.1"}, {"tp"}, {}]>
// CHECK-NEXT: %[[SPLIT:[^ ]*]] = dist.constrain %[[PLACED]] to <@mesh, [{?}, {"cp.0"}, {"tp", "cp.1"}, {}]>
// RING: dtc.attention %[[SPLIT]], %{{[^ ]*}}, %{{[^ ]*}} {causal = true, key_shift = 0 : i64, scale = 5.000000e-01 : f64, zigzag = 4 : i64}
// GATHER: dtc.zigzag {{.*}} inverse = true, parts = 4
// GATHER: dtc.attention %[[SPLIT]], %{{[^ ]*}}, %{{[^ ]*}} {causal = true, scale = 5.000000e-01 : f64, zigzag = 4 : i64}
func.func @nested(%q: tensor<2x16x8x8xf32> {dtc.input = "q", dtc.axes = ["", "seq", "heads", ""]}) -> tensor<f32> {
  %out, %lse = dtc.attention %q, %q, %q {causal = true, scale = 0.5} : (tensor<2x16x8x8xf32>, tensor<2x16x8x8xf32>, tensor<2x16x8x8xf32>) -> (tensor<2x16x8x8xf32>, tensor<2x8x16xf32>)
  %0 = dtc.reduce sum %out dims [0, 1, 2, 3] : (tensor<2x16x8x8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
