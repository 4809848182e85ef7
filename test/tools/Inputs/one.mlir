// A model whose only named dimension has one element.
func.func @loss(%w: tensor<1xf32> {dtc.param = "w", dtc.axes = ["mlp"]}) -> tensor<f32> {
  %0 = dtc.reduce sum %w dims [0] : (tensor<1xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
