// RUN: dtc-opt %s --test-print-kernels --verify-diagnostics
//
// The kernel, its attributes, the pairs operand=>result that it may compute in place, and the floating point operations.

func.func @elementwise(%x: tensor<4x8xf32>, %s: tensor<f32>, %c: tensor<4x8xi1>) {
  // expected-remark@+1 {{neg {} 0=>0 flops 32.}}
  %neg = dtc.neg %x : tensor<4x8xf32>
  // expected-remark@+1 {{abs {} 0=>0 flops 32.}}
  %abs = dtc.abs %x : tensor<4x8xf32>
  // expected-remark@+1 {{exp {} 0=>0 flops 1.}}
  %exp = dtc.exp %s : tensor<f32>
  // expected-remark@+1 {{log {} 0=>0 flops 32.}}
  %log = dtc.log %x : tensor<4x8xf32>
  // expected-remark@+1 {{sqrt {} 0=>0 flops 32.}}
  %sqrt = dtc.sqrt %x : tensor<4x8xf32>
  // expected-remark@+1 {{rsqrt {} 0=>0 flops 32.}}
  %rsqrt = dtc.rsqrt %x : tensor<4x8xf32>
  // expected-remark@+1 {{tanh {} 0=>0 flops 32.}}
  %tanh = dtc.tanh %x : tensor<4x8xf32>
  // expected-remark@+1 {{sigmoid {} 0=>0 flops 32.}}
  %sigmoid = dtc.sigmoid %x : tensor<4x8xf32>
  // expected-remark@+1 {{softplus {} 0=>0 flops 32.}}
  %softplus = dtc.softplus %x : tensor<4x8xf32>
  // expected-remark@+1 {{relu {} 0=>0 flops 32.}}
  %relu = dtc.relu %x : tensor<4x8xf32>
  // expected-remark@+1 {{silu {} 0=>0 flops 32.}}
  %silu = dtc.silu %x : tensor<4x8xf32>
  // expected-remark@+1 {{gelu {approximate = "tanh"} 0=>0 flops 32.}}
  %gelu = dtc.gelu tanh %x : tensor<4x8xf32>
  // expected-remark@+1 {{convert {} flops 32.}}
  %convert0 = dtc.convert %x : (tensor<4x8xf32>) -> tensor<4x8xf64>
  // expected-remark@+1 {{convert {} flops 32.}}
  %convert1 = dtc.convert %x : (tensor<4x8xf32>) -> tensor<4x8xi32>
  // expected-remark@+1 {{convert {} flops 32.}}
  %convert2 = dtc.convert %c : (tensor<4x8xi1>) -> tensor<4x8xf32>
  // expected-remark@+1 {{add {} 0=>0 1=>0 flops 32.}}
  %add = dtc.add %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{sub {} 0=>0 1=>0 flops 32.}}
  %sub = dtc.sub %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{mul {} 0=>0 1=>0 flops 32.}}
  %mul = dtc.mul %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{div {} 0=>0 1=>0 flops 32.}}
  %div = dtc.div %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{maximum {} 0=>0 1=>0 flops 32.}}
  %maximum = dtc.maximum %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{minimum {} 0=>0 1=>0 flops 32.}}
  %minimum = dtc.minimum %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{compare {predicate = "lt"} flops 32.}}
  %compare = dtc.compare lt %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{select {} 1=>0 2=>0 flops 32.}}
  %select = dtc.select %c, %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{silu_grad {} 1=>0 0=>0 flops 32.}}
  %silu_grad = dtc.silu_grad %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{gelu_grad {approximate = "tanh"} 1=>0 0=>0 flops 32.}}
  %gelu_grad = dtc.gelu_grad tanh %x, %x : tensor<4x8xf32>
  return
}

func.func @shape(%x: tensor<2x3x4xf32>, %s: tensor<f32>) {
  // expected-remark@+1 {{fill {value = 1.000000e+00 : f64} flops 32.}}
  %constant0 = dtc.constant dense<1.0> : tensor<4x8xf32>
  // expected-remark@+1 {{constant {data = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>} flops 2.}}
  %constant1 = dtc.constant dense<[1.0, 2.0]> : tensor<2xf32>
  // expected-remark@+1 {{fill {value = 1.000000e+00 : f64} flops 4.}}
  %constant2 = dtc.constant dense<true> : tensor<4xi1>
  // expected-remark@+1 {{fill {value = -7.000000e+00 : f64} flops 1.}}
  %constant3 = dtc.constant dense<-7> : tensor<i32>
  // expected-remark@+1 {{broadcast {dims = array<i64: 0, 2, 3>} flops 120.}}
  %broadcast0 = dtc.broadcast %x dims [0, 2, 3] : (tensor<2x3x4xf32>) -> tensor<2x5x3x4xf32>
  // expected-remark@+1 {{broadcast {dims = array<i64>} flops 5.}}
  %broadcast1 = dtc.broadcast %s dims [] : (tensor<f32>) -> tensor<5xf32>
  // expected-remark@+1 {{transpose {permutation = array<i64: 2, 0, 1>} flops 24.}}
  %transpose = dtc.transpose %x permutation [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  return
}

// Both shapes are split into their coarsest common factors.
func.func @reshape(%a: tensor<16x768xf32>, %b: tensor<16x12x64xf32>, %c: tensor<6x4xf32>, %d: tensor<5x6x4xf32>,
                   %e: tensor<4x9xf32>, %f: tensor<1x16x1xf32>, %g: tensor<4x6x1x10x2xf32>) {
  %split = dtc.reshape %a : (tensor<16x768xf32>) -> tensor<16x12x64xf32>
  %merge = dtc.reshape %b : (tensor<16x12x64xf32>) -> tensor<16x768xf32>
  %merge_all = dtc.reshape %b : (tensor<16x12x64xf32>) -> tensor<12288xf32>
  %regroup = dtc.reshape %c : (tensor<6x4xf32>) -> tensor<2x12xf32>
  // The halves of 6 and 4 are the same blocks, 3x4 and 2x6 have no boundary in common.
  %no_boundary = dtc.reshape %c : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %no_boundary_inside = dtc.reshape %d : (tensor<5x6x4xf32>) -> tensor<5x4x6xf32>
  %no_divisor = dtc.reshape %e : (tensor<4x9xf32>) -> tensor<9x4xf32>
  %ones = dtc.reshape %f : (tensor<1x16x1xf32>) -> tensor<4x1x4xf32>
  %after = dtc.reshape %g : (tensor<4x6x1x10x2xf32>) -> tensor<3x8x5x4xf32>
  return
}

func.func @block(%x: tensor<4x8xf32>, %y: tensor<4x2xf32>) {
  // expected-remark@+1 {{slice {offsets = array<i64: 0, 2>} flops 32.}}
  %slice = dtc.slice %x offsets [0, 2] sizes [4, 3] : (tensor<4x8xf32>) -> tensor<4x3xf32>
  // expected-remark@+1 {{pad {low = array<i64: 0, 1>, value = 0.000000e+00 : f64} flops 36.}}
  %pad0 = dtc.pad %x low [0, 1] high [0, 0] value 0.0 : (tensor<4x8xf32>) -> tensor<4x9xf32>
  // expected-remark@+1 {{pad {low = array<i64: 0, 0>, value = 1.000000e+00 : f64} flops 48.}}
  %pad1 = dtc.pad %x low [0, 0] high [2, 0] value 1.0 : (tensor<4x8xf32>) -> tensor<6x8xf32>
  // expected-remark@+1 {{concat {dim = 1 : i64} flops 40.}}
  %concat = dtc.concat %x, %y dim 1 : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
  return
}

func.func @contraction(%x: tensor<16x128x64xf32>, %w: tensor<64x256xf32>, %s: tensor<f32>) {
  // expected-remark@+1 {{einsum {equation = "bsd,df->bsf"} flops 67108864.}}
  %matmul = dtc.einsum "bsd,df->bsf" %x, %w : (tensor<16x128x64xf32>, tensor<64x256xf32>) -> tensor<16x128x256xf32>
  // expected-remark@+1 {{einsum {equation = "bsd,bsd->sb"} flops 262144.}}
  %batched = dtc.einsum "bsd,bsd->sb" %x, %x : (tensor<16x128x64xf32>, tensor<16x128x64xf32>) -> tensor<128x16xf32>
  // expected-remark@+1 {{einsum {equation = ",->"} flops 2.}}
  %scalars = dtc.einsum ",->" %s, %s : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // expected-remark@+1 {{reduce {dims = array<i64: 0, 2>, kind = "sum"} flops 131072.}}
  %sum = dtc.reduce sum %x dims [0, 2] : (tensor<16x128x64xf32>) -> tensor<128xf32>
  // expected-remark@+1 {{reduce {dims = array<i64: 1>, kind = "max"} flops 131072.}}
  %max = dtc.reduce max %x dims [1] : (tensor<16x128x64xf32>) -> tensor<16x64xf32>
  // expected-remark@+1 {{reduce {dims = array<i64: 0>, kind = "min"} flops 131072.}}
  %min = dtc.reduce min %x dims [0] : (tensor<16x128x64xf32>) -> tensor<128x64xf32>
  return
}

func.func @grouped_product(%x: tensor<4x2x3x8xf32>, %w: tensor<4x5x8xf32>, %rows: tensor<4x2x3xi32>) {
  // expected-remark@+1 {{grouped_product {equation = "xbcd,xfd->xbcf"} flops 960.}}
  %half = dtc.grouped_product "xbcd,xfd->xbcf" %x, %w rows %rows {occupancy = 5.0e-1 : f64} : (tensor<4x2x3x8xf32>, tensor<4x5x8xf32>, tensor<4x2x3xi32>) -> tensor<4x2x3x5xf32>
  return
}

func.func @conv(%x: tensor<8x3x32x30xf32>, %w: tensor<16x3x3x5xf32>, %dy: tensor<8x16x16x30xf32>, %g: tensor<8x2x3x9xf32>, %v: tensor<2x4x3x5xf32>) {
  // expected-remark@+1 {{conv {dilations = array<i64: 1, 1>, padding = array<i64: 1, 2>, strides = array<i64: 2, 1>} flops 5529600.}}
  %conv = dtc.conv %x, %w strides [2, 1] padding [1, 2] dilations [1, 1] : (tensor<8x3x32x30xf32>, tensor<16x3x3x5xf32>) -> tensor<8x16x16x30xf32>
  // expected-remark@+1 {{conv_input_grad {dilations = array<i64: 1, 1>, padding = array<i64: 1, 2>, strides = array<i64: 2, 1>} flops 5529600.}}
  %input = dtc.conv_input_grad %dy, %w strides [2, 1] padding [1, 2] dilations [1, 1] : (tensor<8x16x16x30xf32>, tensor<16x3x3x5xf32>) -> tensor<8x3x32x30xf32>
  // expected-remark@+1 {{conv_weight_grad {dilations = array<i64: 1, 1>, padding = array<i64: 1, 2>, strides = array<i64: 2, 1>} flops 5529600.}}
  %weight = dtc.conv_weight_grad %x, %dy strides [2, 1] padding [1, 2] dilations [1, 1] : (tensor<8x3x32x30xf32>, tensor<8x16x16x30xf32>) -> tensor<16x3x3x5xf32>
  // expected-remark@+1 {{conv {dilations = array<i64: 1>, padding = array<i64: 0>, strides = array<i64: 1>} flops 9600.}}
  %groups = dtc.conv %g, %v strides [1] padding [0] dilations [1] : (tensor<8x2x3x9xf32>, tensor<2x4x3x5xf32>) -> tensor<8x2x4x5xf32>
  return
}

func.func @max_pool(%x: tensor<8x3x32x30xf32>, %dy: tensor<8x3x16x28xf32>) {
  // expected-remark@+1 {{max_pool {dilations = array<i64: 1, 1>, padding = array<i64: 1, 0>, strides = array<i64: 2, 1>, window = array<i64: 3, 3>} flops 96768.}}
  %pool = dtc.max_pool %x window [3, 3] strides [2, 1] padding [1, 0] dilations [1, 1] : (tensor<8x3x32x30xf32>) -> tensor<8x3x16x28xf32>
  // expected-remark@+1 {{max_pool_grad {dilations = array<i64: 1, 1>, padding = array<i64: 1, 0>, strides = array<i64: 2, 1>, window = array<i64: 3, 3>} flops 96768.}}
  %grad = dtc.max_pool_grad %x, %dy window [3, 3] strides [2, 1] padding [1, 0] dilations [1, 1] : (tensor<8x3x32x30xf32>, tensor<8x3x16x28xf32>) -> tensor<8x3x32x30xf32>
  return
}

func.func @index(%table: tensor<256x64xf32>, %ids: tensor<4x8xi32>, %dy: tensor<4x8x64xf32>, %dz: tensor<4x8xf32>, %id: tensor<i32>, %mask: tensor<4x8x64xi1>) {
  // expected-remark@+1 {{embedding {} flops 16384.}}
  %embedding = dtc.embedding %table, %ids : (tensor<256x64xf32>, tensor<4x8xi32>) -> tensor<4x8x64xf32>
  // expected-remark@+1 {{embedding {} flops 16384.}}
  %embedding1 = dtc.embedding %table, %id : (tensor<256x64xf32>, tensor<i32>) -> tensor<64xf32>
  // expected-remark@+1 {{embedding_grad {} flops 16384.}}
  %embedding_grad = dtc.embedding_grad %ids, %dy : (tensor<4x8xi32>, tensor<4x8x64xf32>) -> tensor<256x64xf32>
  // expected-remark@+1 {{pick {} flops 2048.}}
  %pick = dtc.pick %dy, %ids : (tensor<4x8x64xf32>, tensor<4x8xi32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{pick_grad {} flops 2048.}}
  %pick_grad = dtc.pick_grad %ids, %dz : (tensor<4x8xi32>, tensor<4x8xf32>) -> tensor<4x8x64xf32>
  // expected-remark@+1 {{embedding {} flops 2048.}}
  %embedding2 = dtc.embedding %dy, %ids : (tensor<4x8x64xf32>, tensor<4x8xi32>) -> tensor<4x8x64xf32>
  // expected-remark@+1 {{embedding_grad {} flops 2048.}}
  %embedding_grad1 = dtc.embedding_grad %ids, %dy : (tensor<4x8xi32>, tensor<4x8x64xf32>) -> tensor<4x5x64xf32>
  // expected-remark@+1 {{top_k {k = 3 : i64} flops 2048.}}
  %top_k = dtc.top_k %dy {k = 3} : tensor<4x8x64xf32>
  // expected-remark@+1 {{nonzero {} flops 2048.}}
  %nonzero = dtc.nonzero %mask : tensor<4x8x64xi1> -> tensor<4x8x5xi32>
  return
}

func.func @norm(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>, %m: tensor<2x3xf32>) {
  // expected-remark@+1 {{softmax {} 0=>0 flops 48.}}
  %softmax = dtc.softmax %x : tensor<2x3x8xf32>
  // expected-remark@+1 {{softmax_grad {} 1=>0 flops 48.}}
  %softmax_grad = dtc.softmax_grad %x, %x : tensor<2x3x8xf32>
  // expected-remark@+1 {{softmax {causal = true} 0=>0 flops 48.}}
  %causal = dtc.softmax %x {causal = true} : tensor<2x3x8xf32>
  // expected-remark@+1 {{softmax {scale = 5.000000e-01 : f64} 0=>0 flops 48.}}
  %scaled = dtc.softmax %x {scale = 0.5} : tensor<2x3x8xf32>
  // expected-remark@+1 {{softmax_grad {scale = 5.000000e-01 : f64} 1=>0 flops 48.}}
  %scaled_grad = dtc.softmax_grad %x, %x {scale = 0.5} : tensor<2x3x8xf32>
  // expected-remark@+1 {{layer_norm {eps = 1.000000e-05 : f64} flops 48.}}
  %0:3 = dtc.layer_norm %x, %w, %w {eps = 1.0e-5} : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  // expected-remark@+1 {{layer_norm_grad {} flops 48.}}
  %1:3 = dtc.layer_norm_grad %x, %w, %m, %m, %x : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>)
  // expected-remark@+1 {{rms_norm {eps = 1.000000e-05 : f64} flops 48.}}
  %2:2 = dtc.rms_norm %x, %w {eps = 1.0e-5} : (tensor<2x3x8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>)
  // expected-remark@+1 {{rms_norm_grad {} flops 48.}}
  %3:2 = dtc.rms_norm_grad %x, %w, %m, %x : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<2x3xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<8xf32>)
  return
}

func.func @fused(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %logits: tensor<4x8x32xf32>, %labels: tensor<4x8xi32>) {
  // expected-remark@+1 {{rotary {inverse = false, theta = 1.000000e+04 : f64} 0=>0 flops 1536.}}
  %rotary = dtc.rotary %q {inverse = false, theta = 1.0e4} : tensor<2x8x6x16xf32>
  // Six heads of queries are two heads of keys times three queries each.
  // expected-remark@+1 {{attention {causal = true, scale = 2.500000e-01 : f64} flops 27648.}}
  %out, %lse = dtc.attention %q, %k, %k {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // A query sees 4 keys, the first two less: 2 x 6 heads x (8 x 4 - 3 x 3 / 2) scores of 4 x 16 operations.
  // expected-remark@+1 {{attention {causal = true, scale = 2.500000e-01 : f64, window = 4 : i64} flops 21120.}}
  %outw, %lsew = dtc.attention %q, %k, %k {causal = true, scale = 0.25, window = 4} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{attention_grad {causal = true, scale = 2.500000e-01 : f64} flops 69120.}}
  %dq, %dk, %dv = dtc.attention_grad %q, %k, %k, %out, %lse, %q {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  // expected-remark@+1 {{cross_entropy {label_smoothing = 0.000000e+00 : f64} flops 1024.}}
  %loss, %lse1 = dtc.cross_entropy %logits, %labels : (tensor<4x8x32xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  // expected-remark@+1 {{cross_entropy_grad {label_smoothing = 0.000000e+00 : f64} 0=>0 flops 1024.}}
  %dlogits = dtc.cross_entropy_grad %logits, %labels, %lse1, %loss : (tensor<4x8x32xf32>, tensor<4x8xi32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8x32xf32>
  return
}

func.func @optimizer(%p: tensor<4x8xf32>, %s: tensor<f32>, %ap: tensor<i1>) {
  // expected-remark@+1 {{adamw {beta1 = 9.000000e-01 : f64, beta2 = 0.99899999999999999 : f64, eps = 1.000000e-08 : f64, weight_decay = 1.000000e-01 : f64} 0=>0 2=>1 3=>2 flops 32.}}
  %0:3 = dtc.adamw %p, %p, %p, %p, %s, %s, %s, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  // expected-remark@+1 {{sgd {momentum = 9.000000e-01 : f64, weight_decay = 0.000000e+00 : f64} 0=>0 2=>1 flops 32.}}
  %1:2 = dtc.sgd %p, %p, %p, %s, %s, %ap {momentum = 0.9, weight_decay = 0.0} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  // expected-remark@+1 {{sgd {momentum = 9.000000e-01 : f64, weight_decay = 0.000000e+00 : f64} 0=>0 2=>1 flops 1.}}
  %2:2 = dtc.sgd %s, %s, %s, %s, %s, %ap {momentum = 0.9, weight_decay = 0.0} : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<f32>, tensor<f32>)
  // expected-remark@+1 {{adam {beta1 = 9.000000e-01 : f64, beta2 = 0.99899999999999999 : f64, eps = 1.000000e-08 : f64, weight_decay = 1.000000e-01 : f64} 0=>0 2=>1 3=>2 flops 32.}}
  %3:3 = dtc.adam %p, %p, %p, %p, %s, %s, %s, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  // expected-remark@+1 {{lion {beta1 = 9.000000e-01 : f64, beta2 = 0.98999999999999999 : f64, weight_decay = 0.000000e+00 : f64} 0=>0 2=>1 flops 32.}}
  %4:2 = dtc.lion %p, %p, %p, %s, %s, %ap {beta1 = 0.9, beta2 = 0.99, weight_decay = 0.0} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// A kernel gets the shape of the tensor that its mask is a part of: by default its own.
func.func @random(%x: tensor<4x8xf32>, %key: tensor<2xi32>) {
  // expected-remark@+1 {{dropout {op = 3 : i64, rate = 5.000000e-01 : f64, shape = array<i64: 4, 8>, sharding = ["", ""]} 0=>0 flops 32.}}
  %0 = dtc.dropout %x, %key {number = 3, rate = 0.5} : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{dropout {op = 3 : i64, rate = 5.000000e-01 : f64, shape = array<i64: 16, 8>, sharding = ["micro,dp", ""]} 0=>0 flops 32.}}
  %1 = dtc.dropout %x, %key {number = 3, rate = 0.5, shape = array<i64: 16, 8>, sharding = ["micro,dp", ""]} : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<4x8xf32>
  return
}

// Which optional operands there are shows in their number. The number of operations is that of one segment.
func.func @attention_segments(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %segments: tensor<2x9xi32>, %positions: tensor<2x8xi32>) {
  // expected-remark@+1 {{attention {causal = true, scale = 2.500000e-01 : f64} flops 27648.}}
  %out, %lse = dtc.attention %q, %k, %k segments %segments {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{attention_grad {causal = true, scale = 2.500000e-01 : f64} flops 69120.}}
  %dq, %dk, %dv = dtc.attention_grad %q, %k, %k, %out, %lse, %q segments %segments {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>, tensor<2x9xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  // expected-remark@+1 {{rotary {inverse = false, theta = 1.000000e+04 : f64} 0=>0 flops 1536.}}
  %rotary = dtc.rotary %q from %positions : tensor<2x8xi32> {inverse = false, theta = 1.0e4} : tensor<2x8x6x16xf32>
  return
}

// Orders and shards are told to the kernels. In zigzag order a device has its share of the operations of the whole, in
// the order of the sequence those of the device that has most: 2 x 6 heads x 8 x (32 - 4) scores of 4 x 16 operations.
func.func @order(%z: tensor<2x12x4xf32>, %q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %t: tensor<2x32x2x16xf32>, %l: tensor<2x6x8xf32>) {
  // expected-remark@+1 {{zigzag {dim = 1 : i64, inverse = false, parts = 3 : i64} flops 96.}}
  %zigzag = dtc.zigzag %z {dim = 1, inverse = false, parts = 3} : tensor<2x12x4xf32>
  // expected-remark@+1 {{rotary {inverse = false, sequence = 32 : i64, sequence_axes = ["cp"], theta = 1.000000e+04 : f64, zigzag = 4 : i64} 0=>0 flops 1536.}}
  %rotary = dtc.rotary %q {inverse = false, sequence = 32, sequence_axes = ["cp"], theta = 1.0e4, zigzag = 4} : tensor<2x8x6x16xf32>
  // expected-remark@+1 {{attention {causal = true, scale = 2.500000e-01 : f64, zigzag = 2 : i64} flops 27648.}}
  %0:2 = dtc.attention %q, %k, %k {causal = true, scale = 0.25, zigzag = 2} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{attention {causal = true, scale = 2.500000e-01 : f64, sequence = 32 : i64, sequence_axes = ["cp"]} flops 172032.}}
  %1:2 = dtc.attention %q, %t, %t {causal = true, scale = 0.25, sequence = 32, sequence_axes = ["cp"]} : (tensor<2x8x6x16xf32>, tensor<2x32x2x16xf32>, tensor<2x32x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{attention {causal = true, scale = 2.500000e-01 : f64, sequence = 32 : i64, sequence_axes = ["cp"], zigzag = 4 : i64} flops 98304.}}
  %2:2 = dtc.attention %q, %t, %t {causal = true, scale = 0.25, sequence = 32, sequence_axes = ["cp"], zigzag = 4} : (tensor<2x8x6x16xf32>, tensor<2x32x2x16xf32>, tensor<2x32x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{attention {causal = true, scale = 2.500000e-01 : f64, sequence = 32 : i64, sequence_axes = ["cp"], window = 4 : i64} flops 24576.}}
  %3:2 = dtc.attention %q, %t, %t {causal = true, scale = 0.25, sequence = 32, sequence_axes = ["cp"], window = 4} : (tensor<2x8x6x16xf32>, tensor<2x32x2x16xf32>, tensor<2x32x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{attention {causal = false, scale = 2.500000e-01 : f64, sequence = 32 : i64, sequence_axes = ["cp"]} flops 196608.}}
  %4:2 = dtc.attention %q, %t, %t {causal = false, scale = 0.25, sequence = 32, sequence_axes = ["cp"]} : (tensor<2x8x6x16xf32>, tensor<2x32x2x16xf32>, tensor<2x32x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{attention_grad {causal = true, scale = 2.500000e-01 : f64, sequence = 32 : i64, sequence_axes = ["cp"], zigzag = 4 : i64} flops 245760.}}
  %5:3 = dtc.attention_grad %q, %t, %t, %q, %l, %q {causal = true, scale = 0.25, sequence = 32, sequence_axes = ["cp"], zigzag = 4} : (tensor<2x8x6x16xf32>, tensor<2x32x2x16xf32>, tensor<2x32x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x32x2x16xf32>, tensor<2x32x2x16xf32>)
  return
}

// Keys of one device. In zigzag order half of 2 x 6 heads x 8 x 8 scores of 4 x 16 operations is seen, in the order of the
// sequence half of those of a device's own keys, and all of earlier ones. A merge has operations for each element.
func.func @ring(%q: tensor<2x8x6x16xf32>, %k: tensor<2x8x2x16xf32>, %segments: tensor<2x32xi32>, %l: tensor<2x6x8xf32>, %half: tensor<2x8x6x16xbf16>) {
  // expected-remark@+1 {{attention {causal = true, key_shift = 1 : i64, scale = 2.500000e-01 : f64, sequence = 32 : i64, sequence_axes = ["cp"], zigzag = 4 : i64} flops 24576.}}
  %0:2 = dtc.attention %q, %k, %k segments %segments {causal = true, key_shift = 1, scale = 0.25, sequence = 32, sequence_axes = ["cp"], zigzag = 4} : (tensor<2x8x6x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>, tensor<2x32xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{attention {causal = true, key_shift = 0 : i64, scale = 2.500000e-01 : f64, sequence = 32 : i64, sequence_axes = ["cp"]} flops 24576.}}
  %1:2 = dtc.attention %q, %k, %k {causal = true, key_shift = 0, scale = 0.25, sequence = 32, sequence_axes = ["cp"]} : (tensor<2x8x6x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{attention {causal = true, key_shift = 1 : i64, scale = 2.500000e-01 : f64, sequence = 32 : i64, sequence_axes = ["cp"]} flops 49152.}}
  %2:2 = dtc.attention %q, %k, %k {causal = true, key_shift = 1, scale = 0.25, sequence = 32, sequence_axes = ["cp"]} : (tensor<2x8x6x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{attention_grad {causal = true, key_shift = 1 : i64, scale = 2.500000e-01 : f64, sequence = 32 : i64, sequence_axes = ["cp"]} flops 122880.}}
  %3:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q {causal = true, key_shift = 1, scale = 0.25, sequence = 32, sequence_axes = ["cp"]} : (tensor<2x8x6x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>)
  // expected-remark@+1 {{merge_attention {} 0=>0 flops 1536.}}
  %4:2 = dtc.merge_attention %q, %l, %half, %l : (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xbf16>, tensor<2x6x8xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// The mask of attention is over [batch, heads, queries, keys]. The number of operations is that without dropout.
func.func @attention_dropout(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %key: tensor<2xi32>) {
  // expected-remark@+1 {{attention {causal = true, dropout = 5.000000e-01 : f64, op = 7 : i64, scale = 2.500000e-01 : f64, shape = array<i64: 2, 6, 8, 9>, sharding = ["", "", "", ""]} flops 27648.}}
  %out, %lse = dtc.attention %q, %k, %k key %key {causal = true, scale = 0.25, dropout = 0.5, number = 7} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{attention_grad {causal = true, dropout = 5.000000e-01 : f64, op = 7 : i64, scale = 2.500000e-01 : f64, shape = array<i64: 4, 12, 8, 9>, sharding = ["dp", "tp", "", ""]} flops 69120.}}
  %dq, %dk, %dv = dtc.attention_grad %q, %k, %k, %out, %lse, %q key %key {causal = true, scale = 0.25, dropout = 0.5, number = 7, shape = array<i64: 4, 12, 8, 9>, sharding = ["dp", "tp", "", ""]} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>, tensor<2xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// A kernel gets the attributes of its op about the result.
func.func @smoothing(%logits: tensor<4x32xf32>, %labels: tensor<4xi32>, %x: tensor<4xf32>) {
  // expected-remark@+1 {{cross_entropy {label_smoothing = 1.000000e-01 : f64} flops 128.}}
  %0:2 = dtc.cross_entropy %logits, %labels {label_smoothing = 0.1} : (tensor<4x32xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  // expected-remark@+1 {{cross_entropy_grad {classes = 64 : i64, label_smoothing = 1.000000e-01 : f64} 0=>0 flops 128.}}
  %1 = dtc.cross_entropy_grad %logits, %labels, %x, %x {label_smoothing = 0.1, classes = 64} : (tensor<4x32xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x32xf32>
  return
}

// Kernels that go on from a position.
func.func @cache(%cache: tensor<4x32x2x8xf32>, %rows: tensor<4x3x2x8xf32>, %q: tensor<4x3x6x8xf32>, %x: tensor<4x32x16xf32>, %positions: tensor<4xi32>) {
  // expected-remark@+1 {{cache_update {} 0=>0 flops 2048.}}
  %0 = dtc.cache_update %cache, %rows, %positions : (tensor<4x32x2x8xf32>, tensor<4x3x2x8xf32>, tensor<4xi32>) -> tensor<4x32x2x8xf32>
  // expected-remark@+1 {{cached_attention {scale = 2.500000e-01 : f64} flops 36864.}}
  %1 = dtc.cached_attention %q, %cache, %cache, %positions {scale = 0.25} : (tensor<4x3x6x8xf32>, tensor<4x32x2x8xf32>, tensor<4x32x2x8xf32>, tensor<4xi32>) -> tensor<4x3x6x8xf32>
  // expected-remark@+1 {{select_row {} flops 2048.}}
  %2 = dtc.select_row %x, %positions : (tensor<4x32x16xf32>, tensor<4xi32>) -> tensor<4x1x16xf32>
  // expected-remark@+1 {{rotary {inverse = false, theta = 1.000000e+04 : f64} 0=>0 flops 576.}}
  %3 = dtc.rotary %q from %positions : tensor<4xi32> {inverse = false, theta = 1.0e4} : tensor<4x3x6x8xf32>
  return
}
