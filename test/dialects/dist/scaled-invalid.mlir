// RUN: dtc-opt %s --split-input-file --verify-diagnostics

func.func @shape(%x: tensor<4x6xbf16>, %a: tensor<f32>) {
  // expected-error@+1 {{'dist.quantize_f8' op has a result of type 'tensor<24xf8E4M3FN>', expected the shape of 'tensor<4x6xbf16>' [quantize_f8-c1]}}
  %q, %s = dist.quantize_f8 %x by %a : tensor<4x6xbf16> -> tensor<24xf8E4M3FN>
  return
}

// -----

func.func @equation(%q: tensor<4x6xf8E4M3FN>, %s: tensor<f32>) {
  // expected-error@+1 {{[scaled_product-c1]}}
  %y = dist.scaled_product "ab,cb" %q, %q scales %s, %s : (tensor<4x6xf8E4M3FN>, tensor<4x6xf8E4M3FN>) -> tensor<4x4xf32>
  return
}

// -----

func.func @sizes(%q: tensor<4x6xf8E4M3FN>, %s: tensor<f32>) {
  // expected-error@+1 {{'dist.scaled_product' op has a tensor of type 'tensor<4x5xf32>', expected the dimensions "ac" of the equation "ab,cb->ac" [scaled_product-c2]}}
  %y = dist.scaled_product "ab,cb->ac" %q, %q scales %s, %s : (tensor<4x6xf8E4M3FN>, tensor<4x6xf8E4M3FN>) -> tensor<4x5xf32>
  return
}

// -----

func.func @types(%q: tensor<4x6xf8E5M2>, %s: tensor<f32>) {
  // expected-error@+1 {{'dist.scaled_product' op has two operands of f8E5M2, expected at most one; GPUs have no such product [scaled_product-c3]}}
  %y = dist.scaled_product "ab,cb->ac" %q, %q scales %s, %s : (tensor<4x6xf8E5M2>, tensor<4x6xf8E5M2>) -> tensor<4x4xf32>
  return
}
