// RUN: dtc-opt %s --test-build-vjps --split-input-file --verify-diagnostics

func.func @attention_lse(%q: tensor<2x3x4x2xf32>) -> tensor<2x4x3xf32> {
  // expected-error@+1 {{'dtc.attention' op a gradient by lse was asked for, expected one by out alone}}
  %0:2 = dtc.attention %q, %q, %q {causal = true, scale = 1.0} : (tensor<2x3x4x2xf32>, tensor<2x3x4x2xf32>, tensor<2x3x4x2xf32>) -> (tensor<2x3x4x2xf32>, tensor<2x4x3xf32>)
  return %0#1 : tensor<2x4x3xf32>
}

// -----

func.func @layer_norm_mean(%x: tensor<3x4xf32>, %w: tensor<4xf32>) -> tensor<3xf32> {
  // expected-error@+1 {{'dtc.layer_norm' op a gradient by mean or rstd was asked for, expected one by y alone}}
  %0:3 = dtc.layer_norm %x, %w, %w {eps = 1.0e-5} : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  return %0#1 : tensor<3xf32>
}

// -----

func.func @rms_norm_rstd(%x: tensor<3x4xf32>, %w: tensor<4xf32>) -> tensor<3xf32> {
  // expected-error@+1 {{'dtc.rms_norm' op a gradient by rstd was asked for, expected one by y alone}}
  %0:2 = dtc.rms_norm %x, %w {eps = 1.0e-5} : (tensor<3x4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3xf32>)
  return %0#1 : tensor<3xf32>
}

// -----

func.func @second_order(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'dtc.silu_grad' op has no gradient}}
  %0 = dtc.silu_grad %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
