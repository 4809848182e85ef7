// RUN: dtc-opt %s --split-input-file --verify-diagnostics

func.func @einsum_no_arrow(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) {
  // expected-error@+1 {{'dtc.einsum' op equation "ab,bc" has not the form "lhs,rhs->result" [einsum-c1]}}
  %0 = dtc.einsum "ab,bc" %x, %y : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_two_arrows(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) {
  // expected-error@+1 {{'dtc.einsum' op equation "ab,bc->ac->ac" has not the form "lhs,rhs->result" [einsum-c1]}}
  %0 = dtc.einsum "ab,bc->ac->ac" %x, %y : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_one_operand(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) {
  // expected-error@+1 {{'dtc.einsum' op equation "ab->ab" has not the form "lhs,rhs->result" [einsum-c1]}}
  %0 = dtc.einsum "ab->ab" %x, %y : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_three_operands(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) {
  // expected-error@+1 {{'dtc.einsum' op equation "ab,bc,cd->ad" has not the form "lhs,rhs->result" [einsum-c1]}}
  %0 = dtc.einsum "ab,bc,cd->ad" %x, %y : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_empty(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) {
  // expected-error@+1 {{'dtc.einsum' op equation "" has not the form "lhs,rhs->result" [einsum-c1]}}
  %0 = dtc.einsum "" %x, %y : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_upper_case(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) {
  // expected-error@+1 {{'dtc.einsum' op equation "aB,Bc->ac" has the term "aB", expected letters from a to z [einsum-c2]}}
  %0 = dtc.einsum "aB,Bc->ac" %x, %y : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_spaces(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) {
  // expected-error@+1 {{'dtc.einsum' op equation "ab, bc->ac" has the term " bc", expected letters from a to z [einsum-c2]}}
  %0 = dtc.einsum "ab, bc->ac" %x, %y : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_ellipsis(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) {
  // expected-error@+1 {{'dtc.einsum' op equation "...b,bc->...c" has the term "...b", expected letters from a to z [einsum-c2]}}
  %0 = dtc.einsum "...b,bc->...c" %x, %y : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_bytes(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) {
  // expected-error@+1 {{expected letters from a to z [einsum-c2]}}
  %0 = dtc.einsum "a\FF,bc->ac" %x, %y : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_comma_in_result(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) {
  // expected-error@+1 {{has the term "a,c", expected letters from a to z [einsum-c2]}}
  %0 = dtc.einsum "ab,bc->a,c" %x, %y : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_diagonal(%x: tensor<4x4xf32>, %y: tensor<4x3xf32>) {
  // expected-error@+1 {{'dtc.einsum' op equation "aa,ac->ac" has 'a' twice in "aa", expected each letter at most once in a term [einsum-c3]}}
  %0 = dtc.einsum "aa,ac->ac" %x, %y : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_repeated_result(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) {
  // expected-error@+1 {{'dtc.einsum' op equation "ab,bc->aca" has 'a' twice in "aca", expected each letter at most once in a term [einsum-c3]}}
  %0 = dtc.einsum "ab,bc->aca" %x, %y : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_lonely_letter(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) {
  // expected-error@+1 {{'dtc.einsum' op equation "ab,bc->a" has 'c' in one term only, expected each letter in at least two [einsum-c4]}}
  %0 = dtc.einsum "ab,bc->a" %x, %y : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @einsum_new_letter(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) {
  // expected-error@+1 {{'dtc.einsum' op equation "ab,bc->acd" has 'd' in one term only, expected each letter in at least two [einsum-c4]}}
  %0 = dtc.einsum "ab,bc->acd" %x, %y : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_lhs_rank(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) {
  // expected-error@+1 {{'dtc.einsum' op lhs has rank 2, expected 3 for the term "abd" [einsum-c6]}}
  %0 = dtc.einsum "abd,bcd->ac" %x, %y : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_rhs_rank(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) {
  // expected-error@+1 {{'dtc.einsum' op rhs has rank 2, expected 1 for the term "b" [einsum-c6]}}
  %0 = dtc.einsum "ab,b->a" %x, %y : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_size(%x: tensor<4x8xf32>, %y: tensor<7x3xf32>) {
  // expected-error@+1 {{'dtc.einsum' op 'b' has size 7 in rhs, expected 8 as in lhs [einsum-c7]}}
  %0 = dtc.einsum "ab,bc->ac" %x, %y : (tensor<4x8xf32>, tensor<7x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_elements(%x: tensor<4x8xf32>, %y: tensor<8x3xf64>) {
  // expected-error@+1 {{'dtc.einsum' op lhs has elements of 'f32' and rhs of 'f64', expected the same [einsum-c5]}}
  %0 = dtc.einsum "ab,bc->ac" %x, %y : (tensor<4x8xf32>, tensor<8x3xf64>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_result(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) {
  // expected-error@+1 {{'dtc.einsum' op result #0 has type 'tensor<4x3xf32>', expected 'tensor<3x4xf32>'}}
  %0 = dtc.einsum "ab,bc->ca" %x, %y : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @einsum_integers(%x: tensor<4xi32>, %y: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.einsum' op operand #0 must be ranked tensor of f32, f64, bf16 or f16}}
  %0 = dtc.einsum "a,a->" %x, %y : (tensor<4xi32>, tensor<4xi32>) -> tensor<i32>
  return
}

// -----

func.func @einsum_overflow(%x: tensor<1099511627776xf32>, %y: tensor<1099511627776xf32>) {
  // expected-error@+1 {{'dtc.einsum' op result #0 must be ranked tensor of f32, f64, bf16 or f16 with static sizes of at least 1}}
  %0 = dtc.einsum "a,b->ab" %x, %y : (tensor<1099511627776xf32>, tensor<1099511627776xf32>) -> tensor<1099511627776x1099511627776xf32>
  return
}

// -----

func.func @einsum_without_equation(%x: tensor<4x8xf32>, %y: tensor<8x3xf32>) {
  // expected-error@+1 {{'dtc.einsum' op requires attribute 'equation'}}
  %0 = "dtc.einsum"(%x, %y) : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @reduce_kind(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{found "mean", expected one of sum, max, min}}
  // expected-error@+1 {{failed to parse Dtc_ReduceKindAttr parameter 'value'}}
  %0 = dtc.reduce mean %x dims [0] : (tensor<4x8xf32>) -> tensor<8xf32>
  return
}

// -----

// The generic form is what is kept.
func.func @reduce_order(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.reduce' op dims are [1, 0], expected increasing dimensions of 'tensor<4x8xf32>' [reduce-c1]}}
  %0 = "dtc.reduce"(%x) <{kind = #dtc<reduce_kind sum>, dims = array<i64: 1, 0>}> : (tensor<4x8xf32>) -> tensor<f32>
  return
}

// -----

func.func @reduce_twice(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.reduce' op dims are [1, 1], expected increasing dimensions of 'tensor<4x8xf32>' [reduce-c1]}}
  %0 = dtc.reduce sum %x dims [1, 1] : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @reduce_range(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.reduce' op dims are [2], expected increasing dimensions of 'tensor<4x8xf32>' [reduce-c1]}}
  %0 = dtc.reduce sum %x dims [2] : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @reduce_result(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'dtc.reduce' op result #0 has type 'tensor<4xf32>', expected 'tensor<8xf32>'}}
  %0 = dtc.reduce max %x dims [0] : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @reduce_integers(%x: tensor<4xi32>) {
  // expected-error@+1 {{'dtc.reduce' op operand #0 must be ranked tensor of f32, f64, bf16 or f16}}
  %0 = dtc.reduce sum %x dims [0] : (tensor<4xi32>) -> tensor<i32>
  return
}

// -----

func.func @grouped_product_form(%x: tensor<4x2x3x8xf32>, %w: tensor<4x5x8xf32>, %rows: tensor<4x2x3xi32>) {
  // expected-error@+1 {{'dtc.grouped_product' op equation is "xbcd,xfd->bxcf", expected the form of "xbck,xkn->xbcn", "xbck,xnk->xbcn", "xbck,xbcn->xkn" or "xbck,xbcn->xnk" [grouped_product-c1]}}
  %0 = dtc.grouped_product "xbcd,xfd->bxcf" %x, %w rows %rows : (tensor<4x2x3x8xf32>, tensor<4x5x8xf32>, tensor<4x2x3xi32>) -> tensor<2x4x3x5xf32>
  return
}

// -----

func.func @grouped_product_no_equation(%x: tensor<4x2x3x8xf32>, %w: tensor<4x5x8xf32>, %rows: tensor<4x2x3xi32>) {
  // expected-error@+1 {{equation is "xbcd", expected the form of "xbck,xkn->xbcn", "xbck,xnk->xbcn", "xbck,xbcn->xkn" or "xbck,xbcn->xnk" [grouped_product-c1]}}
  %0 = dtc.grouped_product "xbcd" %x, %w rows %rows : (tensor<4x2x3x8xf32>, tensor<4x5x8xf32>, tensor<4x2x3xi32>) -> tensor<4x2x3x5xf32>
  return
}

// -----

func.func @grouped_product_elements(%x: tensor<4x2x3x8xf32>, %w: tensor<4x5x8xf64>, %rows: tensor<4x2x3xi32>) {
  // expected-error@+1 {{'dtc.grouped_product' op lhs has elements of 'f32' and rhs of 'f64', expected the same [grouped_product-c2]}}
  %0 = dtc.grouped_product "xbcd,xfd->xbcf" %x, %w rows %rows : (tensor<4x2x3x8xf32>, tensor<4x5x8xf64>, tensor<4x2x3xi32>) -> tensor<4x2x3x5xf32>
  return
}

// -----

func.func @grouped_product_sizes(%x: tensor<4x2x3x8xf32>, %w: tensor<4x5x7xf32>, %rows: tensor<4x2x3xi32>) {
  // expected-error@+1 {{'dtc.grouped_product' op lhs has type 'tensor<4x2x3x8xf32>' and rhs 'tensor<4x5x7xf32>', expected those of "xbcd,xfd->xbcf" [grouped_product-c3]}}
  %0 = dtc.grouped_product "xbcd,xfd->xbcf" %x, %w rows %rows : (tensor<4x2x3x8xf32>, tensor<4x5x7xf32>, tensor<4x2x3xi32>) -> tensor<4x2x3x5xf32>
  return
}

// -----

func.func @grouped_product_rows(%x: tensor<4x2x3x8xf32>, %w: tensor<4x5x8xf32>, %rows: tensor<4x3x2xi32>) {
  // expected-error@+1 {{'dtc.grouped_product' op rows has type 'tensor<4x3x2xi32>', expected the first three dimensions of 'tensor<4x2x3x8xf32>' [grouped_product-c4]}}
  %0 = dtc.grouped_product "xbcd,xfd->xbcf" %x, %w rows %rows : (tensor<4x2x3x8xf32>, tensor<4x5x8xf32>, tensor<4x3x2xi32>) -> tensor<4x2x3x5xf32>
  return
}

// -----

func.func @grouped_product_occupancy(%x: tensor<4x2x3x8xf32>, %w: tensor<4x5x8xf32>, %rows: tensor<4x2x3xi32>) {
  // expected-error@+1 {{'dtc.grouped_product' op occupancy is 0.000000e+00, expected more than 0 and at most 1 [grouped_product-c5]}}
  %0 = dtc.grouped_product "xbcd,xfd->xbcf" %x, %w rows %rows {occupancy = 0.0 : f64} : (tensor<4x2x3x8xf32>, tensor<4x5x8xf32>, tensor<4x2x3xi32>) -> tensor<4x2x3x5xf32>
  return
}
