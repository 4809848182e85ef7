// RUN: dtc-opt %s --split-input-file --verify-diagnostics

func.func @conv_stride(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error@+1 {{'dtc.conv' op strides is [1, 0], expected numbers from 1 to 2147483647 [conv-c1]}}
  %0 = dtc.conv %x, %w strides [1, 0] padding [0, 0] dilations [1, 1] : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

func.func @conv_padding(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error@+1 {{'dtc.conv' op padding is [0, -1], expected numbers from 0 to 2147483647 [conv-c1]}}
  %0 = dtc.conv %x, %w strides [1, 1] padding [0, -1] dilations [1, 1] : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

func.func @conv_dilations(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error@+1 {{'dtc.conv' op dilations has 1 entries, expected 2 as strides has [conv-c1]}}
  %0 = dtc.conv %x, %w strides [1, 1] padding [0, 0] dilations [1] : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

func.func @conv_no_strides(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error@+1 {{'dtc.conv' op strides has 0 entries, expected 1 to 3, one for each spatial dimension [conv-c1]}}
  %0 = dtc.conv %x, %w strides [] padding [] dilations [] : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

func.func @conv_rank(%x: tensor<8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error@+1 {{'dtc.conv' op x has type 'tensor<8x8xf32>', expected rank 4, or 5 with groups, for 2 strides [conv-c2]}}
  %0 = dtc.conv %x, %w strides [1, 1] padding [0, 0] dilations [1, 1] : (tensor<8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

func.func @conv_channels(%x: tensor<2x3x8x8xf32>, %w: tensor<4x5x3x3xf32>) {
  // expected-error@+1 {{'dtc.conv' op w has type 'tensor<4x5x3x3xf32>', expected tensor<ox3xkx'f32'> for some o and 2 sizes k of less than 2^31, as x has type 'tensor<2x3x8x8xf32>' [conv-c3]}}
  %0 = dtc.conv %x, %w strides [1, 1] padding [0, 0] dilations [1, 1] : (tensor<2x3x8x8xf32>, tensor<4x5x3x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

func.func @conv_elements(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf64>) {
  // expected-error@+1 {{'dtc.conv' op w has type 'tensor<4x3x3x3xf64>', expected tensor<ox3xkx'f32'> for some o and 2 sizes k of less than 2^31, as x has type 'tensor<2x3x8x8xf32>' [conv-c3]}}
  %0 = dtc.conv %x, %w strides [1, 1] padding [0, 0] dilations [1, 1] : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf64>) -> tensor<2x4x6x6xf32>
  return
}

// -----

func.func @conv_weight_rank(%x: tensor<2x3x8x8xf32>, %w: tensor<2x4x3x3x3xf32>) {
  // expected-error@+1 {{'dtc.conv' op w has type 'tensor<2x4x3x3x3xf32>', expected tensor<ox3xkx'f32'> for some o and 2 sizes k of less than 2^31, as x has type 'tensor<2x3x8x8xf32>' [conv-c3]}}
  %0 = dtc.conv %x, %w strides [1, 1] padding [0, 0] dilations [1, 1] : (tensor<2x3x8x8xf32>, tensor<2x4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

func.func @conv_groups(%x: tensor<2x6x3x8x8xf32>, %w: tensor<4x4x3x3x3xf32>) {
  // expected-error@+1 {{'dtc.conv' op w has type 'tensor<4x4x3x3x3xf32>', expected tensor<6xox3xkx'f32'> for some o and 2 sizes k of less than 2^31, as x has type 'tensor<2x6x3x8x8xf32>' [conv-c3]}}
  %0 = dtc.conv %x, %w strides [1, 1] padding [0, 0] dilations [1, 1] : (tensor<2x6x3x8x8xf32>, tensor<4x4x3x3x3xf32>) -> tensor<2x6x4x6x6xf32>
  return
}

// -----

func.func @conv_window(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error@+1 {{'dtc.conv' op x has type 'tensor<2x3x8x8xf32>'; dimension 3 has 8 elements and a padding of 1 on both sides, expected the extent of a window, 11, or more [conv-c4]}}
  %0 = dtc.conv %x, %w strides [1, 1] padding [0, 1] dilations [1, 5] : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  return
}

// -----

func.func @conv_result(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error@+1 {{'dtc.conv' op result #0 has type 'tensor<2x4x6x7xf32>', expected 'tensor<2x4x6x6xf32>'}}
  %0 = dtc.conv %x, %w strides [1, 1] padding [0, 0] dilations [1, 1] : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x7xf32>
  return
}

// -----

func.func @input_grad_stride(%dy: tensor<2x4x6x6xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error@+1 {{'dtc.conv_input_grad' op strides is [0, 1], expected numbers from 1 to 2147483647 [conv_input_grad-c1]}}
  %0 = dtc.conv_input_grad %dy, %w strides [0, 1] padding [0, 0] dilations [1, 1] : (tensor<2x4x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x3x8x8xf32>
  return
}

// -----

func.func @input_grad_rank(%dy: tensor<2x4x6x6xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error@+1 {{'dtc.conv_input_grad' op the result has type 'tensor<8x8xf32>', expected rank 4, or 5 with groups, for 2 strides [conv_input_grad-c2]}}
  %0 = dtc.conv_input_grad %dy, %w strides [1, 1] padding [0, 0] dilations [1, 1] : (tensor<2x4x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @input_grad_weight(%dy: tensor<2x4x6x6xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error@+1 {{'dtc.conv_input_grad' op w has type 'tensor<4x3x3x3xf32>', expected tensor<ox5xkx'f32'> for some o and 2 sizes k of less than 2^31, as the result has type 'tensor<2x5x8x8xf32>' [conv_input_grad-c3]}}
  %0 = dtc.conv_input_grad %dy, %w strides [1, 1] padding [0, 0] dilations [1, 1] : (tensor<2x4x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x5x8x8xf32>
  return
}

// -----

func.func @input_grad_window(%dy: tensor<2x4x6x6xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error@+1 {{'dtc.conv_input_grad' op the result has type 'tensor<2x3x8x2xf32>'; dimension 3 has 2 elements and a padding of 0 on both sides, expected the extent of a window, 3, or more [conv_input_grad-c4]}}
  %0 = dtc.conv_input_grad %dy, %w strides [1, 1] padding [0, 0] dilations [1, 1] : (tensor<2x4x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x3x8x2xf32>
  return
}

// -----

func.func @input_grad_dy(%dy: tensor<2x4x6x6xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error@+1 {{'dtc.conv_input_grad' op dy has type 'tensor<2x4x6x6xf32>', expected 'tensor<2x4x6x7xf32>' [conv_input_grad-c5]}}
  %0 = dtc.conv_input_grad %dy, %w strides [1, 1] padding [0, 0] dilations [1, 1] : (tensor<2x4x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x3x8x9xf32>
  return
}

// -----

func.func @weight_grad_stride(%x: tensor<2x3x8x8xf32>, %dy: tensor<2x4x6x6xf32>) {
  // expected-error@+1 {{'dtc.conv_weight_grad' op padding has 1 entries, expected 2 as strides has [conv_weight_grad-c1]}}
  %0 = dtc.conv_weight_grad %x, %dy strides [1, 1] padding [0] dilations [1, 1] : (tensor<2x3x8x8xf32>, tensor<2x4x6x6xf32>) -> tensor<4x3x3x3xf32>
  return
}

// -----

func.func @weight_grad_rank(%x: tensor<8x8xf32>, %dy: tensor<2x4x6x6xf32>) {
  // expected-error@+1 {{'dtc.conv_weight_grad' op x has type 'tensor<8x8xf32>', expected rank 4, or 5 with groups, for 2 strides [conv_weight_grad-c2]}}
  %0 = dtc.conv_weight_grad %x, %dy strides [1, 1] padding [0, 0] dilations [1, 1] : (tensor<8x8xf32>, tensor<2x4x6x6xf32>) -> tensor<4x3x3x3xf32>
  return
}

// -----

func.func @weight_grad_weight(%x: tensor<2x3x8x8xf32>, %dy: tensor<2x4x6x6xf32>) {
  // expected-error@+1 {{'dtc.conv_weight_grad' op the weight has type 'tensor<4x2x3x3xf32>', expected tensor<ox3xkx'f32'> for some o and 2 sizes k of less than 2^31, as x has type 'tensor<2x3x8x8xf32>' [conv_weight_grad-c3]}}
  %0 = dtc.conv_weight_grad %x, %dy strides [1, 1] padding [0, 0] dilations [1, 1] : (tensor<2x3x8x8xf32>, tensor<2x4x6x6xf32>) -> tensor<4x2x3x3xf32>
  return
}

// -----

func.func @weight_grad_narrow(%x: tensor<2x3x8x8xbf16>, %dy: tensor<2x4x6x6xbf16>) {
  // expected-error@+1 {{'dtc.conv_weight_grad' op the weight has type 'tensor<4x3x3x3xf64>', expected tensor<ox3xkx'bf16'> for some o and 2 sizes k of less than 2^31, as x has type 'tensor<2x3x8x8xbf16>' [conv_weight_grad-c3]}}
  %0 = dtc.conv_weight_grad %x, %dy strides [1, 1] padding [0, 0] dilations [1, 1] : (tensor<2x3x8x8xbf16>, tensor<2x4x6x6xbf16>) -> tensor<4x3x3x3xf64>
  return
}

// -----

func.func @weight_grad_window(%x: tensor<2x3x8x8xf32>, %dy: tensor<2x4x6x6xf32>) {
  // expected-error@+1 {{'dtc.conv_weight_grad' op x has type 'tensor<2x3x8x8xf32>'; dimension 3 has 8 elements and a padding of 0 on both sides, expected the extent of a window, 9, or more [conv_weight_grad-c4]}}
  %0 = dtc.conv_weight_grad %x, %dy strides [1, 1] padding [0, 0] dilations [1, 1] : (tensor<2x3x8x8xf32>, tensor<2x4x6x6xf32>) -> tensor<4x3x3x9xf32>
  return
}

// -----

func.func @weight_grad_dy(%x: tensor<2x3x8x8xf32>, %dy: tensor<2x4x6x6xf32>) {
  // expected-error@+1 {{'dtc.conv_weight_grad' op dy has type 'tensor<2x4x6x6xf32>', expected 'tensor<2x4x6x5xf32>' [conv_weight_grad-c5]}}
  %0 = dtc.conv_weight_grad %x, %dy strides [1, 1] padding [0, 0] dilations [1, 1] : (tensor<2x3x8x8xf32>, tensor<2x4x6x6xf32>) -> tensor<4x3x3x4xf32>
  return
}

// -----

func.func @max_pool_window(%x: tensor<2x3x8x8xf32>) {
  // expected-error@+1 {{'dtc.max_pool' op window is [3, 0], expected numbers from 1 to 2147483647 [max_pool-c1]}}
  %0 = dtc.max_pool %x window [3, 0] strides [2, 2] padding [1, 1] dilations [1, 1] : (tensor<2x3x8x8xf32>) -> tensor<2x3x4x4xf32>
  return
}

// -----

func.func @max_pool_rank(%x: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.max_pool' op x has type 'tensor<8xf32>', expected rank 2 or more for 2 strides [max_pool-c2]}}
  %0 = dtc.max_pool %x window [3, 3] strides [2, 2] padding [1, 1] dilations [1, 1] : (tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @max_pool_fit(%x: tensor<2x3x8x8xf32>) {
  // expected-error@+1 {{'dtc.max_pool' op x has type 'tensor<2x3x8x8xf32>'; dimension 3 has 8 elements and a padding of 1 on both sides, expected the extent of a window, 13, or more [max_pool-c3]}}
  %0 = dtc.max_pool %x window [3, 3] strides [2, 2] padding [1, 1] dilations [1, 6] : (tensor<2x3x8x8xf32>) -> tensor<2x3x4x4xf32>
  return
}

// -----

func.func @max_pool_grad_window(%x: tensor<2x3x8x8xf32>, %dy: tensor<2x3x4x4xf32>) {
  // expected-error@+1 {{'dtc.max_pool_grad' op window has 1 entries, expected 2 as strides has [max_pool_grad-c1]}}
  %0 = dtc.max_pool_grad %x, %dy window [3] strides [2, 2] padding [1, 1] dilations [1, 1] : (tensor<2x3x8x8xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x8x8xf32>
  return
}

// -----

func.func @max_pool_grad_rank(%x: tensor<8xf32>, %dy: tensor<4xf32>) {
  // expected-error@+1 {{'dtc.max_pool_grad' op x has type 'tensor<8xf32>', expected rank 2 or more for 2 strides [max_pool_grad-c2]}}
  %0 = dtc.max_pool_grad %x, %dy window [3, 3] strides [2, 2] padding [1, 1] dilations [1, 1] : (tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @max_pool_grad_fit(%x: tensor<2x3x8x8xf32>, %dy: tensor<2x3x4x4xf32>) {
  // expected-error@+1 {{'dtc.max_pool_grad' op x has type 'tensor<2x3x8x8xf32>'; dimension 2 has 8 elements and a padding of 1 on both sides, expected the extent of a window, 13, or more [max_pool_grad-c3]}}
  %0 = dtc.max_pool_grad %x, %dy window [13, 3] strides [2, 2] padding [1, 1] dilations [1, 1] : (tensor<2x3x8x8xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x8x8xf32>
  return
}

// -----

func.func @max_pool_grad_dy(%x: tensor<2x3x8x8xf32>, %dy: tensor<2x3x4x5xf32>) {
  // expected-error@+1 {{'dtc.max_pool_grad' op dy has type 'tensor<2x3x4x5xf32>' and the result 'tensor<2x3x8x8xf32>', expected 'tensor<2x3x4x4xf32>' and 'tensor<2x3x8x8xf32>' [max_pool_grad-c4]}}
  %0 = dtc.max_pool_grad %x, %dy window [3, 3] strides [2, 2] padding [1, 1] dilations [1, 1] : (tensor<2x3x8x8xf32>, tensor<2x3x4x5xf32>) -> tensor<2x3x8x8xf32>
  return
}
