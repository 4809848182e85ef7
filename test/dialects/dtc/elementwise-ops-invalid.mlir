// RUN: dtc-opt %s --split-input-file --verify-diagnostics

func.func @integers(%x: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.exp' op operand #0 must be ranked tensor of f32, f64, bf16 or f16 with static sizes of at least 1, but got 'tensor<4xi32>'}}
  %0 = dtc.exp %x : tensor<4xi32>
  return
}

// -----

func.func @half(%x: tensor<4xf8E4M3FN>) {
  // expected-error@+1 {{'dtc.neg' op operand #0 must be ranked tensor of f32, f64, bf16 or f16 with static sizes of at least 1, but got 'tensor<4xf8E4M3FN>'}}
  %0 = dtc.neg %x : tensor<4xf8E4M3FN>
  return
}

// -----

func.func @dynamic(%x: tensor<4x?xf32>) {
  // expected-error@+1 {{'dtc.relu' op operand #0 must be ranked tensor of f32, f64, bf16 or f16 with static sizes of at least 1, but got 'tensor<4x?xf32>'}}
  %0 = dtc.relu %x : tensor<4x?xf32>
  return
}

// -----

func.func @unranked(%x: tensor<*xf32>) {
  // expected-error@+1 {{custom op 'dtc.relu' invalid kind of type specified: expected builtin.tensor, but found 'tensor<*xf32>'}}
  %0 = dtc.relu %x : tensor<*xf32>
  return
}

// -----

func.func @empty(%x: tensor<4x0xf32>) {
  // expected-error@+1 {{'dtc.abs' op operand #0 must be ranked tensor of f32, f64, bf16 or f16 with static sizes of at least 1, but got 'tensor<4x0xf32>'}}
  %0 = dtc.abs %x : tensor<4x0xf32>
  return
}

// -----

func.func @too_large(%x: tensor<4294967296x4294967296xf32>) {
  // expected-error@+1 {{'dtc.abs' op operand #0 must be ranked tensor of f32, f64, bf16 or f16 with static sizes of at least 1, but got }}
  %0 = dtc.abs %x : tensor<4294967296x4294967296xf32>
  return
}

// -----

func.func @encoding(%x: tensor<4xf32, "sparse">) {
  // expected-error@+1 {{'dtc.abs' op operand #0 must be ranked tensor of f32, f64, bf16 or f16 with static sizes of at least 1, but got }}
  %0 = dtc.abs %x : tensor<4xf32, "sparse">
  return
}

// -----

func.func @no_tensor(%x: f32) {
  // expected-error@+1 {{custom op 'dtc.tanh' invalid kind of type specified: expected builtin.tensor, but found 'f32'}}
  %0 = dtc.tanh %x : f32
  return
}

// -----

func.func @result_type(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.sqrt' op requires the same type for all operands and results}}
  %0 = "dtc.sqrt"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf64>
  return
}

// -----

func.func @gelu_approximation(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{expected ::dtc::GeluApproximation to be one of: none, tanh}}
  // expected-error@+1 {{failed to parse Dtc_GeluApproximationAttr parameter 'value'}}
  %0 = dtc.gelu fast %x : tensor<4x8xf32>
  return
}

// -----

func.func @gelu_without_approximation(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.gelu' op requires attribute 'approximate'}}
  %0 = "dtc.gelu"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @convert_shape(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.convert' op requires the same shape for all operands and results}}
  %0 = dtc.convert %x : (tensor<4x8xf32>) -> tensor<4x9xi32>
  return
}

// -----

func.func @convert_element(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.convert' op result #0 must be ranked tensor of f32, f64, bf16, f16, i32 or i1 with static sizes of at least 1, but got 'tensor<4x8xi64>'}}
  %0 = dtc.convert %x : (tensor<4x8xf32>) -> tensor<4x8xi64>
  return
}

// -----

func.func @add_shapes(%x: tensor<4x8xf32>, %y: tensor<8xf32>) {
  // expected-error@+1 {{'dtc.add' op requires the same type for all operands and results}}
  %0 = "dtc.add"(%x, %y) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @add_elements(%x: tensor<4x8xf32>, %y: tensor<4x8xf64>) {
  // expected-error@+1 {{'dtc.add' op requires the same type for all operands and results}}
  %0 = "dtc.add"(%x, %y) : (tensor<4x8xf32>, tensor<4x8xf64>) -> tensor<4x8xf32>
  return
}

// -----

func.func @add_masks(%x: tensor<4xi1>) {
  // expected-error@+1 {{'dtc.add' op operand #0 must be ranked tensor of f32, f64, bf16, f16 or i32 with static sizes of at least 1, but got 'tensor<4xi1>'}}
  %0 = dtc.add %x, %x : tensor<4xi1>
  return
}

// -----

func.func @div_integers(%x: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.div' op operand #0 must be ranked tensor of f32, f64, bf16 or f16 with static sizes of at least 1, but got 'tensor<4xi32>'}}
  %0 = dtc.div %x, %x : tensor<4xi32>
  return
}

// -----

func.func @compare_predicate(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{expected ::dtc::ComparePredicate to be one of: eq, ne, lt, le, gt, ge}}
  // expected-error@+1 {{failed to parse Dtc_ComparePredicateAttr parameter 'value'}}
  %0 = dtc.compare less %x, %x : tensor<4x8xf32>
  return
}

// -----

func.func @compare_result(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.compare' op failed to verify that the result is i1 of the operands' shape}}
  %0 = "dtc.compare"(%x, %x) <{predicate = #dtc<compare_predicate lt>}> : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8xi1>
  return
}

// -----

func.func @compare_masks(%x: tensor<4xi1>) {
  // expected-error@+1 {{custom op 'dtc.compare' 'lhs' must be ranked tensor of f32, f64, bf16, f16 or i32}}
  %0 = dtc.compare eq %x, %x : tensor<4xi1>
  return
}

// -----

func.func @select_condition(%c: tensor<8xi1>, %x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.select' op failed to verify that the condition is i1 of the result's shape}}
  %0 = "dtc.select"(%c, %x, %x) : (tensor<8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @select_type(%c: i1, %x: i32) {
  // expected-error@+1 {{custom op 'dtc.select' invalid kind of type specified: expected builtin.tensor, but found 'i32'}}
  %0 = dtc.select %c, %x, %x : i32
  return
}

// -----

func.func @select_branches(%c: tensor<4x8xi1>, %x: tensor<4x8xf32>, %y: tensor<4x8xf64>) {
  // expected-error@+1 {{'dtc.select' op failed to verify that all of {onTrue, onFalse, result} have same type}}
  %0 = "dtc.select"(%c, %x, %y) : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf64>) -> tensor<4x8xf32>
  return
}

// -----

func.func @silu_grad_types(%x: tensor<4x8xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'dtc.silu_grad' op requires the same type for all operands and results}}
  %0 = "dtc.silu_grad"(%x, %y) : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}
