// RUN: dtc-opt %s --split-input-file --dtc-parallelize-context="exchange=all-gather default-shard=heads=tp,seq=cp" | FileCheck %s --check-prefixes=CHECK,GATHER
// RUN: dtc-opt %s --split-input-file --dtc-parallelize-context="exchange=all-to-all default-shard=heads=tp,seq=cp" | FileCheck %s --check-prefixes=CHECK,SWAP
// RUN: dtc-opt %s --split-input-file --dtc-parallelize-context="exchange=ring default-shard=heads=tp,seq=cp" | FileCheck %s --check-prefixes=CHECK,RING
// RUN: dtc-opt %s --split-input-file --dtc-parallelize-context="exchange=all-gather zigzag=false default-shard=seq=cp" | FileCheck %s --check-prefixes=ORDER
// RUN: dtc-opt %s --split-input-file --dtc-parallelize-context="exchange=all-gather axis=sp default-shard=seq=cp" | FileCheck %s --check-prefixes=ORDER

// Nothing is in zigzag order if that is not wanted, or if no axis splits sequences.
// ORDER-NOT: zigzag
// ORDER-NOT: dist.constrain

// Arguments and other values that positions come from are put into zigzag order, with the name of their dimension; a
// constant of equal elements is not. Rotary embeddings by place know the order, those by positions of their own have
// these in order. Gathered keys, values and segments are as they were; keys and values that go round are in the order of
// the queries. Heads are over the axes of theirs first.
// CHECK-LABEL: func.func @sources(
// GATHER-SAME: %[[X:[^:]*]]: tensor<2x8x4x8xf32> {dtc.axes = ["batch", "", "heads", ""], dtc.input = "x"}
// GATHER-SAME: %[[WPE:[^:]*]]: tensor<8x4x8xf32> {dtc.axes = ["", "heads", ""], dtc.param = "wpe"}
// GATHER-SAME: %[[SEGMENTS:[^:]*]]: tensor<2x8xi32> {dtc.axes = ["batch", ""], dtc.input = "segments"}
// GATHER-SAME: %{{[^:]*}}: tensor<4x8xf32> {dtc.axes = ["heads", ""], dtc.param = "w"}
// GATHER-DAG: %[[ZX:[^ ]*]] = dtc.zigzag %[[X]] {dim = 1 : i64, dtc.axes = ["batch", "seq", "heads", ""], inverse = false, parts = 2 : i64}
// GATHER-DAG: %[[ZWPE:[^ ]*]] = dtc.zigzag %[[WPE]] {dim = 0 : i64, dtc.axes = ["seq", "heads", ""], inverse = false, parts = 2 : i64}
// GATHER-DAG: %[[ZSEGMENTS:[^ ]*]] = dtc.zigzag %[[SEGMENTS]] {dim = 1 : i64, dtc.axes = ["batch", "seq"], inverse = false, parts = 2 : i64}
// GATHER: %[[P:[^ ]*]] = dtc.broadcast %[[ZWPE]]
// GATHER: %[[E:[^ ]*]] = dtc.add %[[ZX]], %[[P]]
// GATHER: %[[Q:[^ ]*]] = dtc.rotary %[[E]] {inverse = false, theta = 1.000000e+04 : f64, zigzag = 2 : i64}
// GATHER: %[[ONE:[^ ]*]] = dtc.constant dense<1.000000e+00>
// GATHER-NEXT: %[[TABLE:[^ ]*]] = dtc.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]>
// GATHER-NEXT: %[[ZTABLE:[^ ]*]] = dtc.zigzag %[[TABLE]] {dim = 0 : i64, inverse = false, parts = 2 : i64}
// GATHER-NEXT: %[[EACH:[^ ]*]] = dtc.broadcast %[[ZTABLE]]
// GATHER: %[[K:[^ ]*]] = dtc.rotary %[[E]] from %[[EACH]] : tensor<2x8xi32> {inverse = false, theta = 1.000000e+04 : f64}
// GATHER: %[[V:[^ ]*]] = dtc.mul %[[E]], %[[ONE]]
// GATHER-DAG: %[[KEYS:[^ ]*]] = dtc.zigzag %[[K]] {dim = 1 : i64, inverse = true, parts = 2 : i64}
// GATHER-DAG: %[[VALUES:[^ ]*]] = dtc.zigzag %[[V]] {dim = 1 : i64, inverse = true, parts = 2 : i64}
// GATHER-DAG: %[[NUMBERS:[^ ]*]] = dtc.zigzag %[[ZSEGMENTS]] {dim = 1 : i64, inverse = true, parts = 2 : i64}
// GATHER: %[[OUT:[^ ]*]], %{{[^ ]*}} = dtc.attention %[[Q]], %[[KEYS]], %[[VALUES]] segments %[[NUMBERS]] {causal = true, scale = 5.000000e-01 : f64, zigzag = 2 : i64}
// GATHER-NEXT: dtc.add %[[OUT]], %[[E]]
// RING: %[[SEGMENTS:[^:]*]]: tensor<2x8xi32> {dtc.axes = ["batch", "seq"], dtc.input = "segments"}
// RING: dtc.rotary %{{[^ ]*}} {inverse = false, theta = 1.000000e+04 : f64, zigzag = 2 : i64}
// RING-NOT: inverse = true
// RING: dtc.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} segments %[[SEGMENTS]] {causal = true, key_shift = 0 : i64, scale = 5.000000e-01 : f64, zigzag = 2 : i64}
// SWAP-SAME: tensor<2x8x4x8xf32> {dtc.axes = ["batch", "seq", "heads", ""], dtc.input = "x"}
// SWAP-NOT: dtc.zigzag
// SWAP: %[[Q:[^ ]*]] = dtc.rotary %{{[^ ]*}} {inverse = false, theta = 1.000000e+04 : f64}
// SWAP: %[[K:[^ ]*]] = dtc.rotary
// SWAP: %[[V:[^ ]*]] = dtc.mul
// SWAP-NEXT: %[[PHQ:[^ ]*]] = dist.constrain %[[Q]] to <@mesh, [{?}, {"cp"}, {"tp"}, {}]>
// SWAP-NEXT: %[[HQ:[^ ]*]] = dist.constrain %[[PHQ]] to <@mesh, [{?}, {}, {"tp", "cp"}, {}]>
// SWAP-NEXT: %[[PHK:[^ ]*]] = dist.constrain %[[K]] to <@mesh, [{?}, {"cp"}, {"tp"}, {}]>
// SWAP-NEXT: %[[HK:[^ ]*]] = dist.constrain %[[PHK]] to <@mesh, [{?}, {}, {"tp", "cp"}, {}]>
// SWAP-NEXT: %[[PHV:[^ ]*]] = dist.constrain %[[V]] to <@mesh, [{?}, {"cp"}, {"tp"}, {}]>
// SWAP-NEXT: %[[HV:[^ ]*]] = dist.constrain %[[PHV]] to <@mesh, [{?}, {}, {"tp", "cp"}, {}]>
// SWAP-NEXT: %[[OUT:[^ ]*]], %{{[^ ]*}} = dtc.attention %[[HQ]], %[[HK]], %[[HV]] segments %{{[^ ]*}} {causal = true, scale = 5.000000e-01 : f64}
// SWAP-NEXT: %[[OWN:[^ ]*]] = dist.constrain %[[OUT]] to <@mesh, [{?}, {}, {"tp", "cp"}, {}]>
// SWAP-NEXT: %[[BACK:[^ ]*]] = dist.constrain %[[OWN]] to <@mesh, [{?}, {"cp"}, {"tp"}, {}]>
// SWAP-NEXT: dtc.add %[[BACK]]
dist.mesh @mesh <"cp"=2, "tp"=2>
func.func @sources(%x: tensor<2x8x4x8xf32> {dtc.input = "x", dtc.axes = ["batch", "seq", "heads", ""]},
                   %wpe: tensor<8x4x8xf32> {dtc.param = "wpe", dtc.axes = ["seq", "heads", ""]},
                   %segments: tensor<2x8xi32> {dtc.input = "segments", dtc.axes = ["batch", "seq"]},
                   %w: tensor<4x8xf32> {dtc.param = "w", dtc.axes = ["heads", ""]}) -> tensor<f32> {
  %p = dtc.broadcast %wpe dims [1, 2, 3] : (tensor<8x4x8xf32>) -> tensor<2x8x4x8xf32>
  %e = dtc.add %x, %p : tensor<2x8x4x8xf32>
  %q = dtc.rotary %e {inverse = false, theta = 1.0e4} : tensor<2x8x4x8xf32>
  %one = dtc.constant dense<1.0> : tensor<2x8x4x8xf32>
  %table = dtc.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : tensor<8xi32>
  %each = dtc.broadcast %table dims [1] : (tensor<8xi32>) -> tensor<2x8xi32>
  %k = dtc.rotary %e from %each : tensor<2x8xi32> {inverse = false, theta = 1.0e4} : tensor<2x8x4x8xf32>
  %v = dtc.mul %e, %one : tensor<2x8x4x8xf32>
  %out, %lse = dtc.attention %q, %k, %v segments %segments {causal = true, scale = 0.5} : (tensor<2x8x4x8xf32>, tensor<2x8x4x8xf32>, tensor<2x8x4x8xf32>, tensor<2x8xi32>) -> (tensor<2x8x4x8xf32>, tensor<2x4x8xf32>)
  %y = dtc.add %out, %e : tensor<2x8x4x8xf32>
  %0 = dtc.reduce sum %y dims [0, 1, 2, 3] : (tensor<2x8x4x8xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Keys that no query comes from are not in the order of the queries.
// CHECK-LABEL: func.func @keys_by_themselves(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<1x8x4x4xf32>
// CHECK-SAME: %[[K:[^:]*]]: tensor<1x8x4x4xf32>
// GATHER-NEXT: %[[Z:[^ ]*]] = dtc.zigzag %[[Q]] {{{.*}}inverse = false, parts = 2 : i64}
// GATHER-NEXT: dtc.attention %[[Z]], %[[K]], %[[K]] {causal = true, scale = 1.000000e+00 : f64, zigzag = 2 : i64}
// SWAP: dist.constrain %[[Q]]
// SWAP: dist.constrain %[[K]]
dist.mesh @mesh <"cp"=2, "tp"=2>
func.func @keys_by_themselves(%q: tensor<1x8x4x4xf32> {dtc.input = "q", dtc.axes = ["", "seq", "", ""]}, %k: tensor<1x8x4x4xf32> {dtc.input = "k"}, %w: tensor<4xf32> {dtc.param = "w", dtc.axes = ["heads"]}) -> tensor<f32> {
  %out, %lse = dtc.attention %q, %k, %k {causal = true, scale = 1.0} : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> (tensor<1x8x4x4xf32>, tensor<1x4x8xf32>)
  %0 = dtc.reduce sum %out dims [0, 1, 2, 3] : (tensor<1x8x4x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// Where attention is not causal, all queries see as many keys.
// CHECK-LABEL: func.func @not_causal(
// GATHER-SAME: %[[Q:[^:]*]]: tensor<1x8x4x4xf32>
// GATHER-NEXT: dtc.attention %[[Q]], %[[Q]], %[[Q]] {causal = false, scale = 1.000000e+00 : f64}
// SWAP: dist.constrain
dist.mesh @mesh <"cp"=2, "tp"=2>
func.func @not_causal(%q: tensor<1x8x4x4xf32> {dtc.input = "q", dtc.axes = ["", "seq", "heads", ""]}) -> tensor<f32> {
  %out, %lse = dtc.attention %q, %q, %q {causal = false, scale = 1.0} : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> (tensor<1x8x4x4xf32>, tensor<1x4x8xf32>)
  %0 = dtc.reduce sum %out dims [0, 1, 2, 3] : (tensor<1x8x4x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// A mesh without the axis, and one where it has one device.
// CHECK-LABEL: func.func @no_axis(
// CHECK-NEXT: dtc.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} {causal = true, scale = 1.000000e+00 : f64}
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @no_axis(%q: tensor<1x8x4x4xf32> {dtc.input = "q", dtc.axes = ["", "seq", "heads", ""]}) -> tensor<f32> {
  %out, %lse = dtc.attention %q, %q, %q {causal = true, scale = 1.0} : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> (tensor<1x8x4x4xf32>, tensor<1x4x8xf32>)
  %0 = dtc.reduce sum %out dims [0, 1, 2, 3] : (tensor<1x8x4x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// CHECK-LABEL: func.func @one_device(
// CHECK-NEXT: dtc.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} {causal = true, scale = 1.000000e+00 : f64}
dist.mesh @mesh <"cp"=1, "tp"=2>
func.func @one_device(%q: tensor<1x8x4x4xf32> {dtc.input = "q", dtc.axes = ["", "seq", "heads", ""]}) -> tensor<f32> {
  %out, %lse = dtc.attention %q, %q, %q {causal = true, scale = 1.0} : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> (tensor<1x8x4x4xf32>, tensor<1x4x8xf32>)
  %0 = dtc.reduce sum %out dims [0, 1, 2, 3] : (tensor<1x8x4x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// With a window, all queries but the first ones see as many keys: they stay in their order.
// CHECK-LABEL: func.func @window(
// GATHER-NEXT: dtc.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} {causal = true, scale = 1.000000e+00 : f64, window = 3 : i64}
// RING-NEXT: dtc.attention %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} {causal = true, key_shift = 0 : i64, scale = 1.000000e+00 : f64, window = 3 : i64}
// SWAP: dist.constrain
dist.mesh @mesh <"cp"=2, "tp"=2>
func.func @window(%q: tensor<1x8x4x4xf32> {dtc.input = "q", dtc.axes = ["", "seq", "heads", ""]}) -> tensor<f32> {
  %out, %lse = dtc.attention %q, %q, %q {causal = true, scale = 1.0, window = 3} : (tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>, tensor<1x8x4x4xf32>) -> (tensor<1x8x4x4xf32>, tensor<1x4x8xf32>)
  %0 = dtc.reduce sum %out dims [0, 1, 2, 3] : (tensor<1x8x4x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
