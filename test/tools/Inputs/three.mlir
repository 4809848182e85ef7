// A model whose only named dimension has three elements.
func.func @loss(%w: tensor<3xf32> {dtc.param = "w", dtc.axes = ["mlp"]}) -> tensor<f32> {
  %0 = dtc.reduce sum %w dims [0] : (tensor<3xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
