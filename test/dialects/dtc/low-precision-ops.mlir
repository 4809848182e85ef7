// RUN: dtc-opt %s | dtc-opt | FileCheck %s
//
// Every family of ops on 16-bit floats: results have the type of the operands; sums over many elements, and what is
// kept of a row for its gradient, have f32.

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: tensor<4x8xbf16>, %h: tensor<4x8xf16>, %f: tensor<4x8xf32>, %i: tensor<4x8xi32>) {
  // CHECK: dtc.neg {{.*}} : tensor<4x8xbf16>
  %neg = dtc.neg %x : tensor<4x8xbf16>
  // CHECK: dtc.exp {{.*}} : tensor<4x8xf16>
  %exp = dtc.exp %h : tensor<4x8xf16>
  // CHECK: dtc.gelu tanh {{.*}} : tensor<4x8xbf16>
  %gelu = dtc.gelu tanh %x : tensor<4x8xbf16>
  // CHECK: dtc.gelu_grad tanh {{.*}} : tensor<4x8xbf16>
  %gelu_grad = dtc.gelu_grad tanh %x, %x : tensor<4x8xbf16>
  // CHECK: dtc.silu_grad {{.*}} : tensor<4x8xf16>
  %silu_grad = dtc.silu_grad %h, %h : tensor<4x8xf16>
  // CHECK: dtc.add {{.*}} : tensor<4x8xbf16>
  %add = dtc.add %x, %x : tensor<4x8xbf16>
  // CHECK: dtc.compare lt {{.*}} : tensor<4x8xbf16>
  %less = dtc.compare lt %x, %x : tensor<4x8xbf16>
  // CHECK: dtc.select {{.*}} : tensor<4x8xbf16>
  %select = dtc.select %less, %x, %x : tensor<4x8xbf16>
  return
}

// Between all types, in both directions.
// CHECK-LABEL: func.func @conversions
func.func @conversions(%x: tensor<4xbf16>, %h: tensor<4xf16>, %f: tensor<4xf32>, %d: tensor<4xf64>, %i: tensor<4xi32>) {
  // CHECK: dtc.convert {{.*}} : (tensor<4xbf16>) -> tensor<4xf32>
  %0 = dtc.convert %x : (tensor<4xbf16>) -> tensor<4xf32>
  // CHECK: dtc.convert {{.*}} : (tensor<4xf32>) -> tensor<4xbf16>
  %1 = dtc.convert %f : (tensor<4xf32>) -> tensor<4xbf16>
  // CHECK: dtc.convert {{.*}} : (tensor<4xf16>) -> tensor<4xbf16>
  %2 = dtc.convert %h : (tensor<4xf16>) -> tensor<4xbf16>
  // CHECK: dtc.convert {{.*}} : (tensor<4xf64>) -> tensor<4xf16>
  %3 = dtc.convert %d : (tensor<4xf64>) -> tensor<4xf16>
  // CHECK: dtc.convert {{.*}} : (tensor<4xi32>) -> tensor<4xbf16>
  %4 = dtc.convert %i : (tensor<4xi32>) -> tensor<4xbf16>
  // CHECK: dtc.convert {{.*}} : (tensor<4xf16>) -> tensor<4xi1>
  %5 = dtc.convert %h : (tensor<4xf16>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @shapes
func.func @shapes(%x: tensor<2x3x4xbf16>, %w: tensor<4xf16>) {
  // The number nearest to 0.1.
  // CHECK: dtc.constant dense<1.000980e-01> : tensor<4xbf16>
  %constant = dtc.constant dense<0.1> : tensor<4xbf16>
  // CHECK: dtc.broadcast {{.*}} : (tensor<4xf16>) -> tensor<2x4xf16>
  %broadcast = dtc.broadcast %w dims [1] : (tensor<4xf16>) -> tensor<2x4xf16>
  // CHECK: dtc.reshape {{.*}} : (tensor<2x3x4xbf16>) -> tensor<6x4xbf16>
  %reshape = dtc.reshape %x : (tensor<2x3x4xbf16>) -> tensor<6x4xbf16>
  // CHECK: dtc.transpose {{.*}} : (tensor<2x3x4xbf16>) -> tensor<4x2x3xbf16>
  %transpose = dtc.transpose %x permutation [2, 0, 1] : (tensor<2x3x4xbf16>) -> tensor<4x2x3xbf16>
  // CHECK: dtc.slice {{.*}} : (tensor<2x3x4xbf16>) -> tensor<2x1x4xbf16>
  %slice = dtc.slice %x offsets [0, 1, 0] sizes [2, 1, 4] : (tensor<2x3x4xbf16>) -> tensor<2x1x4xbf16>
  // CHECK: dtc.concat {{.*}} : (tensor<4xf16>, tensor<4xf16>) -> tensor<8xf16>
  %concat = dtc.concat %w, %w dim 0 : (tensor<4xf16>, tensor<4xf16>) -> tensor<8xf16>
  return
}

// A contraction sums in f32 and rounds once; with `wide` it does not round.
// CHECK-LABEL: func.func @contractions
func.func @contractions(%x: tensor<4x8xbf16>, %w: tensor<8x6xbf16>, %d: tensor<4x8xf64>) {
  // CHECK: dtc.einsum "bi,io->bo" {{%[^ ,]+}}, {{%[^ ,]+}} : (tensor<4x8xbf16>, tensor<8x6xbf16>) -> tensor<4x6xbf16>
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<4x8xbf16>, tensor<8x6xbf16>) -> tensor<4x6xbf16>
  // CHECK: dtc.einsum "bi,io->bo" {{%[^ ,]+}}, {{%[^ ,]+}} {wide} : (tensor<4x8xbf16>, tensor<8x6xbf16>) -> tensor<4x6xf32>
  %1 = dtc.einsum "bi,io->bo" %x, %w {wide} : (tensor<4x8xbf16>, tensor<8x6xbf16>) -> tensor<4x6xf32>
  // Where the operands are wide already it asks for nothing.
  // CHECK: dtc.einsum "bi,bj->ij" {{%[^ ,]+}}, {{%[^ ,]+}} {wide} : (tensor<4x8xf64>, tensor<4x8xf64>) -> tensor<8x8xf64>
  %2 = dtc.einsum "bi,bj->ij" %d, %d {wide} : (tensor<4x8xf64>, tensor<4x8xf64>) -> tensor<8x8xf64>
  // CHECK: dtc.reduce sum {{.*}} dims [0] : (tensor<4x8xbf16>) -> tensor<8xf32>
  %3 = dtc.reduce sum %x dims [0] : (tensor<4x8xbf16>) -> tensor<8xf32>
  // CHECK: dtc.reduce max {{.*}} dims [1] : (tensor<4x8xbf16>) -> tensor<4xf32>
  %4 = dtc.reduce max %x dims [1] : (tensor<4x8xbf16>) -> tensor<4xf32>
  // A reduction over nothing still widens, so it does not fold away.
  // CHECK: dtc.reduce sum {{.*}} dims [] : (tensor<4x8xbf16>) -> tensor<4x8xf32>
  %5 = dtc.reduce sum %x dims [] : (tensor<4x8xbf16>) -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func.func @indices
func.func @indices(%table: tensor<16x8xbf16>, %x: tensor<4x8xbf16>, %ids: tensor<4xi32>, %dy: tensor<4xbf16>, %tables: tensor<3x5x8xf16>, %rows: tensor<3x4xi32>) {
  // CHECK: dtc.embedding {{.*}} : (tensor<16x8xbf16>, tensor<4xi32>) -> tensor<4x8xbf16>
  %0 = dtc.embedding %table, %ids : (tensor<16x8xbf16>, tensor<4xi32>) -> tensor<4x8xbf16>
  // CHECK: dtc.embedding_grad {{.*}} : (tensor<4xi32>, tensor<4x8xbf16>) -> tensor<16x8xf32>
  %1 = dtc.embedding_grad %ids, %x : (tensor<4xi32>, tensor<4x8xbf16>) -> tensor<16x8xf32>
  // CHECK: dtc.pick {{.*}} : (tensor<4x8xbf16>, tensor<4xi32>) -> tensor<4xbf16>
  %2 = dtc.pick %x, %ids : (tensor<4x8xbf16>, tensor<4xi32>) -> tensor<4xbf16>
  // CHECK: dtc.pick_grad {{.*}} : (tensor<4xi32>, tensor<4xbf16>) -> tensor<4x8xbf16>
  %3 = dtc.pick_grad %ids, %dy : (tensor<4xi32>, tensor<4xbf16>) -> tensor<4x8xbf16>
  // CHECK: dtc.embedding {{.*}} : (tensor<3x5x8xf16>, tensor<3x4xi32>) -> tensor<3x4x8xf16>
  %4 = dtc.embedding %tables, %rows : (tensor<3x5x8xf16>, tensor<3x4xi32>) -> tensor<3x4x8xf16>
  // CHECK: dtc.embedding_grad {{.*}} : (tensor<3x4xi32>, tensor<3x4x8xf16>) -> tensor<3x5x8xf32>
  %5 = dtc.embedding_grad %rows, %4 : (tensor<3x4xi32>, tensor<3x4x8xf16>) -> tensor<3x5x8xf32>
  // CHECK: dtc.top_k {{.*}} : tensor<4x8xbf16>
  %6 = dtc.top_k %x {k = 2} : tensor<4x8xbf16>
  return
}

// CHECK-LABEL: func.func @norms
func.func @norms(%x: tensor<4x8xbf16>, %g: tensor<8xbf16>) {
  // CHECK: dtc.softmax {{.*}} : tensor<4x8xbf16>
  %s = dtc.softmax %x : tensor<4x8xbf16>
  // CHECK: dtc.softmax_grad {{.*}} : tensor<4x8xbf16>
  %ds = dtc.softmax_grad %s, %x : tensor<4x8xbf16>
  // CHECK: dtc.softmax {{.*}} {causal = true, scale = 5.000000e-01 : f64} : tensor<4x8xbf16>
  %causal = dtc.softmax %x {causal = true, scale = 0.5} : tensor<4x8xbf16>
  // CHECK: dtc.layer_norm {{.*}} : (tensor<4x8xbf16>, tensor<8xbf16>, tensor<8xbf16>) -> (tensor<4x8xbf16>, tensor<4xf32>, tensor<4xf32>)
  %y, %mean, %rstd = dtc.layer_norm %x, %g, %g {eps = 1.0e-5} : (tensor<4x8xbf16>, tensor<8xbf16>, tensor<8xbf16>) -> (tensor<4x8xbf16>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: dtc.layer_norm_grad {{.*}} : (tensor<4x8xbf16>, tensor<8xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<8xf32>, tensor<8xf32>)
  %0:3 = dtc.layer_norm_grad %x, %g, %mean, %rstd, %x : (tensor<4x8xbf16>, tensor<8xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<8xf32>, tensor<8xf32>)
  // CHECK: dtc.rms_norm {{.*}} : (tensor<4x8xbf16>, tensor<8xbf16>) -> (tensor<4x8xbf16>, tensor<4xf32>)
  %z, %r = dtc.rms_norm %x, %g {eps = 1.0e-5} : (tensor<4x8xbf16>, tensor<8xbf16>) -> (tensor<4x8xbf16>, tensor<4xf32>)
  // CHECK: dtc.rms_norm_grad {{.*}} : (tensor<4x8xbf16>, tensor<8xbf16>, tensor<4xf32>, tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<8xf32>)
  %1:2 = dtc.rms_norm_grad %x, %g, %r, %x : (tensor<4x8xbf16>, tensor<8xbf16>, tensor<4xf32>, tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<8xf32>)
  return
}

// CHECK-LABEL: func.func @fused
func.func @fused(%q: tensor<2x8x4x16xbf16>, %k: tensor<2x8x2x16xbf16>, %logits: tensor<4x32xf16>, %labels: tensor<4xi32>) {
  // CHECK: dtc.rotary {{.*}} : tensor<2x8x4x16xbf16>
  %rotary = dtc.rotary %q {inverse = false, theta = 1.0e4} : tensor<2x8x4x16xbf16>
  // CHECK: dtc.attention {{.*}} : (tensor<2x8x4x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x8x2x16xbf16>) -> (tensor<2x8x4x16xbf16>, tensor<2x4x8xf32>)
  %out, %lse = dtc.attention %q, %k, %k {causal = true, scale = 0.25} : (tensor<2x8x4x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x8x2x16xbf16>) -> (tensor<2x8x4x16xbf16>, tensor<2x4x8xf32>)
  // CHECK: dtc.attention_grad {{.*}} : (tensor<2x8x4x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x4x8xf32>, tensor<2x8x4x16xbf16>) -> (tensor<2x8x4x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x8x2x16xbf16>)
  %dq, %dk, %dv = dtc.attention_grad %q, %k, %k, %out, %lse, %q {causal = true, scale = 0.25} : (tensor<2x8x4x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x4x8xf32>, tensor<2x8x4x16xbf16>) -> (tensor<2x8x4x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x8x2x16xbf16>)
  // CHECK: dtc.cross_entropy {{.*}} : (tensor<4x32xf16>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %loss, %lse1 = dtc.cross_entropy %logits, %labels : (tensor<4x32xf16>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: dtc.cross_entropy_grad {{.*}} : (tensor<4x32xf16>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x32xf16>
  %dlogits = dtc.cross_entropy_grad %logits, %labels, %lse1, %loss : (tensor<4x32xf16>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x32xf16>
  return
}

// A parameter may have 16 bits.
// CHECK-LABEL: func.func @parameter
// CHECK-SAME: tensor<4xbf16> {dtc.param = "w"}
func.func @parameter(%w: tensor<4xbf16> {dtc.param = "w"}) -> tensor<4xbf16> {
  return %w : tensor<4xbf16>
}

// Tensors in 8 bits, which passes make, are cut, joined and given another shape.
// CHECK-LABEL: func.func @of_8_bits
func.func @of_8_bits(%x: tensor<4x8xf8E4M3FN>, %g: tensor<4x8xf8E5M2>) {
  // CHECK: dtc.slice {{.*}} : (tensor<4x8xf8E4M3FN>) -> tensor<2x8xf8E4M3FN>
  %0 = dtc.slice %x offsets [2, 0] sizes [2, 8] : (tensor<4x8xf8E4M3FN>) -> tensor<2x8xf8E4M3FN>
  // CHECK: dtc.concat {{.*}} : (tensor<4x8xf8E5M2>, tensor<4x8xf8E5M2>) -> tensor<8x8xf8E5M2>
  %1 = dtc.concat %g, %g dim 0 : (tensor<4x8xf8E5M2>, tensor<4x8xf8E5M2>) -> tensor<8x8xf8E5M2>
  // CHECK: dtc.reshape {{.*}} : (tensor<2x8xf8E4M3FN>) -> tensor<16xf8E4M3FN>
  %2 = dtc.reshape %0 : (tensor<2x8xf8E4M3FN>) -> tensor<16xf8E4M3FN>
  return
}
