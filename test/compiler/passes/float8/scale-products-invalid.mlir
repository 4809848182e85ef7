// RUN: dtc-opt %s --verify-diagnostics --dtc-scale-products

dist.mesh @mesh <"dp"=2>
func.func @global(%x: tensor<16x32xbf16>, %w: tensor<32x48xbf16>) -> tensor<16x48xbf16> {
  // expected-error@+1 {{has 'dtc.float8' and no 'dist.operand_axes'; run dtc-spmd-partition first}}
  %0 = dtc.einsum "bi,io->bo" %x, %w {dtc.float8 = [f8E4M3FN, f8E4M3FN]}
    : (tensor<16x32xbf16>, tensor<32x48xbf16>) -> tensor<16x48xbf16>
  return %0 : tensor<16x48xbf16>
}
