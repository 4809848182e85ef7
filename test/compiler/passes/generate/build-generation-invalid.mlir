// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-build-generation
// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-build-generation=phase=decode
// RUN: not dtc-opt %S/Inputs/tokens.mlir --dtc-build-generation=phase=encode 2>&1 | FileCheck %s --check-prefix=PHASE

// PHASE: error: the option phase is 'encode', expected prefill or decode

// expected-error@+1 {{'func.func' op has 0 dtc.cross_entropy, expected one, of the logits of tokens}}
func.func @no_loss(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  %loss = dtc.reduce sum %x dims [0, 1, 2] : (tensor<4x8x16xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error@+1 {{'func.func' op has 2 dtc.cross_entropy, expected one, of the logits of tokens}}
func.func @two_losses(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  %a, %lse = dtc.cross_entropy %x, %tokens : (tensor<4x8x16xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %b, %lse1 = dtc.cross_entropy %x, %tokens : (tensor<4x8x16xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %sum = dtc.add %a, %b : tensor<4x8xf32>
  %loss = dtc.reduce sum %sum dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error@+1 {{'func.func' op needs the input "types" of type 'tensor<4x8xi32>' for its logits; generation gives one input alone, "tokens" of i32[batch, seq]}}
func.func @two_inputs(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}, %types: tensor<4x8xi32> {dtc.input = "types"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  %t = dtc.embedding %wte, %types : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  %y = dtc.add %x, %t : tensor<4x8x16xf32>
  %a, %lse = dtc.cross_entropy %y, %tokens : (tensor<4x8x16xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error@+1 {{'func.func' op needs the input "features" of type 'tensor<4x8xf32>' for its logits}}
func.func @features(%w: tensor<8x16xf32> {dtc.param = "w"}, %x: tensor<4x8xf32> {dtc.input = "features"}, %labels: tensor<4xi32> {dtc.input = "labels"}) -> tensor<f32> {
  %y = dtc.einsum "bi,io->bo" %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %a, %lse = dtc.cross_entropy %y, %labels : (tensor<4x16xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %loss = dtc.reduce sum %a dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error@+1 {{'func.func' op has logits that depend on no input, expected tokens}}
func.func @no_input(%w: tensor<4x8x16xf32> {dtc.param = "w"}, %labels: tensor<4x8xi32> {dtc.input = "labels"}) -> tensor<f32> {
  %a, %lse = dtc.cross_entropy %w, %labels : (tensor<4x8x16xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @sum(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  // expected-error@+1 {{'dtc.reduce' sums over positions of the sequence, so that tokens cannot be generated one by one; only causal dtc.attention may look at earlier positions (dtc-import --attention fused)}}
  %sum = dtc.reduce sum %x dims [1] : (tensor<4x8x16xf32>) -> tensor<4x16xf32>
  %all = dtc.broadcast %sum dims [0, 2] : (tensor<4x16xf32>) -> tensor<4x8x16xf32>
  %a, %lse = dtc.cross_entropy %all, %tokens : (tensor<4x8x16xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @softmax(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  %t = dtc.transpose %x permutation [0, 2, 1] : (tensor<4x8x16xf32>) -> tensor<4x16x8xf32>
  // expected-error@+1 {{'dtc.softmax' mixes positions of the sequence}}
  %s = dtc.softmax %t : tensor<4x16x8xf32>
  %y = dtc.transpose %s permutation [0, 2, 1] : (tensor<4x16x8xf32>) -> tensor<4x8x16xf32>
  %a, %lse = dtc.cross_entropy %y, %tokens : (tensor<4x8x16xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Attention by hand: a product of positions with positions.
func.func @scores(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  // expected-error@+1 {{'dtc.einsum' mixes positions of the sequence}}
  %s = dtc.einsum "bsc,btc->bst" %x, %x : (tensor<4x8x16xf32>, tensor<4x8x16xf32>) -> tensor<4x8x8xf32>
  %a, %lse = dtc.cross_entropy %s, %tokens : (tensor<4x8x8xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @mixing_weight(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %w: tensor<8x8xf32> {dtc.param = "w"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  // expected-error@+1 {{'dtc.einsum' sums over positions of the sequence}}
  %s = dtc.einsum "bsc,st->btc" %x, %w : (tensor<4x8x16xf32>, tensor<8x8xf32>) -> tensor<4x8x16xf32>
  %a, %lse = dtc.cross_entropy %s, %tokens : (tensor<4x8x16xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @slice(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}, %labels: tensor<4x4xi32> {dtc.input = "labels"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  // expected-error@+1 {{'dtc.slice' mixes positions of the sequence}}
  %s = dtc.slice %x offsets [0, 4, 0] sizes [4, 4, 16] : (tensor<4x8x16xf32>) -> tensor<4x4x16xf32>
  %a, %lse = dtc.cross_entropy %s, %labels : (tensor<4x4x16xf32>, tensor<4x4xi32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @merged(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}, %labels: tensor<32xi32> {dtc.input = "labels"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  // expected-error@+1 {{'dtc.reshape' merges positions with another dimension}}
  %s = dtc.reshape %x : (tensor<4x8x16xf32>) -> tensor<32x16xf32>
  %a, %lse = dtc.cross_entropy %s, %labels : (tensor<32x16xf32>, tensor<32xi32>) -> (tensor<32xf32>, tensor<32xf32>)
  %loss = dtc.reduce sum %a dims [0] : (tensor<32xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @later(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  %q = dtc.reshape %x : (tensor<4x8x16xf32>) -> tensor<4x8x2x8xf32>
  // expected-error@+1 {{'dtc.attention' sees later positions, so that tokens cannot be generated one by one}}
  %o, %l = dtc.attention %q, %q, %q {causal = false, scale = 0.25} : (tensor<4x8x2x8xf32>, tensor<4x8x2x8xf32>, tensor<4x8x2x8xf32>) -> (tensor<4x8x2x8xf32>, tensor<4x2x8xf32>)
  %y = dtc.reshape %o : (tensor<4x8x2x8xf32>) -> tensor<4x8x16xf32>
  %a, %lse = dtc.cross_entropy %y, %tokens : (tensor<4x8x16xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @cross(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %k: tensor<4x8x2x8xf32> {dtc.param = "k"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  %q = dtc.reshape %x : (tensor<4x8x16xf32>) -> tensor<4x8x2x8xf32>
  // expected-error@+1 {{'dtc.attention' has an operand whose dimension 1 does not count positions}}
  %o, %l = dtc.attention %q, %k, %k {causal = true, scale = 0.25} : (tensor<4x8x2x8xf32>, tensor<4x8x2x8xf32>, tensor<4x8x2x8xf32>) -> (tensor<4x8x2x8xf32>, tensor<4x2x8xf32>)
  %y = dtc.reshape %o : (tensor<4x8x2x8xf32>) -> tensor<4x8x16xf32>
  %a, %lse = dtc.cross_entropy %y, %tokens : (tensor<4x8x16xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @lse(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  %q = dtc.reshape %x : (tensor<4x8x16xf32>) -> tensor<4x8x2x8xf32>
  // expected-error@+1 {{'dtc.attention' has a result lse that is used}}
  %o, %l = dtc.attention %q, %q, %q {causal = true, scale = 0.25} : (tensor<4x8x2x8xf32>, tensor<4x8x2x8xf32>, tensor<4x8x2x8xf32>) -> (tensor<4x8x2x8xf32>, tensor<4x2x8xf32>)
  %y = dtc.transpose %l permutation [0, 2, 1] : (tensor<4x2x8xf32>) -> tensor<4x8x2xf32>
  %a, %lse = dtc.cross_entropy %y, %tokens : (tensor<4x8x2xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Which of these rows an expert of a wider program would have is not said.
func.func @rows_of_experts(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %w: tensor<16x4x3x16xf32> {dtc.param = "w"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  %chosen = dtc.top_k %x {k = 1} : tensor<4x8x16xf32>
  %ofExperts = dtc.transpose %chosen permutation [2, 0, 1] : (tensor<4x8x16xi1>) -> tensor<16x4x8xi1>
  %rows = dtc.nonzero %ofExperts : tensor<16x4x8xi1> -> tensor<16x4x3xi32>
  %in = dtc.embedding %x, %rows : (tensor<4x8x16xf32>, tensor<16x4x3xi32>) -> tensor<16x4x3x16xf32>
  // expected-error@+1 {{reads a value of type 'tensor<16x4x3x16xf32>' with a row for each token of an expert in dimension 2, and generation drops no token; import the model without --expert-capacity and --expert-bound}}
  %y = dtc.mul %in, %w : tensor<16x4x3x16xf32>
  %logits = dtc.embedding_grad %rows, %y : (tensor<16x4x3xi32>, tensor<16x4x3x16xf32>) -> tensor<4x8x16xf32>
  %a, %lse = dtc.cross_entropy %logits, %tokens : (tensor<4x8x16xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A bias for each position alone has no row that could be looked up.
func.func @bias(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %w: tensor<8xf32> {dtc.param = "w"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  %t = dtc.transpose %x permutation [0, 2, 1] : (tensor<4x8x16xf32>) -> tensor<4x16x8xf32>
  %b = dtc.broadcast %w dims [2] : (tensor<8xf32>) -> tensor<4x16x8xf32>
  // expected-error@+1 {{reads a value of type 'tensor<4x16x8xf32>' whose dimension 2 counts positions; of such values, generation can select rows where the dimensions before it are the batch}}
  %s = dtc.add %t, %b : tensor<4x16x8xf32>
  %y = dtc.transpose %s permutation [0, 2, 1] : (tensor<4x16x8xf32>) -> tensor<4x8x16xf32>
  %a, %lse = dtc.cross_entropy %y, %tokens : (tensor<4x8x16xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Positions in another dimension than the one that rotary counts.

func.func @rotary(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  %q = dtc.reshape %x : (tensor<4x8x16xf32>) -> tensor<4x8x2x8xf32>
  %t = dtc.transpose %q permutation [0, 2, 1, 3] : (tensor<4x8x2x8xf32>) -> tensor<4x2x8x8xf32>
  // expected-error@+1 {{'dtc.rotary' rotates by another dimension than that of positions}}
  %r = dtc.rotary %t {theta = 1.0e4, inverse = false} : tensor<4x2x8x8xf32>
  %back = dtc.transpose %r permutation [0, 2, 1, 3] : (tensor<4x2x8x8xf32>) -> tensor<4x8x2x8xf32>
  %y = dtc.reshape %back : (tensor<4x8x2x8xf32>) -> tensor<4x8x16xf32>
  %a, %lse = dtc.cross_entropy %y, %tokens : (tensor<4x8x16xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Heads where samples should be, and as many of them.

func.func @heads(%wte: tensor<64x32xf32> {dtc.param = "wte"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x32xf32>, tensor<4x8xi32>) -> tensor<4x8x32xf32>
  %q = dtc.reshape %x : (tensor<4x8x32xf32>) -> tensor<4x8x4x8xf32>
  %t = dtc.transpose %q permutation [2, 1, 0, 3] : (tensor<4x8x4x8xf32>) -> tensor<4x8x4x8xf32>
  // expected-error@+1 {{'dtc.attention' has an operand of type 'tensor<4x8x4x8xf32>' whose dimension 0 does not count the samples}}
  %o, %l = dtc.attention %t, %t, %t {causal = true, scale = 0.25} : (tensor<4x8x4x8xf32>, tensor<4x8x4x8xf32>, tensor<4x8x4x8xf32>) -> (tensor<4x8x4x8xf32>, tensor<4x4x8xf32>)
  %back = dtc.transpose %o permutation [2, 1, 0, 3] : (tensor<4x8x4x8xf32>) -> tensor<4x8x4x8xf32>
  %y = dtc.reshape %back : (tensor<4x8x4x8xf32>) -> tensor<4x8x32xf32>
  %a, %lse = dtc.cross_entropy %y, %tokens : (tensor<4x8x32xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// expected-error@+1 {{'func.func' op has logits of type 'tensor<8x4x16xf32>', expected [batch, seq, vocabulary] made from the tokens}}
func.func @order(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}, %labels: tensor<8x4xi32> {dtc.input = "labels"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  %t = dtc.transpose %x permutation [1, 0, 2] : (tensor<4x8x16xf32>) -> tensor<8x4x16xf32>
  %a, %lse = dtc.cross_entropy %t, %labels : (tensor<8x4x16xf32>, tensor<8x4xi32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
