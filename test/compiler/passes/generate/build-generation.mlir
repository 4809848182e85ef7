// RUN: dtc-opt %s --dtc-build-generation --split-input-file | FileCheck %s --check-prefix=PREFILL
// RUN: dtc-opt %s --dtc-build-generation=phase=decode --split-input-file | FileCheck %s --check-prefix=DECODE

// A layer of attention with a table of positions, whose first rows the model uses, a norm, residuals and dropout.
// The prefill takes all positions as far as attention, and one after it; keys and values begin at position 0.
// PREFILL-LABEL: func.func @prefill
// PREFILL-SAME: %[[WTE:[^:]*]]: tensor<64x16xf32> {dtc.axes = ["vocab", ""], dtc.param = "wte"}
// PREFILL-SAME: %[[TOKENS:[^:]*]]: tensor<4x24xi32> {dtc.axes = ["batch", "sequence"], dtc.input = "tokens"}
// PREFILL-SAME: %[[POSITIONS:[^:]*]]: tensor<4xi32> {dtc.axes = ["batch"], dtc.input = "positions"}
// PREFILL-SAME: %[[KEYS:[^:]*]]: tensor<4x24x2x8xf32> {dtc.cache = "h.0.attn.keys"}
// PREFILL-SAME: %[[VALUES:[^:]*]]: tensor<4x24x2x8xf32> {dtc.cache = "h.0.attn.values"}
// PREFILL-SAME: -> (tensor<4x1x64xf32> {dtc.output = "logits"}, tensor<4x24x2x8xf32> {dtc.updates = 6 : i64}, tensor<4x24x2x8xf32> {dtc.updates = 7 : i64})
// PREFILL-NOT: dropout
// PREFILL: dtc.embedding %[[WTE]], %[[TOKENS]]
// PREFILL: %[[X:.*]] = dtc.add {{.*}} : tensor<4x24x16xf32>
// PREFILL: %[[Q:.*]] = dtc.einsum "bsc,chd->bshd"
// PREFILL: %[[R:.*]] = dtc.rotary %[[Q]] {
// PREFILL-DAG: %[[FIRST:.*]] = dtc.constant dense<0> : tensor<4xi32>
// PREFILL-DAG: %[[K:.*]] = dtc.cache_update %[[KEYS]], %[[R]], %[[FIRST]] {dtc.op = {{[0-9]+}} : i64} :
// PREFILL-DAG: %[[V:.*]] = dtc.cache_update %[[VALUES]], %[[Q]], %[[FIRST]] {dtc.op = {{[0-9]+}} : i64} :
// PREFILL-DAG: %[[A:[^, ]*]], %{{.*}} = dtc.attention %[[R]], %[[R]], %[[Q]] {{.*}}causal = true
// PREFILL: %[[AROW:.*]] = dtc.select_row %[[A]], %[[POSITIONS]] : (tensor<4x24x2x8xf32>, tensor<4xi32>) -> tensor<4x1x2x8xf32>
// PREFILL-NEXT: %[[O:.*]] = dtc.einsum "bshd,chd->bsc" %[[AROW]]
// PREFILL-NEXT: %[[XROW:.*]] = dtc.select_row %[[X]], %[[POSITIONS]] : (tensor<4x24x16xf32>, tensor<4xi32>) -> tensor<4x1x16xf32>
// PREFILL-NEXT: %[[Y:.*]] = dtc.add %[[XROW]], %[[O]]
// PREFILL-NEXT: %[[LOGITS:.*]] = dtc.einsum "bsc,vc->bsv" %[[Y]], %[[WTE]]
// PREFILL-NEXT: return %[[LOGITS]], %[[K]], %[[V]]
//
// Decoding works on one position of each sample. It is looked up in the whole table of positions, rotary counts from it,
// and attention sees the keys of the cache, the position itself included.
// DECODE-LABEL: func.func @decode
// DECODE-SAME: %[[WTE:[^:]*]]: tensor<64x16xf32> {dtc.axes = ["vocab", ""], dtc.param = "wte"}
// DECODE-SAME: %[[WPE:[^:]*]]: tensor<32x16xf32> {dtc.param = "wpe"}
// DECODE-SAME: %[[POSITIONS:[^:]*]]: tensor<4xi32> {dtc.axes = ["batch"], dtc.input = "positions"}
// DECODE-SAME: %[[TOKENS:[^:]*]]: tensor<4x1xi32> {dtc.axes = ["batch", "sequence"], dtc.input = "tokens"}
// DECODE-SAME: %[[KEYS:[^:]*]]: tensor<4x24x2x8xf32> {dtc.cache = "h.0.attn.keys"}
// DECODE-SAME: %[[VALUES:[^:]*]]: tensor<4x24x2x8xf32> {dtc.cache = "h.0.attn.values"}
// DECODE-SAME: -> (tensor<4x1x64xf32> {dtc.output = "logits"}, tensor<4x24x2x8xf32> {dtc.updates = 6 : i64}, tensor<4x24x2x8xf32> {dtc.updates = 7 : i64})
// DECODE-NEXT: %[[IDS:.*]] = dtc.reshape %[[POSITIONS]] : (tensor<4xi32>) -> tensor<4x1xi32>
// DECODE-NEXT: %[[E:.*]] = dtc.embedding %[[WTE]], %[[TOKENS]] {dtc.op = 0 : i64}
// DECODE-NEXT: %[[P:.*]] = dtc.embedding %[[WPE]], %[[IDS]] : (tensor<32x16xf32>, tensor<4x1xi32>) -> tensor<4x1x16xf32>
// DECODE-NEXT: %[[X:.*]] = dtc.add %[[E]], %[[P]] {dtc.op = 3 : i64} : tensor<4x1x16xf32>
// DECODE-NEXT: %[[N:[^, ]*]], %{{.*}} = dtc.rms_norm %[[X]]
// DECODE-NEXT: %[[Q:.*]] = dtc.einsum "bsc,chd->bshd" %[[N]]
// DECODE-NEXT: %[[R:.*]] = dtc.rotary %[[Q]] from %[[POSITIONS]] : tensor<4xi32> {{.*}}theta = 1.000000e+04
// DECODE-NEXT: %[[K:.*]] = dtc.cache_update %[[KEYS]], %[[R]], %[[POSITIONS]]
// DECODE-NEXT: %[[V:.*]] = dtc.cache_update %[[VALUES]], %[[Q]], %[[POSITIONS]]
// DECODE-NEXT: %[[A:.*]] = dtc.cached_attention %[[R]], %[[K]], %[[V]], %[[POSITIONS]] {{.*}}scale = 2.500000e-01
// DECODE-NEXT: %[[O:.*]] = dtc.einsum "bshd,chd->bsc" %[[A]]
// DECODE-NEXT: %[[Y:.*]] = dtc.add %[[X]], %[[O]]
// DECODE-NEXT: %[[LOGITS:.*]] = dtc.einsum "bsc,vc->bsv" %[[Y]], %[[WTE]]
// DECODE-NEXT: return %[[LOGITS]], %[[K]], %[[V]]
func.func @loss(%wte: tensor<64x16xf32> {dtc.param = "wte", dtc.axes = ["vocab", ""]},
                %wpe: tensor<32x16xf32> {dtc.param = "wpe"},
                %gamma: tensor<16xf32> {dtc.param = "ln"},
                %w: tensor<16x2x8xf32> {dtc.param = "w", dtc.axes = ["", "heads", ""]},
                %tokens: tensor<4x24xi32> {dtc.input = "tokens", dtc.axes = ["batch", "sequence"]},
                %labels: tensor<4x24xi32> {dtc.input = "labels", dtc.axes = ["batch", "sequence"]},
                %key: tensor<2xi32> {dtc.scalar = "random_key"}) -> tensor<f32> {
  %e = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x24xi32>) -> tensor<4x24x16xf32>
  %rows = dtc.slice %wpe offsets [0, 0] sizes [24, 16] : (tensor<32x16xf32>) -> tensor<24x16xf32>
  %p = dtc.broadcast %rows dims [1, 2] : (tensor<24x16xf32>) -> tensor<4x24x16xf32>
  %x0 = dtc.add %e, %p : tensor<4x24x16xf32>
  %x = dtc.dropout %x0, %key {rate = 0.1, number = 0} : (tensor<4x24x16xf32>, tensor<2xi32>) -> tensor<4x24x16xf32>
  %n, %rstd = dtc.rms_norm %x, %gamma {eps = 1.0e-5} : (tensor<4x24x16xf32>, tensor<16xf32>) -> (tensor<4x24x16xf32>, tensor<4x24xf32>)
  %q = dtc.einsum "bsc,chd->bshd" %n, %w : (tensor<4x24x16xf32>, tensor<16x2x8xf32>) -> tensor<4x24x2x8xf32>
  %r = dtc.rotary %q {inverse = false, theta = 1.0e4} : tensor<4x24x2x8xf32>
  %a, %lse = dtc.attention %r, %r, %q {causal = true, scale = 0.25} : (tensor<4x24x2x8xf32>, tensor<4x24x2x8xf32>, tensor<4x24x2x8xf32>) -> (tensor<4x24x2x8xf32>, tensor<4x2x24xf32>) loc("h.0.attn")
  %o = dtc.einsum "bshd,chd->bsc" %a, %w : (tensor<4x24x2x8xf32>, tensor<16x2x8xf32>) -> tensor<4x24x16xf32>
  %y = dtc.add %x, %o : tensor<4x24x16xf32>
  %logits = dtc.einsum "bsc,vc->bsv" %y, %wte : (tensor<4x24x16xf32>, tensor<64x16xf32>) -> tensor<4x24x64xf32>
  %losses, %z = dtc.cross_entropy %logits, %labels : (tensor<4x24x64xf32>, tensor<4x24xi32>) -> (tensor<4x24xf32>, tensor<4x24xf32>)
  %loss = dtc.reduce sum %losses dims [0, 1] : (tensor<4x24xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Layers without names have caches with names of their own. What is computed of a prompt after the first attention goes
// through whole sequences where another attention needs it.
// PREFILL-LABEL: func.func @prefill
// PREFILL-SAME: {dtc.cache = "attention.keys"}
// PREFILL-SAME: {dtc.cache = "attention.values"}
// PREFILL-SAME: {dtc.cache = "attention.keys.2"}
// PREFILL-SAME: {dtc.cache = "attention.values.2"}
// PREFILL: %[[O:[^, ]*]], %{{.*}} = dtc.attention
// PREFILL: %[[O2:[^, ]*]], %{{.*}} = dtc.attention %[[O]], %[[O]]
// PREFILL: dtc.select_row %[[O2]]
// PREFILL-NOT: dtc.select_row
// PREFILL: return
// DECODE-LABEL: func.func @decode
// DECODE-SAME: {dtc.cache = "attention.keys"}
// DECODE-SAME: {dtc.cache = "attention.values"}
// DECODE-SAME: {dtc.cache = "attention.keys.2"}
// DECODE-SAME: {dtc.cache = "attention.values.2"}
// DECODE: %[[O:.*]] = dtc.cached_attention
// DECODE-NEXT: %[[K:.*]] = dtc.cache_update %{{[^,]*}}, %[[O]]
// DECODE-NEXT: %[[V:.*]] = dtc.cache_update
// DECODE-NEXT: dtc.cached_attention %[[O]], %[[K]], %[[V]]
func.func @loss(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  %q = dtc.reshape %x : (tensor<4x8x16xf32>) -> tensor<4x8x2x8xf32>
  %o, %l = dtc.attention %q, %q, %q {causal = true, scale = 0.25} : (tensor<4x8x2x8xf32>, tensor<4x8x2x8xf32>, tensor<4x8x2x8xf32>) -> (tensor<4x8x2x8xf32>, tensor<4x2x8xf32>)
  %o2, %l2 = dtc.attention %o, %o, %q {causal = true, scale = 0.25} : (tensor<4x8x2x8xf32>, tensor<4x8x2x8xf32>, tensor<4x8x2x8xf32>) -> (tensor<4x8x2x8xf32>, tensor<4x2x8xf32>)
  %y = dtc.reshape %o2 : (tensor<4x8x2x8xf32>) -> tensor<4x8x16xf32>
  %a, %lse = dtc.cross_entropy %y, %tokens : (tensor<4x8x16xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Without attention the prefill selects the tokens, and decoding has no positions where nothing depends on them. A constant
// over positions is one of one position.
// PREFILL-LABEL: func.func @prefill
// PREFILL-NEXT: %[[ROW:.*]] = dtc.select_row %{{.*}}, %{{.*}} : (tensor<4x8xi32>, tensor<4xi32>) -> tensor<4x1xi32>
// PREFILL-NEXT: %[[X:.*]] = dtc.embedding %{{.*}}, %[[ROW]]
// PREFILL: dtc.constant {{.*}}dense<2.000000e+00> : tensor<4x1x16xf32>
// PREFILL: return
// DECODE-LABEL: func.func @decode
// DECODE-NOT: positions
// DECODE: dtc.constant {{.*}}dense<2.000000e+00> : tensor<4x1x16xf32>
// DECODE: dtc.mul {{.*}} : tensor<4x1x16xf32>
func.func @loss(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  %two = dtc.constant dense<2.0> : tensor<4x8x16xf32>
  %y = dtc.mul %x, %two : tensor<4x8x16xf32>
  %a, %lse = dtc.cross_entropy %y, %tokens : (tensor<4x8x16xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A parameter that has a row for each sample and position.
// PREFILL-LABEL: func.func @prefill
// PREFILL-SAME: %[[P:[^:]*]]: tensor<4x8x16xf32> {dtc.param = "p"}
// PREFILL: dtc.select_row %[[P]], %{{.*}} : (tensor<4x8x16xf32>, tensor<4xi32>) -> tensor<4x1x16xf32>
// DECODE-LABEL: func.func @decode
// DECODE-SAME: %[[P:[^:]*]]: tensor<4x8x16xf32> {dtc.param = "p"}
// DECODE: dtc.select_row %[[P]], %{{.*}} : (tensor<4x8x16xf32>, tensor<4xi32>) -> tensor<4x1x16xf32>
func.func @loss(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %p: tensor<4x8x16xf32> {dtc.param = "p"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  %y = dtc.add %x, %p : tensor<4x8x16xf32>
  %a, %lse = dtc.cross_entropy %y, %tokens : (tensor<4x8x16xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A sink is one score more for each query of its head, in both phases.
// PREFILL-LABEL: func.func @prefill
// PREFILL-SAME: %[[SINKS:[^:]*]]: tensor<2xf32> {dtc.param = "sinks"}
// PREFILL: dtc.attention %[[Q:[^,]*]], %[[Q]], %[[Q]] sinks %[[SINKS]] {
//
// DECODE-LABEL: func.func @decode
// DECODE-SAME: %[[SINKS:[^:]*]]: tensor<2xf32> {dtc.param = "sinks"}
// DECODE: dtc.cached_attention {{.*}} sinks %[[SINKS]] {dtc.op = 2 : i64, scale = 2.500000e-01 : f64, window = 3 : i64}
func.func @loss(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %sinks: tensor<2xf32> {dtc.param = "sinks"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  %q = dtc.reshape %x : (tensor<4x8x16xf32>) -> tensor<4x8x2x8xf32>
  %o, %l = dtc.attention %q, %q, %q sinks %sinks {causal = true, scale = 0.25, window = 3} : (tensor<4x8x2x8xf32>, tensor<4x8x2x8xf32>, tensor<4x8x2x8xf32>, tensor<2xf32>) -> (tensor<4x8x2x8xf32>, tensor<4x2x8xf32>)
  %y = dtc.reshape %o : (tensor<4x8x2x8xf32>) -> tensor<4x8x16xf32>
  %a, %lse = dtc.cross_entropy %y, %tokens : (tensor<4x8x16xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Each of two experts has rows for 2 of the 8 tokens of a sequence. In a prefill it has them for all, and as many of
// them have a token as before; in decoding there is one row.
// PREFILL-LABEL: func.func @prefill
// PREFILL-SAME: %[[W:[^:]*]]: tensor<2x16x16xf32> {dtc.param = "w"}
// PREFILL-SAME: %[[BIAS:[^:]*]]: tensor<2x16xf32> {dtc.param = "bias"}
// PREFILL: %[[ROWS:.*]] = dtc.nonzero %{{.*}} {dtc.axes = ["experts", "batch", ""], dtc.op = {{[0-9]+}} : i64} : tensor<2x4x8xi1> -> tensor<2x4x8xi32>
// PREFILL: %[[X:.*]] = dtc.embedding %{{.*}}, %[[ROWS]] {{.*}} : (tensor<4x8x16xf32>, tensor<2x4x8xi32>) -> tensor<2x4x8x16xf32>
// PREFILL: %[[Y:.*]] = dtc.grouped_product "xbcd,xfd->xbcf" %[[X]], %[[W]] rows %[[ROWS]] {dtc.op = {{[0-9]+}} : i64, occupancy = 2.000000e-01 : f64} : {{.*}} -> tensor<2x4x8x16xf32>
// PREFILL: %[[B:.*]] = dtc.broadcast %[[BIAS]] dims [0, 3] {dtc.axes = ["experts", "", "", ""], dtc.op = {{[0-9]+}} : i64} : (tensor<2x16xf32>) -> tensor<2x4x8x16xf32>
// PREFILL: %[[Z:.*]] = dtc.add %[[Y]], %[[B]]
// PREFILL: %[[TWO:.*]] = dtc.constant {{.*}}dense<2.000000e+00> : tensor<2x4x8x16xf32>
// PREFILL: %[[S:.*]] = dtc.mul %[[Z]], %[[TWO]]
// PREFILL: dtc.embedding_grad %[[ROWS]], %[[S]] {{.*}} : (tensor<2x4x8xi32>, tensor<2x4x8x16xf32>) -> tensor<4x8x16xf32>
// PREFILL-NOT: tensor<2x4x2x
//
// DECODE-LABEL: func.func @decode
// DECODE: %[[ROWS:.*]] = dtc.nonzero {{.*}} : tensor<2x4x1xi1> -> tensor<2x4x1xi32>
// DECODE: dtc.grouped_product "xbcd,xfd->xbcf" %{{.*}} rows %[[ROWS]] {{.*}}occupancy = 2.000000e-01 : f64{{.*}} -> tensor<2x4x1x16xf32>
// DECODE: dtc.embedding_grad %[[ROWS]], {{.*}} -> tensor<4x1x16xf32>
// DECODE-NOT: tensor<2x4x2x
func.func @loss(%wte: tensor<64x16xf32> {dtc.param = "wte"}, %w: tensor<2x16x16xf32> {dtc.param = "w"}, %bias: tensor<2x16xf32> {dtc.param = "bias"}, %tokens: tensor<4x8xi32> {dtc.input = "tokens"}) -> tensor<f32> {
  %x = dtc.embedding %wte, %tokens : (tensor<64x16xf32>, tensor<4x8xi32>) -> tensor<4x8x16xf32>
  %gate = dtc.constant dense<0.5> : tensor<16x2xf32>
  %scores = dtc.einsum "bsd,dx->bsx" %x, %gate : (tensor<4x8x16xf32>, tensor<16x2xf32>) -> tensor<4x8x2xf32>
  %chosen = dtc.top_k %scores {k = 1} : tensor<4x8x2xf32>
  %ofExperts = dtc.transpose %chosen permutation [2, 0, 1] : (tensor<4x8x2xi1>) -> tensor<2x4x8xi1>
  %rows = dtc.nonzero %ofExperts {dtc.axes = ["experts", "batch", ""]} : tensor<2x4x8xi1> -> tensor<2x4x2xi32>
  %in = dtc.embedding %x, %rows : (tensor<4x8x16xf32>, tensor<2x4x2xi32>) -> tensor<2x4x2x16xf32>
  %y = dtc.grouped_product "xbcd,xfd->xbcf" %in, %w rows %rows {occupancy = 0.8} : (tensor<2x4x2x16xf32>, tensor<2x16x16xf32>, tensor<2x4x2xi32>) -> tensor<2x4x2x16xf32>
  %b = dtc.broadcast %bias dims [0, 3] {dtc.axes = ["experts", "", "", ""]} : (tensor<2x16xf32>) -> tensor<2x4x2x16xf32>
  %z = dtc.add %y, %b : tensor<2x4x2x16xf32>
  %two = dtc.constant dense<2.0> : tensor<2x4x2x16xf32>
  %s = dtc.mul %z, %two : tensor<2x4x2x16xf32>
  %moe = dtc.embedding_grad %rows, %s : (tensor<2x4x2xi32>, tensor<2x4x2x16xf32>) -> tensor<4x8x16xf32>
  %q = dtc.reshape %moe : (tensor<4x8x16xf32>) -> tensor<4x8x2x8xf32>
  %o, %l = dtc.attention %q, %q, %q {causal = true, scale = 0.25} : (tensor<4x8x2x8xf32>, tensor<4x8x2x8xf32>, tensor<4x8x2x8xf32>) -> (tensor<4x8x2x8xf32>, tensor<4x2x8xf32>)
  %logits = dtc.reshape %o : (tensor<4x8x2x8xf32>) -> tensor<4x8x16xf32>
  %a, %lse = dtc.cross_entropy %logits, %tokens : (tensor<4x8x16xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %loss = dtc.reduce sum %a dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
