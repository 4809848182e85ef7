// RUN: dtc-opt %s -split-input-file -verify-diagnostics

func.func @bits(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'dist.quantize_blocks' op has integers of 5 bits, expected 4 or 8 [quantize_blocks-c1]}}
  %0 = dist.quantize_blocks %x {bits = 5, block = 4, dim = 0, parts = 1} : (tensor<4x6xf32>) -> tensor<6x2xi32>
  return
}

// -----

func.func @block_none(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'dist.quantize_blocks' op has blocks of 0 elements, expected at least 1 and at most 1048576 [quantize_blocks-c2]}}
  %0 = dist.quantize_blocks %x {bits = 8, block = 0, dim = 0, parts = 1} : (tensor<4x6xf32>) -> tensor<6x2xi32>
  return
}

// -----

func.func @block_large(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'dist.quantize_blocks' op has blocks of 1048577 elements, expected at least 1 and at most 1048576 [quantize_blocks-c2]}}
  %0 = dist.quantize_blocks %x {bits = 8, block = 1048577, dim = 0, parts = 1} : (tensor<4x6xf32>) -> tensor<6x2xi32>
  return
}

// -----

func.func @dim(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'dist.quantize_blocks' op names dimension 2 of 'tensor<4x6xf32>' [quantize_blocks-c3]}}
  %0 = dist.quantize_blocks %x {bits = 8, block = 4, dim = 2, parts = 1} : (tensor<4x6xf32>) -> tensor<6x2xi32>
  return
}

// -----

func.func @parts(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'dist.quantize_blocks' op has 4 parts, expected a divisor of the 6 elements of dimension 1 [quantize_blocks-c4]}}
  %0 = dist.quantize_blocks %x {bits = 8, block = 4, dim = 1, parts = 4} : (tensor<4x6xf32>) -> tensor<6x2xi32>
  return
}

// -----

func.func @no_parts(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'dist.quantize_blocks' op has 0 parts, expected a divisor of the 6 elements of dimension 1 [quantize_blocks-c4]}}
  %0 = dist.quantize_blocks %x {bits = 8, block = 4, dim = 1, parts = 0} : (tensor<4x6xf32>) -> tensor<6x2xi32>
  return
}

// -----

func.func @words(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'dist.quantize_blocks' op has blocks of type 'tensor<6x2xi32>', expected 'tensor<3x3xi32>' [quantize_blocks-c5]}}
  %0 = dist.quantize_blocks %x {bits = 4, block = 9, dim = 0, parts = 1} : (tensor<4x6xf32>) -> tensor<6x2xi32>
  return
}

// -----

func.func @de_bits(%x: tensor<6x2xi32>) {
  // expected-error@+1 {{'dist.dequantize_blocks' op has integers of 5 bits, expected 4 or 8 [dequantize_blocks-c1]}}
  %0 = dist.dequantize_blocks %x {bits = 5, block = 4, dim = 0, parts = 1} : (tensor<6x2xi32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @de_block_none(%x: tensor<6x2xi32>) {
  // expected-error@+1 {{'dist.dequantize_blocks' op has blocks of 0 elements, expected at least 1 and at most 1048576 [dequantize_blocks-c2]}}
  %0 = dist.dequantize_blocks %x {bits = 8, block = 0, dim = 0, parts = 1} : (tensor<6x2xi32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @de_block_large(%x: tensor<6x2xi32>) {
  // expected-error@+1 {{'dist.dequantize_blocks' op has blocks of 1048577 elements, expected at least 1 and at most 1048576 [dequantize_blocks-c2]}}
  %0 = dist.dequantize_blocks %x {bits = 8, block = 1048577, dim = 0, parts = 1} : (tensor<6x2xi32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @de_dim(%x: tensor<6x2xi32>) {
  // expected-error@+1 {{'dist.dequantize_blocks' op names dimension 2 of 'tensor<4x6xf32>' [dequantize_blocks-c3]}}
  %0 = dist.dequantize_blocks %x {bits = 8, block = 4, dim = 2, parts = 1} : (tensor<6x2xi32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @de_parts(%x: tensor<6x2xi32>) {
  // expected-error@+1 {{'dist.dequantize_blocks' op has 4 parts, expected a divisor of the 6 elements of dimension 1 [dequantize_blocks-c4]}}
  %0 = dist.dequantize_blocks %x {bits = 8, block = 4, dim = 1, parts = 4} : (tensor<6x2xi32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @de_no_parts(%x: tensor<6x2xi32>) {
  // expected-error@+1 {{'dist.dequantize_blocks' op has 0 parts, expected a divisor of the 6 elements of dimension 1 [dequantize_blocks-c4]}}
  %0 = dist.dequantize_blocks %x {bits = 8, block = 4, dim = 1, parts = 0} : (tensor<6x2xi32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @de_words(%x: tensor<6x2xi32>) {
  // expected-error@+1 {{'dist.dequantize_blocks' op has blocks of type 'tensor<6x2xi32>', expected 'tensor<3x3xi32>' [dequantize_blocks-c5]}}
  %0 = dist.dequantize_blocks %x {bits = 4, block = 9, dim = 0, parts = 1} : (tensor<6x2xi32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @noise(%x: tensor<4x6xf64>, %u: tensor<24xf32>) {
  // expected-error@+1 {{'dist.quantize_blocks' op has noise of type 'tensor<24xf32>', expected the shape of 'tensor<4x6xf64>' [quantize_blocks-c6]}}
  %0 = dist.quantize_blocks %x noise %u {bits = 4, block = 8, dim = 0, parts = 1} : (tensor<4x6xf64>, tensor<24xf32>) -> tensor<3x2xi32>
  return
}

// -----

func.func @key(%key: tensor<3xi32>) {
  // expected-error@+1 {{'dist.random_uniform' op has a key of type 'tensor<3xi32>', expected 'tensor<2xi32>' [random_uniform-c1]}}
  %0 = dist.random_uniform %key {number = 0, shape = array<i64: 4>, sharding = [""]} : (tensor<3xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @dims(%key: tensor<2xi32>) {
  // expected-error@+1 {{'dist.random_uniform' op has a shape of 2 dimensions and the sharding of 1, expected 1 as the result [random_uniform-c2]}}
  %0 = dist.random_uniform %key {number = 0, shape = array<i64: 4, 1>, sharding = [""]} : (tensor<2xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @number(%key: tensor<2xi32>) {
  // expected-error@+1 {{'dist.random_uniform' op has number -1, expected at least 0 and less than 2^32 [random_uniform-c3]}}
  %0 = dist.random_uniform %key {number = -1, shape = array<i64: 4>, sharding = [""]} : (tensor<2xi32>) -> tensor<4xf32>
  return
}
