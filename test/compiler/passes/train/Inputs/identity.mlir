func.func @loss(%w: tensor<f32> {dtc.param = "w"}) -> tensor<f32> {
  return %w : tensor<f32>
}
