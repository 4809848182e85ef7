// RUN: dtc-opt %s --test-print-sharding-rules --verify-diagnostics
//
// A rule reads as an einsum: the letters are factors, "(bc)" is a dimension of two factors, "()" one of none. Then come
// the size of each factor, the sets of operands in which the op is linear, the operands that hold indices into a factor.

func.func @elementwise(%x: tensor<4x8xf32>, %s: tensor<f32>, %c: tensor<4x8xi1>) {
  // expected-remark@+1 {{ab->ab a=4 b=8 linear {0}.}}
  %neg = dtc.neg %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab->ab a=4 b=8.}}
  %abs = dtc.abs %x : tensor<4x8xf32>
  // expected-remark@+1 {{->.}}
  %exp = dtc.exp %s : tensor<f32>
  // expected-remark@+1 {{ab->ab a=4 b=8.}}
  %log = dtc.log %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab->ab a=4 b=8.}}
  %sqrt = dtc.sqrt %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab->ab a=4 b=8.}}
  %rsqrt = dtc.rsqrt %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab->ab a=4 b=8.}}
  %tanh = dtc.tanh %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab->ab a=4 b=8.}}
  %sigmoid = dtc.sigmoid %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab->ab a=4 b=8.}}
  %softplus = dtc.softplus %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab->ab a=4 b=8.}}
  %relu = dtc.relu %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab->ab a=4 b=8.}}
  %silu = dtc.silu %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab->ab a=4 b=8.}}
  %gelu = dtc.gelu tanh %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab->ab a=4 b=8 linear {0}.}}
  %convert0 = dtc.convert %x : (tensor<4x8xf32>) -> tensor<4x8xf64>
  // expected-remark@+1 {{ab->ab a=4 b=8.}}
  %convert1 = dtc.convert %x : (tensor<4x8xf32>) -> tensor<4x8xi32>
  // expected-remark@+1 {{ab->ab a=4 b=8.}}
  %convert2 = dtc.convert %c : (tensor<4x8xi1>) -> tensor<4x8xf32>
  // expected-remark@+1 {{ab,ab->ab a=4 b=8 linear {0, 1}.}}
  %add = dtc.add %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab,ab->ab a=4 b=8 linear {0, 1}.}}
  %sub = dtc.sub %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab,ab->ab a=4 b=8 linear {0} {1}.}}
  %mul = dtc.mul %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab,ab->ab a=4 b=8 linear {0}.}}
  %div = dtc.div %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab,ab->ab a=4 b=8.}}
  %maximum = dtc.maximum %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab,ab->ab a=4 b=8.}}
  %minimum = dtc.minimum %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab,ab->ab a=4 b=8.}}
  %compare = dtc.compare lt %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab,ab,ab->ab a=4 b=8 linear {1, 2}.}}
  %select = dtc.select %c, %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab,ab->ab a=4 b=8 linear {1}.}}
  %silu_grad = dtc.silu_grad %x, %x : tensor<4x8xf32>
  // expected-remark@+1 {{ab,ab->ab a=4 b=8 linear {1}.}}
  %gelu_grad = dtc.gelu_grad tanh %x, %x : tensor<4x8xf32>
  return
}

func.func @shape(%x: tensor<2x3x4xf32>, %s: tensor<f32>, %z: tensor<2x12x4xf32>) {
  // expected-remark@+1 {{->ab a=4 b=8.}}
  %constant0 = dtc.constant dense<1.0> : tensor<4x8xf32>
  // expected-remark@+1 {{->a a=2 whole.}}
  %constant1 = dtc.constant dense<[1.0, 2.0]> : tensor<2xf32>
  // expected-remark@+1 {{->a a=4.}}
  %constant2 = dtc.constant dense<true> : tensor<4xi1>
  // expected-remark@+1 {{->.}}
  %constant3 = dtc.constant dense<-7> : tensor<i32>
  // expected-remark@+1 {{acd->abcd a=2 b=5 c=3 d=4 linear {0}.}}
  %broadcast0 = dtc.broadcast %x dims [0, 2, 3] : (tensor<2x3x4xf32>) -> tensor<2x5x3x4xf32>
  // expected-remark@+1 {{->a a=5 linear {0}.}}
  %broadcast1 = dtc.broadcast %s dims [] : (tensor<f32>) -> tensor<5xf32>
  // expected-remark@+1 {{abc->cab a=2 b=3 c=4 linear {0}.}}
  %transpose = dtc.transpose %x permutation [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  // A shard of the dimension is no shard of the result's.
  // expected-remark@+1 {{abd->acd a=2 b=12 whole c=12 whole d=4 linear {0}.}}
  %zigzag = dtc.zigzag %z {dim = 1, inverse = false, parts = 3} : tensor<2x12x4xf32>
  return
}

// Both shapes are split into their coarsest common factors.
func.func @reshape(%a: tensor<16x768xf32>, %b: tensor<16x12x64xf32>, %c: tensor<6x4xf32>, %d: tensor<5x6x4xf32>,
                   %e: tensor<4x9xf32>, %f: tensor<1x16x1xf32>, %g: tensor<4x6x1x10x2xf32>) {
  // expected-remark@+1 {{a(bc)->abc a=16 b=12 c=64 linear {0}.}}
  %split = dtc.reshape %a : (tensor<16x768xf32>) -> tensor<16x12x64xf32>
  // expected-remark@+1 {{abc->a(bc) a=16 b=12 c=64 linear {0}.}}
  %merge = dtc.reshape %b : (tensor<16x12x64xf32>) -> tensor<16x768xf32>
  // expected-remark@+1 {{abc->(abc) a=16 b=12 c=64 linear {0}.}}
  %merge_all = dtc.reshape %b : (tensor<16x12x64xf32>) -> tensor<12288xf32>
  // expected-remark@+1 {{(ab)c->a(bc) a=2 b=3 c=4 linear {0}.}}
  %regroup = dtc.reshape %c : (tensor<6x4xf32>) -> tensor<2x12xf32>
  // The halves of 6 and 4 are the same blocks, 3x4 and 2x6 have no boundary in common.
  // expected-remark@+1 {{(ab)e->(ac)d a=2 b=3 whole c=2 whole d=6 whole e=4 whole linear {0}.}}
  %no_boundary = dtc.reshape %c : (tensor<6x4xf32>) -> tensor<4x6xf32>
  // expected-remark@+1 {{a(bc)f->a(bd)e a=5 b=2 c=3 whole d=2 whole e=6 whole f=4 whole linear {0}.}}
  %no_boundary_inside = dtc.reshape %d : (tensor<5x6x4xf32>) -> tensor<5x4x6xf32>
  // expected-remark@+1 {{ac->bd a=4 whole b=9 whole c=9 whole d=4 whole linear {0}.}}
  %no_divisor = dtc.reshape %e : (tensor<4x9xf32>) -> tensor<9x4xf32>
  // expected-remark@+1 {{()(ab)()->a()b a=4 b=4 linear {0}.}}
  %ones = dtc.reshape %f : (tensor<1x16x1xf32>) -> tensor<4x1x4xf32>
  // expected-remark@+1 {{ad()(ef)g->bce(fg) a=4 whole b=3 whole c=8 whole d=6 whole e=5 f=2 g=2 linear {0}.}}
  %after = dtc.reshape %g : (tensor<4x6x1x10x2xf32>) -> tensor<3x8x5x4xf32>
  return
}

func.func @block(%x: tensor<4x8xf32>, %y: tensor<4x2xf32>) {
  // expected-remark@+1 {{ab->ac a=4 b=8 whole c=3 whole linear {0}.}}
  %slice = dtc.slice %x offsets [0, 2] sizes [4, 3] : (tensor<4x8xf32>) -> tensor<4x3xf32>
  // expected-remark@+1 {{ab->ac a=4 b=8 whole c=9 whole linear {0}.}}
  %pad0 = dtc.pad %x low [0, 1] high [0, 0] value 0.0 : (tensor<4x8xf32>) -> tensor<4x9xf32>
  // expected-remark@+1 {{ac->bc a=4 whole b=6 whole c=8.}}
  %pad1 = dtc.pad %x low [0, 0] high [2, 0] value 1.0 : (tensor<4x8xf32>) -> tensor<6x8xf32>
  // expected-remark@+1 {{ac,ad->ab a=4 b=10 whole c=8 whole d=2 whole linear {0, 1}.}}
  %concat = dtc.concat %x, %y dim 1 : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
  return
}

func.func @contraction(%x: tensor<16x128x64xf32>, %w: tensor<64x256xf32>, %s: tensor<f32>) {
  // expected-remark@+1 {{abc,cd->abd a=16 b=128 c=64 sum d=256 linear {0} {1}.}}
  %matmul = dtc.einsum "bsd,df->bsf" %x, %w : (tensor<16x128x64xf32>, tensor<64x256xf32>) -> tensor<16x128x256xf32>
  // expected-remark@+1 {{abc,abc->ba a=16 b=128 c=64 sum linear {0} {1}.}}
  %batched = dtc.einsum "bsd,bsd->sb" %x, %x : (tensor<16x128x64xf32>, tensor<16x128x64xf32>) -> tensor<128x16xf32>
  // expected-remark@+1 {{,-> linear {0} {1}.}}
  %scalars = dtc.einsum ",->" %s, %s : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // expected-remark@+1 {{abc->b a=16 sum b=128 c=64 sum linear {0}.}}
  %sum = dtc.reduce sum %x dims [0, 2] : (tensor<16x128x64xf32>) -> tensor<128xf32>
  // expected-remark@+1 {{abc->ac a=16 b=128 max c=64.}}
  %max = dtc.reduce max %x dims [1] : (tensor<16x128x64xf32>) -> tensor<16x64xf32>
  // expected-remark@+1 {{abc->bc a=16 min b=128 c=64.}}
  %min = dtc.reduce min %x dims [0] : (tensor<16x128x64xf32>) -> tensor<128x64xf32>
  return
}

func.func @grouped_product(%x: tensor<4x2x3x8xf32>, %y: tensor<4x2x3x5xf32>, %w: tensor<4x5x8xf32>, %rows: tensor<4x2x3xi32>) {
  // expected-remark@+1 {{abcd,aed,abc->abce a=4 b=2 c=3 d=8 sum e=5 linear {0} {1}.}}
  %kept = dtc.grouped_product "xbcd,xfd->xbcf" %x, %w rows %rows : (tensor<4x2x3x8xf32>, tensor<4x5x8xf32>, tensor<4x2x3xi32>) -> tensor<4x2x3x5xf32>
  // expected-remark@+1 {{abcd,abce,abc->aed a=4 b=2 sum c=3 sum d=8 e=5 linear {0} {1}.}}
  %summed = dtc.grouped_product "xbcd,xbcf->xfd" %x, %y rows %rows : (tensor<4x2x3x8xf32>, tensor<4x2x3x5xf32>, tensor<4x2x3xi32>) -> tensor<4x5x8xf32>
  return
}

func.func @conv(%x: tensor<8x3x32x30xf32>, %w: tensor<16x3x3x5xf32>, %dy: tensor<8x16x16x30xf32>, %g: tensor<8x2x3x9xf32>, %v: tensor<2x4x3x5xf32>) {
  // expected-remark@+1 {{abcd,ebfg->aehi a=8 b=3 sum c=32 whole d=30 whole e=16 f=3 whole g=5 whole h=16 whole i=30 whole linear {0} {1}.}}
  %conv = dtc.conv %x, %w strides [2, 1] padding [1, 2] dilations [1, 1] : (tensor<8x3x32x30xf32>, tensor<16x3x3x5xf32>) -> tensor<8x16x16x30xf32>
  // expected-remark@+1 {{abcd,befg->aehi a=8 b=16 sum c=16 whole d=30 whole e=3 f=3 whole g=5 whole h=32 whole i=30 whole linear {0} {1}.}}
  %input = dtc.conv_input_grad %dy, %w strides [2, 1] padding [1, 2] dilations [1, 1] : (tensor<8x16x16x30xf32>, tensor<16x3x3x5xf32>) -> tensor<8x3x32x30xf32>
  // expected-remark@+1 {{abcd,aefg->ebhi a=8 sum b=3 c=32 whole d=30 whole e=16 f=16 whole g=30 whole h=3 whole i=5 whole linear {0} {1}.}}
  %weight = dtc.conv_weight_grad %x, %dy strides [2, 1] padding [1, 2] dilations [1, 1] : (tensor<8x3x32x30xf32>, tensor<8x16x16x30xf32>) -> tensor<16x3x3x5xf32>
  // expected-remark@+1 {{abcd,becf->abeg a=8 b=2 c=3 sum d=9 whole e=4 f=5 whole g=5 whole linear {0} {1}.}}
  %groups = dtc.conv %g, %v strides [1] padding [0] dilations [1] : (tensor<8x2x3x9xf32>, tensor<2x4x3x5xf32>) -> tensor<8x2x4x5xf32>
  return
}

func.func @max_pool(%x: tensor<8x3x32x30xf32>, %dy: tensor<8x3x16x28xf32>) {
  // expected-remark@+1 {{abcd->abef a=8 b=3 c=32 whole d=30 whole e=16 whole f=28 whole.}}
  %pool = dtc.max_pool %x window [3, 3] strides [2, 1] padding [1, 0] dilations [1, 1] : (tensor<8x3x32x30xf32>) -> tensor<8x3x16x28xf32>
  // expected-remark@+1 {{abcd,abef->abcd a=8 b=3 c=32 whole d=30 whole e=16 whole f=28 whole linear {1}.}}
  %grad = dtc.max_pool_grad %x, %dy window [3, 3] strides [2, 1] padding [1, 0] dilations [1, 1] : (tensor<8x3x32x30xf32>, tensor<8x3x16x28xf32>) -> tensor<8x3x32x30xf32>
  return
}

func.func @index(%table: tensor<256x64xf32>, %ids: tensor<4x8xi32>, %dy: tensor<4x8x64xf32>, %dz: tensor<4x8xf32>, %id: tensor<i32>) {
  // expected-remark@+1 {{ab,cd->cdb a=256 sum b=64 c=4 d=8 linear {0} indices 1: a.}}
  %embedding = dtc.embedding %table, %ids : (tensor<256x64xf32>, tensor<4x8xi32>) -> tensor<4x8x64xf32>
  // expected-remark@+1 {{ab,->b a=256 sum b=64 linear {0} indices 1: a.}}
  %embedding1 = dtc.embedding %table, %id : (tensor<256x64xf32>, tensor<i32>) -> tensor<64xf32>
  // expected-remark@+1 {{ab,abc->dc a=4 sum b=8 sum c=64 d=256 linear {1} indices 0: d.}}
  %embedding_grad = dtc.embedding_grad %ids, %dy : (tensor<4x8xi32>, tensor<4x8x64xf32>) -> tensor<256x64xf32>
  // expected-remark@+1 {{abc,ab->ab a=4 b=8 c=64 sum linear {0} indices 1: c.}}
  %pick = dtc.pick %dy, %ids : (tensor<4x8x64xf32>, tensor<4x8xi32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{ab,ab->abc a=4 b=8 c=64 linear {1} indices 0: c.}}
  %pick_grad = dtc.pick_grad %ids, %dz : (tensor<4x8xi32>, tensor<4x8xf32>) -> tensor<4x8x64xf32>
  return
}

// Where samples have tables of their own, they are split alike in all operands; the rows of a table
// are split as those of one table.
func.func @batched_index(%tables: tensor<4x16x64xf32>, %rows: tensor<2x4x8xi32>, %dy: tensor<2x4x8x64xf32>, %nested: tensor<2x4x16x64xf32>) {
  // expected-remark@+1 {{abc,dae->daec a=4 b=16 sum c=64 d=2 e=8 linear {0} indices 1: b.}}
  %embedding = dtc.embedding %tables, %rows : (tensor<4x16x64xf32>, tensor<2x4x8xi32>) -> tensor<2x4x8x64xf32>
  // expected-remark@+1 {{abcd,abe->abed a=2 b=4 c=16 sum d=64 e=8 linear {0} indices 1: c.}}
  %embedding1 = dtc.embedding %nested, %rows : (tensor<2x4x16x64xf32>, tensor<2x4x8xi32>) -> tensor<2x4x8x64xf32>
  // expected-remark@+1 {{abc,abcd->bed a=2 sum b=4 c=8 sum d=64 e=16 linear {1} indices 0: e.}}
  %embedding_grad = dtc.embedding_grad %rows, %dy : (tensor<2x4x8xi32>, tensor<2x4x8x64xf32>) -> tensor<4x16x64xf32>
  // expected-remark@+1 {{abc,abcd->abed a=2 b=4 c=8 sum d=64 e=16 linear {1} indices 0: e.}}
  %embedding_grad1 = dtc.embedding_grad %rows, %dy : (tensor<2x4x8xi32>, tensor<2x4x8x64xf32>) -> tensor<2x4x16x64xf32>
  return
}

// Rows are ordered and searched whole.
func.func @rows(%x: tensor<4x8x6xf32>, %row: tensor<6xf32>, %mask: tensor<4x8x6xi1>) {
  // expected-remark@+1 {{abc->abc a=4 b=8 c=6 whole.}}
  %top_k = dtc.top_k %x {k = 2} : tensor<4x8x6xf32>
  // expected-remark@+1 {{a->a a=6 whole.}}
  %top_k1 = dtc.top_k %row {k = 2} : tensor<6xf32>
  // expected-remark@+1 {{abc->abd a=4 b=8 c=6 whole d=5 whole.}}
  %nonzero = dtc.nonzero %mask : tensor<4x8x6xi1> -> tensor<4x8x5xi32>
  return
}

func.func @norm(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>, %m: tensor<2x3xf32>) {
  // expected-remark@+1 {{abc->abc a=2 b=3 c=8 whole.}}
  %softmax = dtc.softmax %x : tensor<2x3x8xf32>
  // expected-remark@+1 {{abc,abc->abc a=2 b=3 c=8 whole linear {1}.}}
  %softmax_grad = dtc.softmax_grad %x, %x : tensor<2x3x8xf32>
  // Which columns a row sees depends on its number; the gradient is 0 where the result is.
  // expected-remark@+1 {{abc->abc a=2 b=3 whole c=8 whole.}}
  %causal = dtc.softmax %x {causal = true, scale = 0.5} : tensor<2x3x8xf32>
  // expected-remark@+1 {{abc,abc->abc a=2 b=3 c=8 whole linear {1}.}}
  %causal_grad = dtc.softmax_grad %x, %x {scale = 0.5} : tensor<2x3x8xf32>
  // expected-remark@+1 {{abc,c,c->abc,ab,ab a=2 b=3 c=8 whole.}}
  %0:3 = dtc.layer_norm %x, %w, %w {eps = 1.0e-5} : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  // expected-remark@+1 {{abc,c,ab,ab,abc->abc,c,c a=2 sum b=3 sum c=8 whole linear {4}.}}
  %1:3 = dtc.layer_norm_grad %x, %w, %m, %m, %x : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32>)
  // expected-remark@+1 {{abc,c->abc,ab a=2 b=3 c=8 whole.}}
  %2:2 = dtc.rms_norm %x, %w {eps = 1.0e-5} : (tensor<2x3x8xf32>, tensor<8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>)
  // expected-remark@+1 {{abc,c,ab,abc->abc,c a=2 sum b=3 sum c=8 whole linear {3}.}}
  %3:2 = dtc.rms_norm_grad %x, %w, %m, %x : (tensor<2x3x8xf32>, tensor<8xf32>, tensor<2x3xf32>, tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<8xf32>)
  return
}

func.func @fused(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %logits: tensor<4x8x32xf32>, %labels: tensor<4x8xi32>) {
  // expected-remark@+1 {{abcd->abcd a=2 b=8 c=6 d=16 whole linear {0}.}}
  %rotary = dtc.rotary %q {inverse = false, theta = 1.0e4} : tensor<2x8x6x16xf32>
  // Six heads of queries are two heads of keys times three queries each.
  // expected-remark@+1 {{ab(cd)e,afce,afce->ab(cd)e,a(cd)b a=2 b=8 c=2 d=3 e=16 whole f=9 whole.}}
  %out, %lse = dtc.attention %q, %k, %k {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{ab(cd)e,afce,afce,ab(cd)e,a(cd)b,ab(cd)e->ab(cd)e,afce,afce a=2 b=8 sum c=2 d=3 sum e=16 whole f=9 whole linear {5}.}}
  %dq, %dk, %dv = dtc.attention_grad %q, %k, %k, %out, %lse, %q {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  // expected-remark@+1 {{abc,ab->ab,ab a=4 b=8 c=32 whole.}}
  %loss, %lse1 = dtc.cross_entropy %logits, %labels : (tensor<4x8x32xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  // expected-remark@+1 {{abc,ab,ab,ab->abc a=4 b=8 c=32 linear {3} indices 1: c.}}
  %dlogits = dtc.cross_entropy_grad %logits, %labels, %lse1, %loss : (tensor<4x8x32xf32>, tensor<4x8xi32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8x32xf32>
  return
}

func.func @optimizer(%p: tensor<4x8xf32>, %s: tensor<f32>, %ap: tensor<i1>) {
  // expected-remark@+1 {{ab,ab,ab,ab,,,,->ab,ab,ab a=4 b=8.}}
  %0:3 = dtc.adamw %p, %p, %p, %p, %s, %s, %s, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  // expected-remark@+1 {{ab,ab,ab,,,->ab,ab a=4 b=8.}}
  %1:2 = dtc.sgd %p, %p, %p, %s, %s, %ap {momentum = 0.9, weight_decay = 0.0} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  // expected-remark@+1 {{,,,,,->,.}}
  %2:2 = dtc.sgd %s, %s, %s, %s, %s, %ap {momentum = 0.9, weight_decay = 0.0} : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<f32>, tensor<f32>)
  // expected-remark@+1 {{ab,ab,ab,ab,,,,->ab,ab,ab a=4 b=8.}}
  %3:3 = dtc.adam %p, %p, %p, %p, %s, %s, %s, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  // expected-remark@+1 {{ab,ab,ab,,,->ab,ab a=4 b=8.}}
  %4:2 = dtc.lion %p, %p, %p, %s, %s, %ap {beta1 = 0.9, beta2 = 0.99, weight_decay = 0.0} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// Each element is dropped on its own: every dimension may be split, and the mask of a sum over devices is the same on each
// of them. The key is whole everywhere.
func.func @random(%x: tensor<4x8xf32>, %key: tensor<2xi32>) {
  // expected-remark@+1 {{ab,c->ab a=4 b=8 c=2 whole linear {0}.}}
  %dropout = dtc.dropout %x, %key {number = 0, rate = 0.5} : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<4x8xf32>
  return
}

// Segments lie as the keys do. Positions of each row let rows be apart.
func.func @attention_segments(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %segments: tensor<2x9xi32>, %key: tensor<2xi32>, %positions: tensor<2x8xi32>) {
  // expected-remark@+1 {{ab(cd)e,afce,afce,af->ab(cd)e,a(cd)b a=2 b=8 c=2 d=3 e=16 whole f=9 whole.}}
  %out, %lse = dtc.attention %q, %k, %k segments %segments {causal = false, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{ab(cd)e,afce,afce,af,g->ab(cd)e,a(cd)b a=2 b=8 c=2 d=3 e=16 whole f=9 whole g=2 whole.}}
  %0:2 = dtc.attention %q, %k, %k segments %segments key %key {causal = true, dropout = 0.5, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9xi32>, tensor<2xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{ab(cd)e,afce,afce,ab(cd)e,a(cd)b,ab(cd)e,af->ab(cd)e,afce,afce a=2 b=8 sum c=2 d=3 sum e=16 whole f=9 whole linear {5}.}}
  %dq, %dk, %dv = dtc.attention_grad %q, %k, %k, %out, %lse, %q segments %segments {causal = false, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>, tensor<2x9xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  // expected-remark@+1 {{abcd,ab->abcd a=2 b=8 c=6 d=16 whole linear {0}.}}
  %rotary = dtc.rotary %q from %positions : tensor<2x8xi32> {inverse = false, theta = 1.0e4} : tensor<2x8x6x16xf32>
  return
}

// The queries can be split in any order, and a shard of them again.
func.func @attention_order(%q: tensor<2x8x6x16xf32>, %k: tensor<2x16x2x16xf32>) {
  // expected-remark@+1 {{abcd->abcd a=2 b=8 c=6 d=16 whole linear {0}.}}
  %rotary = dtc.rotary %q {inverse = false, theta = 1.0e4, zigzag = 2} : tensor<2x8x6x16xf32>
  // expected-remark@+1 {{ab(cd)e,afce,afce->ab(cd)e,a(cd)b a=2 b=8 c=2 d=3 e=16 whole f=16 whole.}}
  %out, %lse = dtc.attention %q, %k, %k {causal = true, scale = 0.25, sequence = 16, sequence_axes = ["cp"], zigzag = 2} : (tensor<2x8x6x16xf32>, tensor<2x16x2x16xf32>, tensor<2x16x2x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// Keys that lie as the queries do are split with them; their segments are not, as these are those of the sequence.
func.func @ring(%q: tensor<2x8x6x16xf32>, %k: tensor<2x8x2x16xf32>, %segments: tensor<2x32xi32>, %l: tensor<2x6x8xf32>, %half: tensor<2x8x6x16xbf16>) {
  // expected-remark@+1 {{ab(cd)e,abce,abce,af->ab(cd)e,a(cd)b a=2 b=8 c=2 d=3 e=16 whole f=32 whole.}}
  %0:2 = dtc.attention %q, %k, %k segments %segments {causal = true, key_shift = 1, scale = 0.25, sequence = 32, sequence_axes = ["cp"], zigzag = 4} : (tensor<2x8x6x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>, tensor<2x32xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{ab(cd)e,abce,abce,ab(cd)e,a(cd)b,ab(cd)e->ab(cd)e,abce,abce a=2 b=8 c=2 d=3 sum e=16 whole linear {5}.}}
  %1:3 = dtc.attention_grad %q, %k, %k, %q, %l, %q {causal = true, key_shift = 0, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>)
  // expected-remark@+1 {{abcd,acb,abcd,acb->abcd,acb a=2 b=8 c=6 d=16 whole.}}
  %2:2 = dtc.merge_attention %q, %l, %half, %l : (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xbf16>, tensor<2x6x8xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// A key is one more operand of attention, and changes nothing else.
func.func @attention_dropout(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %key: tensor<2xi32>) {
  // expected-remark@+1 {{ab(cd)e,afce,afce,g->ab(cd)e,a(cd)b a=2 b=8 c=2 d=3 e=16 whole f=9 whole g=2 whole.}}
  %out, %lse = dtc.attention %q, %k, %k key %key {causal = true, scale = 0.25, dropout = 0.5} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{ab(cd)e,afce,afce,ab(cd)e,a(cd)b,ab(cd)e,g->ab(cd)e,afce,afce a=2 b=8 sum c=2 d=3 sum e=16 whole f=9 whole g=2 whole linear {5}.}}
  %dq, %dk, %dv = dtc.attention_grad %q, %k, %k, %out, %lse, %q key %key {causal = true, scale = 0.25, dropout = 0.5} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x8x6x16xf32>, tensor<2x6x8xf32>, tensor<2x8x6x16xf32>, tensor<2xi32>) -> (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>)
  return
}

// Sinks are split with the heads of queries, and are the last operand.
func.func @attention_sinks(%q: tensor<2x8x6x16xf32>, %k: tensor<2x9x2x16xf32>, %t: tensor<2x8x2x16xf32>, %sinks: tensor<6xf32>, %segments: tensor<2x9xi32>, %key: tensor<2xi32>) {
  // expected-remark@+1 {{ab(cd)e,afce,afce,(cd)->ab(cd)e,a(cd)b a=2 b=8 c=2 d=3 e=16 whole f=9 whole.}}
  %0:2 = dtc.attention %q, %k, %k sinks %sinks {causal = true, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<6xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{ab(cd)e,afce,afce,af,g,(cd)->ab(cd)e,a(cd)b a=2 b=8 c=2 d=3 e=16 whole f=9 whole g=2 whole.}}
  %1:2 = dtc.attention %q, %k, %k segments %segments key %key sinks %sinks {causal = true, dropout = 0.5, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9x2x16xf32>, tensor<2x9xi32>, tensor<2xi32>, tensor<6xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  // expected-remark@+1 {{ab(cd)e,abce,abce,(cd)->ab(cd)e,a(cd)b a=2 b=8 c=2 d=3 e=16 whole.}}
  %2:2 = dtc.attention %q, %t, %t sinks %sinks {causal = true, key_shift = 0, scale = 0.25} : (tensor<2x8x6x16xf32>, tensor<2x8x2x16xf32>, tensor<2x8x2x16xf32>, tensor<6xf32>) -> (tensor<2x8x6x16xf32>, tensor<2x6x8xf32>)
  return
}

// A partial sum is complete before it is rounded to 16 bits; widening it is exact.
func.func @rounding(%x: tensor<4x8xf32>, %b: tensor<4x8xbf16>, %d: tensor<4x8xf64>) {
  // expected-remark@+1 {{ab->ab a=4 b=8.}}
  %0 = dtc.convert %x : (tensor<4x8xf32>) -> tensor<4x8xbf16>
  // expected-remark@+1 {{ab->ab a=4 b=8.}}
  %1 = dtc.convert %d : (tensor<4x8xf64>) -> tensor<4x8xf16>
  // expected-remark@+1 {{ab->ab a=4 b=8 linear {0}.}}
  %2 = dtc.convert %b : (tensor<4x8xbf16>) -> tensor<4x8xf32>
  return
}

// Decoding works on each sample, and on each head, alone; along a sequence everything is whole.
func.func @cache(%cache: tensor<4x32x2x8xf32>, %rows: tensor<4x3x2x8xf32>, %q: tensor<4x3x6x8xf32>, %x: tensor<4x32x16xf32>, %positions: tensor<4xi32>, %sinks: tensor<6xf32>) {
  // expected-remark@+1 {{abcd,aecd,a->abcd a=4 b=32 whole c=2 d=8 e=3 whole.}}
  %0 = dtc.cache_update %cache, %rows, %positions : (tensor<4x32x2x8xf32>, tensor<4x3x2x8xf32>, tensor<4xi32>) -> tensor<4x32x2x8xf32>
  // expected-remark@+1 {{ab(cd)e,afce,afce,a->ab(cd)e a=4 b=3 whole c=2 d=3 e=8 whole f=32 whole.}}
  %1 = dtc.cached_attention %q, %cache, %cache, %positions {scale = 0.25} : (tensor<4x3x6x8xf32>, tensor<4x32x2x8xf32>, tensor<4x32x2x8xf32>, tensor<4xi32>) -> tensor<4x3x6x8xf32>
  // expected-remark@+1 {{ab(cd)e,afce,afce,a,(cd)->ab(cd)e a=4 b=3 whole c=2 d=3 e=8 whole f=32 whole.}}
  %s = dtc.cached_attention %q, %cache, %cache, %positions sinks %sinks {scale = 0.25} : (tensor<4x3x6x8xf32>, tensor<4x32x2x8xf32>, tensor<4x32x2x8xf32>, tensor<4xi32>, tensor<6xf32>) -> tensor<4x3x6x8xf32>
  // expected-remark@+1 {{abc,a->adc a=4 b=32 whole c=16 d=1 whole linear {0}.}}
  %2 = dtc.select_row %x, %positions : (tensor<4x32x16xf32>, tensor<4xi32>) -> tensor<4x1x16xf32>
  // expected-remark@+1 {{abcd,a->abcd a=4 b=3 c=6 d=8 whole linear {0}.}}
  %3 = dtc.rotary %q from %positions : tensor<4xi32> {inverse = false, theta = 1.0e4} : tensor<4x3x6x8xf32>
  return
}
