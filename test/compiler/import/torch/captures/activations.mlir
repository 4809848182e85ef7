module attributes {torch.capture = {version = 1 : i64, torch = "2.15.0"}} {
func.func @loss(
    %p_model_layers_0_weight: tensor<7x6xf32> {torch.parameter = "layers.0.weight"} loc("layers.0.weight"),
    %p_model_layers_0_bias: tensor<7xf32> {torch.parameter = "layers.0.bias"} loc("layers.0.bias"),
    %p_model_layers_1_weight: tensor<7x6xf32> {torch.parameter = "layers.1.weight"} loc("layers.1.weight"),
    %p_model_layers_1_bias: tensor<7xf32> {torch.parameter = "layers.1.bias"} loc("layers.1.bias"),
    %p_model_layers_2_weight: tensor<7x6xf32> {torch.parameter = "layers.2.weight"} loc("layers.2.weight"),
    %p_model_layers_2_bias: tensor<7xf32> {torch.parameter = "layers.2.bias"} loc("layers.2.bias"),
    %p_model_layers_3_weight: tensor<7x6xf32> {torch.parameter = "layers.3.weight"} loc("layers.3.weight"),
    %p_model_layers_3_bias: tensor<7xf32> {torch.parameter = "layers.3.bias"} loc("layers.3.bias"),
    %p_model_layers_4_weight: tensor<7x6xf32> {torch.parameter = "layers.4.weight"} loc("layers.4.weight"),
    %p_model_layers_4_bias: tensor<7xf32> {torch.parameter = "layers.4.bias"} loc("layers.4.bias"),
    %p_model_layers_5_weight: tensor<7x6xf32> {torch.parameter = "layers.5.weight"} loc("layers.5.weight"),
    %p_model_layers_5_bias: tensor<7xf32> {torch.parameter = "layers.5.bias"} loc("layers.5.bias"),
    %p_model_layers_6_weight: tensor<7x6xf32> {torch.parameter = "layers.6.weight"} loc("layers.6.weight"),
    %p_model_layers_6_bias: tensor<7xf32> {torch.parameter = "layers.6.bias"} loc("layers.6.bias"),
    %p_model_layers_7_weight: tensor<7x6xf32> {torch.parameter = "layers.7.weight"} loc("layers.7.weight"),
    %p_model_layers_7_bias: tensor<7xf32> {torch.parameter = "layers.7.bias"} loc("layers.7.bias"),
    %p_model_layers_8_weight: tensor<7x6xf32> {torch.parameter = "layers.8.weight"} loc("layers.8.weight"),
    %p_model_layers_8_bias: tensor<7xf32> {torch.parameter = "layers.8.bias"} loc("layers.8.bias"),
    %p_model_layers_9_weight: tensor<7x6xf32> {torch.parameter = "layers.9.weight"} loc("layers.9.weight"),
    %p_model_layers_9_bias: tensor<7xf32> {torch.parameter = "layers.9.bias"} loc("layers.9.bias"),
    %p_model_layers_10_weight: tensor<7x6xf32> {torch.parameter = "layers.10.weight"} loc("layers.10.weight"),
    %p_model_layers_10_bias: tensor<7xf32> {torch.parameter = "layers.10.bias"} loc("layers.10.bias"),
    %p_model_layers_11_weight: tensor<7x6xf32> {torch.parameter = "layers.11.weight"} loc("layers.11.weight"),
    %p_model_layers_11_bias: tensor<7xf32> {torch.parameter = "layers.11.bias"} loc("layers.11.bias"),
    %p_model_layers_12_weight: tensor<7x6xf32> {torch.parameter = "layers.12.weight"} loc("layers.12.weight"),
    %p_model_layers_12_bias: tensor<7xf32> {torch.parameter = "layers.12.bias"} loc("layers.12.bias"),
    %p_model_layers_13_weight: tensor<7x6xf32> {torch.parameter = "layers.13.weight"} loc("layers.13.weight"),
    %p_model_layers_13_bias: tensor<7xf32> {torch.parameter = "layers.13.bias"} loc("layers.13.bias"),
    %p_model_layers_14_weight: tensor<7x6xf32> {torch.parameter = "layers.14.weight"} loc("layers.14.weight"),
    %p_model_layers_14_bias: tensor<7xf32> {torch.parameter = "layers.14.bias"} loc("layers.14.bias"),
    %p_model_head_weight: tensor<5x7xf32> {torch.parameter = "head.weight"} loc("head.weight"),
    %p_model_head_bias: tensor<5xf32> {torch.parameter = "head.bias"} loc("head.bias"),
    %batch_features: tensor<4x6xf32> {torch.input = "features"} loc("features"),
    %batch_labels: tensor<4xi64> {torch.input = "labels"} loc("labels")) -> tensor<f32> {
  %linear = "aten.linear"(%batch_features, %p_model_layers_0_weight, %p_model_layers_0_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x6xf32>, tensor<7x6xf32>, tensor<7xf32>) -> tensor<4x7xf32> loc("layers.0"("scripts/reference/captured_models.py":492:0))
  %mul = "aten.mul"(%linear) {other = 3 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %clamp = "aten.clamp"(%mul) {min = 0 : i64, max = 6 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add = "aten.add"(%clamp) {other = 0 : i64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %linear_1 = "aten.linear"(%batch_features, %p_model_layers_1_weight, %p_model_layers_1_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x6xf32>, tensor<7x6xf32>, tensor<7xf32>) -> tensor<4x7xf32> loc("layers.1"("scripts/reference/captured_models.py":492:0))
  %mul_1 = "aten.mul"(%linear_1) {other = 3 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %clamp_1 = "aten.clamp"(%mul_1) {min = -1.0 : f64, max = 1.0 : f64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_1 = "aten.add"(%add, %clamp_1) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %linear_2 = "aten.linear"(%batch_features, %p_model_layers_2_weight, %p_model_layers_2_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x6xf32>, tensor<7x6xf32>, tensor<7xf32>) -> tensor<4x7xf32> loc("layers.2"("scripts/reference/captured_models.py":492:0))
  %mul_2 = "aten.mul"(%linear_2) {other = 3 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %elu = "aten.elu"(%mul_2) {alpha = 1.0 : f64, scale = 1.0 : f64, input_scale = 1.0 : f64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_2 = "aten.add"(%add_1, %elu) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %linear_3 = "aten.linear"(%batch_features, %p_model_layers_3_weight, %p_model_layers_3_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x6xf32>, tensor<7x6xf32>, tensor<7xf32>) -> tensor<4x7xf32> loc("layers.3"("scripts/reference/captured_models.py":492:0))
  %mul_3 = "aten.mul"(%linear_3) {other = 3 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %elu_1 = "aten.elu"(%mul_3) {alpha = 1.6732632423543772 : f64, scale = 1.0507009873554805 : f64, input_scale = 1 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_3 = "aten.add"(%add_2, %elu_1) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %linear_4 = "aten.linear"(%batch_features, %p_model_layers_4_weight, %p_model_layers_4_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x6xf32>, tensor<7x6xf32>, tensor<7xf32>) -> tensor<4x7xf32> loc("layers.4"("scripts/reference/captured_models.py":492:0))
  %mul_4 = "aten.mul"(%linear_4) {other = 3 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %softplus = "aten.softplus"(%mul_4) {beta = 1 : i64, threshold = 20 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %tanh = "aten.tanh"(%softplus) {operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %mul_5 = "aten.mul"(%mul_4, %tanh) {operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_4 = "aten.add"(%add_3, %mul_5) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %linear_5 = "aten.linear"(%batch_features, %p_model_layers_5_weight, %p_model_layers_5_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x6xf32>, tensor<7x6xf32>, tensor<7xf32>) -> tensor<4x7xf32> loc("layers.5"("scripts/reference/captured_models.py":492:0))
  %mul_6 = "aten.mul"(%linear_5) {other = 3 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %new_zeros = "aten.new_zeros"(%mul_6) {size = array<i64>, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<f32> loc("model"("scripts/reference/captured_models.py":492:0))
  %minimum = "aten.minimum"(%new_zeros, %mul_6) {operands = ["self", "other"]} : (tensor<f32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %abs_1 = "aten.abs"(%mul_6) {operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %neg = "aten.neg"(%abs_1) {operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %exp = "aten.exp"(%neg) {operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_5 = "aten.add"(%exp) {other = 1 : i64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %log = "aten.log"(%add_5) {operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %sub = "aten.sub"(%add_5) {other = 1 : i64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %sub_1 = "aten.sub"(%exp, %sub) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %clamp_2 = "aten.clamp"(%add_5) {min = 0.5 : f64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %div = "aten.div"(%sub_1, %clamp_2) {operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_6 = "aten.add"(%log, %div) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %sub_2 = "aten.sub"(%minimum, %add_6) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_7 = "aten.add"(%add_4, %sub_2) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %linear_6 = "aten.linear"(%batch_features, %p_model_layers_6_weight, %p_model_layers_6_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x6xf32>, tensor<7x6xf32>, tensor<7xf32>) -> tensor<4x7xf32> loc("layers.6"("scripts/reference/captured_models.py":492:0))
  %mul_7 = "aten.mul"(%linear_6) {other = 3 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %abs_2 = "aten.abs"(%mul_7) {operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_8 = "aten.add"(%abs_2) {other = 1 : i64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %div_1 = "aten.div"(%mul_7, %add_8) {operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_9 = "aten.add"(%add_7, %div_1) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %linear_7 = "aten.linear"(%batch_features, %p_model_layers_7_weight, %p_model_layers_7_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x6xf32>, tensor<7x6xf32>, tensor<7xf32>) -> tensor<4x7xf32> loc("layers.7"("scripts/reference/captured_models.py":492:0))
  %mul_8 = "aten.mul"(%linear_7) {other = 3 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %abs_3 = "aten.abs"(%mul_8) {operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %gt = "aten.gt"(%abs_3) {other = 0.5 : f64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xi1> loc("model"("scripts/reference/captured_models.py":492:0))
  %gt_1 = "aten.gt"(%mul_8) {other = 0 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xi1> loc("model"("scripts/reference/captured_models.py":492:0))
  %_to_copy = "aten._to_copy"(%gt_1) {dtype = f32, operands = ["self"]} : (tensor<4x7xi1>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %lt = "aten.lt"(%mul_8) {other = 0 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xi1> loc("model"("scripts/reference/captured_models.py":492:0))
  %_to_copy_1 = "aten._to_copy"(%lt) {dtype = f32, operands = ["self"]} : (tensor<4x7xi1>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %sub_3 = "aten.sub"(%_to_copy, %_to_copy_1) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %mul_9 = "aten.mul"(%sub_3) {other = 0.5 : f64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %sub_4 = "aten.sub"(%mul_8, %mul_9) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %mul_10 = "aten.mul"(%mul_8) {other = 0 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %where = "aten.where"(%gt, %sub_4, %mul_10) {operands = ["condition", "self", "other"]} : (tensor<4x7xi1>, tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_10 = "aten.add"(%add_9, %where) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %linear_8 = "aten.linear"(%batch_features, %p_model_layers_8_weight, %p_model_layers_8_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x6xf32>, tensor<7x6xf32>, tensor<7xf32>) -> tensor<4x7xf32> loc("layers.8"("scripts/reference/captured_models.py":492:0))
  %mul_11 = "aten.mul"(%linear_8) {other = 3 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %abs_4 = "aten.abs"(%mul_11) {operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %le = "aten.le"(%abs_4) {other = 0.5 : f64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xi1> loc("model"("scripts/reference/captured_models.py":492:0))
  %where_1 = "aten.where"(%le, %mul_11) {self = 0 : i64, operands = ["condition", "other"]} : (tensor<4x7xi1>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_11 = "aten.add"(%add_10, %where_1) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %linear_9 = "aten.linear"(%batch_features, %p_model_layers_9_weight, %p_model_layers_9_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x6xf32>, tensor<7x6xf32>, tensor<7xf32>) -> tensor<4x7xf32> loc("layers.9"("scripts/reference/captured_models.py":492:0))
  %mul_12 = "aten.mul"(%linear_9) {other = 3 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_12 = "aten.add"(%mul_12) {other = 3 : i64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %clamp_3 = "aten.clamp"(%add_12) {min = 0 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %clamp_4 = "aten.clamp"(%clamp_3) {max = 6 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %mul_13 = "aten.mul"(%mul_12, %clamp_4) {operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %div_2 = "aten.div"(%mul_13) {other = 6 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_13 = "aten.add"(%add_11, %div_2) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %linear_10 = "aten.linear"(%batch_features, %p_model_layers_10_weight, %p_model_layers_10_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x6xf32>, tensor<7x6xf32>, tensor<7xf32>) -> tensor<4x7xf32> loc("layers.10"("scripts/reference/captured_models.py":492:0))
  %mul_14 = "aten.mul"(%linear_10) {other = 3 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %gt_2 = "aten.gt"(%mul_14) {other = 0 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xi1> loc("model"("scripts/reference/captured_models.py":492:0))
  %_to_copy_2 = "aten._to_copy"(%gt_2) {dtype = f32, operands = ["self"]} : (tensor<4x7xi1>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %lt_1 = "aten.lt"(%mul_14) {other = 0 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xi1> loc("model"("scripts/reference/captured_models.py":492:0))
  %_to_copy_3 = "aten._to_copy"(%lt_1) {dtype = f32, operands = ["self"]} : (tensor<4x7xi1>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %sub_5 = "aten.sub"(%_to_copy_2, %_to_copy_3) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %mul_15 = "aten.mul"(%mul_14, %sub_5) {operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_14 = "aten.add"(%add_13, %mul_15) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %linear_11 = "aten.linear"(%batch_features, %p_model_layers_11_weight, %p_model_layers_11_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x6xf32>, tensor<7x6xf32>, tensor<7xf32>) -> tensor<4x7xf32> loc("layers.11"("scripts/reference/captured_models.py":492:0))
  %mul_16 = "aten.mul"(%linear_11) {other = 3 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %mul_17 = "aten.mul"(%mul_16) {other = 0.5 : f64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %tanh_1 = "aten.tanh"(%mul_17) {operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %exp_1 = "aten.exp"(%mul_16) {operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_15 = "aten.add"(%exp_1) {other = 1 : i64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %mul_18 = "aten.mul"(%tanh_1, %add_15) {operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_16 = "aten.add"(%add_14, %mul_18) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %linear_12 = "aten.linear"(%batch_features, %p_model_layers_12_weight, %p_model_layers_12_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x6xf32>, tensor<7x6xf32>, tensor<7xf32>) -> tensor<4x7xf32> loc("layers.12"("scripts/reference/captured_models.py":492:0))
  %mul_19 = "aten.mul"(%linear_12) {other = 3 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %square = "aten.square"(%mul_19) {operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_17 = "aten.add"(%square) {other = 1 : i64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %log_1 = "aten.log"(%add_17) {operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %sub_6 = "aten.sub"(%add_17) {other = 1 : i64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %sub_7 = "aten.sub"(%square, %sub_6) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %clamp_5 = "aten.clamp"(%add_17) {min = 0.5 : f64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %div_3 = "aten.div"(%sub_7, %clamp_5) {operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_18 = "aten.add"(%log_1, %div_3) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_19 = "aten.add"(%add_16, %add_18) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %linear_13 = "aten.linear"(%batch_features, %p_model_layers_13_weight, %p_model_layers_13_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x6xf32>, tensor<7x6xf32>, tensor<7xf32>) -> tensor<4x7xf32> loc("layers.13"("scripts/reference/captured_models.py":492:0))
  %mul_20 = "aten.mul"(%linear_13) {other = 3 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %mul_21 = "aten.mul"(%mul_20) {other = 40 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %elu_2 = "aten.elu"(%mul_21) {alpha = 0.5 : f64, scale = 1.0 : f64, input_scale = 2.0 : f64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %div_4 = "aten.div"(%elu_2) {other = 40 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_20 = "aten.add"(%add_19, %div_4) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %linear_14 = "aten.linear"(%batch_features, %p_model_layers_14_weight, %p_model_layers_14_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x6xf32>, tensor<7x6xf32>, tensor<7xf32>) -> tensor<4x7xf32> loc("layers.14"("scripts/reference/captured_models.py":492:0))
  %mul_22 = "aten.mul"(%linear_14) {other = 3 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %gt_3 = "aten.gt"(%mul_22) {other = 0 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xi1> loc("model"("scripts/reference/captured_models.py":492:0))
  %_to_copy_4 = "aten._to_copy"(%gt_3) {dtype = f32, operands = ["self"]} : (tensor<4x7xi1>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %sub_8 = "aten.sub"(%_to_copy_4) {other = 1 : i64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_21 = "aten.add"(%sub_8) {other = 1 : i64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %log_2 = "aten.log"(%add_21) {operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %sub_9 = "aten.sub"(%add_21) {other = 1 : i64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %sub_10 = "aten.sub"(%sub_8, %sub_9) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %clamp_6 = "aten.clamp"(%add_21) {min = 0.5 : f64, operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %div_5 = "aten.div"(%sub_10, %clamp_6) {operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_22 = "aten.add"(%log_2, %div_5) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %exp_2 = "aten.exp"(%add_22) {operands = ["self"]} : (tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %mul_23 = "aten.mul"(%mul_22, %exp_2) {operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %add_23 = "aten.add"(%add_20, %mul_23) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32> loc("model"("scripts/reference/captured_models.py":492:0))
  %linear_15 = "aten.linear"(%add_23, %p_model_head_weight, %p_model_head_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x7xf32>, tensor<5x7xf32>, tensor<5xf32>) -> tensor<4x5xf32> loc("head"("scripts/reference/captured_models.py":492:0))
  %cross_entropy_loss = "aten.cross_entropy_loss"(%linear_15, %batch_labels) {reduction = 1 : i64, ignore_index = -100 : i64, label_smoothing = 0.0 : f64, operands = ["self", "target"]} : (tensor<4x5xf32>, tensor<4xi64>) -> tensor<f32> loc("loss")
  return %cross_entropy_loss : tensor<f32> loc("loss")
}
}
