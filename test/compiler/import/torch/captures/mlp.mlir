module attributes {torch.capture = {version = 1 : i64, torch = "2.15.0"}} {
func.func @loss(
    %p_model_layers_0_weight: tensor<10x6xf32> {torch.parameter = "layers.0.weight"} loc("layers.0.weight"),
    %p_model_layers_0_bias: tensor<10xf32> {torch.parameter = "layers.0.bias"} loc("layers.0.bias"),
    %p_model_layers_1_weight: tensor<14x10xf32> {torch.parameter = "layers.1.weight"} loc("layers.1.weight"),
    %p_model_layers_1_bias: tensor<14xf32> {torch.parameter = "layers.1.bias"} loc("layers.1.bias"),
    %p_model_head_weight: tensor<5x14xf32> {torch.parameter = "head.weight"} loc("head.weight"),
    %p_model_head_bias: tensor<5xf32> {torch.parameter = "head.bias"} loc("head.bias"),
    %batch_features: tensor<4x6xf32> {torch.input = "features"} loc("features"),
    %batch_labels: tensor<4xi64> {torch.input = "labels"} loc("labels")) -> tensor<f32> {
  %b_model_scale = "torch.constant"() {value = dense<[0.5, 0.699999988079071, 0.8999999761581421, 1.100000023841858, 1.2999999523162842, 1.5]> : tensor<6xf32>} : () -> tensor<6xf32> loc("scale")
  %mul = "aten.mul"(%batch_features, %b_model_scale) {operands = ["self", "other"]} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32> loc("model"("scripts/reference/captured_models.py":23:0))
  %linear = "aten.linear"(%mul, %p_model_layers_0_weight, %p_model_layers_0_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x6xf32>, tensor<10x6xf32>, tensor<10xf32>) -> tensor<4x10xf32> loc("layers.0"("scripts/reference/captured_models.py":25:0))
  %relu = "aten.relu"(%linear) {operands = ["self"]} : (tensor<4x10xf32>) -> tensor<4x10xf32> loc("model"("scripts/reference/captured_models.py":25:0))
  %linear_1 = "aten.linear"(%relu, %p_model_layers_1_weight, %p_model_layers_1_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x10xf32>, tensor<14x10xf32>, tensor<14xf32>) -> tensor<4x14xf32> loc("layers.1"("scripts/reference/captured_models.py":25:0))
  %relu_1 = "aten.relu"(%linear_1) {operands = ["self"]} : (tensor<4x14xf32>) -> tensor<4x14xf32> loc("model"("scripts/reference/captured_models.py":25:0))
  %linear_2 = "aten.linear"(%relu_1, %p_model_head_weight, %p_model_head_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x14xf32>, tensor<5x14xf32>, tensor<5xf32>) -> tensor<4x5xf32> loc("head"("scripts/reference/captured_models.py":26:0))
  %cross_entropy_loss = "aten.cross_entropy_loss"(%linear_2, %batch_labels) {reduction = 1 : i64, ignore_index = -100 : i64, label_smoothing = 0.0 : f64, operands = ["self", "target"]} : (tensor<4x5xf32>, tensor<4xi64>) -> tensor<f32> loc("loss")
  return %cross_entropy_loss : tensor<f32> loc("loss")
}
}
