// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-mixed-precision
// RUN: not dtc-opt %S/../train/Inputs/identity.mlir --dtc-mixed-precision=dtype=f8 2>&1 | FileCheck %s --check-prefix=DTYPE
// RUN: not dtc-opt %S/../train/Inputs/identity.mlir --dtc-mixed-precision=dtype=f32 2>&1 | FileCheck %s --check-prefix=WIDE

// DTYPE: error: unknown dtype 'f8'; known are bf16 and f16
// WIDE: error: unknown dtype 'f32'; known are bf16 and f16

// A model that has 16-bit floats itself, in its parameters,
// expected-error@+1 {{has elements of 'bf16'; mixed precision starts from a model in f32}}
func.func @parameter(%w: tensor<4xbf16> {dtc.param = "w"}) -> tensor<f32> {
  %loss = dtc.reduce sum %w dims [0] : (tensor<4xbf16>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// or inside.
func.func @inside(%w: tensor<4xf32> {dtc.param = "w"}) -> tensor<f32> {
  // expected-error@+1 {{has elements of 'f16'; mixed precision starts from a model in f32}}
  %c = dtc.convert %w : (tensor<4xf32>) -> tensor<4xf16>
  %loss = dtc.reduce sum %c dims [0] : (tensor<4xf16>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error@+1 {{has elements of 'f64'; mixed precision starts from a model in f32}}
func.func @double(%w: tensor<4xf64> {dtc.param = "w"}) -> tensor<f64> {
  %loss = dtc.reduce sum %w dims [0] : (tensor<4xf64>) -> tensor<f64>
  return %loss : tensor<f64>
}

// -----

// expected-error@+1 {{'func.func' op has branches, expected straight-line code}}
func.func @branches(%w: tensor<f32> {dtc.param = "w"}) -> tensor<f32> {
  return %w : tensor<f32>
^unreachable:
  return %w : tensor<f32>
}

// -----

// The pass comes before the program is partitioned.
dist.mesh @mesh <"dp"=2>
func.func @partitioned(%w: tensor<4xf32> {dtc.param = "w"}) -> tensor<4xf32> {
  // expected-error@+1 {{'dist.all_reduce' op says nothing of 16-bit floats; implement PrecisionOpInterface}}
  %0 = dist.all_reduce sum %w over @mesh ["dp"] : tensor<4xf32>
  return %0 : tensor<4xf32>
}
