// RUN: dtc-opt %s --split-input-file --verify-diagnostics

func.func @softmax_scalar(%x: tensor<f32>) {
  // expected-error@+1 {{'dtc.softmax' op operand has type 'tensor<f32>', expected rank 1 or more [softmax-c1]}}
  %0 = dtc.softmax %x : tensor<f32>
  return
}

// -----

func.func @softmax_result(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.softmax' op requires the same type for all operands and results}}
  %0 = "dtc.softmax"(%x) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @softmax_causal_rank(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.softmax' op is causal and its operand has type 'tensor<8xf32>', expected rank 2 or more: rows, and the columns that they see [softmax-c2]}}
  %0 = dtc.softmax %x {causal = true} : tensor<8xf32>
  return
}

// -----

func.func @softmax_causal_rows(%x: tensor<2x8x4xf32>) {
  // expected-error@+1 {{'dtc.softmax' op is causal and its operand has 8 rows and 4 columns, expected no more rows than columns; the first rows would see none [softmax-c3]}}
  %0 = dtc.softmax %x {causal = true} : tensor<2x8x4xf32>
  return
}

// -----

func.func @softmax_scale(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.softmax' op scale is INF, expected a finite number [softmax-c4]}}
  %0 = dtc.softmax %x {scale = 0x7FF0000000000000 : f64} : tensor<8xf32>
  return
}

// -----

func.func @softmax_grad_scale(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.softmax_grad' op scale is nan, expected a finite number [softmax_grad-c2]}}
  %0 = dtc.softmax_grad %x, %x {scale = 0x7FF8000000000000 : f64} : tensor<8xf32>
  return
}

// -----

func.func @softmax_grad_scalar(%x: tensor<f32>) {
  // expected-error@+1 {{'dtc.softmax_grad' op operands have type 'tensor<f32>', expected rank 1 or more [softmax_grad-c1]}}
  %0 = dtc.softmax_grad %x, %x : tensor<f32>
  return
}

// -----

func.func @layer_norm_scalar(%x: tensor<f32>, %g: tensor<8xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.layer_norm' op x has type 'tensor<f32>', expected rank 1 or more [layer_norm-c1]}}
  %0:3 = dtc.layer_norm %x, %g, %b {eps = 1.0e-5} : (tensor<f32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @layer_norm_gamma(%x: tensor<4x8xf32>, %g: tensor<4xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.layer_norm' op gamma has type 'tensor<4xf32>', expected 'tensor<8xf32>' [layer_norm-c2]}}
  %0:3 = dtc.layer_norm %x, %g, %b {eps = 1.0e-5} : (tensor<4x8xf32>, tensor<4xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @layer_norm_beta(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf64>) {
  // expected-error@+1 {{'dtc.layer_norm' op beta has type 'tensor<8xf64>', expected 'tensor<8xf32>' [layer_norm-c2]}}
  %0:3 = dtc.layer_norm %x, %g, %b {eps = 1.0e-5} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf64>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @layer_norm_eps(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.layer_norm' op eps is -1.000000e+00, expected a finite number that is not negative [layer_norm-c3]}}
  %0:3 = dtc.layer_norm %x, %g, %b {eps = -1.0} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @layer_norm_eps_nan(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.layer_norm' op eps is nan, expected a finite number that is not negative [layer_norm-c3]}}
  %0:3 = dtc.layer_norm %x, %g, %b {eps = 0x7FF8000000000000 : f64} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @layer_norm_eps_integer(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.layer_norm' op attribute 'eps' failed to satisfy constraint: 64-bit float attribute}}
  %0:3 = dtc.layer_norm %x, %g, %b {eps = 1} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @layer_norm_results(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.layer_norm' op result #2 has type 'tensor<8xf32>', expected 'tensor<4xf32>'}}
  %0:3 = dtc.layer_norm %x, %g, %b {eps = 1.0e-5} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<8xf32>)
  return
}

// -----

func.func @layer_norm_grad_gamma(%x: tensor<4x8xf32>, %g: tensor<4xf32>, %m: tensor<4xf32>, %r: tensor<4xf32>, %d: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.layer_norm_grad' op gamma has type 'tensor<4xf32>', expected 'tensor<8xf32>' [layer_norm_grad-c2]}}
  %0:3 = dtc.layer_norm_grad %x, %g, %m, %r, %d : (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @layer_norm_grad_mean(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %m: tensor<8xf32>, %r: tensor<4xf32>, %d: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.layer_norm_grad' op mean has type 'tensor<8xf32>', expected 'tensor<4xf32>' [layer_norm_grad-c3]}}
  %0:3 = dtc.layer_norm_grad %x, %g, %m, %r, %d : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @layer_norm_grad_rstd(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %m: tensor<4xf32>, %r: tensor<8xf32>, %d: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.layer_norm_grad' op rstd has type 'tensor<8xf32>', expected 'tensor<4xf32>' [layer_norm_grad-c3]}}
  %0:3 = dtc.layer_norm_grad %x, %g, %m, %r, %d : (tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @layer_norm_grad_dy(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %m: tensor<4xf32>, %r: tensor<4xf32>, %d: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.layer_norm_grad' op dy has type 'tensor<8xf32>', expected 'tensor<4x8xf32>' [layer_norm_grad-c4]}}
  %0:3 = dtc.layer_norm_grad %x, %g, %m, %r, %d : (tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @layer_norm_grad_results(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %m: tensor<4xf32>, %r: tensor<4xf32>, %d: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.layer_norm_grad' op result #2 has type 'tensor<4xf32>', expected 'tensor<8xf32>'}}
  %0:3 = dtc.layer_norm_grad %x, %g, %m, %r, %d : (tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>)
  return
}

// -----

func.func @rms_norm_scalar(%x: tensor<f32>, %g: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.rms_norm' op x has type 'tensor<f32>', expected rank 1 or more [rms_norm-c1]}}
  %0:2 = dtc.rms_norm %x, %g {eps = 1.0e-5} : (tensor<f32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
  return
}

// -----

func.func @rms_norm_gamma(%x: tensor<4x8xf32>, %g: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.rms_norm' op gamma has type 'tensor<4x8xf32>', expected 'tensor<8xf32>' [rms_norm-c2]}}
  %0:2 = dtc.rms_norm %x, %g {eps = 1.0e-5} : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
  return
}

// -----

func.func @rms_norm_eps(%x: tensor<4x8xf32>, %g: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.rms_norm' op eps is -1.000000e+00, expected a finite number that is not negative [rms_norm-c3]}}
  %0:2 = dtc.rms_norm %x, %g {eps = -1.0} : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
  return
}

// -----

func.func @rms_norm_results(%x: tensor<4x8xf32>, %g: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.rms_norm' op result #1 has type 'tensor<4x8xf32>', expected 'tensor<4xf32>'}}
  %0:2 = dtc.rms_norm %x, %g {eps = 1.0e-5} : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @rms_norm_grad_gamma(%x: tensor<4x8xf32>, %g: tensor<4xf32>, %r: tensor<4xf32>, %d: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.rms_norm_grad' op gamma has type 'tensor<4xf32>', expected 'tensor<8xf32>' [rms_norm_grad-c2]}}
  %0:2 = dtc.rms_norm_grad %x, %g, %r, %d : (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @rms_norm_grad_rstd(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %r: tensor<8xf32>, %d: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.rms_norm_grad' op rstd has type 'tensor<8xf32>', expected 'tensor<4xf32>' [rms_norm_grad-c3]}}
  %0:2 = dtc.rms_norm_grad %x, %g, %r, %d : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @rms_norm_grad_dy(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %r: tensor<4xf32>, %d: tensor<4xf32>) {
  // expected-error@+1 {{'dtc.rms_norm_grad' op dy has type 'tensor<4xf32>', expected 'tensor<4x8xf32>' [rms_norm_grad-c4]}}
  %0:2 = dtc.rms_norm_grad %x, %g, %r, %d : (tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @layer_norm_grad_scalar(%x: tensor<f32>, %g: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.layer_norm_grad' op x has type 'tensor<f32>', expected rank 1 or more [layer_norm_grad-c1]}}
  %0:3 = dtc.layer_norm_grad %x, %g, %x, %x, %x : (tensor<f32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @rms_norm_grad_scalar(%x: tensor<f32>, %g: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.rms_norm_grad' op x has type 'tensor<f32>', expected rank 1 or more [rms_norm_grad-c1]}}
  %0:2 = dtc.rms_norm_grad %x, %g, %x, %x : (tensor<f32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<8xf32>)
  return
}
