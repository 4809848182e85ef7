// A model of pairs of tokens.
func.func @loss(%wte: tensor<64x64xf32> {dtc.param = "wte"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}, %labels: tensor<4x8xi32> {dtc.input = "labels"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x64xf32>, tensor<4x8xi32>) -> tensor<4x8x64xf32>
  %a, %lse = dtc.cross_entropy %x, %labels : (tensor<4x8x64xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
