// Variances and norms.

// RUN: split-file %s %t
// RUN: dtc-import %t/var.mlir | FileCheck %s --check-prefix VAR
// RUN: dtc-import %t/rms.mlir | FileCheck %s --check-prefix RMS
// RUN: sed 's/1.0e-05/0x7FF0000000000000/' %t/rms.mlir > %t/infinity.mlir && dtc-import %t/infinity.mlir | FileCheck %s --check-prefix PARTS
// RUN: sed 's/1.0e-05/0x7FF8000000000000/' %t/rms.mlir > %t/nan.mlir && dtc-import %t/nan.mlir | FileCheck %s --check-prefix PARTS

// The sum of squares is divided by the count, or by the count less one.
// VAR-DAG: %[[FOURTH:.*]] = dtc.constant dense<2.500000e-01> : tensor<3xf32>
// VAR-DAG: %[[THIRD:.*]] = dtc.constant dense<0.333333343> : tensor<3xf32>
// VAR: %[[A:.*]] = dtc.mul %{{.*}}, %[[FOURTH]] : tensor<3xf32>
// VAR: %[[B:.*]] = dtc.mul %{{.*}}, %[[THIRD]] : tensor<3xf32>
// VAR: dtc.sub %[[A]], %[[B]]

// RMS: dtc.rms_norm
// PARTS-NOT: dtc.rms_norm
// PARTS: dtc.rsqrt

// Layer norms by hand: the variance as a mean of squared distances, as "aten.var", and as a mean of squares less a squared mean,
// as flax computes it, which multiplies the root by the scale first.
// RUN: dtc-import %t/layer.mlir 2>&1 | FileCheck %s --check-prefix LAYER
// RUN: dtc-import %t/var-layer.mlir 2>&1 | FileCheck %s --check-prefix VAR-LAYER
// RUN: dtc-import %t/fast.mlir 2>&1 | FileCheck %s --check-prefix FAST
// LAYER: remark: {{.*}}layer.mlir: layer norms by their parts, now dtc.layer_norm: 1
// LAYER: dtc.layer_norm %x, %g, %b {eps = 9.9999{{.*}}E-6 : f64}
// LAYER-NOT: dtc.mul
// VAR-LAYER: dtc.layer_norm %x, %{{.*}}, %{{.*}} {eps = 0.0010{{.*}} : f64}
// VAR-LAYER-NOT: dtc.div
// FAST: dtc.layer_norm %x, %g, %b {eps = 9.9{{.*}}E-7 : f64}
// FAST-NOT: dtc.rsqrt

// What has another mean, another variance or what else is no layer norm stays in its parts.
// RUN: sed 's|"aten.sub"(%%x, %%mean)|"aten.sub"(%%o, %%mean)|' %t/layer.mlir > %t/other.mlir && dtc-import %t/other.mlir | FileCheck %s --check-prefix NO-LAYER
// RUN: sed 's|unbiased = false|unbiased = true|' %t/var-layer.mlir > %t/unbiased.mlir && dtc-import %t/unbiased.mlir | FileCheck %s --check-prefix NO-LAYER
// RUN: sed 's|"aten.mul"(%%average, %%average)|"aten.mul"(%%average, %%squares)|' %t/fast.mlir > %t/squares.mlir && dtc-import %t/squares.mlir | FileCheck %s --check-prefix NO-LAYER
// RUN: sed 's|other = 0.25|other = 0.5|' %t/fast.mlir > %t/half.mlir && dtc-import %t/half.mlir | FileCheck %s --check-prefix NO-LAYER
// NO-LAYER-NOT: dtc.layer_norm
// Nor is what adds eps to the root, or has it as the least variance: eps is a term of what is rooted, and a variance is kept
// from being below 0 alone.
// RUN: sed 's|"aten.add"(%%var) {other = 1.0e-03 : f64, |"aten.sqrt"(%%var) {|; s|"aten.sqrt"(%%add) {|"aten.add"(%%add) {other = 1.0e-03 : f64, |' %t/var-layer.mlir > %t/outside.mlir
// RUN: dtc-import %t/outside.mlir | FileCheck %s --check-prefix OUTSIDE --implicit-check-not _norm
// RUN: sed 's|"aten.add"(%%mean) {other = 1.0e-05 : f64, |"aten.sqrt"(%%mean) {|; s|"aten.rsqrt"(%%add) {|"aten.add"(%%add) {other = 1.0e-03 : f64, |; s|"aten.mul"(%%w, %%root)|"aten.div"(%%w, %%root)|' %t/rms.mlir > %t/rms-outside.mlir
// RUN: dtc-import %t/rms-outside.mlir | FileCheck %s --check-prefix OUTSIDE --implicit-check-not _norm
// RUN: sed 's|"aten.add"(%%var) {other =|"aten.clamp"(%%var) {min =|' %t/var-layer.mlir > %t/clamp.mlir
// RUN: dtc-import %t/clamp.mlir | FileCheck %s --check-prefix CLAMP --implicit-check-not _norm
// RUN: sed 's|"aten.add"(%%mean) {other =|"aten.clamp"(%%mean) {min =|' %t/rms.mlir > %t/rms-clamp.mlir
// RUN: dtc-import %t/rms-clamp.mlir | FileCheck %s --check-prefix RMS-CLAMP --implicit-check-not _norm
// OUTSIDE-DAG: %[[EPS:.*]] = dtc.constant dense<1.000000e-03> : tensor<3x1xf32>
// OUTSIDE-DAG: %[[ROOT:.*]] = dtc.sqrt
// OUTSIDE: dtc.add %[[ROOT]], %[[EPS]]
// OUTSIDE: dtc.div
// CLAMP: %[[SQUARE:.*]] = dtc.select
// CLAMP: dtc.sqrt %[[SQUARE]]
// CLAMP: dtc.div
// RMS-CLAMP: %[[SQUARE:.*]] = dtc.select
// RMS-CLAMP: dtc.rsqrt %[[SQUARE]]

// With eps added as well, a variance of at least 0 is that of a norm, and one of at least 1e-3 is not.
// RUN: sed 's|.*"aten.add"(%%var).*|  %%least = "aten.clamp"(%%var) {min = 0.0 : f64, operands = ["self"]} : (tensor<3x1xf32>) -> tensor<3x1xf32>\n&|; s|"aten.add"(%%var)|"aten.add"(%%least)|' %t/var-layer.mlir > %t/zero.mlir
// RUN: dtc-import %t/zero.mlir | FileCheck %s --check-prefix VAR-LAYER
// RUN: sed 's|min = 0.0|min = 1.0e-03|' %t/zero.mlir > %t/least.mlir && dtc-import %t/least.mlir | FileCheck %s --check-prefix LEAST --implicit-check-not _norm
// RUN: sed 's|fill_value = 0.0|fill_value = 1.0e-03|' %t/fast.mlir > %t/most.mlir && dtc-import %t/most.mlir | FileCheck %s --check-prefix MOST --implicit-check-not _norm
// LEAST: dtc.select
// LEAST: dtc.sqrt
// MOST: dtc.maximum
// MOST: dtc.rsqrt
// A bias before the scale is no bias of the norm.
// RUN: sed 's|"aten.mul"(%%n, %%g)|"aten.add"(%%n, %%g)|; s|"aten.add"(%%s, %%b)|"aten.mul"(%%s, %%b)|' %t/layer.mlir > %t/order.mlir && dtc-import %t/order.mlir | FileCheck %s --check-prefix ORDER
// ORDER: %[[Y:[a-z]+]], {{.*}} = dtc.layer_norm %x, %{{.*}}, %g {
// ORDER: dtc.mul %[[Y]]

//--- var.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<3x4xf32> {torch.parameter = "w"}) -> tensor<f32> {
  %a = "aten.var"(%w) {dim = array<i64: 1>, unbiased = false, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3xf32>
  %b = "aten.var"(%w) {dim = array<i64: 1>, unbiased = true, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3xf32>
  %y = "aten.sub"(%a, %b) {operands = ["self", "other"]} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<3xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- rms.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<3x4xf32> {torch.parameter = "w"}) -> tensor<f32> {
  %square = "aten.pow"(%w) {exponent = 2 : i64, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %mean = "aten.mean"(%square) {dim = array<i64: -1>, keepdim = true, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %add = "aten.add"(%mean) {other = 1.0e-05 : f64, operands = ["self"]} : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %root = "aten.rsqrt"(%add) {operands = ["self"]} : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %y = "aten.mul"(%w, %root) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<3x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- layer.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<3x4xf32> {torch.parameter = "x"}, %o: tensor<3x4xf32> {torch.parameter = "o"},
    %g: tensor<4xf32> {torch.parameter = "g"}, %b: tensor<4xf32> {torch.parameter = "b"}) -> tensor<f32> {
  %mean = "aten.mean"(%x) {dim = array<i64: -1>, keepdim = true, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %d = "aten.sub"(%x, %mean) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %sq = "aten.pow"(%d) {exponent = 2 : i64, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %var = "aten.mean"(%sq) {dim = array<i64: -1>, keepdim = true, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %add = "aten.add"(%var) {other = 1.0e-05 : f64, operands = ["self"]} : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %root = "aten.rsqrt"(%add) {operands = ["self"]} : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %n = "aten.mul"(%d, %root) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %s = "aten.mul"(%n, %g) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %y = "aten.add"(%s, %b) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %all = "aten.add"(%y, %o) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %p = "aten.add"(%all, %g) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %q = "aten.add"(%p, %b) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %sum = "aten.sum"(%q) {operands = ["self"]} : (tensor<3x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- var-layer.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<3x4xf32> {torch.parameter = "x"}, %o: tensor<3x4xf32> {torch.parameter = "o"},
    %g: tensor<4xf32> {torch.parameter = "g"}, %b: tensor<4xf32> {torch.parameter = "b"}) -> tensor<f32> {
  %mean = "aten.mean"(%x) {dim = array<i64: -1>, keepdim = true, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %d = "aten.sub"(%x, %mean) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %var = "aten.var"(%x) {dim = array<i64: -1>, keepdim = true, unbiased = false, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %add = "aten.add"(%var) {other = 1.0e-03 : f64, operands = ["self"]} : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %root = "aten.sqrt"(%add) {operands = ["self"]} : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %y = "aten.div"(%d, %root) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %all = "aten.add"(%y, %o) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %p = "aten.add"(%all, %g) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %q = "aten.add"(%p, %b) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %sum = "aten.sum"(%q) {operands = ["self"]} : (tensor<3x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- fast.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%x: tensor<3x4xf32> {torch.parameter = "x"}, %o: tensor<3x4xf32> {torch.parameter = "o"},
    %g: tensor<4xf32> {torch.parameter = "g"}, %b: tensor<4xf32> {torch.parameter = "b"}) -> tensor<f32> {
  %total = "aten.sum"(%x) {dim = array<i64: 1>, keepdim = false, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3xf32>
  %average = "aten.mul"(%total) {other = 0.25 : f64, operands = ["self"]} : (tensor<3xf32>) -> tensor<3xf32>
  %xx = "aten.mul"(%x, %x) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %totals = "aten.sum"(%xx) {dim = array<i64: 1>, keepdim = false, operands = ["self"]} : (tensor<3x4xf32>) -> tensor<3xf32>
  %squares = "aten.div"(%totals) {other = 4.0 : f64, operands = ["self"]} : (tensor<3xf32>) -> tensor<3xf32>
  %square = "aten.mul"(%average, %average) {operands = ["self", "other"]} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %less = "aten.sub"(%squares, %square) {operands = ["self", "other"]} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %zero = "aten.full"() {size = array<i64>, fill_value = 0.0 : f64} : () -> tensor<f32>
  %most = "aten.maximum"(%zero, %less) {operands = ["self", "other"]} : (tensor<f32>, tensor<3xf32>) -> tensor<3xf32>
  %rows = "aten.view"(%average) {size = array<i64: 3, 1>, operands = ["self"]} : (tensor<3xf32>) -> tensor<3x1xf32>
  %d = "aten.sub"(%x, %rows) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %vars = "aten.view"(%most) {size = array<i64: 3, 1>, operands = ["self"]} : (tensor<3xf32>) -> tensor<3x1xf32>
  %add = "aten.add"(%vars) {other = 9.9999999747524271e-07 : f64, operands = ["self"]} : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %root = "aten.rsqrt"(%add) {operands = ["self"]} : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %wide = "aten.view"(%g) {size = array<i64: 1, 4>, operands = ["self"]} : (tensor<4xf32>) -> tensor<1x4xf32>
  %f = "aten.mul"(%root, %wide) {operands = ["self", "other"]} : (tensor<3x1xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
  %n = "aten.mul"(%d, %f) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %y = "aten.add"(%n, %b) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %all = "aten.add"(%y, %o) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %p = "aten.add"(%all, %g) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %q = "aten.add"(%p, %b) {operands = ["self", "other"]} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %sum = "aten.sum"(%q) {operands = ["self"]} : (tensor<3x4xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}
