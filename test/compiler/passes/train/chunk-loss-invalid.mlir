// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-chunk-loss=chunks=3

// expected-error@+1 {{has no dtc.cross_entropy, which is what is computed in chunks of tokens; compile without --loss-chunks}}
func.func @loss(%w: tensor<f32> {dtc.param = "w"}) -> tensor<f32> {
  return %w : tensor<f32>
}

// -----

func.func @loss(%w: tensor<5x3xf32> {dtc.param = "w"}, %h: tensor<4x3xf32> {dtc.input = "h"},
                %labels: tensor<4xi32> {dtc.input = "labels"}) -> tensor<f32> {
  %logits = dtc.einsum "sd,vd->sv" %h, %w : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  // expected-error@+1 {{is to be computed in 3 chunks of tokens, but its labels have type 'tensor<4xi32>', expected a last dimension that 3 divides; choose another number of chunks (--loss-chunks)}}
  %each, %lse = dtc.cross_entropy %logits, %labels : (tensor<4x5xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %loss = dtc.reduce sum %each dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @loss(%logits: tensor<6x5xf32> {dtc.param = "logits"}, %labels: tensor<6xi32> {dtc.input = "labels"}) -> tensor<f32> {
  // expected-error@+1 {{has logits that no dtc.einsum computes, expected a product of smaller tensors, which is then computed for chunks of tokens; compile without --loss-chunks}}
  %each, %lse = dtc.cross_entropy %logits, %labels : (tensor<6x5xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = dtc.reduce sum %each dims [0] : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The norm of the losses needs all of them.
func.func @loss(%w: tensor<5x3xf32> {dtc.param = "w"}, %h: tensor<6x3xf32> {dtc.input = "h"},
                %labels: tensor<6xi32> {dtc.input = "labels"}) -> tensor<f32> {
  %logits = dtc.einsum "sd,vd->sv" %h, %w : (tensor<6x3xf32>, tensor<5x3xf32>) -> tensor<6x5xf32>
  %each, %lse = dtc.cross_entropy %logits, %labels : (tensor<6x5xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  // expected-error@+1 {{needs all tokens together, so that the loss cannot be computed in chunks of tokens; compile without --loss-chunks}}
  %shares = dtc.softmax %each : tensor<6xf32>
  %loss = dtc.reduce sum %shares dims [0] : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @loss(%w: tensor<5x3xf32> {dtc.param = "w"}, %h: tensor<6x3xf32> {dtc.input = "h"},
                %labels: tensor<6xi32> {dtc.input = "labels"}) -> tensor<f32> {
  %logits = dtc.einsum "sd,vd->sv" %h, %w : (tensor<6x3xf32>, tensor<5x3xf32>) -> tensor<6x5xf32>
  %each, %lse = dtc.cross_entropy %logits, %labels : (tensor<6x5xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %sum = dtc.reduce sum %lse dims [0] : (tensor<6xf32>) -> tensor<f32>
  %all = dtc.broadcast %sum dims [] : (tensor<f32>) -> tensor<6xf32>
  // expected-error@+1 {{needs a sum over all tokens, so that the loss cannot be computed in chunks of tokens; compile without --loss-chunks}}
  %scaled = dtc.mul %each, %all : tensor<6xf32>
  %loss = dtc.reduce sum %scaled dims [0] : (tensor<6xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @loss(%w: tensor<5x3xf32> {dtc.param = "w"}, %h: tensor<6x3xf32> {dtc.input = "h"},
                %labels: tensor<6xi32> {dtc.input = "labels"}) -> (tensor<f32>, tensor<6xf32>) {
  %logits = dtc.einsum "sd,vd->sv" %h, %w : (tensor<6x3xf32>, tensor<5x3xf32>) -> tensor<6x5xf32>
  // expected-error@+1 {{has a result for each token that the function returns, so that the loss cannot be computed in chunks of tokens; compile without --loss-chunks}}
  %each, %lse = dtc.cross_entropy %logits, %labels : (tensor<6x5xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xf32>)
  %loss = dtc.reduce sum %each dims [0] : (tensor<6xf32>) -> tensor<f32>
  return %loss, %each : tensor<f32>, tensor<6xf32>
}
