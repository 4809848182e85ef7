// RUN: dtc-opt %s --split-input-file --verify-diagnostics

func.func @types(%x: tensor<16x32xbf16>, %w: tensor<32x48xbf16>) -> tensor<16x48xbf16> {
  // expected-error@+1 {{has 'dtc.float8' = [f8E4M3FN, bf16], expected it on dtc.einsum with two types, each f8E4M3FN or f8E5M2 [dtc-c26]}}
  %0 = dtc.einsum "bi,io->bo" %x, %w {dtc.float8 = [f8E4M3FN, bf16]}
    : (tensor<16x32xbf16>, tensor<32x48xbf16>) -> tensor<16x48xbf16>
  return %0 : tensor<16x48xbf16>
}

// -----

func.func @op(%x: tensor<16x32xbf16>) -> tensor<16x32xbf16> {
  // expected-error@+1 {{'dtc.neg' op has 'dtc.float8' = [f8E4M3FN, f8E4M3FN], expected it on dtc.einsum with two types, each f8E4M3FN or f8E5M2 [dtc-c26]}}
  %0 = dtc.neg %x {dtc.float8 = [f8E4M3FN, f8E4M3FN]} : tensor<16x32xbf16>
  return %0 : tensor<16x32xbf16>
}
