// RUN: dtc-opt %s --split-input-file --verify-diagnostics

func.func @embedding_table(%t: tensor<5x2x3xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.embedding' op table has type 'tensor<5x2x3xf32>', expected rank 2 [embedding-c1]}}
  %0 = dtc.embedding %t, %i : (tensor<5x2x3xf32>, tensor<4xi32>) -> tensor<4x2x3xf32>
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
