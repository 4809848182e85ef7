// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-expand-ring-attention | FileCheck %s

// The next shard of keys is on its way while there is work on the one before. Results of 16 bits are
// merged in f32, and rounded once.
// CHECK-LABEL: func @forward
// CHECK: %[[K1:.*]] = dist.permute %[[K:arg1]] over @mesh ["cp"] from ["cp"] {dist.reason = {{.*}}, shift = 1 : i64} : tensor<1x2x1x4xbf16>
// CHECK-NEXT: %[[V1:.*]] = dist.permute %[[V:arg2]] over @mesh ["cp"] from ["cp"] {{{.*}}shift = 1 : i64}
// CHECK-NEXT: %[[O0:.*]], %[[L0:.*]] = dtc.attention %arg0, %[[K]], %[[V]] {causal = true, key_shift = 0 : i64, scale = 1.000000e+00 : f64, sequence = 6 : i64, sequence_axes = ["cp"]}
// CHECK-NEXT: %[[W0:.*]] = dtc.convert %[[O0]] : (tensor<1x2x2x4xbf16>) -> tensor<1x2x2x4xf32>
// CHECK-NEXT: %[[K2:.*]] = dist.permute %[[K1]] {{.*}}shift = 1 : i64}
// CHECK-NEXT: %[[V2:.*]] = dist.permute %[[V1]] {{.*}}shift = 1 : i64}
// CHECK-NEXT: %[[O1:.*]], %[[L1:.*]] = dtc.attention %arg0, %[[K1]], %[[V1]] {{{.*}}key_shift = 1 : i64
// CHECK-NEXT: %[[M1:.*]], %[[ML1:.*]] = dtc.merge_attention %[[W0]], %[[L0]], %[[O1]], %[[L1]]
// CHECK-NEXT: %[[O2:.*]], %[[L2:.*]] = dtc.attention %arg0, %[[K2]], %[[V2]] {{{.*}}key_shift = 2 : i64
// CHECK-NEXT: %[[M2:.*]], %[[ML2:.*]] = dtc.merge_attention %[[M1]], %[[ML1]], %[[O2]], %[[L2]]
// CHECK-NEXT: %[[R:.*]] = dtc.convert %[[M2]] : (tensor<1x2x2x4xf32>) -> tensor<1x2x2x4xbf16>
// CHECK-NEXT: return %[[R]], %[[ML2]]
dist.mesh @mesh <"cp"=3>
func.func @forward(%q: tensor<1x2x2x4xbf16>, %k: tensor<1x2x1x4xbf16>, %v: tensor<1x2x1x4xbf16>)
    -> (tensor<1x2x2x4xbf16>, tensor<1x2x2xf32>) {
  %out, %lse = dtc.attention %q, %k, %v {causal = true, key_shift = 0, scale = 1.0, sequence = 6, sequence_axes = ["cp"]}
    : (tensor<1x2x2x4xbf16>, tensor<1x2x1x4xbf16>, tensor<1x2x1x4xbf16>) -> (tensor<1x2x2x4xbf16>, tensor<1x2x2xf32>)
  return %out, %lse : tensor<1x2x2x4xbf16>, tensor<1x2x2xf32>
}

// -----

// Gradients of keys and values travel with them, and at last home.
// CHECK-LABEL: func @backward
// CHECK: %[[K1:.*]] = dist.permute %arg1 {{.*}}shift = 1 : i64}
// CHECK-NEXT: %[[V1:.*]] = dist.permute %arg2 {{.*}}shift = 1 : i64}
// CHECK-NEXT: %[[DQ0:.*]], %[[DK0:.*]], %[[DV0:.*]] = dtc.attention_grad %arg0, %arg1, %arg2, {{.*}}key_shift = 0 : i64
// CHECK-NEXT: %[[DK:.*]] = dist.permute %[[DK0]] {{.*}}shift = 1 : i64}
// CHECK-NEXT: %[[DV:.*]] = dist.permute %[[DV0]] {{.*}}shift = 1 : i64}
// CHECK-NEXT: %[[DQ1:.*]], %[[DK1:.*]], %[[DV1:.*]] = dtc.attention_grad %arg0, %[[K1]], %[[V1]], {{.*}}key_shift = 1 : i64
// CHECK-NEXT: %[[DQ:.*]] = dtc.add %[[DQ0]], %[[DQ1]]
// CHECK-NEXT: %[[DKS:.*]] = dtc.add %[[DK]], %[[DK1]]
// CHECK-NEXT: %[[DVS:.*]] = dtc.add %[[DV]], %[[DV1]]
// CHECK-NEXT: %[[HOMEK:.*]] = dist.permute %[[DKS]] {{.*}}shift = 1 : i64}
// CHECK-NEXT: %[[HOMEV:.*]] = dist.permute %[[DVS]] {{.*}}shift = 1 : i64}
// CHECK-NEXT: return %[[DQ]], %[[HOMEK]], %[[HOMEV]]
dist.mesh @mesh <"cp"=2>
func.func @backward(%q: tensor<1x4x2x4xf32>, %k: tensor<1x4x1x4xf32>, %v: tensor<1x4x1x4xf32>, %out: tensor<1x4x2x4xf32>,
                    %lse: tensor<1x2x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x4x1x4xf32>, tensor<1x4x1x4xf32>) {
  %dq, %dk, %dv = dtc.attention_grad %q, %k, %v, %out, %lse, %q
    {causal = true, key_shift = 0, scale = 1.0, sequence = 8, sequence_axes = ["cp"], zigzag = 2}
    : (tensor<1x4x2x4xf32>, tensor<1x4x1x4xf32>, tensor<1x4x1x4xf32>, tensor<1x4x2x4xf32>, tensor<1x2x4xf32>, tensor<1x4x2x4xf32>)
    -> (tensor<1x4x2x4xf32>, tensor<1x4x1x4xf32>, tensor<1x4x1x4xf32>)
  return %dq, %dk, %dv : tensor<1x4x2x4xf32>, tensor<1x4x1x4xf32>, tensor<1x4x1x4xf32>
}

// -----

// A window of 3 reaches from 4 positions to the 4 before and no further.
// CHECK-LABEL: func @window
// CHECK: dist.permute
// CHECK: dist.permute
// CHECK: key_shift = 0 : i64
// CHECK-NOT: dist.permute
// CHECK: key_shift = 1 : i64
// CHECK-NOT: key_shift
dist.mesh @mesh <"cp"=4>
func.func @window(%q: tensor<1x4x2x4xf32>, %k: tensor<1x4x1x4xf32>) -> tensor<1x4x2x4xf32> {
  %out, %lse = dtc.attention %q, %k, %k {causal = true, key_shift = 0, scale = 1.0, sequence = 16, sequence_axes = ["cp"], window = 3}
    : (tensor<1x4x2x4xf32>, tensor<1x4x1x4xf32>, tensor<1x4x1x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %out : tensor<1x4x2x4xf32>
}

// -----

// In zigzag order a window reaches the neighbours on both sides: shifts 1 and 3 of 4.
// CHECK-LABEL: func @zigzag_window
// CHECK: shift = 1 : i64
// CHECK: key_shift = 0 : i64
// CHECK: shift = 2 : i64
// CHECK: key_shift = 1 : i64
// CHECK: key_shift = 3 : i64
// CHECK-NOT: key_shift
dist.mesh @mesh <"cp"=4>
func.func @zigzag_window(%q: tensor<1x4x2x4xf32>, %k: tensor<1x4x1x4xf32>) -> tensor<1x4x2x4xf32> {
  %out, %lse = dtc.attention %q, %k, %k
    {causal = true, key_shift = 0, scale = 1.0, sequence = 16, sequence_axes = ["cp"], window = 2, zigzag = 4}
    : (tensor<1x4x2x4xf32>, tensor<1x4x1x4xf32>, tensor<1x4x1x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %out : tensor<1x4x2x4xf32>
}

// -----

dist.mesh @mesh <"cp"=2>
func.func @not_split(%q: tensor<1x4x2x4xf32>, %k: tensor<1x4x1x4xf32>) -> tensor<1x4x2x4xf32> {
  // expected-error @below {{has keys that go round devices, but no axis splits its sequence}}
  %out, %lse = dtc.attention %q, %k, %k {causal = true, key_shift = 0, scale = 1.0}
    : (tensor<1x4x2x4xf32>, tensor<1x4x1x4xf32>, tensor<1x4x1x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return %out : tensor<1x4x2x4xf32>
}
