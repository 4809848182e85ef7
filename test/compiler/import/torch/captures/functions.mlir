module attributes {torch.capture = {version = 1 : i64, torch = "2.15.0"}} {
func.func @loss(
    %p_model_up_weight: tensor<8x6xf32> {torch.parameter = "up.weight"} loc("up.weight"),
    %p_model_up_bias: tensor<8xf32> {torch.parameter = "up.bias"} loc("up.bias"),
    %p_model_down_weight: tensor<5x16xf32> {torch.parameter = "down.weight"} loc("down.weight"),
    %p_model_down_bias: tensor<5xf32> {torch.parameter = "down.bias"} loc("down.bias"),
    %batch_features: tensor<4x6xf32> {torch.input = "features"} loc("features"),
    %batch_labels: tensor<4xi64> {torch.input = "labels"} loc("labels")) -> tensor<f32> {
  %linear = "aten.linear"(%batch_features, %p_model_up_weight, %p_model_up_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x6xf32>, tensor<8x6xf32>, tensor<8xf32>) -> tensor<4x8xf32> loc("up"("scripts/reference/captured_models.py":433:0))
  %pow_1 = "aten.pow"(%linear) {exponent = 3 : i64, operands = ["self"]} : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("model"("scripts/reference/captured_models.py":400:0))
  %mul = "aten.mul"(%pow_1) {other = 0.5 : f64, operands = ["self"]} : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("model"("scripts/reference/captured_models.py":414:0))
  %view = "aten.view"(%mul) {size = array<i64: 4, 4, 2>, operands = ["self"]} : (tensor<4x8xf32>) -> tensor<4x4x2xf32> loc("model"("scripts/reference/captured_models.py":433:0))
  %select = "aten.select"(%view) {dim = 2 : i64, index = 0 : i64, operands = ["self"]} : (tensor<4x4x2xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":433:0))
  %select_1 = "aten.select"(%view) {dim = 2 : i64, index = 1 : i64, operands = ["self"]} : (tensor<4x4x2xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":433:0))
  %arange = "aten.arange"() {end = 4 : i64, dtype = f32} : () -> tensor<4xf32> loc("model"("scripts/reference/captured_models.py":434:0))
  %full_like = "aten.full_like"(%arange) {fill_value = 0.7 : f64, operands = ["self"]} : (tensor<4xf32>) -> tensor<4xf32> loc("model"("scripts/reference/captured_models.py":435:0))
  %cos = "aten.cos"(%arange) {operands = ["self"]} : (tensor<4xf32>) -> tensor<4xf32> loc("model"("scripts/reference/captured_models.py":435:0))
  %mul_1 = "aten.mul"(%full_like, %cos) {operands = ["self", "other"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("model"("scripts/reference/captured_models.py":435:0))
  %sin = "aten.sin"(%arange) {operands = ["self"]} : (tensor<4xf32>) -> tensor<4xf32> loc("model"("scripts/reference/captured_models.py":435:0))
  %mul_2 = "aten.mul"(%full_like, %sin) {operands = ["self", "other"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("model"("scripts/reference/captured_models.py":435:0))
  %unsqueeze = "aten.unsqueeze"(%mul_1) {dim = 0 : i64, operands = ["self"]} : (tensor<4xf32>) -> tensor<1x4xf32> loc("model"("scripts/reference/captured_models.py":435:0))
  %unsqueeze_1 = "aten.unsqueeze"(%mul_2) {dim = 0 : i64, operands = ["self"]} : (tensor<4xf32>) -> tensor<1x4xf32> loc("model"("scripts/reference/captured_models.py":435:0))
  %neg = "aten.neg"(%select_1) {operands = ["self"]} : (tensor<4x4xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":435:0))
  %mul_3 = "aten.mul"(%unsqueeze, %select) {operands = ["self", "other"]} : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":435:0))
  %mul_4 = "aten.mul"(%unsqueeze_1, %neg) {operands = ["self", "other"]} : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":435:0))
  %sub = "aten.sub"(%mul_3, %mul_4) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":435:0))
  %mul_5 = "aten.mul"(%unsqueeze, %neg) {operands = ["self", "other"]} : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":435:0))
  %mul_6 = "aten.mul"(%unsqueeze_1, %select) {operands = ["self", "other"]} : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":435:0))
  %add = "aten.add"(%mul_5, %mul_6) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":435:0))
  %mul_7 = "aten.mul"(%sub) {other = 2.0 : f64, operands = ["self"]} : (tensor<4x4xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":436:0))
  %mul_8 = "aten.mul"(%add) {other = 2.0 : f64, operands = ["self"]} : (tensor<4x4xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":436:0))
  %mul_9 = "aten.mul"(%select, %sub) {operands = ["self", "other"]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":436:0))
  %mul_10 = "aten.mul"(%select_1, %add) {operands = ["self", "other"]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":436:0))
  %sub_1 = "aten.sub"(%mul_9, %mul_10) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":436:0))
  %mul_11 = "aten.mul"(%select, %add) {operands = ["self", "other"]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":436:0))
  %mul_12 = "aten.mul"(%select_1, %sub) {operands = ["self", "other"]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":436:0))
  %add_1 = "aten.add"(%mul_11, %mul_12) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":436:0))
  %add_2 = "aten.add"(%mul_7, %sub_1) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":436:0))
  %add_3 = "aten.add"(%mul_8, %add_1) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("model"("scripts/reference/captured_models.py":436:0))
  %stack = "aten.stack"(%add_2, %add_3) {dim = -1 : i64, operands = ["tensors.0", "tensors.1"]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4x2xf32> loc("model"("scripts/reference/captured_models.py":436:0))
  %view_1 = "aten.view"(%stack) {size = array<i64: 4, 8>, operands = ["self"]} : (tensor<4x4x2xf32>) -> tensor<4x8xf32> loc("model"("scripts/reference/captured_models.py":436:0))
  %view_2 = "aten.view"(%view_1) {size = array<i64: 4, 1, 8>, operands = ["self"]} : (tensor<4x8xf32>) -> tensor<4x1x8xf32> loc("model"("scripts/reference/captured_models.py":436:0))
  %expand = "aten.expand"(%view_2) {size = array<i64: 4, 2, 8>, operands = ["self"]} : (tensor<4x1x8xf32>) -> tensor<4x2x8xf32> loc("model"("scripts/reference/captured_models.py":436:0))
  %clone = "aten.clone"(%expand) {operands = ["self"]} : (tensor<4x2x8xf32>) -> tensor<4x2x8xf32> loc("model"("scripts/reference/captured_models.py":436:0))
  %_unsafe_view = "aten._unsafe_view"(%clone) {size = array<i64: 4, 16>, operands = ["self"]} : (tensor<4x2x8xf32>) -> tensor<4x16xf32> loc("model"("scripts/reference/captured_models.py":436:0))
  %linear_1 = "aten.linear"(%_unsafe_view, %p_model_down_weight, %p_model_down_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x16xf32>, tensor<5x16xf32>, tensor<5xf32>) -> tensor<4x5xf32> loc("down"("scripts/reference/captured_models.py":436:0))
  %cross_entropy_loss = "aten.cross_entropy_loss"(%linear_1, %batch_labels) {reduction = 1 : i64, ignore_index = -100 : i64, label_smoothing = 0.0 : f64, operands = ["self", "target"]} : (tensor<4x5xf32>, tensor<4xi64>) -> tensor<f32> loc("loss")
  return %cross_entropy_loss : tensor<f32> loc("loss")
}
}
