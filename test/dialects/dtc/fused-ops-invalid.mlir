// RUN: dtc-opt %s --split-input-file --verify-diagnostics

func.func @rotary_rank(%x: tensor<2x8x16xf32>) {
  // expected-error@+1 {{'dtc.rotary' op operand has type 'tensor<2x8x16xf32>', expected rank 4 and an even last dimension [rotary-c1]}}
  %0 = dtc.rotary %x {inverse = false, theta = 1.0e4} : tensor<2x8x16xf32>
  return
}

// -----

func.func @rotary_odd(%x: tensor<2x8x6x15xf32>) {
  // expected-error@+1 {{'dtc.rotary' op operand has type 'tensor<2x8x6x15xf32>', expected rank 4 and an even last dimension [rotary-c1]}}
  %0 = dtc.rotary %x {inverse = false, theta = 1.0e4} : tensor<2x8x6x15xf32>
  return
}

// -----

func.func @rotary_theta(%x: tensor<2x8x6x16xf32>) {
  // expected-error@+1 {{'dtc.rotary' op theta is 0.000000e+00, expected a finite positive number [rotary-c2]}}
  %0 = dtc.rotary %x {inverse = false, theta = 0.0} : tensor<2x8x6x16xf32>
  return
}

// -----

func.func @rotary_without_theta(%x: tensor<2x8x6x16xf32>) {
  // expected-error@+1 {{'dtc.rotary' op has no theta and no frequencies, expected one of them: where the angles come from [rotary-c4]}}
  %0 = dtc.rotary %x {inverse = false} : tensor<2x8x6x16xf32>
  return
}

// -----

func.func @rotary_theta_and_frequencies(%x: tensor<2x8x6x16xf32>) {
  // expected-error@+1 {{'dtc.rotary' op has theta and frequencies, expected one of them: where the angles come from [rotary-c4]}}
  %0 = dtc.rotary %x {frequencies = array<f64: 1.0>, inverse = false, theta = 1.0e4} : tensor<2x8x6x16xf32>
  return
}

// -----

func.func @rotary_many_frequencies(%x: tensor<2x8x6x4xf32>) {
  // expected-error@+1 {{'dtc.rotary' op has 3 frequencies, expected from 1 to 2, one for each pair of elements that is rotated [rotary-c5]}}
  %0 = dtc.rotary %x {frequencies = array<f64: 1.0, 1.0, 1.0>, inverse = false} : tensor<2x8x6x4xf32>
  return
}

// -----

func.func @rotary_no_frequencies(%x: tensor<2x8x6x4xf32>) {
  // expected-error@+1 {{'dtc.rotary' op has 0 frequencies, expected from 1 to 2, one for each pair of elements that is rotated [rotary-c5]}}
  %0 = dtc.rotary %x {frequencies = array<f64>, inverse = false} : tensor<2x8x6x4xf32>
  return
}

// -----

func.func @rotary_frequency(%x: tensor<2x8x6x4xf32>) {
  // expected-error@+1 {{'dtc.rotary' op has the frequency -1.000000e+00, expected finite numbers that are not negative [rotary-c6]}}
  %0 = dtc.rotary %x {frequencies = array<f64: -1.0>, inverse = false} : tensor<2x8x6x4xf32>
  return
}

// -----

func.func @rotary_factor(%x: tensor<2x8x6x4xf32>) {
  // expected-error@+1 {{'dtc.rotary' op factor is 0.000000e+00, expected a finite positive number [rotary-c7]}}
  %0 = dtc.rotary %x {factor = 0.0, inverse = false, theta = 1.0e4} : tensor<2x8x6x4xf32>
  return
}

// -----

func.func @attention_window(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op window is 0, expected at least 1 key [attention-c10]}}
  %0:2 = dtc.attention %q, %k, %k {causal = true, scale = 0.25, window = 0} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_window_not_causal(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op window is 4 and causal is false, expected a window of causal attention: it counts keys back from the query's own [attention-c11]}}
  %0:2 = dtc.attention %q, %k, %k {causal = false, scale = 0.25, window = 4} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_softcap(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op softcap is 0.000000e+00, expected a finite positive number [attention-c12]}}
  %0:2 = dtc.attention %q, %k, %k {causal = true, scale = 0.25, softcap = 0.0} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @rotary_positions_size(%x: tensor<2x8x6x16xf32>, %positions: tensor<8xi32>) {
  // expected-error@+1 {{'dtc.rotary' op positions has type 'tensor<8xi32>', expected 'tensor<2xi32>' or 'tensor<2x8xi32>' [rotary-c3]}}
  %0 = dtc.rotary %x from %positions : tensor<8xi32> {inverse = false, theta = 1.0e4} : tensor<2x8x6x16xf32>
  return
}

// -----

func.func @rotary_positions_each(%x: tensor<2x8x6x16xf32>, %positions: tensor<2x6xi32>) {
  // expected-error@+1 {{'dtc.rotary' op positions has type 'tensor<2x6xi32>', expected 'tensor<2xi32>' or 'tensor<2x8xi32>' [rotary-c3]}}
  %0 = dtc.rotary %x from %positions : tensor<2x6xi32> {inverse = false, theta = 1.0e4} : tensor<2x8x6x16xf32>
  return
}

// -----

func.func @rotary_positions_type(%x: tensor<2x8x6x16xf32>, %positions: tensor<2xf32>) {
  // expected-error@+1 {{'dtc.rotary' op positions has type 'tensor<2xf32>', expected 'tensor<2xi32>' or 'tensor<2x8xi32>' [rotary-c3]}}
  %0 = dtc.rotary %x from %positions : tensor<2xf32> {inverse = false, theta = 1.0e4} : tensor<2x8x6x16xf32>
  return
}

// -----

func.func @attention_q(%q: tensor<2x8x16xf32>, %k: tensor<2x9x2x16xf32>, %v: tensor<2x9x2x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op q has type 'tensor<2x8x16xf32>', expected rank 4 [attention-c1]}}
  %0:2 = dtc.attention %q, %k, %v {causal = true, scale = 0.25} : (tensor<2x8x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_k_rank(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x16xf32>, %v: tensor<2x9x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op k has type 'tensor<2x9x16xf32>', expected tensor<2xtxgx16x'f32'> for some t and g [attention-c2]}}
  %0:2 = dtc.attention %q, %k, %v {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x16xf32>, tensor<2x9x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_k_batch(%q: tensor<2x8x6x16xf32>, %k: tensor<3x9x2x16xf32>, %v: tensor<3x9x2x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op k has type 'tensor<3x9x2x16xf32>', expected tensor<2xtxgx16x'f32'> for some t and g [attention-c2]}}
  %0:2 = dtc.attention %q, %k, %v {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<3x9x2x16xf32>, tensor<3x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_k_size(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x8xf32>, %v: tensor<2x9x2x8xf32>) {
  // expected-error@+1 {{'dtc.attention' op k has type 'tensor<2x9x2x8xf32>', expected tensor<2xtxgx16x'f32'> for some t and g [attention-c2]}}
  %0:2 = dtc.attention %q, %k, %v {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x8xf32>, tensor<2x9x2x8xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_k_element(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf64>, %v: tensor<2x9x2x16xf64>) {
  // expected-error@+1 {{'dtc.attention' op k has type 'tensor<2x9x2x16xf64>', expected tensor<2xtxgx16x'f32'> for some t and g [attention-c2]}}
  %0:2 = dtc.attention %q, %k, %v {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf64>, tensor<2x9x2x16xf64>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_heads(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x4x16xf32>, %v: tensor<2x9x4x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op k has 4 heads, expected a divisor of the 6 of q [attention-c3]}}
  %0:2 = dtc.attention %q, %k, %v {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x4x16xf32>, tensor<2x9x4x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_more_heads(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x12x16xf32>, %v: tensor<2x9x12x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op k has 12 heads, expected a divisor of the 6 of q [attention-c3]}}
  %0:2 = dtc.attention %q, %k, %v {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x12x16xf32>, tensor<2x9x12x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_v(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %v: tensor<2x8x2x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op v has type 'tensor<2x8x2x16xf32>', expected 'tensor<2x9x2x16xf32>' [attention-c4]}}
  %0:2 = dtc.attention %q, %k, %v {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_causal(%q: tensor<2x8x6x16xf32>, %k: tensor<2x7x2x16xf32>, %v: tensor<2x7x2x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op causal with 8 queries and 7 keys, expected no more queries than keys [attention-c5]}}
  %0:2 = dtc.attention %q, %k, %v {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x7x2x16xf32>, tensor<2x7x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_scale(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %v: tensor<2x9x2x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op scale is INF, expected a finite number [attention-c6]}}
  %0:2 = dtc.attention %q, %k, %v {causal = true, scale = 0x7FF0000000000000 : f64} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_lse(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %v: tensor<2x9x2x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op result #1 has type 'tensor<2x8x6xf32>', expected 'tensor<2x6x8xf32>'}}
  %0:2 = dtc.attention %q, %k, %v {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x8x6xf32>)
  return
}

// -----

func.func @attention_grad_v(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %v: tensor<2x8x6x16xf32>, %o: tensor<2x8x6x16xf32>, %l: tensor<2x6x8xf32>, %d: tensor<2x8x6x16xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op v has type 'tensor<2x8x6x16xf32>', expected 'tensor<2x9x2x16xf32>' [attention_grad-c4]}}
  %0:3 = dtc.attention_grad %q, %k, %v, %o, %l, %d {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_grad_out(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %v: tensor<2x9x2x16xf32>, %o: tensor<2x9x2x16xf32>, %l: tensor<2x6x8xf32>, %d: tensor<2x8x6x16xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op out has type 'tensor<2x9x2x16xf32>', expected 'tensor<2x8x6x16xf32>' [attention_grad-c10]}}
  %0:3 = dtc.attention_grad %q, %k, %v, %o, %l, %d {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_grad_lse(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %v: tensor<2x9x2x16xf32>, %o: tensor<2x8x6x16xf32>, %l: tensor<2x8x6x16xf32>, %d: tensor<2x8x6x16xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op lse has type 'tensor<2x8x6x16xf32>', expected 'tensor<2x6x8xf32>' [attention_grad-c11]}}
  %0:3 = dtc.attention_grad %q, %k, %v, %o, %l, %d {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x8x6x16xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_grad_dout(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %v: tensor<2x9x2x16xf32>, %o: tensor<2x8x6x16xf32>, %l: tensor<2x6x8xf32>, %d: tensor<2x9x2x16xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op dout has type 'tensor<2x9x2x16xf32>', expected 'tensor<2x8x6x16xf32>' [attention_grad-c12]}}
  %0:3 = dtc.attention_grad %q, %k, %v, %o, %l, %d {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_grad_results(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %v: tensor<2x9x2x16xf32>, %o: tensor<2x8x6x16xf32>, %l: tensor<2x6x8xf32>, %d: tensor<2x8x6x16xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op result #1 has type 'tensor<2x8x6x16xf32>', expected 'tensor<2x9x2x16xf32>'}}
  %0:3 = dtc.attention_grad %q, %k, %v, %o, %l, %d {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @cross_entropy_labels(%x: tensor<4x8x32xf32>, %y: tensor<4x7xi32>) {
  // expected-error@+1 {{'dtc.cross_entropy' op logits have type 'tensor<4x8x32xf32>', expected the dimensions of the labels, 'tensor<4x7xi32>', and one more [cross_entropy-c2]}}
  %0:2 = dtc.cross_entropy %x, %y : (tensor<4x8x32xf32>, tensor<4x7xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @cross_entropy_scalar(%x: tensor<f32>, %y: tensor<i32>) {
  // expected-error@+1 {{'dtc.cross_entropy' op logits have type 'tensor<f32>', expected the dimensions of the labels, 'tensor<i32>', and one more [cross_entropy-c2]}}
  %0:2 = dtc.cross_entropy %x, %y : (tensor<f32>, tensor<i32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @cross_entropy_results(%x: tensor<4x8x32xf32>, %y: tensor<4x8xi32>) {
  // expected-error@+1 {{'dtc.cross_entropy' op result #1 has type 'tensor<4x8x32xf32>', expected 'tensor<4x8xf32>'}}
  %0:2 = dtc.cross_entropy %x, %y : (tensor<4x8x32xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8x32xf32>)
  return
}

// -----

func.func @cross_entropy_grad_labels(%x: tensor<4x8x32xf32>, %y: tensor<4x7xi32>, %l: tensor<4x8xf32>, %d: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.cross_entropy_grad' op logits have type 'tensor<4x8x32xf32>', expected the dimensions of the labels, 'tensor<4x7xi32>', and one more [cross_entropy_grad-c2]}}
  %0 = dtc.cross_entropy_grad %x, %y, %l, %d : (tensor<4x8x32xf32>, tensor<4x7xi32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8x32xf32>
  return
}

// -----

func.func @cross_entropy_grad_lse(%x: tensor<4x8x32xf32>, %y: tensor<4x8xi32>, %l: tensor<4x8x32xf32>, %d: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.cross_entropy_grad' op lse has type 'tensor<4x8x32xf32>', expected 'tensor<4x8xf32>' [cross_entropy_grad-c3]}}
  %0 = dtc.cross_entropy_grad %x, %y, %l, %d : (tensor<4x8x32xf32>, tensor<4x8xi32>, tensor<4x8x32xf32>, tensor<4x8xf32>) -> tensor<4x8x32xf32>
  return
}

// -----

func.func @cross_entropy_grad_dloss(%x: tensor<4x8x32xf32>, %y: tensor<4x8xi32>, %l: tensor<4x8xf32>, %d: tensor<4x8xf64>) {
  // expected-error@+1 {{'dtc.cross_entropy_grad' op dloss has type 'tensor<4x8xf64>', expected 'tensor<4x8xf32>' [cross_entropy_grad-c3]}}
  %0 = dtc.cross_entropy_grad %x, %y, %l, %d : (tensor<4x8x32xf32>, tensor<4x8xi32>, tensor<4x8xf32>, tensor<4x8xf64>) -> tensor<4x8x32xf32>
  return
}

// -----

func.func @cross_entropy_grad_result(%x: tensor<4x8x32xf32>, %y: tensor<4x8xi32>, %l: tensor<4x8xf32>, %d: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.cross_entropy_grad' op result #0 has type 'tensor<4x8xf32>', expected 'tensor<4x8x32xf32>'}}
  %0 = dtc.cross_entropy_grad %x, %y, %l, %d : (tensor<4x8x32xf32>, tensor<4x8xi32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @attention_dropout_rate(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %key: tensor<2xi32>) {
  // expected-error@+1 {{'dtc.attention' op dropout is 1.000000e+00, expected at least 0 and less than 1 [attention-c7]}}
  %0:2 = dtc.attention %q, %k, %k key %key {causal = true, scale = 0.25, dropout = 1.0} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_dropout_negative(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %key: tensor<2xi32>) {
  // expected-error@+1 {{'dtc.attention' op dropout is -5.000000e-01, expected at least 0 and less than 1 [attention-c7]}}
  %0:2 = dtc.attention %q, %k, %k key %key {causal = true, scale = 0.25, dropout = -0.5} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_dropout_nan(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %key: tensor<2xi32>) {
  // expected-error@+1 {{'dtc.attention' op dropout is nan, expected at least 0 and less than 1 [attention-c7]}}
  %0:2 = dtc.attention %q, %k, %k key %key {causal = true, scale = 0.25, dropout = 0x7FF8000000000000 : f64} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

// Neither dropout nor a key is there without the other.
func.func @attention_no_key(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op dropout is 5.000000e-01 and there is no key, expected both dropout and a key or none of them [attention-c8]}}
  %0:2 = dtc.attention %q, %k, %k {causal = true, scale = 0.25, dropout = 0.5} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_no_dropout(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %key: tensor<2xi32>) {
  // expected-error@+1 {{'dtc.attention' op dropout is 0.000000e+00 and there is a key, expected both dropout and a key or none of them [attention-c8]}}
  %0:2 = dtc.attention %q, %k, %k key %key {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_key(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %key: tensor<3xi32>) {
  // expected-error@+1 {{'dtc.attention' op key has type 'tensor<3xi32>', expected 'tensor<2xi32>' [attention-c9]}}
  %0:2 = dtc.attention %q, %k, %k key %key {causal = true, scale = 0.25, dropout = 0.5} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<3xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_grad_no_key(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %l: tensor<2x6x8xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op dropout is 5.000000e-01 and there is no key, expected both dropout and a key or none of them [attention_grad-c8]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q {causal = true, scale = 0.25, dropout = 0.5} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @smoothing_of_one(%logits: tensor<4x8xf32>, %labels: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cross_entropy' op label_smoothing is 1.000000e+00, expected at least 0 and less than 1 [cross_entropy-c1]}}
  %0:2 = dtc.cross_entropy %logits, %labels {label_smoothing = 1.0} : (tensor<4x8xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @smoothing_negative(%logits: tensor<4x8xf32>, %labels: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.cross_entropy' op label_smoothing is -1.250000e-01, expected at least 0 and less than 1 [cross_entropy-c1]}}
  %0:2 = dtc.cross_entropy %logits, %labels {label_smoothing = -0.125} : (tensor<4x8xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @smoothing_of_gradient(%logits: tensor<4x8xf32>, %labels: tensor<4xi32>, %x: tensor<4xf32>) {
  // expected-error@+1 {{'dtc.cross_entropy_grad' op label_smoothing is 2.000000e+00, expected at least 0 and less than 1 [cross_entropy_grad-c1]}}
  %0 = dtc.cross_entropy_grad %logits, %labels, %x, %x {label_smoothing = 2.0} : (tensor<4x8xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @attention_grad_q(%q: tensor<2x8x16xf32>, %k: tensor<2x9x2x16xf32>, %l: tensor<2x6x8xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op q has type 'tensor<2x8x16xf32>', expected rank 4 [attention_grad-c1]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q {causal = true, scale = 0.25} : (tensor<2x8x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x16xf32>, tensor<2x6x8xf32>, tensor<2x8x16xf32>) -> (tensor<2x8x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_grad_k(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x8xf32>, %l: tensor<2x6x8xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op k has type 'tensor<2x9x2x8xf32>', expected tensor<2xtxgx16x'f32'> for some t and g [attention_grad-c2]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x8xf32>, tensor<2x9x2x8xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x8xf32>, tensor<2x9x2x8xf32>)
  return
}

// -----

func.func @attention_grad_heads(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x4x16xf32>, %l: tensor<2x6x8xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op k has 4 heads, expected a divisor of the 6 of q [attention_grad-c3]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x4x16xf32>, tensor<2x9x4x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x4x16xf32>, tensor<2x9x4x16xf32>)
  return
}

// -----

func.func @attention_grad_causal(%q: tensor<2x8x6x16xf32>, %k: tensor<2x7x2x16xf32>, %l: tensor<2x6x8xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op causal with 8 queries and 7 keys, expected no more queries than keys [attention_grad-c5]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x7x2x16xf32>, tensor<2x7x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x7x2x16xf32>, tensor<2x7x2x16xf32>)
  return
}

// -----

func.func @attention_grad_scale(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %l: tensor<2x6x8xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op scale is nan, expected a finite number [attention_grad-c6]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q {causal = true, scale = 0x7FF8000000000000 : f64} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_grad_dropout(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %l: tensor<2x6x8xf32>, %key: tensor<2xi32>) {
  // expected-error@+1 {{'dtc.attention_grad' op dropout is 1.000000e+00, expected at least 0 and less than 1 [attention_grad-c7]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q key %key {causal = true, scale = 0.25, dropout = 1.0} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>, tensor<2xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_grad_key(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %l: tensor<2x6x8xf32>, %key: tensor<3xi32>) {
  // expected-error@+1 {{'dtc.attention_grad' op key has type 'tensor<3xi32>', expected 'tensor<2xi32>' [attention_grad-c9]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q key %key {causal = true, scale = 0.25, dropout = 0.5} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>, tensor<3xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_grad_window(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %l: tensor<2x6x8xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op window is 0, expected at least 1 key [attention_grad-c13]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q {causal = true, scale = 0.25, window = 0} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_grad_window_not_causal(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %l: tensor<2x6x8xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op window is 4 and causal is false, expected a window of causal attention: it counts keys back from the query's own [attention_grad-c14]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q {causal = false, scale = 0.25, window = 4} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_grad_softcap(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %l: tensor<2x6x8xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op softcap is -1.000000e+00, expected a finite positive number [attention_grad-c15]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q {causal = true, scale = 0.25, softcap = -1.0} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_segments(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %segments: tensor<2x8xi32>) {
  // expected-error@+1 {{'dtc.attention' op segments has type 'tensor<2x8xi32>', expected 'tensor<2x9xi32>' [attention-c13]}}
  %0:2 = dtc.attention %q, %k, %k segments %segments {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_segments_type(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %segments: tensor<9xi32>) {
  // expected-error@+1 {{'dtc.attention' op segments has type 'tensor<9xi32>', expected 'tensor<2x9xi32>' [attention-c13]}}
  %0:2 = dtc.attention %q, %k, %k segments %segments {causal = false, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<9xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_segments_queries(%q: tensor<2x8x6x16xf32>, %k: tensor<2x7x2x16xf32>, %segments: tensor<2x7xi32>) {
  // expected-error@+1 {{'dtc.attention' op segments of 8 queries and 7 keys, expected no more queries than keys: each has the segment of its own key [attention-c14]}}
  %0:2 = dtc.attention %q, %k, %k segments %segments {causal = false, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x7x2x16xf32>, tensor<2x7x2x16xf32>, tensor<2x7xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_grad_segments(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %l: tensor<2x6x8xf32>, %segments: tensor<2x8xi32>) {
  // expected-error@+1 {{'dtc.attention_grad' op segments has type 'tensor<2x8xi32>', expected 'tensor<2x9xi32>' [attention_grad-c16]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q segments %segments {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>, tensor<2x8xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_grad_segments_queries(%q: tensor<2x8x6x16xf32>, %k: tensor<2x7x2x16xf32>, %l: tensor<2x6x8xf32>, %segments: tensor<2x7xi32>) {
  // expected-error@+1 {{'dtc.attention_grad' op segments of 8 queries and 7 keys, expected no more queries than keys: each has the segment of its own key [attention_grad-c17]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q segments %segments {causal = false, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x7x2x16xf32>, tensor<2x7x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>, tensor<2x7xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x7x2x16xf32>, tensor<2x7x2x16xf32>)
  return
}

// -----

func.func @rotary_zigzag(%x: tensor<2x8x6x16xf32>) {
  // expected-error@+1 {{'dtc.rotary' op zigzag is 3 for a sequence of 8, expected at least 1 part, of two chunks of equal size [rotary-c8]}}
  %0 = dtc.rotary %x {inverse = false, zigzag = 3, theta = 1.0e4} : tensor<2x8x6x16xf32>
  return
}

// -----

func.func @rotary_zigzag_none(%x: tensor<2x8x6x16xf32>) {
  // expected-error@+1 {{'dtc.rotary' op zigzag is 0 for a sequence of 8, expected at least 1 part, of two chunks of equal size [rotary-c8]}}
  %0 = dtc.rotary %x {inverse = false, zigzag = 0, theta = 1.0e4} : tensor<2x8x6x16xf32>
  return
}

// -----

func.func @rotary_zigzag_of_shard(%x: tensor<2x8x6x16xf32>) {
  // expected-error@+1 {{'dtc.rotary' op zigzag is 2 for a sequence of 15, expected at least 1 part, of two chunks of equal size [rotary-c8]}}
  %0 = dtc.rotary %x {inverse = false, sequence = 15, sequence_axes = ["cp"], zigzag = 2, theta = 1.0e4} : tensor<2x8x6x16xf32>
  return
}

// -----

func.func @rotary_sequence(%x: tensor<2x8x6x16xf32>) {
  // expected-error@+1 {{'dtc.rotary' op sequence is 0, expected at least 1 element [rotary-c9]}}
  %0 = dtc.rotary %x {inverse = false, sequence = 0, sequence_axes = ["cp"], theta = 1.0e4} : tensor<2x8x6x16xf32>
  return
}

// -----

func.func @rotary_sequence_alone(%x: tensor<2x8x6x16xf32>) {
  // expected-error@+1 {{'dtc.rotary' op has only one of sequence and sequence_axes, expected both or none of them [rotary-c9]}}
  %0 = dtc.rotary %x {inverse = false, sequence = 16, theta = 1.0e4} : tensor<2x8x6x16xf32>
  return
}

// -----

func.func @rotary_sequence_axes_alone(%x: tensor<2x8x6x16xf32>) {
  // expected-error@+1 {{'dtc.rotary' op has only one of sequence and sequence_axes, expected both or none of them [rotary-c9]}}
  %0 = dtc.rotary %x {inverse = false, sequence_axes = ["cp"], theta = 1.0e4} : tensor<2x8x6x16xf32>
  return
}

// -----

func.func @attention_zigzag(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op zigzag is 3 for a sequence of 8, expected at least 1 part, of two chunks of equal size [attention-c15]}}
  %0:2 = dtc.attention %q, %k, %k {causal = true, scale = 0.25, zigzag = 3} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_zigzag_negative(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op zigzag is -1 for a sequence of 8, expected at least 1 part, of two chunks of equal size [attention-c15]}}
  %0:2 = dtc.attention %q, %k, %k {causal = true, scale = 0.25, zigzag = -1} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_zigzag_of_shard(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op zigzag is 1 for a sequence of 9, expected at least 1 part, of two chunks of equal size [attention-c15]}}
  %0:2 = dtc.attention %q, %k, %k {causal = true, scale = 0.25, sequence = 9, sequence_axes = ["cp"], zigzag = 1} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_sequence(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op sequence is -8, expected at least 1 element [attention-c16]}}
  %0:2 = dtc.attention %q, %k, %k {causal = true, scale = 0.25, sequence = -8, sequence_axes = ["cp"]} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_sequence_alone(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op has only one of sequence and sequence_axes, expected both or none of them [attention-c16]}}
  %0:2 = dtc.attention %q, %k, %k {causal = true, scale = 0.25, sequence = 16} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_sequence_axes_alone(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>) {
  // expected-error@+1 {{'dtc.attention' op has only one of sequence and sequence_axes, expected both or none of them [attention-c16]}}
  %0:2 = dtc.attention %q, %k, %k {causal = true, scale = 0.25, sequence_axes = ["cp"]} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_zigzag_dropout(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %key: tensor<2xi32>) {
  // expected-error@+1 {{'dtc.attention' op has dropout and zigzag, expected one of them: a mask is over queries and keys in the order of the sequence [attention-c17]}}
  %0:2 = dtc.attention %q, %k, %k key %key {causal = true, dropout = 0.5, scale = 0.25, zigzag = 2} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_grad_zigzag(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %l: tensor<2x6x8xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op zigzag is 3 for a sequence of 8, expected at least 1 part, of two chunks of equal size [attention_grad-c18]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q {causal = true, scale = 0.25, zigzag = 3} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_grad_zigzag_negative(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %l: tensor<2x6x8xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op zigzag is -1 for a sequence of 8, expected at least 1 part, of two chunks of equal size [attention_grad-c18]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q {causal = true, scale = 0.25, zigzag = -1} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_grad_zigzag_of_shard(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %l: tensor<2x6x8xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op zigzag is 1 for a sequence of 9, expected at least 1 part, of two chunks of equal size [attention_grad-c18]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q {causal = true, scale = 0.25, sequence = 9, sequence_axes = ["cp"], zigzag = 1} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_grad_sequence(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %l: tensor<2x6x8xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op sequence is -8, expected at least 1 element [attention_grad-c19]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q {causal = true, scale = 0.25, sequence = -8, sequence_axes = ["cp"]} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_grad_sequence_alone(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %l: tensor<2x6x8xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op has only one of sequence and sequence_axes, expected both or none of them [attention_grad-c19]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q {causal = true, scale = 0.25, sequence = 16} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_grad_sequence_axes_alone(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %l: tensor<2x6x8xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op has only one of sequence and sequence_axes, expected both or none of them [attention_grad-c19]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q {causal = true, scale = 0.25, sequence_axes = ["cp"]} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_grad_zigzag_dropout(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %l: tensor<2x6x8xf32>, %key: tensor<2xi32>) {
  // expected-error@+1 {{'dtc.attention_grad' op has dropout and zigzag, expected one of them: a mask is over queries and keys in the order of the sequence [attention_grad-c20]}}
  %0:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q key %key {causal = true, dropout = 0.5, scale = 0.25, zigzag = 2} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>, tensor<2xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// -----

func.func @attention_key_shift(%q: tensor<1x4x2x4xf32>, %k: tensor<1x6x2x4xf32>) {
  // expected-error@+1 {{'dtc.attention' op key_shift is 0 with 4 queries and 6 keys, expected at least 0 and as many keys as queries [attention-c18]}}
  %out, %lse = dtc.attention %q, %k, %k {causal = true, key_shift = 0, scale = 1.0}
    : (tensor<1x4x2x4xf32>, tensor<1x6x2x4xf32>, tensor<1x6x2x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return
}

// -----

func.func @attention_negative_shift(%q: tensor<1x4x2x4xf32>) {
  // expected-error@+1 {{'dtc.attention' op key_shift is -1 with 4 queries and 4 keys, expected at least 0 and as many keys as queries [attention-c18]}}
  %out, %lse = dtc.attention %q, %q, %q {causal = true, key_shift = -1, scale = 1.0}
    : (tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return
}

// -----

func.func @attention_grad_key_shift(%q: tensor<1x4x2x4xf32>, %k: tensor<1x6x2x4xf32>, %lse: tensor<1x2x4xf32>) {
  // expected-error@+1 {{'dtc.attention_grad' op key_shift is 0 with 4 queries and 6 keys, expected at least 0 and as many keys as queries [attention_grad-c21]}}
  %dq, %dk, %dv = dtc.attention_grad %q, %k, %k, %q, %lse, %q {causal = true, key_shift = 0, scale = 1.0}
    : (tensor<1x4x2x4xf32>, tensor<1x6x2x4xf32>, tensor<1x6x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x2x4xf32>, tensor<1x4x2x4xf32>)
    -> (tensor<1x4x2x4xf32>, tensor<1x6x2x4xf32>, tensor<1x6x2x4xf32>)
  return
}

// -----

func.func @merge_attention_rank(%x: tensor<4x2x4xf32>, %lse: tensor<1x2x4xf32>) {
  // expected-error@+1 {{'dtc.merge_attention' op part has type 'tensor<4x2x4xf32>', expected rank 4 [merge_attention-c1]}}
  %out, %sum = dtc.merge_attention %x, %lse, %x, %lse
    : (tensor<4x2x4xf32>, tensor<1x2x4xf32>, tensor<4x2x4xf32>, tensor<1x2x4xf32>) -> (tensor<4x2x4xf32>, tensor<1x2x4xf32>)
  return
}

// -----

func.func @merge_attention_out(%x: tensor<1x4x2x4xf32>, %y: tensor<1x4x2x5xf32>, %lse: tensor<1x2x4xf32>) {
  // expected-error@+1 {{[merge_attention-c2]}}
  %out, %sum = dtc.merge_attention %y, %lse, %x, %lse
    : (tensor<1x4x2x5xf32>, tensor<1x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x2x4xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return
}

// -----

func.func @merge_attention_lse(%x: tensor<1x4x2x4xf32>, %lse: tensor<1x2x4xf32>, %other: tensor<1x4x2xf32>) {
  // expected-error@+1 {{[merge_attention-c3]}}
  %out, %sum = dtc.merge_attention %x, %lse, %x, %other
    : (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>, tensor<1x4x2x4xf32>, tensor<1x4x2xf32>) -> (tensor<1x4x2x4xf32>, tensor<1x2x4xf32>)
  return
}

// -----

func.func @attention_sinks_size(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %sinks: tensor<2xf32>) {
  // expected-error@+1 {{'dtc.attention' op sinks has type 'tensor<2xf32>', expected 'tensor<6xf32>' [attention-c19]}}
  %0:2 = dtc.attention %q, %k, %k sinks %sinks {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_sinks_element(%q: tensor<2x8x6x16xbf16>, %k: tensor<2x9x2x16xbf16>, %sinks: tensor<6xf32>) {
  // expected-error@+1 {{'dtc.attention' op sinks has type 'tensor<6xf32>', expected 'tensor<6xbf16>' [attention-c19]}}
  %0:2 = dtc.attention %q, %k, %k sinks %sinks {causal = true, scale = 0.25} : (tensor<2x8x6x16xbf16>, tensor<2x9x2x16xbf16>, tensor<2x9x2x16xbf16>, tensor<6xf32>) -> (tensor<2x8x6x16xbf16>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_sinks_rank(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %sinks: tensor<6x1xf32>) {
  // expected-error@+1 {{'dtc.attention' op sinks has type 'tensor<6x1xf32>', expected 'tensor<6xf32>' [attention-c19]}}
  %0:2 = dtc.attention %q, %k, %k sinks %sinks {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<6x1xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_sinks_numbers(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %sinks: tensor<6xi32>) {
  // expected-error@+1 {{'dtc.attention' op operand #3 must be }}
  %0:2 = dtc.attention %q, %k, %k sinks %sinks {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<6xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}
