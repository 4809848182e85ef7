// RUN: dtc-opt %s --split-input-file --verify-diagnostics

func.func @embedding_table(%t: tensor<5xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.embedding' op table has type 'tensor<5xf32>', expected rank 2 or more [embedding-c1]}}
  %0 = dtc.embedding %t, %i : (tensor<5xf32>, tensor<4xi32>) -> tensor<4x5xf32>
  return
}

// -----

// The last dimension of ids is none of samples.
func.func @embedding_no_samples(%t: tensor<5x2x3xf32>, %i: tensor<5xi32>) {
  // expected-error@+1 {{'dtc.embedding' op table has type 'tensor<5x2x3xf32>' and ids 'tensor<5xi32>', expected the dimensions of the table before its last two in ids before its last one [embedding-c2]}}
  %0 = dtc.embedding %t, %i : (tensor<5x2x3xf32>, tensor<5xi32>) -> tensor<5x3xf32>
  return
}

// -----

func.func @embedding_scalar_id(%t: tensor<5x2x3xf32>, %i: tensor<i32>) {
  // expected-error@+1 {{'dtc.embedding' op table has type 'tensor<5x2x3xf32>' and ids 'tensor<i32>', expected the dimensions of the table before its last two in ids before its last one [embedding-c2]}}
  %0 = dtc.embedding %t, %i : (tensor<5x2x3xf32>, tensor<i32>) -> tensor<3xf32>
  return
}

// -----

// The dimensions of samples are the last ones before the indices of a sample.
func.func @embedding_other_samples(%t: tensor<5x2x3xf32>, %i: tensor<5x4x6xi32>) {
  // expected-error@+1 {{'dtc.embedding' op table has type 'tensor<5x2x3xf32>' and ids 'tensor<5x4x6xi32>', expected the dimensions of the table before its last two in ids before its last one [embedding-c2]}}
  %0 = dtc.embedding %t, %i : (tensor<5x2x3xf32>, tensor<5x4x6xi32>) -> tensor<5x4x6x3xf32>
  return
}

// -----

func.func @embedding_ids(%t: tensor<5x3xf32>, %i: tensor<4xf32>) {
  // expected-error@+1 {{'dtc.embedding' op operand #1 must be ranked tensor of i32 with static sizes of at least 1, but got 'tensor<4xf32>'}}
  %0 = dtc.embedding %t, %i : (tensor<5x3xf32>, tensor<4xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @embedding_result(%t: tensor<5x3xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.embedding' op result #0 has type 'tensor<4x5xf32>', expected 'tensor<4x3xf32>'}}
  %0 = dtc.embedding %t, %i : (tensor<5x3xf32>, tensor<4xi32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @embedding_grad_dy(%i: tensor<4xi32>, %d: tensor<5x3xf32>) {
  // expected-error@+1 {{'dtc.embedding_grad' op dy has type 'tensor<5x3xf32>', expected the dimensions of ids, 'tensor<4xi32>', and one more [embedding_grad-c1]}}
  %0 = dtc.embedding_grad %i, %d : (tensor<4xi32>, tensor<5x3xf32>) -> tensor<9x3xf32>
  return
}

// -----

func.func @embedding_grad_scalar(%i: tensor<i32>, %d: tensor<f32>) {
  // expected-error@+1 {{'dtc.embedding_grad' op dy has type 'tensor<f32>', expected the dimensions of ids, 'tensor<i32>', and one more [embedding_grad-c1]}}
  %0 = dtc.embedding_grad %i, %d : (tensor<i32>, tensor<f32>) -> tensor<9x3xf32>
  return
}

// -----

func.func @embedding_grad_rank(%i: tensor<4xi32>, %d: tensor<4x3xf32>) {
  // expected-error@+1 {{'dtc.embedding_grad' op result has type 'tensor<3xf32>', expected tensor<vx3x'f32'> for some v [embedding_grad-c2]}}
  %0 = dtc.embedding_grad %i, %d : (tensor<4xi32>, tensor<4x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @embedding_grad_size(%i: tensor<4xi32>, %d: tensor<4x3xf32>) {
  // expected-error@+1 {{'dtc.embedding_grad' op result has type 'tensor<9x4xf32>', expected tensor<vx3x'f32'> for some v [embedding_grad-c2]}}
  %0 = dtc.embedding_grad %i, %d : (tensor<4xi32>, tensor<4x3xf32>) -> tensor<9x4xf32>
  return
}

// -----

func.func @embedding_grad_element(%i: tensor<4xi32>, %d: tensor<4x3xf32>) {
  // expected-error@+1 {{'dtc.embedding_grad' op result has type 'tensor<9x3xf64>', expected tensor<vx3x'f32'> for some v [embedding_grad-c2]}}
  %0 = dtc.embedding_grad %i, %d : (tensor<4xi32>, tensor<4x3xf32>) -> tensor<9x3xf64>
  return
}

// -----

func.func @embedding_grad_no_samples(%i: tensor<9xi32>, %d: tensor<9x3xf32>) {
  // expected-error@+1 {{'dtc.embedding_grad' op result has type 'tensor<9x2x3xf32>' and ids 'tensor<9xi32>', expected the dimensions of the result before its last two in ids before its last one [embedding_grad-c3]}}
  %0 = dtc.embedding_grad %i, %d : (tensor<9xi32>, tensor<9x3xf32>) -> tensor<9x2x3xf32>
  return
}

// -----

func.func @embedding_grad_other_samples(%i: tensor<5x4x6xi32>, %d: tensor<5x4x6x3xf32>) {
  // expected-error@+1 {{'dtc.embedding_grad' op result has type 'tensor<5x2x3xf32>' and ids 'tensor<5x4x6xi32>', expected the dimensions of the result before its last two in ids before its last one [embedding_grad-c3]}}
  %0 = dtc.embedding_grad %i, %d : (tensor<5x4x6xi32>, tensor<5x4x6x3xf32>) -> tensor<5x2x3xf32>
  return
}

// -----

func.func @pick_shape(%x: tensor<5x3xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.pick' op x has type 'tensor<5x3xf32>', expected the dimensions of ids, 'tensor<4xi32>', and one more [pick-c1]}}
  %0 = dtc.pick %x, %i : (tensor<5x3xf32>, tensor<4xi32>) -> tensor<5xf32>
  return
}

// -----

func.func @pick_scalar(%x: tensor<f32>, %i: tensor<i32>) {
  // expected-error@+1 {{'dtc.pick' op x has type 'tensor<f32>', expected the dimensions of ids, 'tensor<i32>', and one more [pick-c1]}}
  %0 = dtc.pick %x, %i : (tensor<f32>, tensor<i32>) -> tensor<f32>
  return
}

// -----

func.func @pick_result(%x: tensor<4x3xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.pick' op result #0 has type 'tensor<3xf32>', expected 'tensor<4xf32>'}}
  %0 = dtc.pick %x, %i : (tensor<4x3xf32>, tensor<4xi32>) -> tensor<3xf32>
  return
}

// -----

func.func @pick_grad_dy(%i: tensor<4xi32>, %d: tensor<5xf32>) {
  // expected-error@+1 {{'dtc.pick_grad' op dy has type 'tensor<5xf32>', expected the shape of ids, 'tensor<4xi32>' [pick_grad-c1]}}
  %0 = dtc.pick_grad %i, %d : (tensor<4xi32>, tensor<5xf32>) -> tensor<5x3xf32>
  return
}

// -----

func.func @pick_grad_result(%i: tensor<4xi32>, %d: tensor<4xf32>) {
  // expected-error@+1 {{'dtc.pick_grad' op result has type 'tensor<5x3xf32>', expected the dimensions of dy, 'tensor<4xf32>', and one more [pick_grad-c2]}}
  %0 = dtc.pick_grad %i, %d : (tensor<4xi32>, tensor<4xf32>) -> tensor<5x3xf32>
  return
}

// -----

func.func @pick_grad_scalar(%i: tensor<i32>, %d: tensor<f32>) {
  // expected-error@+1 {{'dtc.pick_grad' op result has type 'tensor<f32>', expected the dimensions of dy, 'tensor<f32>', and one more [pick_grad-c2]}}
  %0 = dtc.pick_grad %i, %d : (tensor<i32>, tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @top_k_scalar(%x: tensor<f32>) {
  // expected-error@+1 {{'dtc.top_k' op operand has type 'tensor<f32>', expected rank 1 or more [top_k-c1]}}
  %0 = dtc.top_k %x {k = 1} : tensor<f32>
  return
}

// -----

func.func @top_k_none(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{'dtc.top_k' op k is 0, expected at least 1 and at most the 3 elements of a row [top_k-c2]}}
  %0 = dtc.top_k %x {k = 0} : tensor<4x3xf32>
  return
}

// -----

func.func @top_k_many(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{'dtc.top_k' op k is 4, expected at least 1 and at most the 3 elements of a row [top_k-c2]}}
  %0 = dtc.top_k %x {k = 4} : tensor<4x3xf32>
  return
}

// -----

func.func @top_k_integers(%x: tensor<4x3xi32>) {
  // expected-error@+1 {{custom op 'dtc.top_k' 'operand' must be ranked tensor of f32, f64, bf16 or f16 with static sizes of at least 1, but got 'tensor<4x3xi32>'}}
  %0 = dtc.top_k %x {k = 1} : tensor<4x3xi32>
  return
}

// -----

func.func @nonzero_scalar(%x: tensor<i1>) {
  // expected-error@+1 {{'dtc.nonzero' op operand has type 'tensor<i1>' and the result 'tensor<i32>', expected the same dimensions but the last, which is at least 1 and at most that of the operand [nonzero-c1]}}
  %0 = dtc.nonzero %x : tensor<i1> -> tensor<i32>
  return
}

// -----

func.func @nonzero_rank(%x: tensor<4x3xi1>) {
  // expected-error@+1 {{'dtc.nonzero' op operand has type 'tensor<4x3xi1>' and the result 'tensor<3xi32>', expected the same dimensions but the last, which is at least 1 and at most that of the operand [nonzero-c1]}}
  %0 = dtc.nonzero %x : tensor<4x3xi1> -> tensor<3xi32>
  return
}

// -----

func.func @nonzero_rows(%x: tensor<4x3xi1>) {
  // expected-error@+1 {{'dtc.nonzero' op operand has type 'tensor<4x3xi1>' and the result 'tensor<5x3xi32>', expected the same dimensions but the last, which is at least 1 and at most that of the operand [nonzero-c1]}}
  %0 = dtc.nonzero %x : tensor<4x3xi1> -> tensor<5x3xi32>
  return
}

// -----

func.func @nonzero_longer(%x: tensor<4x3xi1>) {
  // expected-error@+1 {{'dtc.nonzero' op operand has type 'tensor<4x3xi1>' and the result 'tensor<4x4xi32>', expected the same dimensions but the last, which is at least 1 and at most that of the operand [nonzero-c1]}}
  %0 = dtc.nonzero %x : tensor<4x3xi1> -> tensor<4x4xi32>
  return
}

// -----

func.func @nonzero_floats(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{'dtc.nonzero' op operand #0 must be ranked tensor of i1 with static sizes of at least 1, but got 'tensor<4x3xf32>'}}
  %0 = dtc.nonzero %x : tensor<4x3xf32> -> tensor<4x3xi32>
  return
}
