// RUN: dtc-opt %s | dtc-opt | FileCheck %s

// CHECK-LABEL: func.func @rotary
func.func @rotary(%x: tensor<2x128x12x64xf32>) {
  // CHECK: dtc.rotary {{%[^ ,]+}} {inverse = false, theta = 1.000000e+04 : f64} : tensor<2x128x12x64xf32>
  %0 = dtc.rotary %x {inverse = false, theta = 1.000000e+04 : f64} : tensor<2x128x12x64xf32>
  // CHECK: dtc.rotary {{%[^ ,]+}} {inverse = true, theta = 5.000000e+05 : f64} : tensor<2x128x12x64xf32>
  %1 = dtc.rotary %x {inverse = true, theta = 5.000000e+05 : f64} : tensor<2x128x12x64xf32>
  return
}

// A table of frequencies, of all pairs or of the first ones.
// CHECK-LABEL: func.func @rotary_frequencies
func.func @rotary_frequencies(%x: tensor<2x8x2x8xf32>) {
  // CHECK: dtc.rotary {{%[^ ,]+}} {frequencies = array<f64: 1.000000e+00, 5.000000e-01, 2.500000e-01, 0.000000e+00>, inverse = false} : tensor<2x8x2x8xf32>
  %0 = dtc.rotary %x {frequencies = array<f64: 1.0, 0.5, 0.25, 0.0>, inverse = false} : tensor<2x8x2x8xf32>
  // CHECK: dtc.rotary {{%[^ ,]+}} {factor = 1.250000e+00 : f64, frequencies = array<f64: 1.000000e+00>, inverse = true} : tensor<2x8x2x8xf32>
  %1 = dtc.rotary %x {factor = 1.25, frequencies = array<f64: 1.0>, inverse = true} : tensor<2x8x2x8xf32>
  return
}

// Positions that count from one of each sample's own.
// CHECK-LABEL: func.func @rotary_from
func.func @rotary_from(%x: tensor<2x1x12x64xbf16>, %positions: tensor<2xi32>) {
  // CHECK: dtc.rotary {{%[^ ,]+}} from {{%[^ ,]+}} : tensor<2xi32> {inverse = false, theta = 1.000000e+04 : f64} : tensor<2x1x12x64xbf16>
  %0 = dtc.rotary %x from %positions : tensor<2xi32> {inverse = false, theta = 1.000000e+04 : f64} : tensor<2x1x12x64xbf16>
  return
}

// Positions of each row, as documents that are packed into it have them.
// CHECK-LABEL: func.func @rotary_from_each
func.func @rotary_from_each(%x: tensor<2x8x12x64xbf16>, %positions: tensor<2x8xi32>) {
  // CHECK: dtc.rotary {{%[^ ,]+}} from {{%[^ ,]+}} : tensor<2x8xi32> {inverse = false, theta = 1.000000e+04 : f64} : tensor<2x8x12x64xbf16>
  %0 = dtc.rotary %x from %positions : tensor<2x8xi32> {inverse = false, theta = 1.000000e+04 : f64} : tensor<2x8x12x64xbf16>
  return
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x2x16xf32>) {
  // CHECK: dtc.attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} {causal = true, scale = 2.500000e-01 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  %out, %lse = dtc.attention %q, %k, %k {causal = true, scale = 2.500000e-01 : f64} :
      (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>)
      -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  // CHECK: dtc.attention_grad {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} {causal = true, scale = 2.500000e-01 : f64} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x4x16xf32>, tensor<2x4x8xf32>, tensor<2x8x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>)
  %dq, %dk, %dv = dtc.attention_grad %q, %k, %k, %out, %lse, %q {causal = true, scale = 2.500000e-01 : f64} :
      (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x4x16xf32>, tensor<2x4x8xf32>, tensor<2x8x4x16xf32>)
      -> (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>)
  return
}

// CHECK-LABEL: func.func @attention_scores
func.func @attention_scores(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x2x16xf32>) {
  // CHECK: dtc.attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} {causal = true, scale = 2.500000e-01 : f64, softcap = 5.000000e+01 : f64, window = 3 : i64}
  %out, %lse = dtc.attention %q, %k, %k {causal = true, scale = 0.25, softcap = 50.0, window = 3} :
      (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  // CHECK: dtc.attention_grad {{.*}} {causal = true, scale = 2.500000e-01 : f64, softcap = 5.000000e+01 : f64, window = 3 : i64}
  %dq, %dk, %dv = dtc.attention_grad %q, %k, %k, %out, %lse, %q {causal = true, scale = 0.25, softcap = 50.0, window = 3} :
      (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x4x16xf32>, tensor<2x4x8xf32>, tensor<2x8x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>)
  return
}

// Packed documents; with a key as well, and where attention is not causal.
// CHECK-LABEL: func.func @attention_segments
func.func @attention_segments(%q: tensor<2x8x4x16xf32>, %k: tensor<2x9x2x16xf32>, %segments: tensor<2x9xi32>, %key: tensor<2xi32>) {
  // CHECK: dtc.attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} segments {{%[^ ,]+}} {causal = false, scale = 2.500000e-01 : f64} : (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9xi32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  %out, %lse = dtc.attention %q, %k, %k segments %segments {causal = false, scale = 0.25} : (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9xi32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  // CHECK: dtc.attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} segments {{%[^ ,]+}} key {{%[^ ,]+}} {causal = true, dropout = 1.000000e-01 : f64, scale = 2.500000e-01 : f64} : (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9xi32>, tensor<2xi32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  %0:2 = dtc.attention %q, %k, %k segments %segments key %key {causal = true, dropout = 0.1, scale = 0.25} : (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9xi32>, tensor<2xi32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  // CHECK: dtc.attention_grad {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} segments {{%[^ ,]+}} {causal = false, scale = 2.500000e-01 : f64} : (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x4x16xf32>, tensor<2x4x8xf32>, tensor<2x8x4x16xf32>, tensor<2x9xi32>) -> (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  %dq, %dk, %dv = dtc.attention_grad %q, %k, %k, %out, %lse, %q segments %segments {causal = false, scale = 0.25} : (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x4x16xf32>, tensor<2x4x8xf32>, tensor<2x8x4x16xf32>, tensor<2x9xi32>) -> (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// A score more for each query of a head; with segments and a key as well, and of 16 bits.
// CHECK-LABEL: func.func @attention_sinks
func.func @attention_sinks(%q: tensor<2x8x4x16xf32>, %k: tensor<2x9x2x16xf32>, %sinks: tensor<4xf32>, %segments: tensor<2x9xi32>, %key: tensor<2xi32>, %half: tensor<2x8x4x16xbf16>, %halves: tensor<4xbf16>) {
  // CHECK: dtc.attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} sinks {{%[^ ,]+}} {causal = true, scale = 2.500000e-01 : f64} : (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<4xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  %out, %lse = dtc.attention %q, %k, %k sinks %sinks {causal = true, scale = 0.25} : (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<4xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  // CHECK: dtc.attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} segments {{%[^ ,]+}} key {{%[^ ,]+}} sinks {{%[^ ,]+}} {causal = true, dropout = 1.000000e-01 : f64, scale = 2.500000e-01 : f64, window = 3 : i64} : (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9xi32>, tensor<2xi32>, tensor<4xf32>) -> (
  %0:2 = dtc.attention %q, %k, %k segments %segments key %key sinks %sinks {causal = true, dropout = 0.1, scale = 0.25, window = 3} : (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9xi32>, tensor<2xi32>, tensor<4xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  // CHECK: dtc.attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} sinks {{%[^ ,]+}} {causal = false, scale = 1.000000e+00 : f64} : (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<4xbf16>) -> (tensor<2x8x4x16xbf16>, tensor<2x4x8xf32>)
  %1:2 = dtc.attention %half, %half, %half sinks %halves {causal = false, scale = 1.0} : (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<4xbf16>) -> (tensor<2x8x4x16xbf16>, tensor<2x4x8xf32>)
  return
}

// CHECK-LABEL: func.func @cross_attention
func.func @cross_attention(%q: tensor<2x8x4x16xf32>, %k: tensor<2x5x4x16xf32>) {
  // CHECK: dtc.attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} {causal = false, scale = 1.000000e+00 : f64} : (tensor<2x8x4x16xf32>, tensor<2x5x4x16xf32>, tensor<2x5x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  %out, %lse = dtc.attention %q, %k, %k {causal = false, scale = 1.000000e+00 : f64} :
      (tensor<2x8x4x16xf32>, tensor<2x5x4x16xf32>, tensor<2x5x4x16xf32>)
      -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// CHECK-LABEL: func.func @cross_entropy
func.func @cross_entropy(%logits: tensor<4x8x32xf32>, %labels: tensor<4x8xi32>) {
  // CHECK: dtc.cross_entropy {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<4x8x32xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss, %lse = dtc.cross_entropy %logits, %labels :
      (tensor<4x8x32xf32>, tensor<4x8xi32>)
      -> (tensor<4x8xf32>, tensor<4x8xf32>)
  // CHECK: dtc.cross_entropy_grad {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<4x8x32xf32>, tensor<4x8xi32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8x32xf32>
  %0 = dtc.cross_entropy_grad %logits, %labels, %lse, %loss :
      (tensor<4x8x32xf32>, tensor<4x8xi32>, tensor<4x8xf32>, tensor<4x8xf32>)
      -> tensor<4x8x32xf32>
  return
}

// Attention whose softmax drops out has a key; a shard says where it lies in [batch, heads, queries, keys].
// CHECK-LABEL: func.func @attention_dropout
func.func @attention_dropout(%q: tensor<2x8x4x16xf32>, %k: tensor<2x9x2x16xf32>, %key: tensor<2xi32>) {
  // CHECK: dtc.attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} key {{%[^ ,]+}} {causal = true, dropout = 1.000000e-01 : f64, number = 7 : i64, scale = 2.500000e-01 : f64} : (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2xi32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  %out, %lse = dtc.attention %q, %k, %k key %key {causal = true, scale = 2.500000e-01 : f64, dropout = 1.000000e-01 : f64, number = 7} :
      (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2xi32>)
      -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  // CHECK: dtc.attention_grad {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} key {{%[^ ,]+}} {causal = true, dropout = 1.000000e-01 : f64, number = 7 : i64, scale = 2.500000e-01 : f64, shape = array<i64: 4, 8, 8, 9>, sharding = ["dp", "tp", "", ""]} : (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x4x16xf32>, tensor<2x4x8xf32>, tensor<2x8x4x16xf32>, tensor<2xi32>) -> (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  %dq, %dk, %dv = dtc.attention_grad %q, %k, %k, %out, %lse, %q key %key {causal = true, scale = 2.500000e-01 : f64, dropout = 1.000000e-01 : f64, number = 7, shape = array<i64: 4, 8, 8, 9>, sharding = ["dp", "tp", "", ""]} :
      (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x4x16xf32>, tensor<2x4x8xf32>, tensor<2x8x4x16xf32>, tensor<2xi32>)
      -> (tensor<2x8x4x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// Smoothing of labels; the gradient of a shard knows the whole number of classes.
// CHECK-LABEL: func.func @label_smoothing
func.func @label_smoothing(%logits: tensor<4x32xf32>, %labels: tensor<4xi32>) {
  // CHECK: dtc.cross_entropy {{%[^ ,]+}}, {{%[^ ,]+}} {label_smoothing = 1.000000e-01 : f64} : (tensor<4x32xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %loss, %lse = dtc.cross_entropy %logits, %labels {label_smoothing = 1.000000e-01 : f64} : (tensor<4x32xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: dtc.cross_entropy_grad {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} {classes = 64 : i64, label_smoothing = 1.000000e-01 : f64} : (tensor<4x32xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x32xf32>
  %0 = dtc.cross_entropy_grad %logits, %labels, %lse, %loss {classes = 64, label_smoothing = 1.000000e-01 : f64} : (tensor<4x32xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x32xf32>
  return
}

// In zigzag order, and a shard of a sequence.
// CHECK-LABEL: func.func @rotary_order
func.func @rotary_order(%x: tensor<2x8x4x16xf32>, %first: tensor<2xi32>) {
  // CHECK: dtc.rotary {{%[^ ,]+}} {inverse = false, theta = 1.000000e+04 : f64, zigzag = 2 : i64} : tensor<2x8x4x16xf32>
  %0 = dtc.rotary %x {inverse = false, theta = 1.0e4, zigzag = 2} : tensor<2x8x4x16xf32>
  // CHECK: dtc.rotary {{%[^ ,]+}} from {{%[^ ,]+}} : tensor<2xi32> {inverse = false, sequence = 15 : i64, sequence_axes = ["cp"], theta = 1.000000e+04 : f64} : tensor<2x8x4x16xf32>
  %1 = dtc.rotary %x from %first : tensor<2xi32> {inverse = false, sequence = 15, sequence_axes = ["cp"], theta = 1.0e4} : tensor<2x8x4x16xf32>
  return
}

// CHECK-LABEL: func.func @attention_order
func.func @attention_order(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x2x16xf32>) {
  // CHECK: dtc.attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} {causal = true, scale = 2.500000e-01 : f64, zigzag = 4 : i64} : (
  %out, %lse = dtc.attention %q, %k, %k {causal = true, scale = 0.25, zigzag = 4} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  // CHECK: dtc.attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} {causal = true, scale = 2.500000e-01 : f64, sequence = 32 : i64, sequence_axes = ["cp.0", "cp.1"], zigzag = 2 : i64} : (
  %0:2 = dtc.attention %q, %k, %k {causal = true, scale = 0.25, sequence = 32, sequence_axes = ["cp.0", "cp.1"], zigzag = 2} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  // CHECK: dtc.attention_grad {{.*}} {causal = true, scale = 2.500000e-01 : f64, sequence = 32 : i64, sequence_axes = ["cp.0", "cp.1"], zigzag = 2 : i64} : (
  %dq, %dk, %dv = dtc.attention_grad %q, %k, %k, %out, %lse, %q {causal = true, scale = 0.25, sequence = 32, sequence_axes = ["cp.0", "cp.1"], zigzag = 2} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x4x16xf32>, tensor<2x4x8xf32>, tensor<2x8x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>)
  return
}

// Keys that lie as the queries do; with them, segments of the whole sequence.
// CHECK-LABEL: func.func @attention_key_shift
func.func @attention_key_shift(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x2x16xf32>, %segments: tensor<2x32xi32>) {
  // CHECK: dtc.attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} {causal = true, key_shift = 0 : i64, scale = 2.500000e-01 : f64} : (
  %0:2 = dtc.attention %q, %k, %k {causal = true, key_shift = 0, scale = 0.25} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  // CHECK: dtc.attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} segments {{%[^ ,]+}} {causal = true, key_shift = 1 : i64, scale = 2.500000e-01 : f64, sequence = 32 : i64, sequence_axes = ["cp"], zigzag = 4 : i64} : (
  %out, %lse = dtc.attention %q, %k, %k segments %segments {causal = true, key_shift = 1, scale = 0.25, sequence = 32, sequence_axes = ["cp"], zigzag = 4} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>, tensor<2x32xi32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  // CHECK: dtc.attention_grad {{.*}} {causal = true, key_shift = 3 : i64, scale = 2.500000e-01 : f64, sequence = 31 : i64, sequence_axes = ["cp"]} : (
  %dq, %dk, %dv = dtc.attention_grad %q, %k, %k, %out, %lse, %q {causal = true, key_shift = 3, scale = 0.25, sequence = 31, sequence_axes = ["cp"]} : (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x4x16xf32>, tensor<2x4x8xf32>, tensor<2x8x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>)
  return
}

// CHECK-LABEL: func.func @merge_attention
func.func @merge_attention(%out: tensor<2x8x4x16xf32>, %lse: tensor<2x4x8xf32>, %half: tensor<2x8x4x16xbf16>) {
  // CHECK: dtc.merge_attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>, tensor<2x8x4x16xf32>, tensor<2x4x8xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  %0:2 = dtc.merge_attention %out, %lse, %out, %lse : (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>, tensor<2x8x4x16xf32>, tensor<2x4x8xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  // CHECK: dtc.merge_attention {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>, tensor<2x8x4x16xbf16>, tensor<2x4x8xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  %merged, %merged_lse = dtc.merge_attention %0#0, %0#1, %half, %lse : (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>, tensor<2x8x4x16xbf16>, tensor<2x4x8xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}
