module attributes {torch.capture = {version = 1 : i64, torch = "2.15.0"}} {
func.func @loss(
    %p_model_positions_weight: tensor<11x12xf32> {torch.parameter = "positions.weight"} loc("positions.weight"),
    %p_model_blocks_0_norm1_weight: tensor<12xf32> {torch.parameter = "blocks.0.norm1.weight"} loc("blocks.0.norm1.weight"),
    %p_model_blocks_0_norm2_weight: tensor<12xf32> {torch.parameter = "blocks.0.norm2.weight"} loc("blocks.0.norm2.weight"),
    %p_model_blocks_0_qkv_weight: tensor<36x12xf32> {torch.parameter = "blocks.0.qkv.weight"} loc("blocks.0.qkv.weight"),
    %p_model_blocks_0_qkv_bias: tensor<36xf32> {torch.parameter = "blocks.0.qkv.bias"} loc("blocks.0.qkv.bias"),
    %p_model_blocks_0_out_weight: tensor<12x12xf32> {torch.parameter = "blocks.0.out.weight"} loc("blocks.0.out.weight"),
    %p_model_blocks_0_up_weight: tensor<20x12xf32> {torch.parameter = "blocks.0.up.weight"} loc("blocks.0.up.weight"),
    %p_model_blocks_0_up_bias: tensor<20xf32> {torch.parameter = "blocks.0.up.bias"} loc("blocks.0.up.bias"),
    %p_model_blocks_0_down_weight: tensor<12x20xf32> {torch.parameter = "blocks.0.down.weight"} loc("blocks.0.down.weight"),
    %p_model_blocks_0_down_bias: tensor<12xf32> {torch.parameter = "blocks.0.down.bias"} loc("blocks.0.down.bias"),
    %p_model_blocks_1_norm1_weight: tensor<12xf32> {torch.parameter = "blocks.1.norm1.weight"} loc("blocks.1.norm1.weight"),
    %p_model_blocks_1_norm2_weight: tensor<12xf32> {torch.parameter = "blocks.1.norm2.weight"} loc("blocks.1.norm2.weight"),
    %p_model_blocks_1_qkv_weight: tensor<36x12xf32> {torch.parameter = "blocks.1.qkv.weight"} loc("blocks.1.qkv.weight"),
    %p_model_blocks_1_qkv_bias: tensor<36xf32> {torch.parameter = "blocks.1.qkv.bias"} loc("blocks.1.qkv.bias"),
    %p_model_blocks_1_out_weight: tensor<12x12xf32> {torch.parameter = "blocks.1.out.weight"} loc("blocks.1.out.weight"),
    %p_model_blocks_1_up_weight: tensor<20x12xf32> {torch.parameter = "blocks.1.up.weight"} loc("blocks.1.up.weight"),
    %p_model_blocks_1_up_bias: tensor<20xf32> {torch.parameter = "blocks.1.up.bias"} loc("blocks.1.up.bias"),
    %p_model_blocks_1_down_weight: tensor<12x20xf32> {torch.parameter = "blocks.1.down.weight"} loc("blocks.1.down.weight"),
    %p_model_blocks_1_down_bias: tensor<12xf32> {torch.parameter = "blocks.1.down.bias"} loc("blocks.1.down.bias"),
    %p_model_norm_weight: tensor<12xf32> {torch.parameter = "norm.weight"} loc("norm.weight"),
    %p_model_norm_bias: tensor<12xf32> {torch.parameter = "norm.bias"} loc("norm.bias"),
    %p_model_head_weight: tensor<29x12xf32> {torch.parameter = "tokens.weight"} loc("tokens.weight"),
    %batch_tokens: tensor<4x8xi64> {torch.input = "tokens"} loc("tokens"),
    %batch_labels: tensor<4x8xi64> {torch.input = "labels"} loc("labels")) -> tensor<f32> {
  %embedding = "aten.embedding"(%p_model_head_weight, %batch_tokens) {padding_idx = -1 : i64, scale_grad_by_freq = false, operands = ["weight", "indices"]} : (tensor<29x12xf32>, tensor<4x8xi64>) -> tensor<4x8x12xf32> loc("tokens"("scripts/reference/captured_models.py":83:0))
  %arange = "aten.arange"() {end = 8 : i64} : () -> tensor<8xi64> loc("model"("scripts/reference/captured_models.py":83:0))
  %embedding_1 = "aten.embedding"(%p_model_positions_weight, %arange) {padding_idx = -1 : i64, scale_grad_by_freq = false, operands = ["weight", "indices"]} : (tensor<11x12xf32>, tensor<8xi64>) -> tensor<8x12xf32> loc("positions"("scripts/reference/captured_models.py":83:0))
  %add = "aten.add"(%embedding, %embedding_1) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x8x12xf32>, tensor<8x12xf32>) -> tensor<4x8x12xf32> loc("model"("scripts/reference/captured_models.py":83:0))
  %pow_1 = "aten.pow"(%add) {exponent = 2 : i64, operands = ["self"]} : (tensor<4x8x12xf32>) -> tensor<4x8x12xf32> loc("blocks.0.norm1"("scripts/reference/captured_models.py":43:0))
  %mean = "aten.mean"(%pow_1) {dim = array<i64: -1>, keepdim = true, operands = ["self"]} : (tensor<4x8x12xf32>) -> tensor<4x8x1xf32> loc("blocks.0.norm1"("scripts/reference/captured_models.py":43:0))
  %add_1 = "aten.add"(%mean) {other = 1.0e-05 : f64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x8x1xf32>) -> tensor<4x8x1xf32> loc("blocks.0.norm1"("scripts/reference/captured_models.py":43:0))
  %sqrt = "aten.sqrt"(%add_1) {operands = ["self"]} : (tensor<4x8x1xf32>) -> tensor<4x8x1xf32> loc("blocks.0.norm1"("scripts/reference/captured_models.py":43:0))
  %div = "aten.div"(%add, %sqrt) {operands = ["self", "other"]} : (tensor<4x8x12xf32>, tensor<4x8x1xf32>) -> tensor<4x8x12xf32> loc("blocks.0.norm1"("scripts/reference/captured_models.py":43:0))
  %mul = "aten.mul"(%div, %p_model_blocks_0_norm1_weight) {operands = ["self", "other"]} : (tensor<4x8x12xf32>, tensor<12xf32>) -> tensor<4x8x12xf32> loc("blocks.0.norm1"("scripts/reference/captured_models.py":43:0))
  %linear = "aten.linear"(%mul, %p_model_blocks_0_qkv_weight, %p_model_blocks_0_qkv_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x8x12xf32>, tensor<36x12xf32>, tensor<36xf32>) -> tensor<4x8x36xf32> loc("blocks.0.qkv"("scripts/reference/captured_models.py":60:0))
  %chunk:3 = "aten.chunk"(%linear) {chunks = 3 : i64, dim = -1 : i64, operands = ["self"]} : (tensor<4x8x36xf32>) -> (tensor<4x8x12xf32>, tensor<4x8x12xf32>, tensor<4x8x12xf32>) loc("blocks.0"("scripts/reference/captured_models.py":60:0))
  %view = "aten.view"(%chunk#0) {size = array<i64: 4, 8, 2, 6>, operands = ["self"]} : (tensor<4x8x12xf32>) -> tensor<4x8x2x6xf32> loc("blocks.0"("scripts/reference/captured_models.py":60:0))
  %transpose = "aten.transpose"(%view) {dim0 = 1 : i64, dim1 = 2 : i64, operands = ["self"]} : (tensor<4x8x2x6xf32>) -> tensor<4x2x8x6xf32> loc("blocks.0"("scripts/reference/captured_models.py":60:0))
  %view_1 = "aten.view"(%chunk#1) {size = array<i64: 4, 8, 2, 6>, operands = ["self"]} : (tensor<4x8x12xf32>) -> tensor<4x8x2x6xf32> loc("blocks.0"("scripts/reference/captured_models.py":60:0))
  %transpose_1 = "aten.transpose"(%view_1) {dim0 = 1 : i64, dim1 = 2 : i64, operands = ["self"]} : (tensor<4x8x2x6xf32>) -> tensor<4x2x8x6xf32> loc("blocks.0"("scripts/reference/captured_models.py":60:0))
  %view_2 = "aten.view"(%chunk#2) {size = array<i64: 4, 8, 2, 6>, operands = ["self"]} : (tensor<4x8x12xf32>) -> tensor<4x8x2x6xf32> loc("blocks.0"("scripts/reference/captured_models.py":60:0))
  %transpose_2 = "aten.transpose"(%view_2) {dim0 = 1 : i64, dim1 = 2 : i64, operands = ["self"]} : (tensor<4x8x2x6xf32>) -> tensor<4x2x8x6xf32> loc("blocks.0"("scripts/reference/captured_models.py":60:0))
  %scaled_dot_product_attention = "aten.scaled_dot_product_attention"(%transpose, %transpose_1, %transpose_2) {dropout_p = 0.0 : f64, is_causal = true, enable_gqa = false, operands = ["query", "key", "value"]} : (tensor<4x2x8x6xf32>, tensor<4x2x8x6xf32>, tensor<4x2x8x6xf32>) -> tensor<4x2x8x6xf32> loc("blocks.0"("scripts/reference/captured_models.py":66:0))
  %transpose_3 = "aten.transpose"(%scaled_dot_product_attention) {dim0 = 1 : i64, dim1 = 2 : i64, operands = ["self"]} : (tensor<4x2x8x6xf32>) -> tensor<4x8x2x6xf32> loc("blocks.0"("scripts/reference/captured_models.py":67:0))
  %reshape = "aten.reshape"(%transpose_3) {shape = array<i64: 4, 8, 12>, operands = ["self"]} : (tensor<4x8x2x6xf32>) -> tensor<4x8x12xf32> loc("blocks.0"("scripts/reference/captured_models.py":67:0))
  %linear_1 = "aten.linear"(%reshape, %p_model_blocks_0_out_weight) {operands = ["input", "weight"]} : (tensor<4x8x12xf32>, tensor<12x12xf32>) -> tensor<4x8x12xf32> loc("blocks.0.out"("scripts/reference/captured_models.py":67:0))
  %add_2 = "aten.add"(%add, %linear_1) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x8x12xf32>, tensor<4x8x12xf32>) -> tensor<4x8x12xf32> loc("blocks.0"("scripts/reference/captured_models.py":67:0))
  %pow_2 = "aten.pow"(%add_2) {exponent = 2 : i64, operands = ["self"]} : (tensor<4x8x12xf32>) -> tensor<4x8x12xf32> loc("blocks.0.norm2"("scripts/reference/captured_models.py":43:0))
  %mean_1 = "aten.mean"(%pow_2) {dim = array<i64: -1>, keepdim = true, operands = ["self"]} : (tensor<4x8x12xf32>) -> tensor<4x8x1xf32> loc("blocks.0.norm2"("scripts/reference/captured_models.py":43:0))
  %add_3 = "aten.add"(%mean_1) {other = 1.0e-05 : f64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x8x1xf32>) -> tensor<4x8x1xf32> loc("blocks.0.norm2"("scripts/reference/captured_models.py":43:0))
  %sqrt_1 = "aten.sqrt"(%add_3) {operands = ["self"]} : (tensor<4x8x1xf32>) -> tensor<4x8x1xf32> loc("blocks.0.norm2"("scripts/reference/captured_models.py":43:0))
  %div_1 = "aten.div"(%add_2, %sqrt_1) {operands = ["self", "other"]} : (tensor<4x8x12xf32>, tensor<4x8x1xf32>) -> tensor<4x8x12xf32> loc("blocks.0.norm2"("scripts/reference/captured_models.py":43:0))
  %mul_1 = "aten.mul"(%div_1, %p_model_blocks_0_norm2_weight) {operands = ["self", "other"]} : (tensor<4x8x12xf32>, tensor<12xf32>) -> tensor<4x8x12xf32> loc("blocks.0.norm2"("scripts/reference/captured_models.py":43:0))
  %linear_2 = "aten.linear"(%mul_1, %p_model_blocks_0_up_weight, %p_model_blocks_0_up_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x8x12xf32>, tensor<20x12xf32>, tensor<20xf32>) -> tensor<4x8x20xf32> loc("blocks.0.up"("scripts/reference/captured_models.py":68:0))
  %gelu = "aten.gelu"(%linear_2) {approximate = "tanh", operands = ["self"]} : (tensor<4x8x20xf32>) -> tensor<4x8x20xf32> loc("blocks.0"("scripts/reference/captured_models.py":68:0))
  %linear_3 = "aten.linear"(%gelu, %p_model_blocks_0_down_weight, %p_model_blocks_0_down_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x8x20xf32>, tensor<12x20xf32>, tensor<12xf32>) -> tensor<4x8x12xf32> loc("blocks.0.down"("scripts/reference/captured_models.py":68:0))
  %add_4 = "aten.add"(%add_2, %linear_3) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x8x12xf32>, tensor<4x8x12xf32>) -> tensor<4x8x12xf32> loc("blocks.0"("scripts/reference/captured_models.py":68:0))
  %pow_3 = "aten.pow"(%add_4) {exponent = 2 : i64, operands = ["self"]} : (tensor<4x8x12xf32>) -> tensor<4x8x12xf32> loc("blocks.1.norm1"("scripts/reference/captured_models.py":43:0))
  %mean_2 = "aten.mean"(%pow_3) {dim = array<i64: -1>, keepdim = true, operands = ["self"]} : (tensor<4x8x12xf32>) -> tensor<4x8x1xf32> loc("blocks.1.norm1"("scripts/reference/captured_models.py":43:0))
  %add_5 = "aten.add"(%mean_2) {other = 1.0e-05 : f64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x8x1xf32>) -> tensor<4x8x1xf32> loc("blocks.1.norm1"("scripts/reference/captured_models.py":43:0))
  %sqrt_2 = "aten.sqrt"(%add_5) {operands = ["self"]} : (tensor<4x8x1xf32>) -> tensor<4x8x1xf32> loc("blocks.1.norm1"("scripts/reference/captured_models.py":43:0))
  %div_2 = "aten.div"(%add_4, %sqrt_2) {operands = ["self", "other"]} : (tensor<4x8x12xf32>, tensor<4x8x1xf32>) -> tensor<4x8x12xf32> loc("blocks.1.norm1"("scripts/reference/captured_models.py":43:0))
  %mul_2 = "aten.mul"(%div_2, %p_model_blocks_1_norm1_weight) {operands = ["self", "other"]} : (tensor<4x8x12xf32>, tensor<12xf32>) -> tensor<4x8x12xf32> loc("blocks.1.norm1"("scripts/reference/captured_models.py":43:0))
  %linear_4 = "aten.linear"(%mul_2, %p_model_blocks_1_qkv_weight, %p_model_blocks_1_qkv_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x8x12xf32>, tensor<36x12xf32>, tensor<36xf32>) -> tensor<4x8x36xf32> loc("blocks.1.qkv"("scripts/reference/captured_models.py":60:0))
  %chunk_1:3 = "aten.chunk"(%linear_4) {chunks = 3 : i64, dim = -1 : i64, operands = ["self"]} : (tensor<4x8x36xf32>) -> (tensor<4x8x12xf32>, tensor<4x8x12xf32>, tensor<4x8x12xf32>) loc("blocks.1"("scripts/reference/captured_models.py":60:0))
  %view_3 = "aten.view"(%chunk_1#0) {size = array<i64: 4, 8, 2, 6>, operands = ["self"]} : (tensor<4x8x12xf32>) -> tensor<4x8x2x6xf32> loc("blocks.1"("scripts/reference/captured_models.py":60:0))
  %transpose_4 = "aten.transpose"(%view_3) {dim0 = 1 : i64, dim1 = 2 : i64, operands = ["self"]} : (tensor<4x8x2x6xf32>) -> tensor<4x2x8x6xf32> loc("blocks.1"("scripts/reference/captured_models.py":60:0))
  %view_4 = "aten.view"(%chunk_1#1) {size = array<i64: 4, 8, 2, 6>, operands = ["self"]} : (tensor<4x8x12xf32>) -> tensor<4x8x2x6xf32> loc("blocks.1"("scripts/reference/captured_models.py":60:0))
  %transpose_5 = "aten.transpose"(%view_4) {dim0 = 1 : i64, dim1 = 2 : i64, operands = ["self"]} : (tensor<4x8x2x6xf32>) -> tensor<4x2x8x6xf32> loc("blocks.1"("scripts/reference/captured_models.py":60:0))
  %view_5 = "aten.view"(%chunk_1#2) {size = array<i64: 4, 8, 2, 6>, operands = ["self"]} : (tensor<4x8x12xf32>) -> tensor<4x8x2x6xf32> loc("blocks.1"("scripts/reference/captured_models.py":60:0))
  %transpose_6 = "aten.transpose"(%view_5) {dim0 = 1 : i64, dim1 = 2 : i64, operands = ["self"]} : (tensor<4x8x2x6xf32>) -> tensor<4x2x8x6xf32> loc("blocks.1"("scripts/reference/captured_models.py":60:0))
  %transpose_7 = "aten.transpose"(%transpose_5) {dim0 = -2 : i64, dim1 = -1 : i64, operands = ["self"]} : (tensor<4x2x8x6xf32>) -> tensor<4x2x6x8xf32> loc("blocks.1"("scripts/reference/captured_models.py":62:0))
  %matmul = "aten.matmul"(%transpose_4, %transpose_7) {operands = ["self", "other"]} : (tensor<4x2x8x6xf32>, tensor<4x2x6x8xf32>) -> tensor<4x2x8x8xf32> loc("blocks.1"("scripts/reference/captured_models.py":62:0))
  %div_3 = "aten.div"(%matmul) {other = 2.449489742783178 : f64, operands = ["self"]} : (tensor<4x2x8x8xf32>) -> tensor<4x2x8x8xf32> loc("blocks.1"("scripts/reference/captured_models.py":62:0))
  %ones = "aten.ones"() {size = array<i64: 8, 8>, dtype = i1} : () -> tensor<8x8xi1> loc("blocks.1"("scripts/reference/captured_models.py":63:0))
  %triu = "aten.triu"(%ones) {diagonal = 1 : i64, operands = ["self"]} : (tensor<8x8xi1>) -> tensor<8x8xi1> loc("blocks.1"("scripts/reference/captured_models.py":63:0))
  %masked_fill = "aten.masked_fill"(%div_3, %triu) {value = 0xFFF0000000000000 : f64, operands = ["self", "mask"]} : (tensor<4x2x8x8xf32>, tensor<8x8xi1>) -> tensor<4x2x8x8xf32> loc("blocks.1"("scripts/reference/captured_models.py":64:0))
  %softmax = "aten.softmax"(%masked_fill) {dim = -1 : i64, operands = ["self"]} : (tensor<4x2x8x8xf32>) -> tensor<4x2x8x8xf32> loc("blocks.1"("scripts/reference/captured_models.py":64:0))
  %matmul_1 = "aten.matmul"(%softmax, %transpose_6) {operands = ["self", "other"]} : (tensor<4x2x8x8xf32>, tensor<4x2x8x6xf32>) -> tensor<4x2x8x6xf32> loc("blocks.1"("scripts/reference/captured_models.py":64:0))
  %transpose_8 = "aten.transpose"(%matmul_1) {dim0 = 1 : i64, dim1 = 2 : i64, operands = ["self"]} : (tensor<4x2x8x6xf32>) -> tensor<4x8x2x6xf32> loc("blocks.1"("scripts/reference/captured_models.py":67:0))
  %reshape_1 = "aten.reshape"(%transpose_8) {shape = array<i64: 4, 8, 12>, operands = ["self"]} : (tensor<4x8x2x6xf32>) -> tensor<4x8x12xf32> loc("blocks.1"("scripts/reference/captured_models.py":67:0))
  %linear_5 = "aten.linear"(%reshape_1, %p_model_blocks_1_out_weight) {operands = ["input", "weight"]} : (tensor<4x8x12xf32>, tensor<12x12xf32>) -> tensor<4x8x12xf32> loc("blocks.1.out"("scripts/reference/captured_models.py":67:0))
  %add_6 = "aten.add"(%add_4, %linear_5) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x8x12xf32>, tensor<4x8x12xf32>) -> tensor<4x8x12xf32> loc("blocks.1"("scripts/reference/captured_models.py":67:0))
  %pow_4 = "aten.pow"(%add_6) {exponent = 2 : i64, operands = ["self"]} : (tensor<4x8x12xf32>) -> tensor<4x8x12xf32> loc("blocks.1.norm2"("scripts/reference/captured_models.py":43:0))
  %mean_3 = "aten.mean"(%pow_4) {dim = array<i64: -1>, keepdim = true, operands = ["self"]} : (tensor<4x8x12xf32>) -> tensor<4x8x1xf32> loc("blocks.1.norm2"("scripts/reference/captured_models.py":43:0))
  %add_7 = "aten.add"(%mean_3) {other = 1.0e-05 : f64, alpha = 1 : i64, operands = ["self"]} : (tensor<4x8x1xf32>) -> tensor<4x8x1xf32> loc("blocks.1.norm2"("scripts/reference/captured_models.py":43:0))
  %sqrt_3 = "aten.sqrt"(%add_7) {operands = ["self"]} : (tensor<4x8x1xf32>) -> tensor<4x8x1xf32> loc("blocks.1.norm2"("scripts/reference/captured_models.py":43:0))
  %div_4 = "aten.div"(%add_6, %sqrt_3) {operands = ["self", "other"]} : (tensor<4x8x12xf32>, tensor<4x8x1xf32>) -> tensor<4x8x12xf32> loc("blocks.1.norm2"("scripts/reference/captured_models.py":43:0))
  %mul_3 = "aten.mul"(%div_4, %p_model_blocks_1_norm2_weight) {operands = ["self", "other"]} : (tensor<4x8x12xf32>, tensor<12xf32>) -> tensor<4x8x12xf32> loc("blocks.1.norm2"("scripts/reference/captured_models.py":43:0))
  %linear_6 = "aten.linear"(%mul_3, %p_model_blocks_1_up_weight, %p_model_blocks_1_up_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x8x12xf32>, tensor<20x12xf32>, tensor<20xf32>) -> tensor<4x8x20xf32> loc("blocks.1.up"("scripts/reference/captured_models.py":68:0))
  %gelu_1 = "aten.gelu"(%linear_6) {approximate = "tanh", operands = ["self"]} : (tensor<4x8x20xf32>) -> tensor<4x8x20xf32> loc("blocks.1"("scripts/reference/captured_models.py":68:0))
  %linear_7 = "aten.linear"(%gelu_1, %p_model_blocks_1_down_weight, %p_model_blocks_1_down_bias) {operands = ["input", "weight", "bias"]} : (tensor<4x8x20xf32>, tensor<12x20xf32>, tensor<12xf32>) -> tensor<4x8x12xf32> loc("blocks.1.down"("scripts/reference/captured_models.py":68:0))
  %add_8 = "aten.add"(%add_6, %linear_7) {alpha = 1 : i64, operands = ["self", "other"]} : (tensor<4x8x12xf32>, tensor<4x8x12xf32>) -> tensor<4x8x12xf32> loc("blocks.1"("scripts/reference/captured_models.py":68:0))
  %layer_norm = "aten.layer_norm"(%add_8, %p_model_norm_weight, %p_model_norm_bias) {normalized_shape = array<i64: 12>, eps = 1.0e-05 : f64, operands = ["input", "weight", "bias"]} : (tensor<4x8x12xf32>, tensor<12xf32>, tensor<12xf32>) -> tensor<4x8x12xf32> loc("norm"("scripts/reference/captured_models.py":86:0))
  %linear_8 = "aten.linear"(%layer_norm, %p_model_head_weight) {operands = ["input", "weight"]} : (tensor<4x8x12xf32>, tensor<29x12xf32>) -> tensor<4x8x29xf32> loc("head"("scripts/reference/captured_models.py":86:0))
  %view_6 = "aten.view"(%linear_8) {size = array<i64: -1, 29>, operands = ["self"]} : (tensor<4x8x29xf32>) -> tensor<32x29xf32> loc("loss")
  %view_7 = "aten.view"(%batch_labels) {size = array<i64: -1>, operands = ["self"]} : (tensor<4x8xi64>) -> tensor<32xi64> loc("loss")
  %cross_entropy_loss = "aten.cross_entropy_loss"(%view_6, %view_7) {reduction = 1 : i64, ignore_index = -1 : i64, label_smoothing = 0.0 : f64, operands = ["self", "target"]} : (tensor<32x29xf32>, tensor<32xi64>) -> tensor<f32> loc("loss")
  return %cross_entropy_loss : tensor<f32> loc("loss")
}
}
