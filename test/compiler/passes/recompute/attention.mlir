// RUN: dtc-opt %s --dtc-recompute-activations 2>/dev/null | FileCheck %s
// RUN: dtc-opt %s --dtc-recompute-activations 2>&1 >/dev/null | FileCheck %s --check-prefix REMARK

// Attention written out, and its backward pass. With 8 heads of 16 and 128 positions the scores have four times the
// bytes of their operands, at 8 floating point operations a byte; the projections take 64. So scores and softmax are
// recomputed, once, just before their readers; projections and the product with the values are not. Kept are queries,
// keys, values and the output, 4 of 64 KiB, instead of these and 512 KiB.
// REMARK: a device keeps 262144 of 786432 bytes for the backward pass and recomputes 2 ops
// CHECK-LABEL: func.func @long
// CHECK: %[[Q:.*]] = dtc.einsum "bsd,dhe->bshe" %{{[^ ]*}}, %{{[^ ]*}} {{.*}}<0 forward>
// CHECK-NEXT: %[[K:.*]] = dtc.einsum "bsd,dhe->bshe" %{{[^ ]*}}, %{{[^ ]*}} {{.*}}<0 forward>
// CHECK: dtc.softmax {{.*}}<0 forward>
// CHECK: dtc.einsum "bshe,hed->bsd" {{.*}}<0 forward>
// CHECK-NEXT: %[[DO:.*]] = dtc.einsum "bsd,hed->bshe" {{.*}}<0 backward>
// CHECK-NEXT: dtc.einsum "bshe,bsd->hed" {{.*}}<0 backward>
// CHECK-NEXT: %[[S:.*]] = dtc.einsum "bshe,bthe->bhst" %[[Q]], %[[K]] {dist.stage = #dist.stage<0 backward>}
// CHECK-NEXT: %[[P:.*]] = dtc.softmax %[[S]] {causal = true, dist.stage = #dist.stage<0 backward>, scale = 2.500000e-01 : f64}
// CHECK-NEXT: dtc.einsum "bhst,bshe->bthe" %[[P]], %[[DO]] {{.*}}<0 backward>
// CHECK-NEXT: %[[DP:.*]] = dtc.einsum "bshe,bthe->bhst" %[[DO]],
// CHECK-NEXT: dtc.softmax_grad %[[P]], %[[DP]]
// CHECK-NOT: dtc.einsum "bsd,dhe->bshe"
// CHECK-NOT: dtc.softmax %

// Of 32 positions the scores are no larger than queries and keys: their product is kept, and with it the softmax.
// REMARK: a device keeps 98304 of 98304 bytes for the backward pass and recomputes 0 ops
// CHECK-LABEL: func.func @short
// CHECK-COUNT-1: dtc.softmax %
// CHECK-NOT: dtc.softmax %
dist.mesh @mesh <"micro"=1 temporal>
func.func @long(%x: tensor<1x128x128xf32> {dtc.input = "x"}, %g: tensor<1x128x128xf32> {dtc.input = "g"}, %wq: tensor<128x8x16xf32> {dtc.param = "wq"}, %wk: tensor<128x8x16xf32> {dtc.param = "wk"}, %wv: tensor<128x8x16xf32> {dtc.param = "wv"}, %wo: tensor<8x16x128xf32> {dtc.param = "wo"}) -> (tensor<1x128x128xf32>, tensor<8x16x128xf32>, tensor<128x8x16xf32>, tensor<128x8x16xf32>, tensor<128x8x16xf32>) {
  %0:5 = dist.microbatch_loop @mesh "micro" : tensor<1x128x128xf32>, tensor<8x16x128xf32>, tensor<128x8x16xf32>, tensor<128x8x16xf32>, tensor<128x8x16xf32> {
    %q = dtc.einsum "bsd,dhe->bshe" %x, %wq {dist.stage = #dist.stage<0 forward>} : (tensor<1x128x128xf32>, tensor<128x8x16xf32>) -> tensor<1x128x8x16xf32> loc("h.0.attn")
    %k = dtc.einsum "bsd,dhe->bshe" %x, %wk {dist.stage = #dist.stage<0 forward>} : (tensor<1x128x128xf32>, tensor<128x8x16xf32>) -> tensor<1x128x8x16xf32> loc("h.0.attn")
    %v = dtc.einsum "bsd,dhe->bshe" %x, %wv {dist.stage = #dist.stage<0 forward>} : (tensor<1x128x128xf32>, tensor<128x8x16xf32>) -> tensor<1x128x8x16xf32> loc("h.0.attn")
    %s = dtc.einsum "bshe,bthe->bhst" %q, %k {dist.stage = #dist.stage<0 forward>} : (tensor<1x128x8x16xf32>, tensor<1x128x8x16xf32>) -> tensor<1x8x128x128xf32> loc("h.0.attn")
    %p = dtc.softmax %s {causal = true, dist.stage = #dist.stage<0 forward>, scale = 0.25} : tensor<1x8x128x128xf32> loc("h.0.attn")
    %o = dtc.einsum "bhst,bthe->bshe" %p, %v {dist.stage = #dist.stage<0 forward>} : (tensor<1x8x128x128xf32>, tensor<1x128x8x16xf32>) -> tensor<1x128x8x16xf32> loc("h.0.attn")
    %y = dtc.einsum "bshe,hed->bsd" %o, %wo {dist.stage = #dist.stage<0 forward>} : (tensor<1x128x8x16xf32>, tensor<8x16x128xf32>) -> tensor<1x128x128xf32> loc("h.0.attn")
    %do = dtc.einsum "bsd,hed->bshe" %g, %wo {dist.stage = #dist.stage<0 backward>} : (tensor<1x128x128xf32>, tensor<8x16x128xf32>) -> tensor<1x128x8x16xf32> loc("h.0.attn")
    %dwo = dtc.einsum "bshe,bsd->hed" %o, %g {dist.stage = #dist.stage<0 backward>} : (tensor<1x128x8x16xf32>, tensor<1x128x128xf32>) -> tensor<8x16x128xf32> loc("h.0.attn")
    %dv = dtc.einsum "bhst,bshe->bthe" %p, %do {dist.stage = #dist.stage<0 backward>} : (tensor<1x8x128x128xf32>, tensor<1x128x8x16xf32>) -> tensor<1x128x8x16xf32> loc("h.0.attn")
    %dp = dtc.einsum "bshe,bthe->bhst" %do, %v {dist.stage = #dist.stage<0 backward>} : (tensor<1x128x8x16xf32>, tensor<1x128x8x16xf32>) -> tensor<1x8x128x128xf32> loc("h.0.attn")
    %ds = dtc.softmax_grad %p, %dp {dist.stage = #dist.stage<0 backward>, scale = 0.25} : tensor<1x8x128x128xf32> loc("h.0.attn")
    %dq = dtc.einsum "bhst,bthe->bshe" %ds, %k {dist.stage = #dist.stage<0 backward>} : (tensor<1x8x128x128xf32>, tensor<1x128x8x16xf32>) -> tensor<1x128x8x16xf32> loc("h.0.attn")
    %dk = dtc.einsum "bhst,bshe->bthe" %ds, %q {dist.stage = #dist.stage<0 backward>} : (tensor<1x8x128x128xf32>, tensor<1x128x8x16xf32>) -> tensor<1x128x8x16xf32> loc("h.0.attn")
    %dwq = dtc.einsum "bsd,bshe->dhe" %x, %dq {dist.stage = #dist.stage<0 backward>} : (tensor<1x128x128xf32>, tensor<1x128x8x16xf32>) -> tensor<128x8x16xf32> loc("h.0.attn")
    %dwk = dtc.einsum "bsd,bshe->dhe" %x, %dk {dist.stage = #dist.stage<0 backward>} : (tensor<1x128x128xf32>, tensor<1x128x8x16xf32>) -> tensor<128x8x16xf32> loc("h.0.attn")
    %dwv = dtc.einsum "bsd,bshe->dhe" %x, %dv {dist.stage = #dist.stage<0 backward>} : (tensor<1x128x128xf32>, tensor<1x128x8x16xf32>) -> tensor<128x8x16xf32> loc("h.0.attn")
    dist.yield %y, %dwo, %dwq, %dwk, %dwv : tensor<1x128x128xf32>, tensor<8x16x128xf32>, tensor<128x8x16xf32>, tensor<128x8x16xf32>, tensor<128x8x16xf32>
  }
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<1x128x128xf32>, tensor<8x16x128xf32>, tensor<128x8x16xf32>, tensor<128x8x16xf32>, tensor<128x8x16xf32>
}
func.func @short(%x: tensor<1x32x128xf32> {dtc.input = "x"}, %g: tensor<1x32x128xf32> {dtc.input = "g"}, %wq: tensor<128x8x16xf32> {dtc.param = "wq"}, %wk: tensor<128x8x16xf32> {dtc.param = "wk"}, %wv: tensor<128x8x16xf32> {dtc.param = "wv"}, %wo: tensor<8x16x128xf32> {dtc.param = "wo"}) -> (tensor<1x32x128xf32>, tensor<8x16x128xf32>, tensor<128x8x16xf32>, tensor<128x8x16xf32>, tensor<128x8x16xf32>) {
  %0:5 = dist.microbatch_loop @mesh "micro" : tensor<1x32x128xf32>, tensor<8x16x128xf32>, tensor<128x8x16xf32>, tensor<128x8x16xf32>, tensor<128x8x16xf32> {
    %q = dtc.einsum "bsd,dhe->bshe" %x, %wq {dist.stage = #dist.stage<0 forward>} : (tensor<1x32x128xf32>, tensor<128x8x16xf32>) -> tensor<1x32x8x16xf32> loc("h.0.attn")
    %k = dtc.einsum "bsd,dhe->bshe" %x, %wk {dist.stage = #dist.stage<0 forward>} : (tensor<1x32x128xf32>, tensor<128x8x16xf32>) -> tensor<1x32x8x16xf32> loc("h.0.attn")
    %v = dtc.einsum "bsd,dhe->bshe" %x, %wv {dist.stage = #dist.stage<0 forward>} : (tensor<1x32x128xf32>, tensor<128x8x16xf32>) -> tensor<1x32x8x16xf32> loc("h.0.attn")
    %s = dtc.einsum "bshe,bthe->bhst" %q, %k {dist.stage = #dist.stage<0 forward>} : (tensor<1x32x8x16xf32>, tensor<1x32x8x16xf32>) -> tensor<1x8x32x32xf32> loc("h.0.attn")
    %p = dtc.softmax %s {causal = true, dist.stage = #dist.stage<0 forward>, scale = 0.25} : tensor<1x8x32x32xf32> loc("h.0.attn")
    %o = dtc.einsum "bhst,bthe->bshe" %p, %v {dist.stage = #dist.stage<0 forward>} : (tensor<1x8x32x32xf32>, tensor<1x32x8x16xf32>) -> tensor<1x32x8x16xf32> loc("h.0.attn")
    %y = dtc.einsum "bshe,hed->bsd" %o, %wo {dist.stage = #dist.stage<0 forward>} : (tensor<1x32x8x16xf32>, tensor<8x16x128xf32>) -> tensor<1x32x128xf32> loc("h.0.attn")
    %do = dtc.einsum "bsd,hed->bshe" %g, %wo {dist.stage = #dist.stage<0 backward>} : (tensor<1x32x128xf32>, tensor<8x16x128xf32>) -> tensor<1x32x8x16xf32> loc("h.0.attn")
    %dwo = dtc.einsum "bshe,bsd->hed" %o, %g {dist.stage = #dist.stage<0 backward>} : (tensor<1x32x8x16xf32>, tensor<1x32x128xf32>) -> tensor<8x16x128xf32> loc("h.0.attn")
    %dv = dtc.einsum "bhst,bshe->bthe" %p, %do {dist.stage = #dist.stage<0 backward>} : (tensor<1x8x32x32xf32>, tensor<1x32x8x16xf32>) -> tensor<1x32x8x16xf32> loc("h.0.attn")
    %dp = dtc.einsum "bshe,bthe->bhst" %do, %v {dist.stage = #dist.stage<0 backward>} : (tensor<1x32x8x16xf32>, tensor<1x32x8x16xf32>) -> tensor<1x8x32x32xf32> loc("h.0.attn")
    %ds = dtc.softmax_grad %p, %dp {dist.stage = #dist.stage<0 backward>, scale = 0.25} : tensor<1x8x32x32xf32> loc("h.0.attn")
    %dq = dtc.einsum "bhst,bthe->bshe" %ds, %k {dist.stage = #dist.stage<0 backward>} : (tensor<1x8x32x32xf32>, tensor<1x32x8x16xf32>) -> tensor<1x32x8x16xf32> loc("h.0.attn")
    %dk = dtc.einsum "bhst,bshe->bthe" %ds, %q {dist.stage = #dist.stage<0 backward>} : (tensor<1x8x32x32xf32>, tensor<1x32x8x16xf32>) -> tensor<1x32x8x16xf32> loc("h.0.attn")
    %dwq = dtc.einsum "bsd,bshe->dhe" %x, %dq {dist.stage = #dist.stage<0 backward>} : (tensor<1x32x128xf32>, tensor<1x32x8x16xf32>) -> tensor<128x8x16xf32> loc("h.0.attn")
    %dwk = dtc.einsum "bsd,bshe->dhe" %x, %dk {dist.stage = #dist.stage<0 backward>} : (tensor<1x32x128xf32>, tensor<1x32x8x16xf32>) -> tensor<128x8x16xf32> loc("h.0.attn")
    %dwv = dtc.einsum "bsd,bshe->dhe" %x, %dv {dist.stage = #dist.stage<0 backward>} : (tensor<1x32x128xf32>, tensor<1x32x8x16xf32>) -> tensor<128x8x16xf32> loc("h.0.attn")
    dist.yield %y, %dwo, %dwq, %dwk, %dwv : tensor<1x32x128xf32>, tensor<8x16x128xf32>, tensor<128x8x16xf32>, tensor<128x8x16xf32>, tensor<128x8x16xf32>
  }
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<1x32x128xf32>, tensor<8x16x128xf32>, tensor<128x8x16xf32>, tensor<128x8x16xf32>, tensor<128x8x16xf32>
}
