// RUN: dtc-opt %s --verify-diagnostics --dtc-propagate-shardings=shard=batch=micro --dtc-insert-reshards --dtc-spmd-partition

// A batch norm mixes the samples of a batch: its mean is a sum over microbatches that each microbatch needs. The op
// that needs it is named, and where it comes from.
dist.mesh @mesh <"micro"=4 temporal>
func.func @loss(%x: tensor<8x4xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}) -> tensor<f32> {
  %sum = dtc.reduce sum %x dims [0] : (tensor<8x4xf32>) -> tensor<4xf32>
  %eighth = dtc.constant dense<0.125> : tensor<4xf32>
  // A factor does not complete the sum, the use of it for each row does.
  // expected-note@+1 {{the sum over microbatches is completed here}}
  %mean = dtc.mul %sum, %eighth : tensor<4xf32>
  // expected-error@+1 {{'dtc.broadcast' computes on a microbatch and needs a sum over all microbatches, which is known only after the last of them; use one microbatch, or a form of the op that does not mix samples (a batch norm does)}}
  %rows = dtc.broadcast %mean dims [1] : (tensor<4xf32>) -> tensor<8x4xf32>
  %centered = dtc.sub %x, %rows : tensor<8x4xf32>
  %squares = dtc.mul %centered, %centered : tensor<8x4xf32>
  %loss = dtc.reduce sum %squares dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
