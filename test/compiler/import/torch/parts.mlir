// Attention, softmax and GELU by their parts: parts in the form of an op become it, and parts that only look like it do
// not.

// RUN: split-file %s %t
// RUN: dtc-import %t/einsum.mlir 2>&1 | FileCheck %s --check-prefix EINSUM
// RUN: dtc-import %t/merged.mlir | FileCheck %s --check-prefix MERGED
// RUN: sed 's|"aten.softmax"(%%masked) {dim = -1|"aten.softmax"(%%masked) {dim = 2|' %t/merged.mlir > %t/dim.mlir
// RUN: dtc-import %t/dim.mlir | FileCheck %s --check-prefix PARTS
// RUN: sed 's|value = -1.0e+30|value = -1.0e+03|' %t/merged.mlir > %t/bias.mlir
// RUN: dtc-import %t/bias.mlir | FileCheck %s --check-prefix PARTS
// RUN: sed 's|"aten.sum"(%%out)|"aten.sum"(%%p)|; s|(tensor<6x5x2xf32>) -> tensor<f32>|(tensor<6x5x5xf32>) -> tensor<f32>|' %t/merged.mlir > %t/weights.mlir
// RUN: dtc-import %t/weights.mlir | FileCheck %s --check-prefix PARTS
// RUN: dtc-import %t/gelu.mlir | FileCheck %s --check-prefix GELU
// RUN: sed 's/other = 1.4142135623730951/other = 1.5/' %t/gelu.mlir > %t/erf.mlir
// RUN: not dtc-import %t/erf.mlir 2>&1 | FileCheck %s --check-prefix ERF
// RUN: dtc-import %t/patches.mlir | FileCheck %s --check-prefix PATCHES
// RUN: sed 's|stride = array<i64: 2, 3>|stride = array<i64: 1, 3>|' %t/patches.mlir > %t/stride.mlir
// RUN: sed -i 's|tensor<5x7x2x2xf32>|tensor<5x7x3x2xf32>|' %t/stride.mlir
// RUN: dtc-import %t/stride.mlir | FileCheck %s --check-prefix STRIDE

// Heads in the last but one dimension, a soft cap before the mask, dropout of the weights, and the softmax of JAX.
// EINSUM-DAG: softmax by its parts, now dtc.softmax: 1
// EINSUM-DAG: attention by its parts, now dtc.attention: 1
// EINSUM: dtc.attention %q, %k, %v key %random_key {causal = true, dropout = 2.500000e-01 : f64, scale = 2.500000e-01 : f64, softcap = 3.000000e+00 : f64} : (tensor<3x5x2x4xf32>
// EINSUM-NOT: dtc.exp

// Samples and heads are one dimension in products.
// MERGED: dtc.attention {{.*}} {causal = true, scale = 5.000000e-01 : f64} : (tensor<3x5x2x2xf32>, tensor<3x5x2x2xf32>, tensor<3x5x2x2xf32>)
// MERGED-NOT: dtc.softmax

// PARTS-NOT: dtc.attention
// PARTS: dtc.softmax

// GELU-NOT: dtc.mul
// GELU: dtc.gelu none %w
// ERF: error: {{.*}}erf.mlir: mlp (model.py:3): 'aten.erf' has a rule only in GELU, 0.5 x (1 + erf(x / sqrt(2)))

// The last column of the images is in no patch.
// PATCHES: %[[CUT:.*]] = dtc.slice %x offsets [0, 0, 0, 0] sizes [5, 3, 4, 6]
// PATCHES: %[[WINDOWS:.*]] = dtc.reshape %[[CUT]] : (tensor<5x3x4x6xf32>) -> tensor<5x3x2x2x2x3xf32>
// PATCHES: dtc.einsum "bcpqrs,ocqs->bopr" %[[WINDOWS]], %w
// Windows that overlap are no patches.
// STRIDE: dtc.conv %x, %w strides [1, 3] padding [0, 0] dilations [1, 1] : (tensor<5x3x4x7xf32>, tensor<7x3x2x3xf32>) -> tensor<5x7x3x2xf32>

//--- einsum.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%q: tensor<3x5x2x4xf32> {torch.parameter = "q"}, %k: tensor<3x5x2x4xf32> {torch.parameter = "k"},
    %v: tensor<3x5x2x4xf32> {torch.parameter = "v"}) -> tensor<f32> {
  %ones = "aten.ones"() {size = array<i64: 5, 5>, dtype = i1} : () -> tensor<5x5xi1>
  %seen = "aten.tril"(%ones) {diagonal = 0 : i64, operands = ["self"]} : (tensor<5x5xi1>) -> tensor<5x5xi1>
  %scores = "aten.einsum"(%q, %k) {equation = "adbc,aebc->abde", operands = ["tensors.0", "tensors.1"]} : (tensor<3x5x2x4xf32>, tensor<3x5x2x4xf32>) -> tensor<3x2x5x5xf32>
  %scaled = "aten.div"(%scores) {other = 4.0 : f64, operands = ["self"]} : (tensor<3x2x5x5xf32>) -> tensor<3x2x5x5xf32>
  %tanh = "aten.tanh"(%scaled) {operands = ["self"]} : (tensor<3x2x5x5xf32>) -> tensor<3x2x5x5xf32>
  %capped = "aten.mul"(%tanh) {other = 3.0 : f64, operands = ["self"]} : (tensor<3x2x5x5xf32>) -> tensor<3x2x5x5xf32>
  %masked = "aten.where"(%seen, %capped) {other = -3.0e+38 : f64, operands = ["condition", "self"]} : (tensor<5x5xi1>, tensor<3x2x5x5xf32>) -> tensor<3x2x5x5xf32>
  %most = "aten.amax"(%masked) {dim = array<i64: 3>, keepdim = true, operands = ["self"]} : (tensor<3x2x5x5xf32>) -> tensor<3x2x5x1xf32>
  %less = "aten.sub"(%masked, %most) {operands = ["self", "other"]} : (tensor<3x2x5x5xf32>, tensor<3x2x5x1xf32>) -> tensor<3x2x5x5xf32>
  %exp = "aten.exp"(%less) {operands = ["self"]} : (tensor<3x2x5x5xf32>) -> tensor<3x2x5x5xf32>
  %sums = "aten.sum"(%exp) {dim = array<i64: 3>, keepdim = false, operands = ["self"]} : (tensor<3x2x5x5xf32>) -> tensor<3x2x5xf32>
  %rows = "aten.view"(%sums) {size = array<i64: 3, 2, 5, 1>, operands = ["self"]} : (tensor<3x2x5xf32>) -> tensor<3x2x5x1xf32>
  %p = "aten.div"(%exp, %rows) {operands = ["self", "other"]} : (tensor<3x2x5x5xf32>, tensor<3x2x5x1xf32>) -> tensor<3x2x5x5xf32>
  %kept = "aten.dropout"(%p) {p = 0.25 : f64, train = true, operands = ["input"]} : (tensor<3x2x5x5xf32>) -> tensor<3x2x5x5xf32>
  %out = "aten.einsum"(%v, %kept) {equation = "acbd,abec->aebd", operands = ["tensors.0", "tensors.1"]} : (tensor<3x5x2x4xf32>, tensor<3x2x5x5xf32>) -> tensor<3x5x2x4xf32>
  %sum = "aten.sum"(%out) {operands = ["self"]} : (tensor<3x5x2x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- merged.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%q: tensor<6x5x2xf32> {torch.parameter = "q"}, %k: tensor<6x2x5xf32> {torch.parameter = "k"}) -> tensor<f32> {
  %ones = "aten.ones"() {size = array<i64: 5, 5>, dtype = i1} : () -> tensor<5x5xi1>
  %hidden = "aten.triu"(%ones) {diagonal = 1 : i64, operands = ["self"]} : (tensor<5x5xi1>) -> tensor<5x5xi1>
  %scores = "aten.bmm"(%q, %k) {operands = ["self", "mat2"]} : (tensor<6x5x2xf32>, tensor<6x2x5xf32>) -> tensor<6x5x5xf32>
  %apart = "aten.view"(%scores) {size = array<i64: 3, 2, 5, 5>, operands = ["self"]} : (tensor<6x5x5xf32>) -> tensor<3x2x5x5xf32>
  %scaled = "aten.mul"(%apart) {other = 0.5 : f64, operands = ["self"]} : (tensor<3x2x5x5xf32>) -> tensor<3x2x5x5xf32>
  %masked = "aten.masked_fill"(%scaled, %hidden) {value = -1.0e+30 : f64, operands = ["self", "mask"]} : (tensor<3x2x5x5xf32>, tensor<5x5xi1>) -> tensor<3x2x5x5xf32>
  %softmax = "aten.softmax"(%masked) {dim = -1 : i64, operands = ["self"]} : (tensor<3x2x5x5xf32>) -> tensor<3x2x5x5xf32>
  %p = "aten.view"(%softmax) {size = array<i64: 6, 5, 5>, operands = ["self"]} : (tensor<3x2x5x5xf32>) -> tensor<6x5x5xf32>
  %out = "aten.bmm"(%p, %q) {operands = ["self", "mat2"]} : (tensor<6x5x5xf32>, tensor<6x5x2xf32>) -> tensor<6x5x2xf32>
  %sum = "aten.sum"(%out) {operands = ["self"]} : (tensor<6x5x2xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- gelu.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<3x4xf32> {torch.parameter = "w"}) -> tensor<f32> {
  %half = "aten.mul"(%w) {other = 0.5 : f64, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %root = "aten.div"(%w) {other = 1.4142135623730951 : f64, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %erf = "aten.erf"(%root) {operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32> loc("mlp"("model.py":3:0))
  %one = "aten.add"(%erf) {other = 1.0 : f64, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %y = "aten.mul"(%half, %one) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<3x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- patches.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<7x3x2x3xf32> {torch.parameter = "w"}, %x: tensor<5x3x4x7xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.convolution"(%x, %w) {stride = array<i64: 2, 3>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, transposed = false, output_padding = array<i64: 0, 0>, groups = 1 : i64, operands = ["input", "weight"]} : (tensor<5x3x4x7xf32>, tensor<7x3x2x3xf32>) -> tensor<5x7x2x2xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<5x7x2x2xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}
