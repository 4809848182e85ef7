// RUN: dtc-opt %s --split-input-file --verify-diagnostics

func.func @slice_count(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.slice' op offsets are [0] and sizes [4, 8], expected 2 each, one for each dimension of the
  // operand [slice-c1]}}
  %0 = dtc.slice %x offsets [0] sizes [4, 8] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @slice_beyond(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.slice' op dimension 1 has offset 6 and size 3, expected a block of at least 1 inside 8
  // [slice-c2]}}
  %0 = dtc.slice %x offsets [0, 6] sizes [4, 3] : (tensor<4x8xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @slice_negative(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.slice' op dimension 0 has offset -1 and size 4, expected a block of at least 1 inside 4
  // [slice-c2]}}
  %0 = dtc.slice %x offsets [-1, 0] sizes [4, 8] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @slice_empty(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.slice' op dimension 1 has offset 0 and size 0, expected a block of at least 1 inside 8
  // [slice-c2]}}
  %0 = dtc.slice %x offsets [0, 0] sizes [4, 0] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @slice_overflow(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.slice' op dimension 0 has offset 9223372036854775807 and size 2, expected a block of at
  // least 1 inside 4 [slice-c2]}}
  %0 = dtc.slice %x offsets [9223372036854775807, 0] sizes [2, 8] : (tensor<4x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @slice_result(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.slice' op result #0 has type 'tensor<4x8xf32>', expected 'tensor<4x4xf32>'}}
  %0 = dtc.slice %x offsets [0, 0] sizes [4, 4] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @pad_count(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.pad' op low is [1] and high [1, 1], expected 2 each, one for each dimension of the operand
  // [pad-c1]}}
  %0 = dtc.pad %x low [1] high [1, 1] value 0.0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @pad_negative(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.pad' op dimension 1 has low -1 and high 0, expected at least 0 and at most 2^60 [pad-c2]}}
  %0 = dtc.pad %x low [0, -1] high [0, 0] value 0.0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @pad_overflow(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.pad' op dimension 1 has low 9223372036854775807 and high 0, expected at least 0 and at
  // most 2^60 [pad-c2]}}
  %0 = dtc.pad %x low [0, 9223372036854775807] high [0, 0] value 0.0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @pad_result(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.pad' op result #0 has type 'tensor<4x8xf32>', expected 'tensor<4x10xf32>'}}
  %0 = dtc.pad %x low [0, 1] high [0, 1] value 0.0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @concat_nothing() {
  // expected-error@+1 {{'dtc.concat' op found no operands, expected at least one [concat-c1]}}
  %0 = "dtc.concat"() <{dim = 0 : i64}> : () -> tensor<4x8xf32>
  return
}

// -----

func.func @concat_dim(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.concat' op dim is 2, expected a dimension of 'tensor<4x8xf32>' [concat-c2]}}
  %0 = dtc.concat %x, %x dim 2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @concat_negative_dim(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.concat' op dim is -1, expected a dimension of 'tensor<4x8xf32>' [concat-c2]}}
  %0 = dtc.concat %x, %x dim -1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @concat_shapes(%x: tensor<4x8xf32>, %y: tensor<5x8xf32>) {
  // expected-error@+1 {{'dtc.concat' op operand #1 has type 'tensor<5x8xf32>', expected that of operand #0,
  // 'tensor<4x8xf32>', but for the size of dimension 1 [concat-c3]}}
  %0 = dtc.concat %x, %y dim 1 : (tensor<4x8xf32>, tensor<5x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @concat_ranks(%x: tensor<4x8xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dtc.concat' op operand #1 has type 'tensor<4xf32>', expected that of operand #0,
  // 'tensor<4x8xf32>', but for the size of dimension 1 [concat-c3]}}
  %0 = dtc.concat %x, %y dim 1 : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @concat_elements(%x: tensor<4x8xf32>, %y: tensor<4x8xi32>) {
  // expected-error@+1 {{'dtc.concat' op operand #1 has type 'tensor<4x8xi32>', expected that of operand #0,
  // 'tensor<4x8xf32>', but for the size of dimension 1 [concat-c3]}}
  %0 = dtc.concat %x, %y dim 1 : (tensor<4x8xf32>, tensor<4x8xi32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @concat_result(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.concat' op result #0 has type 'tensor<4x8xf32>', expected 'tensor<8x8xf32>'}}
  %0 = dtc.concat %x, %x dim 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

// 128 times the largest size of a tensor.
func.func @concat_overflow(%x: tensor<72057594037927936xi1>) {
  // expected-error@+1 {{'dtc.concat' op the sizes of dimension 0 add up to more than 2^63 - 1 [concat-c4]}}
  %0 = dtc.concat %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x dim 0 : (tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>, tensor<72057594037927936xi1>) -> tensor<72057594037927936xi1>
  return
}
