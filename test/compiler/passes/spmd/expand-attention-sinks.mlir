// RUN: dtc-opt %s --split-input-file --dtc-expand-attention-sinks | FileCheck %s

// With l the lse of the keys and z the sink of a head, the lse is z + softplus(l - z), and the output of the keys is
// multiplied by sigmoid(l - z). An lse that is not used is corrected all the same.
// CHECK-LABEL: func.func @wide(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x8x4x16xf32>, %[[K:[^:]*]]: tensor<2x8x2x16xf32>, %[[SINKS:[^:]*]]: tensor<4xf32>
// CHECK-NEXT: %[[OUT:[^ ,]+]], %[[L:[^ ,]+]] = dtc.attention %[[Q]], %[[K]], %[[K]] {causal = true, scale = 2.500000e-01 : f64, window = 3 : i64} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
// CHECK-NEXT: %[[Z:.*]] = dtc.broadcast %[[SINKS]] dims [1] : (tensor<4xf32>) -> tensor<2x4x8xf32>
// CHECK-NEXT: %[[MORE:.*]] = dtc.sub %[[L]], %[[Z]] : tensor<2x4x8xf32>
// CHECK-NEXT: %[[LOG:.*]] = dtc.softplus %[[MORE]] : tensor<2x4x8xf32>
// CHECK-NEXT: dtc.add %[[Z]], %[[LOG]] : tensor<2x4x8xf32>
// CHECK-NEXT: %[[SHARE:.*]] = dtc.sigmoid %[[MORE]] : tensor<2x4x8xf32>
// CHECK-NEXT: %[[ROWS:.*]] = dtc.transpose %[[SHARE]] permutation [0, 2, 1] : (tensor<2x4x8xf32>) -> tensor<2x8x4xf32>
// CHECK-NEXT: %[[FACTORS:.*]] = dtc.broadcast %[[ROWS]] dims [0, 1, 2] : (tensor<2x8x4xf32>) -> tensor<2x8x4x16xf32>
// CHECK-NEXT: %[[SCALED:.*]] = dtc.mul %[[OUT]], %[[FACTORS]] : tensor<2x8x4x16xf32>
// CHECK-NEXT: return %[[SCALED]]
func.func @wide(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x2x16xf32>, %sinks: tensor<4xf32>) -> tensor<2x8x4x16xf32> {
  %out, %lse = dtc.attention %q, %k, %k sinks %sinks {causal = true, scale = 0.25, window = 3}
    : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>, tensor<4xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return %out : tensor<2x8x4x16xf32>
}

// -----

// Of 16 bits the factors are f32, and the product is rounded once. All that is made is on the stage of attention. Its
// gradient, and whatever else there is, reads the corrected results.
// CHECK-LABEL: func.func @low(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<1x4x2x8xbf16>, %[[K:[^:]*]]: tensor<1x4x1x8xbf16>, %[[SINKS:[^:]*]]: tensor<2xbf16>, %[[DOUT:[^:]*]]: tensor<1x4x2x8xbf16>
// CHECK-NEXT: %[[OUT:[^ ,]+]], %[[L:[^ ,]+]] = dtc.attention %[[Q]], %[[K]], %[[K]] {causal = true, dist.stage = #dist.stage<1 forward>, scale = 1.000000e+00 : f64}
// CHECK-NEXT: %[[WIDE:.*]] = dtc.convert %[[SINKS]] {dist.stage = #dist.stage<1 forward>} : (tensor<2xbf16>) -> tensor<2xf32>
// CHECK-NEXT: %[[Z:.*]] = dtc.broadcast %[[WIDE]] dims [1] {dist.stage = #dist.stage<1 forward>} : (tensor<2xf32>) -> tensor<1x2x4xf32>
// CHECK-NEXT: %[[MORE:.*]] = dtc.sub %[[L]], %[[Z]] {dist.stage = #dist.stage<1 forward>}
// CHECK-NEXT: %[[LOG:.*]] = dtc.softplus %[[MORE]] {dist.stage = #dist.stage<1 forward>}
// CHECK-NEXT: %[[LSE:.*]] = dtc.add %[[Z]], %[[LOG]] {dist.stage = #dist.stage<1 forward>} : tensor<1x2x4xf32>
// CHECK-NEXT: %[[SHARE:.*]] = dtc.sigmoid %[[MORE]] {dist.stage = #dist.stage<1 forward>}
// CHECK-NEXT: %[[ROWS:.*]] = dtc.transpose %[[SHARE]] permutation [0, 2, 1] {dist.stage = #dist.stage<1 forward>}
// CHECK-NEXT: %[[FACTORS:.*]] = dtc.broadcast %[[ROWS]] dims [0, 1, 2] {dist.stage = #dist.stage<1 forward>} : (tensor<1x4x2xf32>) -> tensor<1x4x2x8xf32>
// CHECK-NEXT: %[[UNROUNDED:.*]] = dtc.convert %[[OUT]] {dist.stage = #dist.stage<1 forward>} : (tensor<1x4x2x8xbf16>) -> tensor<1x4x2x8xf32>
// CHECK-NEXT: %[[SCALED:.*]] = dtc.mul %[[UNROUNDED]], %[[FACTORS]] {dist.stage = #dist.stage<1 forward>}
// CHECK-NEXT: %[[ROUNDED:.*]] = dtc.convert %[[SCALED]] {dist.stage = #dist.stage<1 forward>} : (tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xbf16>
// CHECK-NEXT: dtc.attention_grad %[[Q]], %[[K]], %[[K]], %[[ROUNDED]], %[[LSE]], %[[DOUT]] {causal = true, dist.stage = #dist.stage<1 backward>, scale = 1.000000e+00 : f64}
// CHECK-NEXT: return %[[ROUNDED]], %[[LSE]], %
func.func @low(%q: tensor<1x4x2x8xbf16>, %k: tensor<1x4x1x8xbf16>, %sinks: tensor<2xbf16>, %dout: tensor<1x4x2x8xbf16>)
    -> (tensor<1x4x2x8xbf16>, tensor<1x2x4xf32>, tensor<1x4x2x8xbf16>) {
  %out, %lse = dtc.attention %q, %k, %k sinks %sinks {causal = true, dist.stage = #dist.stage<1 forward>, scale = 1.0}
    : (tensor<1x4x2x8xbf16>, tensor<1x4x1x8xbf16>, tensor<1x4x1x8xbf16>, tensor<2xbf16>) -> (tensor<1x4x2x8xbf16>, tensor<1x2x4xf32>)
  %dq, %dk, %dv = dtc.attention_grad %q, %k, %k, %out, %lse, %dout {causal = true, dist.stage = #dist.stage<1 backward>, scale = 1.0}
    : (tensor<1x4x2x8xbf16>, tensor<1x4x1x8xbf16>, tensor<1x4x1x8xbf16>, tensor<1x4x2x8xbf16>, tensor<1x2x4xf32>, tensor<1x4x2x8xbf16>)
    -> (tensor<1x4x2x8xbf16>, tensor<1x4x1x8xbf16>, tensor<1x4x1x8xbf16>)
  return %out, %lse, %dq : tensor<1x4x2x8xbf16>, tensor<1x2x4xf32>, tensor<1x4x2x8xbf16>
}

// -----

// Segments and keys of masks stay with attention; an op with a key_shift is left to the ring.
// CHECK-LABEL: func.func @others(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<1x4x2x8xf64>, %[[SINKS:[^:]*]]: tensor<2xf64>, %[[SEGMENTS:[^:]*]]: tensor<1x4xi32>, %[[KEY:[^:]*]]: tensor<2xi32>
// CHECK-NEXT: dtc.attention %[[Q]], %[[Q]], %[[Q]] segments %[[SEGMENTS]] key %[[KEY]] {causal = true, dropout = 1.250000e-01 : f64, scale = 1.000000e+00 : f64} : (tensor<1x4x2x8xf64>, tensor<1x4x2x8xf64>, tensor<1x4x2x8xf64>, tensor<1x4xi32>, tensor<2xi32>)
// CHECK-NEXT: dtc.broadcast %[[SINKS]] dims [1] : (tensor<2xf64>) -> tensor<1x2x4xf64>
// CHECK-NOT: dtc.convert
// CHECK: dtc.mul
// CHECK-NEXT: %[[RING:[^ ,]+]], %[[L:[^ ,]+]] = dtc.attention %{{[^ ]*}}, %[[Q]], %[[Q]] {causal = true, key_shift = 0 : i64, scale = 1.000000e+00 : f64} : (tensor<1x4x2x8xf64>, tensor<1x4x2x8xf64>, tensor<1x4x2x8xf64>) ->
// CHECK: %[[LAST:.*]] = dtc.mul %[[RING]], %
// CHECK-NEXT: return %[[LAST]]
func.func @others(%q: tensor<1x4x2x8xf64>, %sinks: tensor<2xf64>, %segments: tensor<1x4xi32>, %key: tensor<2xi32>) -> tensor<1x4x2x8xf64> {
  %0:2 = dtc.attention %q, %q, %q segments %segments key %key sinks %sinks {causal = true, dropout = 0.125, scale = 1.0}
    : (tensor<1x4x2x8xf64>, tensor<1x4x2x8xf64>, tensor<1x4x2x8xf64>, tensor<1x4xi32>, tensor<2xi32>, tensor<2xf64>) -> (tensor<1x4x2x8xf64>, tensor<1x2x4xf64>)
  %1:2 = dtc.attention %0#0, %q, %q sinks %sinks {causal = true, key_shift = 0, scale = 1.0}
    : (tensor<1x4x2x8xf64>, tensor<1x4x2x8xf64>, tensor<1x4x2x8xf64>, tensor<2xf64>) -> (tensor<1x4x2x8xf64>, tensor<1x2x4xf64>)
  return %1#0 : tensor<1x4x2x8xf64>
}

// -----

// Uses within a loop are replaced too.
// CHECK-LABEL: func.func @loop(
// CHECK: dtc.attention
// CHECK: %[[SCALED:.*]] = dtc.mul
// CHECK-NEXT: dist.microbatch_loop
// CHECK-NEXT: dtc.reduce sum %[[SCALED]]
dist.mesh @mesh <"micro"=2 temporal>
func.func @loop(%q: tensor<1x4x2x8xf32>, %sinks: tensor<2xf32>) -> tensor<f32> {
  %out, %lse = dtc.attention %q, %q, %q sinks %sinks {causal = true, scale = 1.0}
    : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<2xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x2x4xf32>)
  %0 = dist.microbatch_loop @mesh "micro" : tensor<f32> {
    %1 = dtc.reduce sum %out dims [0, 1, 2, 3] : (tensor<1x4x2x8xf32>) -> tensor<f32>
    dist.yield %1 : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

// Attention without sinks stays as it is.
// CHECK-LABEL: func.func @none(
// CHECK-NEXT: %[[OUT:[^ ,]+]], %{{[^ ,]+}} = dtc.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} {causal = true, scale = 1.000000e+00 : f64}
// CHECK-NEXT: return %[[OUT]]
func.func @none(%q: tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32> {
  %out, %lse = dtc.attention %q, %q, %q {causal = true, scale = 1.0}
    : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x2x4xf32>)
  return %out : tensor<1x4x2x8xf32>
}
