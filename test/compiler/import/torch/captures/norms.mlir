module attributes {torch.capture = {version = 1 : i64, torch = "2.15.0"}} {
func.func @loss(
    %p_model_embed_weight: tensor<29x16xf32> {torch.parameter = "embed.weight"} loc("embed.weight"),
    %p_model_head_weight: tensor<29x16xf32> {torch.parameter = "head.weight"} loc("head.weight"),
    %p_model_head_bias: tensor<29xf32> {torch.parameter = "head.bias"} loc("head.bias"),
    %p_model_layers_0_0_weight: tensor<16xf32> {torch.parameter = "layers.0.0.weight"} loc("layers.0.0.weight"),
    %p_model_layers_0_0_bias: tensor<16xf32> {torch.parameter = "layers.0.0.bias"} loc("layers.0.0.bias"),
    %p_model_layers_0_1_weight: tensor<16x16xf32> {torch.parameter = "layers.0.1.weight"} loc("layers.0.1.weight"),
    %p_model_layers_0_1_bias: tensor<16xf32> {torch.parameter = "layers.0.1.bias"} loc("layers.0.1.bias"),
    %p_model_layers_1_0_weight: tensor<16xf32> {torch.parameter = "layers.1.0.weight"} loc("layers.1.0.weight"),
    %p_model_layers_1_0_bias: tensor<16xf32> {torch.parameter = "layers.1.0.bias"} loc("layers.1.0.bias"),
    %p_model_layers_1_1_weight: tensor<16x16xf32> {torch.parameter = "layers.1.1.weight"} loc("layers.1.1.weight"),
    %p_model_layers_1_1_bias: tensor<16xf32> {torch.parameter = "layers.1.1.bias"} loc("layers.1.1.bias"),
    %p_model_layers_2_0_weight: tensor<16xf32> {torch.parameter = "layers.2.0.weight"} loc("layers.2.0.weight"),
    %p_model_layers_2_0_bias: tensor<16xf32> {torch.parameter = "layers.2.0.bias"} loc("layers.2.0.bias"),
    %p_model_layers_2_1_weight: tensor<16x16xf32> {torch.parameter = "layers.2.1.weight"} loc("layers.2.1.weight"),
    %p_model_layers_2_1_bias: tensor<16xf32> {torch.parameter = "layers.2.1.bias"} loc("layers.2.1.bias"),
    %batch_tokens: tensor<4x8xi64> {torch.input = "tokens"} loc("tokens"),
    %batch_labels: tensor<4x8xi64> {torch.input = "labels"} loc("labels")) -> tensor<f32> {
  %embedding = "aten.embedding"(%p_model_embed_weight, %batch_tokens) {padding_idx = -1 : i64, scale_grad_by_freq = false, operands = ["weight", "indices"]} : (tensor<29x16xf32>, tensor<4x8xi64>) -> tensor<4x8x16xf32> loc("embed"("scripts/reference/captured_models.py":320:0))
  %mean = "aten.mean"(%embedding) {dim = array<i64: -1>, keepdim = true, operands = ["self"]} : (tensor<4x8x16xf32>) -> tensor<4x8x1xf32> loc("layers.0.0"("scripts/reference/captured_models.py":303:0))
  %sub = "aten.sub"(%embedding, %mean) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x8x16xf32>, tensor<4x8x1xf32>) -> tensor<4x8x16xf32> loc("layers.0.0"("scripts/reference/captured_models.py":305:0))
  %mul = "aten.mul"(%p_model_layers_0_0_weight, %sub) {operands = ["self", "other"]} : (tensor<16xf32>, tensor<4x8x16xf32>) -> tensor<4x8x16xf32> loc("layers.0.0"("scripts/reference/captured_models.py":305:0))
  %sub_1 = "aten.sub"(%embedding, %mean) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x8x16xf32>, tensor<4x8x1xf32>) -> tensor<4x8x16xf32> loc("layers.0.0"("scripts/reference/captured_models.py":305:0))
  %pow_1 = "aten.pow"(%sub_1) {exponent = 2 : i64, operands = ["self"]} : (tensor<4x8x16xf32>) -> tensor<4x8x16xf32> loc("layers.0.0"("scripts/reference/captured_models.py":305:0))
  %mean_1 = "aten.mean"(%pow_1) {dim = array<i64: -1>, keepdim = true, operands = ["self"]} : (tensor<4x8x16xf32>) -> tensor<4x8x1xf32> loc("layers.0.0"("scripts/reference/captured_models.py":305:0))
  %add = "aten.add"(%mean_1) {other = 1.0e-05 : f64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x8x1xf32>) -> tensor<4x8x1xf32> loc("layers.0.0"("scripts/reference/captured_models.py":305:0))
  %sqrt = "aten.sqrt"(%add) {operands = ["self"]} : (tensor<4x8x1xf32>) -> tensor<4x8x1xf32> loc("layers.0.0"("scripts/reference/captured_models.py":305:0))
  %div = "aten.div"(%mul, %sqrt) {operands = ["self", "other"]} : (tensor<4x8x16xf32>, tensor<4x8x1xf32>) -> tensor<4x8x16xf32> loc("layers.0.0"("scripts/reference/captured_models.py":305:0))
  %add_1 = "aten.add"(%div, %p_model_layers_0_0_bias) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x8x16xf32>, tensor<16xf32>) -> tensor<4x8x16xf32> loc("layers.0.0"("scripts/reference/captured_models.py":305:0))
  %linear = "aten.linear"(%add_1, %p_model_layers_0_1_weight, %p_model_layers_0_1_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x8x16xf32>, tensor<16x16xf32>, tensor<16xf32>) -> tensor<4x8x16xf32> loc("layers.0.1"("scripts/reference/captured_models.py":322:0))
  %tanh = "aten.tanh"(%linear) {operands = ["self"]} : (tensor<4x8x16xf32>) -> tensor<4x8x16xf32> loc("layers.0.2"("scripts/reference/captured_models.py":322:0))
  %add_2 = "aten.add"(%embedding, %tanh) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x8x16xf32>, tensor<4x8x16xf32>) -> tensor<4x8x16xf32> loc("model"("scripts/reference/captured_models.py":322:0))
  %mean_2 = "aten.mean"(%add_2) {dim = array<i64: -1>, keepdim = true, operands = ["self"]} : (tensor<4x8x16xf32>) -> tensor<4x8x1xf32> loc("layers.1.0"("scripts/reference/captured_models.py":303:0))
  %sub_2 = "aten.sub"(%add_2, %mean_2) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x8x16xf32>, tensor<4x8x1xf32>) -> tensor<4x8x16xf32> loc("layers.1.0"("scripts/reference/captured_models.py":307:0))
  %var = "aten.var"(%add_2) {dim = array<i64: -1>, unbiased = false, keepdim = true, operands = ["self"]} : (tensor<4x8x16xf32>) -> tensor<4x8x1xf32> loc("layers.1.0"("scripts/reference/captured_models.py":307:0))
  %add_3 = "aten.add"(%var) {other = 1.0e-05 : f64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x8x1xf32>) -> tensor<4x8x1xf32> loc("layers.1.0"("scripts/reference/captured_models.py":307:0))
  %sqrt_1 = "aten.sqrt"(%add_3) {operands = ["self"]} : (tensor<4x8x1xf32>) -> tensor<4x8x1xf32> loc("layers.1.0"("scripts/reference/captured_models.py":307:0))
  %div_1 = "aten.div"(%sub_2, %sqrt_1) {operands = ["self", "other"]} : (tensor<4x8x16xf32>, tensor<4x8x1xf32>) -> tensor<4x8x16xf32> loc("layers.1.0"("scripts/reference/captured_models.py":307:0))
  %mul_1 = "aten.mul"(%div_1, %p_model_layers_1_0_weight) {operands = ["self", "other"]} : (tensor<4x8x16xf32>, tensor<16xf32>) -> tensor<4x8x16xf32> loc("layers.1.0"("scripts/reference/captured_models.py":307:0))
  %add_4 = "aten.add"(%mul_1, %p_model_layers_1_0_bias) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x8x16xf32>, tensor<16xf32>) -> tensor<4x8x16xf32> loc("layers.1.0"("scripts/reference/captured_models.py":307:0))
  %linear_1 = "aten.linear"(%add_4, %p_model_layers_1_1_weight, %p_model_layers_1_1_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x8x16xf32>, tensor<16x16xf32>, tensor<16xf32>) -> tensor<4x8x16xf32> loc("layers.1.1"("scripts/reference/captured_models.py":322:0))
  %tanh_1 = "aten.tanh"(%linear_1) {operands = ["self"]} : (tensor<4x8x16xf32>) -> tensor<4x8x16xf32> loc("layers.1.2"("scripts/reference/captured_models.py":322:0))
  %add_5 = "aten.add"(%add_2, %tanh_1) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x8x16xf32>, tensor<4x8x16xf32>) -> tensor<4x8x16xf32> loc("model"("scripts/reference/captured_models.py":322:0))
  %mean_3 = "aten.mean"(%add_5) {dim = array<i64: -1>, keepdim = true, operands = ["self"]} : (tensor<4x8x16xf32>) -> tensor<4x8x1xf32> loc("layers.2.0"("scripts/reference/captured_models.py":303:0))
  %mul_2 = "aten.mul"(%add_5, %add_5) {operands = ["self", "other"]} : (tensor<4x8x16xf32>, tensor<4x8x16xf32>) -> tensor<4x8x16xf32> loc("layers.2.0"("scripts/reference/captured_models.py":308:0))
  %mean_4 = "aten.mean"(%mul_2) {dim = array<i64: -1>, keepdim = true, operands = ["self"]} : (tensor<4x8x16xf32>) -> tensor<4x8x1xf32> loc("layers.2.0"("scripts/reference/captured_models.py":308:0))
  %mul_3 = "aten.mul"(%mean_3, %mean_3) {operands = ["self", "other"]} : (tensor<4x8x1xf32>, tensor<4x8x1xf32>) -> tensor<4x8x1xf32> loc("layers.2.0"("scripts/reference/captured_models.py":308:0))
  %sub_3 = "aten.sub"(%mean_4, %mul_3) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x8x1xf32>, tensor<4x8x1xf32>) -> tensor<4x8x1xf32> loc("layers.2.0"("scripts/reference/captured_models.py":308:0))
  %clamp = "aten.clamp"(%sub_3) {min = 0 : i64, operands = ["self"]} : (tensor<4x8x1xf32>) -> tensor<4x8x1xf32> loc("layers.2.0"("scripts/reference/captured_models.py":308:0))
  %sub_4 = "aten.sub"(%add_5, %mean_3) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x8x16xf32>, tensor<4x8x1xf32>) -> tensor<4x8x16xf32> loc("layers.2.0"("scripts/reference/captured_models.py":309:0))
  %add_6 = "aten.add"(%clamp) {other = 1.0e-05 : f64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x8x1xf32>) -> tensor<4x8x1xf32> loc("layers.2.0"("scripts/reference/captured_models.py":309:0))
  %rsqrt = "aten.rsqrt"(%add_6) {operands = ["self"]} : (tensor<4x8x1xf32>) -> tensor<4x8x1xf32> loc("layers.2.0"("scripts/reference/captured_models.py":309:0))
  %mul_4 = "aten.mul"(%rsqrt, %p_model_layers_2_0_weight) {operands = ["self", "other"]} : (tensor<4x8x1xf32>, tensor<16xf32>) -> tensor<4x8x16xf32> loc("layers.2.0"("scripts/reference/captured_models.py":309:0))
  %mul_5 = "aten.mul"(%sub_4, %mul_4) {operands = ["self", "other"]} : (tensor<4x8x16xf32>, tensor<4x8x16xf32>) -> tensor<4x8x16xf32> loc("layers.2.0"("scripts/reference/captured_models.py":309:0))
  %add_7 = "aten.add"(%p_model_layers_2_0_bias, %mul_5) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<16xf32>, tensor<4x8x16xf32>) -> tensor<4x8x16xf32> loc("layers.2.0"("scripts/reference/captured_models.py":309:0))
  %linear_2 = "aten.linear"(%add_7, %p_model_layers_2_1_weight, %p_model_layers_2_1_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x8x16xf32>, tensor<16x16xf32>, tensor<16xf32>) -> tensor<4x8x16xf32> loc("layers.2.1"("scripts/reference/captured_models.py":322:0))
  %tanh_2 = "aten.tanh"(%linear_2) {operands = ["self"]} : (tensor<4x8x16xf32>) -> tensor<4x8x16xf32> loc("layers.2.2"("scripts/reference/captured_models.py":322:0))
  %add_8 = "aten.add"(%add_5, %tanh_2) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x8x16xf32>, tensor<4x8x16xf32>) -> tensor<4x8x16xf32> loc("model"("scripts/reference/captured_models.py":322:0))
  %linear_3 = "aten.linear"(%add_8, %p_model_head_weight, %p_model_head_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x8x16xf32>, tensor<29x16xf32>, tensor<29xf32>) -> tensor<4x8x29xf32> loc("head"("scripts/reference/captured_models.py":323:0))
  %flatten = "aten.flatten"(%linear_3) {start_dim = 0 : i64, end_dim = 1 : i64, operands = ["self"]} : (tensor<4x8x29xf32>) -> tensor<32x29xf32> loc("loss")
  %flatten_1 = "aten.flatten"(%batch_labels) {start_dim = 0 : i64, end_dim = -1 : i64, operands = ["self"]} : (tensor<4x8xi64>) -> tensor<32xi64> loc("loss")
  %cross_entropy_loss = "aten.cross_entropy_loss"(%flatten, %flatten_1) {reduction = 1 : i64, ignore_index = -100 : i64, label_smoothing = 0.0 : f64, operands = ["self", "target"]} : (tensor<32x29xf32>, tensor<32xi64>) -> tensor<f32> loc("loss")
  return %cross_entropy_loss : tensor<f32> loc("loss")
}
}
