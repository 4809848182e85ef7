// RUN: dtc-opt %s --split-input-file --verify-diagnostics

// A sum of 16-bit floats is wide, also where a mean is made of it.
func.func @mean(%x: tensor<4x8xbf16>) {
  // expected-error@+1 {{'dtc.reduce' op result #0 must be ranked tensor of f32 or f64 with static sizes of at least 1, but got 'tensor<4xbf16>'}}
  %0 = dtc.reduce sum %x dims [1] : (tensor<4x8xbf16>) -> tensor<4xbf16>
  return
}

// -----

func.func @maximum(%x: tensor<4x8xf16>) {
  // expected-error@+1 {{'dtc.reduce' op result #0 must be ranked tensor of f32 or f64 with static sizes of at least 1, but got 'tensor<4xf16>'}}
  %0 = dtc.reduce max %x dims [1] : (tensor<4x8xf16>) -> tensor<4xf16>
  return
}

// -----

func.func @reduce_nothing(%x: tensor<4xbf16>) {
  // expected-error@+1 {{'dtc.reduce' op result #0 must be ranked tensor of f32 or f64 with static sizes of at least 1, but got 'tensor<4xbf16>'}}
  %0 = dtc.reduce sum %x dims [] : (tensor<4xbf16>) -> tensor<4xbf16>
  return
}

// -----

func.func @embedding_grad(%ids: tensor<4xi32>, %dy: tensor<4x8xbf16>) {
  // expected-error@+1 {{'dtc.embedding_grad' op result #0 must be ranked tensor of f32 or f64 with static sizes of at least 1, but got 'tensor<16x8xbf16>'}}
  %0 = dtc.embedding_grad %ids, %dy : (tensor<4xi32>, tensor<4x8xbf16>) -> tensor<16x8xbf16>
  return
}

// -----

func.func @embedding_grad_other(%ids: tensor<4xi32>, %dy: tensor<4x8xbf16>) {
  // expected-error@+1 {{'dtc.embedding_grad' op result has type 'tensor<16x8xf64>', expected tensor<vx8x'f32'> for some v [embedding_grad-c2]}}
  %0 = dtc.embedding_grad %ids, %dy : (tensor<4xi32>, tensor<4x8xbf16>) -> tensor<16x8xf64>
  return
}

// -----

func.func @wide_einsum(%x: tensor<4x8xbf16>, %w: tensor<8x6xbf16>) {
  // expected-error@+1 {{'dtc.einsum' op result #0 has type 'tensor<4x6xbf16>', expected 'tensor<4x6xf32>'}}
  %0 = dtc.einsum "bi,io->bo" %x, %w {wide} : (tensor<4x8xbf16>, tensor<8x6xbf16>) -> tensor<4x6xbf16>
  return
}

// -----

// Only ops that ask for it are wide.
func.func @narrow_einsum(%x: tensor<4x8xbf16>, %w: tensor<8x6xbf16>) {
  // expected-error@+1 {{'dtc.einsum' op result #0 has type 'tensor<4x6xf32>', expected 'tensor<4x6xbf16>'}}
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<4x8xbf16>, tensor<8x6xbf16>) -> tensor<4x6xf32>
  return
}

// -----

// The operands of an op have one type.
func.func @mixed_einsum(%x: tensor<4x8xbf16>, %w: tensor<8x6xf32>) {
  // expected-error@+1 {{'dtc.einsum' op lhs has elements of 'bf16' and rhs of 'f32', expected the same [einsum-c5]}}
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<4x8xbf16>, tensor<8x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @mixed_halves(%x: tensor<4x8xbf16>, %w: tensor<8x6xf16>) {
  // expected-error@+1 {{'dtc.einsum' op lhs has elements of 'bf16' and rhs of 'f16', expected the same [einsum-c5]}}
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<4x8xbf16>, tensor<8x6xf16>) -> tensor<4x6xbf16>
  return
}

// -----

func.func @mixed_norm(%x: tensor<4x8xbf16>, %g: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.rms_norm' op gamma has type 'tensor<8xf32>', expected 'tensor<8xbf16>' [rms_norm-c2]}}
  %0:2 = dtc.rms_norm %x, %g {eps = 1.0e-5} : (tensor<4x8xbf16>, tensor<8xf32>) -> (tensor<4x8xbf16>, tensor<4xf32>)
  return
}

// -----

func.func @norm_statistic(%x: tensor<4x8xbf16>, %g: tensor<8xbf16>) {
  // expected-error@+1 {{'dtc.layer_norm' op result #1 must be ranked tensor of f32 or f64 with static sizes of at least 1, but got 'tensor<4xbf16>'}}
  %0:3 = dtc.layer_norm %x, %g, %g {eps = 1.0e-5} : (tensor<4x8xbf16>, tensor<8xbf16>, tensor<8xbf16>) -> (tensor<4x8xbf16>, tensor<4xbf16>, tensor<4xbf16>)
  return
}

// -----

func.func @norm_grad_statistic(%x: tensor<4x8xbf16>, %g: tensor<8xbf16>, %r: tensor<4xbf16>) {
  // expected-error@+1 {{'dtc.rms_norm_grad' op operand #2 must be ranked tensor of f32 or f64 with static sizes of at least 1, but got 'tensor<4xbf16>'}}
  %0:2 = dtc.rms_norm_grad %x, %g, %r, %x : (tensor<4x8xbf16>, tensor<8xbf16>, tensor<4xbf16>, tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<8xf32>)
  return
}

// -----

// The gradient of gamma is a sum over all rows.
func.func @norm_grad_gamma(%x: tensor<4x8xbf16>, %g: tensor<8xbf16>, %r: tensor<4xf32>) {
  // expected-error@+1 {{'dtc.rms_norm_grad' op result #1 must be ranked tensor of f32 or f64 with static sizes of at least 1, but got 'tensor<8xbf16>'}}
  %0:2 = dtc.rms_norm_grad %x, %g, %r, %x : (tensor<4x8xbf16>, tensor<8xbf16>, tensor<4xf32>, tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<8xbf16>)
  return
}

// -----

func.func @attention_lse(%q: tensor<2x8x4x16xbf16>) {
  // expected-error@+1 {{'dtc.attention' op result #1 must be ranked tensor of f32 or f64 with static sizes of at least 1, but got 'tensor<2x4x8xbf16>'}}
  %0:2 = dtc.attention %q, %q, %q {causal = true, scale = 0.25} : (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>) -> (tensor<2x8x4x16xbf16>, tensor<2x4x8xbf16>)
  return
}

// -----

func.func @cross_entropy_loss(%x: tensor<4x8xf16>, %l: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cross_entropy' op result #0 must be ranked tensor of f32 or f64 with static sizes of at least 1, but got 'tensor<4xf16>'}}
  %0:2 = dtc.cross_entropy %x, %l : (tensor<4x8xf16>, tensor<4xi32>) -> (tensor<4xf16>, tensor<4xf16>)
  return
}

// -----

func.func @cross_entropy_grad_dloss(%x: tensor<4x8xbf16>, %l: tensor<4xi32>, %lse: tensor<4xf32>, %d: tensor<4xbf16>) {
  // expected-error@+1 {{'dtc.cross_entropy_grad' op operand #3 must be ranked tensor of f32 or f64 with static sizes of at least 1, but got 'tensor<4xbf16>'}}
  %0 = dtc.cross_entropy_grad %x, %l, %lse, %d : (tensor<4x8xbf16>, tensor<4xi32>, tensor<4xf32>, tensor<4xbf16>) -> tensor<4x8xbf16>
  return
}

// -----

// Optimizers work on wide numbers alone.
func.func @optimizer(%p: tensor<4xbf16>, %s: tensor<bf16>, %apply: tensor<i1>) {
  // expected-error@+1 {{'dtc.sgd' op operand #0 must be ranked tensor of f32 or f64 with static sizes of at least 1, but got 'tensor<4xbf16>'}}
  %0:2 = dtc.sgd %p, %p, %p, %s, %s, %apply {momentum = 0.9, weight_decay = 0.1} : (tensor<4xbf16>, tensor<4xbf16>, tensor<4xbf16>, tensor<bf16>, tensor<bf16>, tensor<i1>) -> (tensor<4xbf16>, tensor<4xbf16>)
  return
}

// -----

// Nothing computes on a narrower type, and nothing but slices, concatenations and reshapes takes one.
func.func @other_type(%x: tensor<4xf8E4M3FN>) {
  // expected-error@+1 {{'dtc.neg' op operand #0 must be ranked tensor of f32, f64, bf16 or f16 with static sizes of at least 1, but got 'tensor<4xf8E4M3FN>'}}
  %0 = dtc.neg %x : tensor<4xf8E4M3FN>
  return
}

// -----

func.func @pad(%x: tensor<4xf8E4M3FN>) {
  // expected-error@+1 {{'dtc.pad' op operand #0 must be ranked tensor of f32, f64, bf16, f16, i32 or i1 with static sizes of at least 1, but got 'tensor<4xf8E4M3FN>'}}
  %0 = dtc.pad %x low [0] high [1] value 0.0 : (tensor<4xf8E4M3FN>) -> tensor<5xf8E4M3FN>
  return
}

// -----

func.func @slice(%x: tensor<4xf8E8M0FNU>) {
  // expected-error@+1 {{'dtc.slice' op operand #0 must be ranked tensor of f32, f64, bf16, f16, i32, i1, f8E4M3FN or f8E5M2 with static sizes of at least 1, but got 'tensor<4xf8E8M0FNU>'}}
  %0 = dtc.slice %x offsets [0] sizes [2] : (tensor<4xf8E8M0FNU>) -> tensor<2xf8E8M0FNU>
  return
}

// -----

func.func @convert(%x: tensor<4xf8E5M2>) {
  // expected-error@+1 {{'dtc.convert' op operand #0 must be ranked tensor of f32, f64, bf16, f16, i32 or i1}}
  %0 = dtc.convert %x : (tensor<4xf8E5M2>) -> tensor<4xf32>
  return
}
