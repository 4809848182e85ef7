// RUN: dtc-opt %s --split-input-file --verify-diagnostics

func.func @constant_element() {
  // expected-error@+1 {{'dtc.constant' op result #0 must be ranked tensor of f32, f64, bf16, f16, i32 or i1 with static sizes of at least 1, but got 'tensor<4xi64>'}}
  %0 = dtc.constant dense<1> : tensor<4xi64>
  return
}

// -----

func.func @constant_vector() {
  // expected-error@+1 {{'dtc.constant' op result #0 must be ranked tensor}}
  %0 = dtc.constant dense<1.0> : vector<4xf32>
  return
}

// -----

func.func @constant_number() {
  // expected-error@+1 {{invalid kind of attribute specified}}
  %0 = dtc.constant 1.0 : f32
  return
}

// -----

func.func @constant_empty() {
  // expected-error@+1 {{'dtc.constant' op result #0 must be ranked tensor}}
  %0 = dtc.constant dense<> : tensor<0xf32>
  return
}

// -----

func.func @constant_type() {
  // expected-error@+1 {{'dtc.constant' op failed to verify that all of {value, result} have same type}}
  %0 = "dtc.constant"() <{value = dense<1.0> : tensor<4xf32>}> : () -> tensor<8xf32>
  return
}

// -----

func.func @constant_without_value() {
  // expected-error@+1 {{'dtc.constant' op requires attribute 'value'}}
  %0 = "dtc.constant"() : () -> tensor<8xf32>
  return
}

// -----

func.func @broadcast_count(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.broadcast' op dims are [0], expected 2, one for each dimension of the operand [broadcast-c2]}}
  %0 = dtc.broadcast %x dims [0] : (tensor<4x8xf32>) -> tensor<4x8x2xf32>
  return
}

// -----

func.func @broadcast_order(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.broadcast' op dims are [1, 0], expected increasing dimensions of the result 'tensor<8x4xf32>' [broadcast-c3]}}
  %0 = dtc.broadcast %x dims [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @broadcast_range(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.broadcast' op dims are [0, 2], expected increasing dimensions of the result 'tensor<4x8xf32>' [broadcast-c3]}}
  %0 = dtc.broadcast %x dims [0, 2] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @broadcast_negative(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.broadcast' op dims are [-1, 0], expected increasing dimensions of the result 'tensor<4x8xf32>' [broadcast-c3]}}
  %0 = dtc.broadcast %x dims [-1, 0] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @broadcast_size(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{'dtc.broadcast' op dimension 0 of the result has size 4, expected 1 as dimension 0 of the operand [broadcast-c4]}}
  %0 = dtc.broadcast %x dims [0, 2] : (tensor<1x8xf32>) -> tensor<4x2x8xf32>
  return
}

// -----

func.func @broadcast_element(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.broadcast' op result has elements of 'f64', expected 'f32' as the operand [broadcast-c1]}}
  %0 = dtc.broadcast %x dims [0, 1] : (tensor<4x8xf32>) -> tensor<4x8xf64>
  return
}

// -----

func.func @reshape_count(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.reshape' op result has 31 elements, expected 32 as the operand [reshape-c2]}}
  %0 = dtc.reshape %x : (tensor<4x8xf32>) -> tensor<31xf32>
  return
}

// -----

func.func @reshape_element(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.reshape' op result has elements of 'i32', expected 'f32' as the operand [reshape-c1]}}
  %0 = dtc.reshape %x : (tensor<4x8xf32>) -> tensor<32xi32>
  return
}

// -----

func.func @transpose_count(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.transpose' op permutation is [0], expected each dimension of 'tensor<4x8xf32>' once [transpose-c1]}}
  %0 = dtc.transpose %x permutation [0] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @transpose_twice(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.transpose' op permutation is [0, 0], expected each dimension of 'tensor<4x8xf32>' once [transpose-c1]}}
  %0 = dtc.transpose %x permutation [0, 0] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @transpose_range(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.transpose' op permutation is [1, 2], expected each dimension of 'tensor<4x8xf32>' once [transpose-c1]}}
  %0 = dtc.transpose %x permutation [1, 2] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @transpose_result(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.transpose' op result #0 has type 'tensor<4x8xf32>', expected 'tensor<8x4xf32>'}}
  %0 = dtc.transpose %x permutation [1, 0] : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @zigzag_dim(%x: tensor<4x12xf32>) {
  // expected-error@+1 {{'dtc.zigzag' op dim is 2, expected one of the 2 dimensions of 'tensor<4x12xf32>' [zigzag-c1]}}
  %0 = dtc.zigzag %x {dim = 2, inverse = false, parts = 2} : tensor<4x12xf32>
  return
}

// -----

func.func @zigzag_negative_dim(%x: tensor<4x12xf32>) {
  // expected-error@+1 {{'dtc.zigzag' op dim is -1, expected one of the 2 dimensions of 'tensor<4x12xf32>' [zigzag-c1]}}
  %0 = dtc.zigzag %x {dim = -1, inverse = false, parts = 2} : tensor<4x12xf32>
  return
}

// -----

func.func @zigzag_parts(%x: tensor<4x12xf32>) {
  // expected-error@+1 {{'dtc.zigzag' op dimension 1 has 12 elements for 4 parts, expected at least 1 part, of two chunks of equal size [zigzag-c2]}}
  %0 = dtc.zigzag %x {dim = 1, inverse = false, parts = 4} : tensor<4x12xf32>
  return
}

// -----

func.func @zigzag_no_parts(%x: tensor<4x12xf32>) {
  // expected-error@+1 {{'dtc.zigzag' op dimension 1 has 12 elements for 0 parts, expected at least 1 part, of two chunks of equal size [zigzag-c2]}}
  %0 = dtc.zigzag %x {dim = 1, inverse = false, parts = 0} : tensor<4x12xf32>
  return
}

// -----

func.func @zigzag_negative_parts(%x: tensor<4x12xf32>) {
  // expected-error@+1 {{'dtc.zigzag' op dimension 1 has 12 elements for -2 parts, expected at least 1 part, of two chunks of equal size [zigzag-c2]}}
  %0 = dtc.zigzag %x {dim = 1, inverse = false, parts = -2} : tensor<4x12xf32>
  return
}

// -----

func.func @zigzag_many_parts(%x: tensor<4x12xf32>) {
  // expected-error@+1 {{'dtc.zigzag' op dimension 1 has 12 elements for 12 parts, expected at least 1 part, of two chunks of equal size [zigzag-c2]}}
  %0 = dtc.zigzag %x {dim = 1, inverse = false, parts = 12} : tensor<4x12xf32>
  return
}

// -----

func.func @zigzag_without_inverse(%x: tensor<4x12xf32>) {
  // expected-error@+1 {{'dtc.zigzag' op requires attribute 'inverse'}}
  %0 = dtc.zigzag %x {dim = 1, parts = 2} : tensor<4x12xf32>
  return
}

// -----

func.func @zigzag_result(%x: tensor<4x12xf32>) {
  // expected-error@+1 {{'dtc.zigzag' op result #0 has type 'tensor<12x4xf32>', expected 'tensor<4x12xf32>'}}
  %0 = "dtc.zigzag"(%x) <{dim = 1 : i64, inverse = false, parts = 2 : i64}> : (tensor<4x12xf32>) -> tensor<12x4xf32>
  return
}
