// Attention: masks of constants become attributes, heads are split in the weights, keys and values are shared, and a mask
// that depends on an input, is too large or of another form leaves attention in its parts.

// RUN: split-file %s %t
// RUN: dtc-import %t/causal.mlir 2>%t/remarks | FileCheck %s --check-prefix CAUSAL
// RUN: FileCheck %s --check-prefix REMARKS --input-file %t/remarks
// RUN: dtc-import %t/window.mlir | FileCheck %s --check-prefix WINDOW
// RUN: dtc-import %t/padding.mlir 2>&1 | FileCheck %s --check-prefix PADDING
// RUN: dtc-import %t/bias.mlir | FileCheck %s --check-prefix BIAS
// RUN: dtc-import %t/shared.mlir | FileCheck %s --check-prefix SHARED
// RUN: dtc-import %t/large.mlir 2>&1 | FileCheck %s --check-prefix LARGE
// RUN: dtc-import %t/dropout.mlir | FileCheck %s --check-prefix DROPOUT
// RUN: dtc-import %t/packed.mlir | FileCheck %s --check-prefix PACKED
// RUN: sed 's/tensor<1x5xi64> {torch/tensor<1x4xi64> {torch/; s/tensor<1x5xi64>) -> tensor<3x2x5x4xf32>/tensor<1x4xi64>) -> tensor<3x2x5x4xf32>/' %t/packed.mlir > %t/short.mlir && not dtc-import %t/short.mlir 2>&1 | FileCheck %s --check-prefix SHORT

// Documents that are the same in all samples.
// PACKED: %[[SEGMENTS:.*]] = dtc.broadcast %{{.*}} dims [1] : (tensor<5xi32>) -> tensor<3x5xi32>
// PACKED: dtc.attention {{.*}} segments %[[SEGMENTS]]
// SHORT: 'aten.scaled_dot_product_attention' has segments that are not one integer for each token

// The mask is of positions alone: PyTorch would compute it in each step.
// CAUSAL-DAG: %[[Q:.*]] = dtc.reshape %q {dtc.axes = ["heads", "", ""]} : (tensor<8x8xf32>) -> tensor<4x2x8xf32>
// CAUSAL-DAG: %[[K:.*]] = dtc.reshape %k {dtc.axes = ["kv_heads", "", ""]} : (tensor<4x8xf32>) -> tensor<2x2x8xf32>
// CAUSAL-DAG: %[[QS:.*]] = dtc.einsum "{{.*}}" %x, %[[Q]] : (tensor<3x5x8xf32>, tensor<4x2x8xf32>) -> tensor<3x5x4x2xf32>
// CAUSAL-DAG: %[[KS:.*]] = dtc.einsum "{{.*}}" %x, %[[K]] : (tensor<3x5x8xf32>, tensor<2x2x8xf32>) -> tensor<3x5x2x2xf32>
// CAUSAL: %[[Y:.*]], %{{.*}} = dtc.attention %[[QS]], %[[KS]], %[[KS]] {causal = true, scale = 5.000000e-01 : f64}
// CAUSAL: %[[O:.*]] = dtc.reshape %o {dtc.axes = ["", "heads", ""]} : (tensor<8x8xf32>) -> tensor<8x4x2xf32>
// CAUSAL: dtc.einsum "{{.*}}" %[[Y]], %[[O]] : (tensor<3x5x4x2xf32>, tensor<8x4x2xf32>) -> tensor<3x5x8xf32>
// REMARKS: remark: {{.*}}causal.mlir: causal masks, now of dtc.attention: 1, first in attn (model.py:7)
// REMARKS: remark: {{.*}}causal.mlir: keys and values repeated for groups of queries, now shared by dtc.attention: 1, first in attn (model.py:7)

// A query sees its own key and the one before.
// WINDOW: dtc.attention {{.*}} {causal = true, scale = {{.*}}, window = 2 : i64}

// PADDING-NOT: dtc.attention
// A query that sees no key gives zeros.
// PADDING: %[[ZERO:.*]] = dtc.constant dense<0.000000e+00> : tensor<3x2x5x5xf32>
// PADDING: %[[SCORES:.*]] = dtc.einsum "bhse,bhte->bhst"
// PADDING: %[[HIDDEN:.*]] = dtc.select %[[SEEN:.*]], %{{.*}}, %{{.*}} : tensor<3x2x5x5xf32>
// PADDING: %[[SOFTMAX:.*]] = dtc.softmax %[[HIDDEN]]
// PADDING: %[[WEIGHTS:.*]] = dtc.select %[[SEEN]], %[[SOFTMAX]], %[[ZERO]]
// PADDING: dtc.einsum "bhst,bhte->bhse" %[[WEIGHTS]],

// The same of a mask that is added.
// BIAS: %[[SEEN:.*]] = dtc.compare ne %[[MASK:.*]], %{{.*}} : tensor<3x2x5x5xf32>
// BIAS: dtc.maximum %[[MASK]],
// BIAS: %[[SOFTMAX:.*]] = dtc.softmax
// BIAS: dtc.select %[[SEEN]], %[[SOFTMAX]], %{{.*}} : tensor<3x2x5x5xf32>

// A mask that is a window for the last query alone, and neither for all of them.
// SHARED: dtc.attention {{.*}} {causal = true, {{.*}}window = 3 : i64}
// SHARED-NOT: dtc.attention
// SHARED: dtc.softmax

// LARGE: warning: {{.*}}large.mlir: attn (model.py:9): attention stays in its parts, whose scores take 512.1 MiB: its mask of 8193 x 8193 elements is larger than those that are computed at import, which have at most 67108864; give is_causal=True instead of a causal mask
// LARGE-NOT: warning
// LARGE-NOT: dtc.attention
// LARGE: dtc.softmax {{.*}} : tensor<2x1x8193x8193xf32>

// DROPOUT: %random_key: tensor<2xi32> {dtc.scalar = "random_key"}
// DROPOUT: dtc.dropout %x, %random_key {number = 0 : i64, rate = 2.500000e-01 : f64}
// DROPOUT: dtc.attention {{.*}} key %random_key {causal = true, dropout = 1.250000e-01 : f64, number = 1 : i64, scale =

//--- causal.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%q: tensor<8x8xf32> {torch.parameter = "q"}, %k: tensor<4x8xf32> {torch.parameter = "k"},
    %o: tensor<8x8xf32> {torch.parameter = "o"}, %x: tensor<3x5x8xf32> {torch.input = "x"}) -> tensor<f32> {
  %i = "aten.arange"() {end = 5 : i64} : () -> tensor<5xi64>
  %column = "aten.unsqueeze"(%i) {dim = 1 : i64, operands = ["self"]} : (tensor<5xi64>) -> tensor<5x1xi64>
  %le = "aten.le"(%i, %column) {operands = ["self", "other"]} : (tensor<5xi64>, tensor<5x1xi64>) -> tensor<5x5xi1>
  %mask = "aten.expand"(%le) {size = array<i64: 3, 1, 5, 5>, operands = ["self"]} : (tensor<5x5xi1>) -> tensor<3x1x5x5xi1>
  %q0 = "aten.linear"(%x, %q) {operands = ["input", "weight"]} : (tensor<3x5x8xf32>, tensor<8x8xf32>) -> tensor<3x5x8xf32>
  %q1 = "aten.view"(%q0) {size = array<i64: 3, 5, -1, 2>, operands = ["self"]} : (tensor<3x5x8xf32>) -> tensor<3x5x4x2xf32>
  %q2 = "aten.transpose"(%q1) {dim0 = 1 : i64, dim1 = 2 : i64, operands = ["self"]} : (tensor<3x5x4x2xf32>) -> tensor<3x4x5x2xf32>
  %k0 = "aten.linear"(%x, %k) {operands = ["input", "weight"]} : (tensor<3x5x8xf32>, tensor<4x8xf32>) -> tensor<3x5x4xf32>
  %k1 = "aten.view"(%k0) {size = array<i64: 3, 5, -1, 2>, operands = ["self"]} : (tensor<3x5x4xf32>) -> tensor<3x5x2x2xf32>
  %k2 = "aten.transpose"(%k1) {dim0 = 1 : i64, dim1 = 2 : i64, operands = ["self"]} : (tensor<3x5x2x2xf32>) -> tensor<3x2x5x2xf32>
  %k3 = "aten.unsqueeze"(%k2) {dim = 2 : i64, operands = ["self"]} : (tensor<3x2x5x2xf32>) -> tensor<3x2x1x5x2xf32>
  %k4 = "aten.expand"(%k3) {size = array<i64: 3, 2, 2, 5, 2>, operands = ["self"]} : (tensor<3x2x1x5x2xf32>) -> tensor<3x2x2x5x2xf32>
  %k5 = "aten.reshape"(%k4) {shape = array<i64: 3, 4, 5, 2>, operands = ["self"]} : (tensor<3x2x2x5x2xf32>) -> tensor<3x4x5x2xf32>
  %y = "aten.scaled_dot_product_attention"(%q2, %k5, %k5, %mask)
    {dropout_p = 0.0 : f64, is_causal = false, scale = 0.5 : f64, operands = ["query", "key", "value", "attn_mask"]}
    : (tensor<3x4x5x2xf32>, tensor<3x4x5x2xf32>, tensor<3x4x5x2xf32>, tensor<3x1x5x5xi1>) -> tensor<3x4x5x2xf32>
    loc("attn"("model.py":7:0))
  %y1 = "aten.transpose"(%y) {dim0 = 1 : i64, dim1 = 2 : i64, operands = ["self"]} : (tensor<3x4x5x2xf32>) -> tensor<3x5x4x2xf32>
  %y2 = "aten.reshape"(%y1) {shape = array<i64: 3, 5, 8>, operands = ["self"]} : (tensor<3x5x4x2xf32>) -> tensor<3x5x8xf32>
  %z = "aten.linear"(%y2, %o) {operands = ["input", "weight"]} : (tensor<3x5x8xf32>, tensor<8x8xf32>) -> tensor<3x5x8xf32>
  %sum = "aten.sum"(%z) {operands = ["self"]} : (tensor<3x5x8xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- window.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<2xf32> {torch.parameter = "w"}, %x: tensor<3x2x5x2xf32> {torch.input = "x"}) -> tensor<f32> {
  %q = "aten.mul"(%x, %w) {operands = ["self", "other"]} : (tensor<3x2x5x2xf32>, tensor<2xf32>) -> tensor<3x2x5x2xf32>
  %hidden = "aten.full"() {size = array<i64: 5, 5>, fill_value = 0xFFF0000000000000 : f64} : () -> tensor<5x5xf32>
  %after = "aten.triu"(%hidden) {diagonal = 1 : i64, operands = ["self"]} : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %before = "aten.tril"(%hidden) {diagonal = -2 : i64, operands = ["self"]} : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %mask = "aten.add"(%after, %before) {operands = ["self", "other"]} : (tensor<5x5xf32>, tensor<5x5xf32>) -> tensor<5x5xf32>
  %y = "aten.scaled_dot_product_attention"(%q, %x, %x, %mask)
    {dropout_p = 0.0 : f64, is_causal = false, operands = ["query", "key", "value", "attn_mask"]}
    : (tensor<3x2x5x2xf32>, tensor<3x2x5x2xf32>, tensor<3x2x5x2xf32>, tensor<5x5xf32>) -> tensor<3x2x5x2xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<3x2x5x2xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- padding.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<2xf32> {torch.parameter = "w"}, %x: tensor<3x2x5x2xf32> {torch.input = "x"},
    %seen: tensor<3x1x1x5xi1> {torch.input = "seen"}) -> tensor<f32> {
  %q = "aten.mul"(%x, %w) {operands = ["self", "other"]} : (tensor<3x2x5x2xf32>, tensor<2xf32>) -> tensor<3x2x5x2xf32>
  %y = "aten.scaled_dot_product_attention"(%q, %x, %x, %seen)
    {dropout_p = 0.0 : f64, is_causal = false, operands = ["query", "key", "value", "attn_mask"]}
    : (tensor<3x2x5x2xf32>, tensor<3x2x5x2xf32>, tensor<3x2x5x2xf32>, tensor<3x1x1x5xi1>) -> tensor<3x2x5x2xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<3x2x5x2xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- bias.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<2xf32> {torch.parameter = "w"}, %x: tensor<3x2x5x2xf32> {torch.input = "x"},
    %bias: tensor<3x1x1x5xf32> {torch.input = "bias"}) -> tensor<f32> {
  %q = "aten.mul"(%x, %w) {operands = ["self", "other"]} : (tensor<3x2x5x2xf32>, tensor<2xf32>) -> tensor<3x2x5x2xf32>
  %y = "aten.scaled_dot_product_attention"(%q, %x, %x, %bias)
    {dropout_p = 0.0 : f64, is_causal = false, operands = ["query", "key", "value", "attn_mask"]}
    : (tensor<3x2x5x2xf32>, tensor<3x2x5x2xf32>, tensor<3x2x5x2xf32>, tensor<3x1x1x5xf32>) -> tensor<3x2x5x2xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<3x2x5x2xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- shared.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<2xf32> {torch.parameter = "w"}, %x: tensor<3x2x5x2xf32> {torch.input = "x"}) -> tensor<f32> {
  %q = "aten.mul"(%x, %w) {operands = ["self", "other"]} : (tensor<3x2x5x2xf32>, tensor<2xf32>) -> tensor<3x2x5x2xf32>
  %mask = "torch.constant"() {value = dense<[[false, false, true, true, true]]> : tensor<1x5xi1>} : () -> tensor<1x5xi1>
  %last = "aten.slice"(%q) {dim = 2 : i64, start = 4 : i64, end = 5 : i64, operands = ["self"]} : (tensor<3x2x5x2xf32>) -> tensor<3x2x1x2xf32>
  %a = "aten.scaled_dot_product_attention"(%last, %x, %x, %mask)
    {dropout_p = 0.0 : f64, is_causal = false, operands = ["query", "key", "value", "attn_mask"]}
    : (tensor<3x2x1x2xf32>, tensor<3x2x5x2xf32>, tensor<3x2x5x2xf32>, tensor<1x5xi1>) -> tensor<3x2x1x2xf32>
  %b = "aten.scaled_dot_product_attention"(%q, %x, %x, %mask)
    {dropout_p = 0.0 : f64, is_causal = false, operands = ["query", "key", "value", "attn_mask"]}
    : (tensor<3x2x5x2xf32>, tensor<3x2x5x2xf32>, tensor<3x2x5x2xf32>, tensor<1x5xi1>) -> tensor<3x2x5x2xf32>
  %y = "aten.add"(%b, %a) {operands = ["self", "other"]} : (tensor<3x2x5x2xf32>, tensor<3x2x1x2xf32>) -> tensor<3x2x5x2xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<3x2x5x2xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- large.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<2xf32> {torch.parameter = "w"}, %x: tensor<2x1x8193x2xf32> {torch.input = "x"}) -> tensor<f32> {
  %q = "aten.mul"(%x, %w) {operands = ["self", "other"]} : (tensor<2x1x8193x2xf32>, tensor<2xf32>) -> tensor<2x1x8193x2xf32>
  %i = "aten.arange"() {end = 8193 : i64} : () -> tensor<8193xi64>
  %column = "aten.unsqueeze"(%i) {dim = 1 : i64, operands = ["self"]} : (tensor<8193xi64>) -> tensor<8193x1xi64>
  %mask = "aten.le"(%i, %column) {operands = ["self", "other"]} : (tensor<8193xi64>, tensor<8193x1xi64>) -> tensor<8193x8193xi1>
  %y = "aten.scaled_dot_product_attention"(%q, %x, %x, %mask)
    {dropout_p = 0.0 : f64, is_causal = false, operands = ["query", "key", "value", "attn_mask"]}
    : (tensor<2x1x8193x2xf32>, tensor<2x1x8193x2xf32>, tensor<2x1x8193x2xf32>, tensor<8193x8193xi1>) -> tensor<2x1x8193x2xf32>
    loc("attn"("model.py":9:0))
  %z = "aten.scaled_dot_product_attention"(%y, %x, %x, %mask)
    {dropout_p = 0.0 : f64, is_causal = false, operands = ["query", "key", "value", "attn_mask"]}
    : (tensor<2x1x8193x2xf32>, tensor<2x1x8193x2xf32>, tensor<2x1x8193x2xf32>, tensor<8193x8193xi1>) -> tensor<2x1x8193x2xf32>
  %sum = "aten.sum"(%z) {operands = ["self"]} : (tensor<2x1x8193x2xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- dropout.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<2xf32> {torch.parameter = "w"}, %x: tensor<3x2x5x2xf32> {torch.input = "x"}) -> tensor<f32> {
  %d = "aten.dropout"(%x) {p = 0.25 : f64, train = true, operands = ["input"]} : (tensor<3x2x5x2xf32>) -> tensor<3x2x5x2xf32>
  %q = "aten.mul"(%d, %w) {operands = ["self", "other"]} : (tensor<3x2x5x2xf32>, tensor<2xf32>) -> tensor<3x2x5x2xf32>
  %y = "aten.scaled_dot_product_attention"(%q, %x, %x)
    {dropout_p = 0.125 : f64, is_causal = true, operands = ["query", "key", "value"]}
    : (tensor<3x2x5x2xf32>, tensor<3x2x5x2xf32>, tensor<3x2x5x2xf32>) -> tensor<3x2x5x2xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<3x2x5x2xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- packed.mlir
module attributes {torch.capture = {version = 1 : i64, torch = "2.15.0"}} {
func.func @loss(
    %q: tensor<3x2x5x4xf32> {torch.parameter = "q"} loc("q"),
    %segments: tensor<1x5xi64> {torch.input = "segments"} loc("segments")) -> tensor<f32> {
  %y = "aten.scaled_dot_product_attention"(%q, %q, %q, %segments) {is_causal = true, operands = ["query", "key", "value", "segments"]}
    : (tensor<3x2x5x4xf32>, tensor<3x2x5x4xf32>, tensor<3x2x5x4xf32>, tensor<1x5xi64>) -> tensor<3x2x5x4xf32>
  %loss = "aten.sum"(%y) {dim = array<i64>, operands = ["self"]} : (tensor<3x2x5x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
