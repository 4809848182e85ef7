module attributes {torch.capture = {version = 1 : i64, torch = "2.15.0"}} {
func.func @loss(
    %p_model_first_weight: tensor<6x3x3x2xf32> {torch.parameter = "first.weight"} loc("first.weight"),
    %p_model_first_bias: tensor<6xf32> {torch.parameter = "first.bias"} loc("first.bias"),
    %p_model_norm_weight: tensor<6xf32> {torch.parameter = "norm.weight"} loc("norm.weight"),
    %p_model_norm_bias: tensor<6xf32> {torch.parameter = "norm.bias"} loc("norm.bias"),
    %p_model_groups_weight: tensor<10x3x3x3xf32> {torch.parameter = "groups.weight"} loc("groups.weight"),
    %p_model_back_weight: tensor<10x2x3x3xf32> {torch.parameter = "back.weight"} loc("back.weight"),
    %p_model_back_bias: tensor<4xf32> {torch.parameter = "back.bias"} loc("back.bias"),
    %p_model_line_weight: tensor<5x4x3xf32> {torch.parameter = "line.weight"} loc("line.weight"),
    %p_model_line_bias: tensor<5xf32> {torch.parameter = "line.bias"} loc("line.bias"),
    %p_model_volume_weight: tensor<2x1x2x3x3xf32> {torch.parameter = "volume.weight"} loc("volume.weight"),
    %p_model_volume_bias: tensor<2xf32> {torch.parameter = "volume.bias"} loc("volume.bias"),
    %p_model_head_weight: tensor<5x10xf32> {torch.parameter = "head.weight"} loc("head.weight"),
    %p_model_head_bias: tensor<5xf32> {torch.parameter = "head.bias"} loc("head.bias"),
    %b_model_norm_running_mean: tensor<6xf32> {torch.buffer = "norm.running_mean", torch.init = "zeros"} loc("norm.running_mean"),
    %b_model_norm_running_var: tensor<6xf32> {torch.buffer = "norm.running_var", torch.init = "ones"} loc("norm.running_var"),
    %batch_pixels: tensor<4x3x11x9xf32> {torch.input = "pixels"} loc("pixels"),
    %batch_labels: tensor<4xi64> {torch.input = "labels"} loc("labels")) -> (tensor<f32>, tensor<6xf32> {torch.updates = "norm.running_mean"}, tensor<6xf32> {torch.updates = "norm.running_var"}) {
  %convolution = "aten.convolution"(%batch_pixels, %p_model_first_weight, %p_model_first_bias) {stride = array<i64: 2, 1>, padding = array<i64: 1, 2>, dilation = array<i64: 1, 2>, transposed = false, output_padding = array<i64: 0, 0>, groups = 1 : i64, operands = ["input", "weight", "bias"]} : (tensor<4x3x11x9xf32>, tensor<6x3x3x2xf32>, tensor<6xf32>) -> tensor<4x6x6x11xf32> loc("first"("scripts/reference/captured_models.py":256:0))
  %_native_batch_norm_legit_functional:5 = "aten._native_batch_norm_legit_functional"(%convolution, %p_model_norm_weight, %p_model_norm_bias, %b_model_norm_running_mean, %b_model_norm_running_var) {training = true, momentum = 0.3 : f64, eps = 0.001 : f64, operands = ["input", "weight", "bias", "running_mean", "running_var"]} : (tensor<4x6x6x11xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<4x6x6x11xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) loc("norm"("scripts/reference/captured_models.py":257:0))
  %tanh = "aten.tanh"(%_native_batch_norm_legit_functional#0) {operands = ["self"]} : (tensor<4x6x6x11xf32>) -> tensor<4x6x6x11xf32> loc("model"("scripts/reference/captured_models.py":257:0))
  %_native_batch_norm_legit:3 = "aten._native_batch_norm_legit"(%convolution) {training = true, momentum = 0.1 : f64, eps = 1.0e-05 : f64, operands = ["input"]} : (tensor<4x6x6x11xf32>) -> (tensor<4x6x6x11xf32>, tensor<6xf32>, tensor<6xf32>) loc("plain_norm"("scripts/reference/captured_models.py":257:0))
  %add_1 = "aten.add"(%tanh, %_native_batch_norm_legit#0) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x6x6x11xf32>, tensor<4x6x6x11xf32>) -> tensor<4x6x6x11xf32> loc("model"("scripts/reference/captured_models.py":257:0))
  %max_pool2d = "aten.max_pool2d"(%add_1) {kernel_size = array<i64: 3, 3>, stride = array<i64: 2, 2>, padding = array<i64: 1, 1>, dilation = array<i64: 1, 1>, ceil_mode = false, operands = ["self"]} : (tensor<4x6x6x11xf32>) -> tensor<4x6x3x6xf32> loc("model"("scripts/reference/captured_models.py":258:0))
  %avg_pool2d = "aten.avg_pool2d"(%add_1) {kernel_size = array<i64: 3, 3>, stride = array<i64: 2, 2>, padding = array<i64: 1, 1>, ceil_mode = false, count_include_pad = false, operands = ["self"]} : (tensor<4x6x6x11xf32>) -> tensor<4x6x3x6xf32> loc("model"("scripts/reference/captured_models.py":258:0))
  %add_2 = "aten.add"(%max_pool2d, %avg_pool2d) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x6x3x6xf32>, tensor<4x6x3x6xf32>) -> tensor<4x6x3x6xf32> loc("model"("scripts/reference/captured_models.py":258:0))
  %convolution_1 = "aten.convolution"(%add_2, %p_model_groups_weight) {stride = array<i64: 1, 1>, padding = array<i64: 1, 1>, dilation = array<i64: 1, 1>, transposed = false, output_padding = array<i64: 0, 0>, groups = 2 : i64, operands = ["input", "weight"]} : (tensor<4x6x3x6xf32>, tensor<10x3x3x3xf32>) -> tensor<4x10x3x6xf32> loc("groups"("scripts/reference/captured_models.py":259:0))
  %tanh_1 = "aten.tanh"(%convolution_1) {operands = ["self"]} : (tensor<4x10x3x6xf32>) -> tensor<4x10x3x6xf32> loc("model"("scripts/reference/captured_models.py":259:0))
  %convolution_2 = "aten.convolution"(%tanh_1, %p_model_back_weight, %p_model_back_bias) {stride = array<i64: 2, 2>, padding = array<i64: 1, 1>, dilation = array<i64: 1, 1>, transposed = true, output_padding = array<i64: 1, 0>, groups = 2 : i64, operands = ["input", "weight", "bias"]} : (tensor<4x10x3x6xf32>, tensor<10x2x3x3xf32>, tensor<4xf32>) -> tensor<4x4x6x11xf32> loc("back"("scripts/reference/captured_models.py":259:0))
  %avg_pool2d_1 = "aten.avg_pool2d"(%convolution_2) {kernel_size = array<i64: 2, 3>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1>, ceil_mode = false, count_include_pad = true, operands = ["self"]} : (tensor<4x4x6x11xf32>) -> tensor<4x4x7x11xf32> loc("model"("scripts/reference/captured_models.py":260:0))
  %avg_pool2d_2 = "aten.avg_pool2d"(%convolution_2) {kernel_size = array<i64: 2, 1>, stride = array<i64: 1, 1>, padding = array<i64: 1, 0>, ceil_mode = false, count_include_pad = true, operands = ["self"]} : (tensor<4x4x6x11xf32>) -> tensor<4x4x7x11xf32> loc("model"("scripts/reference/captured_models.py":260:0))
  %add_3 = "aten.add"(%avg_pool2d_1, %avg_pool2d_2) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x4x7x11xf32>, tensor<4x4x7x11xf32>) -> tensor<4x4x7x11xf32> loc("model"("scripts/reference/captured_models.py":260:0))
  %unsqueeze = "aten.unsqueeze"(%add_3) {dim = 1 : i64, operands = ["self"]} : (tensor<4x4x7x11xf32>) -> tensor<4x1x4x7x11xf32> loc("model"("scripts/reference/captured_models.py":261:0))
  %convolution_3 = "aten.convolution"(%unsqueeze, %p_model_volume_weight, %p_model_volume_bias) {stride = array<i64: 1, 1, 1>, padding = array<i64: 0, 1, 1>, dilation = array<i64: 1, 1, 1>, transposed = false, output_padding = array<i64: 0, 0, 0>, groups = 1 : i64, operands = ["input", "weight", "bias"]} : (tensor<4x1x4x7x11xf32>, tensor<2x1x2x3x3xf32>, tensor<2xf32>) -> tensor<4x2x3x7x11xf32> loc("volume"("scripts/reference/captured_models.py":261:0))
  %tanh_2 = "aten.tanh"(%convolution_3) {operands = ["self"]} : (tensor<4x2x3x7x11xf32>) -> tensor<4x2x3x7x11xf32> loc("model"("scripts/reference/captured_models.py":261:0))
  %view = "aten.view"(%tanh_2) {size = array<i64: 4, 6, 7, 11>, operands = ["self"]} : (tensor<4x2x3x7x11xf32>) -> tensor<4x6x7x11xf32> loc("model"("scripts/reference/captured_models.py":262:0))
  %slice_1 = "aten.slice"(%view) {dim = 1 : i64, start = 0 : i64, end = 4 : i64, step = 1 : i64, operands = ["self"]} : (tensor<4x6x7x11xf32>) -> tensor<4x4x7x11xf32> loc("model"("scripts/reference/captured_models.py":262:0))
  %adaptive_avg_pool2d = "aten.adaptive_avg_pool2d"(%slice_1) {output_size = array<i64: 7, 1>, operands = ["self"]} : (tensor<4x4x7x11xf32>) -> tensor<4x4x7x1xf32> loc("model"("scripts/reference/captured_models.py":262:0))
  %squeeze = "aten.squeeze"(%adaptive_avg_pool2d) {dim = -1 : i64, operands = ["self"]} : (tensor<4x4x7x1xf32>) -> tensor<4x4x7xf32> loc("model"("scripts/reference/captured_models.py":262:0))
  %max_pool1d = "aten.max_pool1d"(%squeeze) {kernel_size = array<i64: 2>, stride = array<i64: 1>, padding = array<i64: 0>, dilation = array<i64: 1>, ceil_mode = false, operands = ["self"]} : (tensor<4x4x7xf32>) -> tensor<4x4x6xf32> loc("model"("scripts/reference/captured_models.py":263:0))
  %avg_pool1d = "aten.avg_pool1d"(%squeeze) {kernel_size = array<i64: 2>, stride = array<i64: 1>, padding = array<i64: 0>, ceil_mode = false, count_include_pad = true, operands = ["self"]} : (tensor<4x4x7xf32>) -> tensor<4x4x6xf32> loc("model"("scripts/reference/captured_models.py":263:0))
  %add_4 = "aten.add"(%max_pool1d, %avg_pool1d) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x4x6xf32>, tensor<4x4x6xf32>) -> tensor<4x4x6xf32> loc("model"("scripts/reference/captured_models.py":263:0))
  %convolution_4 = "aten.convolution"(%add_4, %p_model_line_weight, %p_model_line_bias) {stride = array<i64: 2>, padding = array<i64: 0>, dilation = array<i64: 1>, transposed = false, output_padding = array<i64: 0>, groups = 1 : i64, operands = ["input", "weight", "bias"]} : (tensor<4x4x6xf32>, tensor<5x4x3xf32>, tensor<5xf32>) -> tensor<4x5x2xf32> loc("line"("scripts/reference/captured_models.py":263:0))
  %view_1 = "aten.view"(%convolution_4) {size = array<i64: 4, 10>, operands = ["self"]} : (tensor<4x5x2xf32>) -> tensor<4x10xf32> loc("model"("scripts/reference/captured_models.py":264:0))
  %linear = "aten.linear"(%view_1, %p_model_head_weight, %p_model_head_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x10xf32>, tensor<5x10xf32>, tensor<5xf32>) -> tensor<4x5xf32> loc("head"("scripts/reference/captured_models.py":264:0))
  %cross_entropy_loss = "aten.cross_entropy_loss"(%linear, %batch_labels) {reduction = 1 : i64, ignore_index = -100 : i64, label_smoothing = 0.0 : f64, operands = ["self", "target"]} : (tensor<4x5xf32>, tensor<4xi64>) -> tensor<f32> loc("loss")
  return %cross_entropy_loss, %_native_batch_norm_legit_functional#3, %_native_batch_norm_legit_functional#4 : tensor<f32>, tensor<6xf32>, tensor<6xf32> loc("loss")
}
}
