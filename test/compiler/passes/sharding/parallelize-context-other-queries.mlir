// RUN: dtc-opt %s --dtc-parallelize-context="exchange=all-gather default-shard=seq=cp" | FileCheck %s

// Of another sequence's queries the keys are put back into their order.
// CHECK-LABEL: func.func @other_queries(
// CHECK: %[[OUT:.*]], %{{.*}} = dtc.attention {{.*}}zigzag = 2
// CHECK-DAG: %[[K:.*]] = dtc.zigzag %[[OUT]] {dim = 1 : i64, inverse = true, parts = 2 : i64}
// CHECK-DAG: %[[V:.*]] = dtc.zigzag %[[OUT]] {dim = 1 : i64, inverse = true, parts = 2 : i64}
// CHECK: dtc.attention %arg1, %{{.*}}, %{{.*}} {causal = false, scale = 1.000000e+00 : f64}
dist.mesh @mesh <"cp"=2>
func.func @other_queries(%q: tensor<1x8x2x4xf32> {dtc.input = "q", dtc.axes = ["", "seq", "", ""]}, %p: tensor<1x4x2x4xf32> {dtc.input = "p"}) -> tensor<f32> {
  %out, %lse = dtc.attention %q, %q, %q {causal = true, scale = 1.0}
    : (tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x2x4xf32>, tensor<1x2x8xf32>)
  %o2, %l2 = dtc.attention %p, %out, %out {causal = false, scale = 1.0}
    : (tensor<1x4x2x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  %0 = dtc.reduce sum %o2 dims [0, 1, 2, 3] : (tensor<1x4x2x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
