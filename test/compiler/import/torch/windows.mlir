// Convolutions, poolings and norms of batches, and what is wrong with them.
//
// RUN: rm -rf %t && split-file %s %t

// RUN: dtc-import %t/groups.mlir | FileCheck %s --check-prefix GROUPS
// GROUPS: %[[X:.*]] = dtc.reshape %x : (tensor<5x4x6x7xf32>) -> tensor<5x2x2x6x7xf32>
// GROUPS: %[[W:.*]] = dtc.reshape %w : (tensor<6x2x3x2xf32>) -> tensor<2x3x2x3x2xf32>
// GROUPS: %[[Y:.*]] = dtc.conv %[[X]], %[[W]] strides [2, 1] padding [1, 2] dilations [1, 2] : (tensor<5x2x2x6x7xf32>, tensor<2x3x2x3x2xf32>) -> tensor<5x2x3x3x9xf32>
// GROUPS: dtc.reshape %[[Y]] : (tensor<5x2x3x3x9xf32>) -> tensor<5x6x3x9xf32>
// GROUPS: dtc.broadcast %b dims [1] : (tensor<6xf32>) -> tensor<5x6x3x9xf32>

// RUN: dtc-import %t/transposed.mlir | FileCheck %s --check-prefix TRANSPOSED
// TRANSPOSED: dtc.conv_input_grad {{.*}} strides [2] padding [0] dilations [1] : (tensor<5x2x2x3xf32>, tensor<2x2x3x2xf32>) -> tensor<5x2x3x6xf32>

// RUN: dtc-import %t/max.mlir | FileCheck %s --check-prefix MAX
// MAX: dtc.max_pool %x window [3, 2] strides [2, 1] padding [1, 0] dilations [1, 1] : (tensor<5x4x6x7xf32>) -> tensor<5x4x3x6xf32>

// RUN: dtc-import %t/mean.mlir | FileCheck %s --check-prefix MEAN
// MEAN: %[[W:.*]] = dtc.constant dense<0.166666672> : tensor<4x1x1x3x2xf32>
// MEAN: dtc.conv {{%[^ ]+}}, %[[W]] strides [2, 1] padding [1, 0] dilations [1, 1] : (tensor<5x4x1x6x7xf32>, tensor<4x1x1x3x2xf32>) -> tensor<5x4x1x3x6xf32>

// RUN: dtc-import %t/inside.mlir | FileCheck %s --check-prefix INSIDE
// INSIDE: %[[C:.*]] = dtc.constant dense<{{.*}}2.500000e-01, {{.*}}0.166666672{{.*}}> : tensor<3x6xf32>
// INSIDE: %[[W:.*]] = dtc.constant dense<1.000000e+00> : tensor<4x1x1x3x2xf32>
// INSIDE: %[[Y:.*]] = dtc.conv {{%[^ ]+}}, %[[W]]
// INSIDE: dtc.broadcast %[[C]] dims [2, 3] : (tensor<3x6xf32>) -> tensor<5x4x3x6xf32>

// RUN: dtc-import %t/norm.mlir | FileCheck %s --check-prefix NORM
// NORM: %mean: tensor<4xf32> {dtc.frozen, dtc.init = #dtc.zeros, dtc.param = "mean"}
// NORM: -> (tensor<f32>, tensor<4xf32> {dtc.updates = 1 : i64}, tensor<4xf32> {dtc.updates = 2 : i64})
// NORM: %[[SUM:.*]] = dtc.reduce sum %x dims [0, 2, 3] : (tensor<5x4x6x7xf32>) -> tensor<4xf32>
// NORM: dtc.rsqrt
// NORM: return {{%[^ ]+}}, {{%[^ ]+}}, {{%[^ ]+}} : tensor<f32>, tensor<4xf32>, tensor<4xf32>

// RUN: dtc-import %t/fixed.mlir | FileCheck %s --check-prefix FIXED
// FIXED: dtc.broadcast %mean dims [1] : (tensor<4xf32>) -> tensor<5x4x6x7xf32>

// RUN: not dtc-import %t/channels.mlir 2>&1 | FileCheck %s --check-prefix CHANNELS
// CHANNELS: error: {{.*}}channels.mlir: conv (model.py:7): 'aten.convolution' has an input of 4 channels and a weight of 6 x 3 in 2 groups, expected groups that divide the channels, and weights for the input channels of a group

// RUN: not dtc-import %t/zero.mlir 2>&1 | FileCheck %s --check-prefix ZERO
// ZERO: 'aten.convolution' has an input of 4 channels and a weight of 6 x 2 in 0 groups

// RUN: not dtc-import %t/stride.mlir 2>&1 | FileCheck %s --check-prefix STRIDE
// STRIDE: 'aten.convolution' has windows that cannot be: strides is [0, 1], expected numbers from 1 to 2147483647

// RUN: not dtc-import %t/lists.mlir 2>&1 | FileCheck %s --check-prefix LISTS
// LISTS: 'aten.convolution' has windows that cannot be: padding has 3 entries, expected 2 as strides has

// RUN: not dtc-import %t/fit.mlir 2>&1 | FileCheck %s --check-prefix FIT
// FIT: 'aten.convolution' has windows of 9 elements along a dimension of 6 with a padding of 1 on both sides, expected windows that fit into it

// RUN: not dtc-import %t/rank.mlir 2>&1 | FileCheck %s --check-prefix RANK
// RANK: 'aten.convolution' has an input and a weight that do not fit, expected floats of one type with a batch or output channels, channels, and one to three spatial dimensions

// RUN: not dtc-import %t/bias.mlir 2>&1 | FileCheck %s --check-prefix BIAS
// BIAS: 'aten.convolution' has a bias that does not have an element for each output channel

// RUN: not dtc-import %t/output.mlir 2>&1 | FileCheck %s --check-prefix OUTPUT
// OUTPUT: 'aten.convolution' has an output padding of a stride or more, or a result of another size than its windows have

// RUN: not dtc-import %t/result.mlir 2>&1 | FileCheck %s --check-prefix RESULT
// RESULT: 'aten.convolution' gives a tensor<5x6x3x9xf32> by its operands, but the capture says tensor<5x6x3x8xf32>

// Windows of a ceil_mode that go beyond the padding see elements that are less than all others.
// RUN: dtc-import %t/ceil.mlir | FileCheck %s --check-prefix CEIL
// CEIL: %[[PADDED:.*]] = dtc.pad %x low [0, 0, 0, 0] high [0, 0, 1, 0] {{.*}} : (tensor<5x4x6x7xf32>) -> tensor<5x4x7x7xf32>
// CEIL: dtc.max_pool %[[PADDED]] window [3, 2] strides [2, 1] padding [1, 0] dilations [1, 1] : (tensor<5x4x7x7xf32>) -> tensor<5x4x4x6xf32>
// RUN: sed 's/5x4x4x6xf32/5x4x5x6xf32/g' %t/ceil.mlir > %t/more.mlir && not dtc-import %t/more.mlir 2>&1 | FileCheck %s --check-prefix MORE
// MORE: 'aten.max_pool2d' has fewer windows than its result has elements

// RUN: not dtc-import %t/half.mlir 2>&1 | FileCheck %s --check-prefix HALF
// HALF: 'aten.avg_pool2d' has a padding of more than half of a window

// RUN: not dtc-import %t/adaptive.mlir 2>&1 | FileCheck %s --check-prefix ADAPTIVE
// ADAPTIVE: 'aten.adaptive_avg_pool2d' divides a dimension of 6 elements into 4 windows, expected a divisor; windows of different sizes have no rule

// RUN: not dtc-import %t/statistics.mlir 2>&1 | FileCheck %s --check-prefix STATISTICS
// STATISTICS: result 2 is not the new value of a buffer, which 'torch.updates' names and no other result updates

// RUN: not dtc-import %t/training.mlir 2>&1 | FileCheck %s --check-prefix TRAINING
// TRAINING: 'aten._native_batch_norm_legit_functional' does not train, or has no statistics to update

// RUN: not dtc-import %t/updates.mlir 2>&1 | FileCheck %s --check-prefix UPDATES
// UPDATES: result 1 is not the new value of a buffer

// RUN: not dtc-import %t/loss.mlir 2>&1 | FileCheck %s --check-prefix LOSS
// LOSS: the function does not return a scalar float, the loss

//--- groups.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<6x2x3x2xf32> {torch.parameter = "w"}, %b: tensor<6xf32> {torch.parameter = "b"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.convolution"(%x, %w, %b) {stride = array<i64: 2, 1>, padding = array<i64: 1, 2>, dilation = array<i64: 1, 2>, transposed = false, output_padding = array<i64: 0, 0>, groups = 2 : i64, operands = ["input", "weight", "bias"]} : (tensor<5x4x6x7xf32>, tensor<6x2x3x2xf32>, tensor<6xf32>) -> tensor<5x6x3x9xf32> loc("conv"("model.py":7:0))
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<5x6x3x9xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- transposed.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<4x3x2xf32> {torch.parameter = "w"}, %x: tensor<5x4x3xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.convolution"(%x, %w) {stride = array<i64: 2>, padding = array<i64: 0>, dilation = array<i64: 1>, transposed = true, output_padding = array<i64: 0>, groups = 2 : i64, operands = ["input", "weight"]} : (tensor<5x4x3xf32>, tensor<4x3x2xf32>) -> tensor<5x6x6xf32> loc("conv"("model.py":7:0))
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<5x6x6xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- max.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<1xf32> {torch.parameter = "w"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.max_pool2d"(%x) {kernel_size = array<i64: 3, 2>, stride = array<i64: 2, 1>, padding = array<i64: 1, 0>, operands = ["self"]} : (tensor<5x4x6x7xf32>) -> tensor<5x4x3x6xf32> loc("pool"("model.py":9:0))
  %z = "aten.mul"(%y, %w) {operands = ["self", "other"]} : (tensor<5x4x3x6xf32>, tensor<1xf32>) -> tensor<5x4x3x6xf32>
  %sum = "aten.sum"(%z) {operands = ["self"]} : (tensor<5x4x3x6xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- mean.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<1xf32> {torch.parameter = "w"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.avg_pool2d"(%x) {kernel_size = array<i64: 3, 2>, stride = array<i64: 2, 1>, padding = array<i64: 1, 0>, operands = ["self"]} : (tensor<5x4x6x7xf32>) -> tensor<5x4x3x6xf32> loc("pool"("model.py":9:0))
  %z = "aten.mul"(%y, %w) {operands = ["self", "other"]} : (tensor<5x4x3x6xf32>, tensor<1xf32>) -> tensor<5x4x3x6xf32>
  %sum = "aten.sum"(%z) {operands = ["self"]} : (tensor<5x4x3x6xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- inside.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<1xf32> {torch.parameter = "w"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.avg_pool2d"(%x) {kernel_size = array<i64: 3, 2>, stride = array<i64: 2, 1>, padding = array<i64: 1, 0>, count_include_pad = false, operands = ["self"]} : (tensor<5x4x6x7xf32>) -> tensor<5x4x3x6xf32> loc("pool"("model.py":9:0))
  %z = "aten.mul"(%y, %w) {operands = ["self", "other"]} : (tensor<5x4x3x6xf32>, tensor<1xf32>) -> tensor<5x4x3x6xf32>
  %sum = "aten.sum"(%z) {operands = ["self"]} : (tensor<5x4x3x6xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- norm.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<4xf32> {torch.parameter = "w"}, %m: tensor<4xf32> {torch.buffer = "mean", torch.init = "zeros"}, %v: tensor<4xf32> {torch.buffer = "var", torch.init = "ones"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> (tensor<f32>, tensor<4xf32> {torch.updates = "mean"}, tensor<4xf32> {torch.updates = "var"}) {
  %n:5 = "aten._native_batch_norm_legit_functional"(%x, %w, %m, %v) {training = true, momentum = 0.25 : f64, eps = 0.125 : f64, operands = ["input", "weight", "running_mean", "running_var"]} : (tensor<5x4x6x7xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<5x4x6x7xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %sum = "aten.sum"(%n#0) {operands = ["self"]} : (tensor<5x4x6x7xf32>) -> tensor<f32>
  return %sum, %n#3, %n#4 : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
}

//--- fixed.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<4xf32> {torch.parameter = "w"}, %m: tensor<4xf32> {torch.buffer = "mean", torch.init = "zeros"}, %v: tensor<4xf32> {torch.buffer = "var", torch.init = "ones"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> tensor<f32> {
  %n:1 = "aten._native_batch_norm_legit_no_training"(%x, %w, %m, %v) {momentum = 0.25 : f64, eps = 0.125 : f64, operands = ["input", "weight", "running_mean", "running_var"]} : (tensor<5x4x6x7xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<5x4x6x7xf32>)
  %sum = "aten.sum"(%n#0) {operands = ["self"]} : (tensor<5x4x6x7xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- channels.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<6x3x3x2xf32> {torch.parameter = "w"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.convolution"(%x, %w) {stride = array<i64: 2, 1>, padding = array<i64: 1, 2>, dilation = array<i64: 1, 2>, transposed = false, output_padding = array<i64: 0, 0>, groups = 2 : i64, operands = ["input", "weight"]} : (tensor<5x4x6x7xf32>, tensor<6x3x3x2xf32>) -> tensor<5x6x3x9xf32> loc("conv"("model.py":7:0))
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<5x6x3x9xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- zero.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<6x2x3x2xf32> {torch.parameter = "w"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.convolution"(%x, %w) {stride = array<i64: 2, 1>, padding = array<i64: 1, 2>, dilation = array<i64: 1, 2>, transposed = false, output_padding = array<i64: 0, 0>, groups = 0 : i64, operands = ["input", "weight"]} : (tensor<5x4x6x7xf32>, tensor<6x2x3x2xf32>) -> tensor<5x6x3x9xf32> loc("conv"("model.py":7:0))
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<5x6x3x9xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- stride.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<6x2x3x2xf32> {torch.parameter = "w"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.convolution"(%x, %w) {stride = array<i64: 0, 1>, padding = array<i64: 1, 2>, dilation = array<i64: 1, 2>, transposed = false, output_padding = array<i64: 0, 0>, groups = 2 : i64, operands = ["input", "weight"]} : (tensor<5x4x6x7xf32>, tensor<6x2x3x2xf32>) -> tensor<5x6x3x9xf32> loc("conv"("model.py":7:0))
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<5x6x3x9xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- lists.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<6x2x3x2xf32> {torch.parameter = "w"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.convolution"(%x, %w) {stride = array<i64: 2, 1>, padding = array<i64: 1, 2, 1>, dilation = array<i64: 1, 2>, transposed = false, output_padding = array<i64: 0, 0>, groups = 2 : i64, operands = ["input", "weight"]} : (tensor<5x4x6x7xf32>, tensor<6x2x3x2xf32>) -> tensor<5x6x3x9xf32> loc("conv"("model.py":7:0))
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<5x6x3x9xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- fit.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<6x2x3x2xf32> {torch.parameter = "w"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.convolution"(%x, %w) {stride = array<i64: 2, 1>, padding = array<i64: 1, 2>, dilation = array<i64: 4, 2>, transposed = false, output_padding = array<i64: 0, 0>, groups = 2 : i64, operands = ["input", "weight"]} : (tensor<5x4x6x7xf32>, tensor<6x2x3x2xf32>) -> tensor<5x6x3x9xf32> loc("conv"("model.py":7:0))
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<5x6x3x9xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- rank.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<6x4xf32> {torch.parameter = "w"}, %x: tensor<5x4xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.convolution"(%x, %w) {stride = array<i64: 1>, padding = array<i64: 0>, dilation = array<i64: 1>, transposed = false, output_padding = array<i64: 0>, groups = 1 : i64, operands = ["input", "weight"]} : (tensor<5x4xf32>, tensor<6x4xf32>) -> tensor<5x6xf32> loc("conv"("model.py":7:0))
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<5x6xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- bias.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<6x2x3x2xf32> {torch.parameter = "w"}, %b: tensor<5xf32> {torch.parameter = "b"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.convolution"(%x, %w, %b) {stride = array<i64: 2, 1>, padding = array<i64: 1, 2>, dilation = array<i64: 1, 2>, transposed = false, output_padding = array<i64: 0, 0>, groups = 2 : i64, operands = ["input", "weight", "bias"]} : (tensor<5x4x6x7xf32>, tensor<6x2x3x2xf32>, tensor<5xf32>) -> tensor<5x6x3x9xf32> loc("conv"("model.py":7:0))
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<5x6x3x9xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- output.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<4x3x2xf32> {torch.parameter = "w"}, %x: tensor<5x4x3xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.convolution"(%x, %w) {stride = array<i64: 2>, padding = array<i64: 0>, dilation = array<i64: 1>, transposed = true, output_padding = array<i64: 0>, groups = 2 : i64, operands = ["input", "weight"]} : (tensor<5x4x3xf32>, tensor<4x3x2xf32>) -> tensor<5x6x8xf32> loc("conv"("model.py":7:0))
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<5x6x8xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- result.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<6x2x3x2xf32> {torch.parameter = "w"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.convolution"(%x, %w) {stride = array<i64: 2, 1>, padding = array<i64: 1, 2>, dilation = array<i64: 1, 2>, transposed = false, output_padding = array<i64: 0, 0>, groups = 2 : i64, operands = ["input", "weight"]} : (tensor<5x4x6x7xf32>, tensor<6x2x3x2xf32>) -> tensor<5x6x3x8xf32> loc("conv"("model.py":7:0))
  %sum = "aten.sum"(%y) {operands = ["self"]} : (tensor<5x6x3x8xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- ceil.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<1xf32> {torch.parameter = "w"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.max_pool2d"(%x) {kernel_size = array<i64: 3, 2>, stride = array<i64: 2, 1>, padding = array<i64: 1, 0>, ceil_mode = true, operands = ["self"]} : (tensor<5x4x6x7xf32>) -> tensor<5x4x4x6xf32> loc("pool"("model.py":9:0))
  %z = "aten.mul"(%y, %w) {operands = ["self", "other"]} : (tensor<5x4x4x6xf32>, tensor<1xf32>) -> tensor<5x4x4x6xf32>
  %sum = "aten.sum"(%z) {operands = ["self"]} : (tensor<5x4x4x6xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- half.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<1xf32> {torch.parameter = "w"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.avg_pool2d"(%x) {kernel_size = array<i64: 3, 2>, stride = array<i64: 2, 1>, padding = array<i64: 2, 0>, operands = ["self"]} : (tensor<5x4x6x7xf32>) -> tensor<5x4x3x6xf32> loc("pool"("model.py":9:0))
  %z = "aten.mul"(%y, %w) {operands = ["self", "other"]} : (tensor<5x4x3x6xf32>, tensor<1xf32>) -> tensor<5x4x3x6xf32>
  %sum = "aten.sum"(%z) {operands = ["self"]} : (tensor<5x4x3x6xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- adaptive.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<1xf32> {torch.parameter = "w"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> tensor<f32> {
  %y = "aten.adaptive_avg_pool2d"(%x) {output_size = array<i64: 4, 1>, operands = ["self"]} : (tensor<5x4x6x7xf32>) -> tensor<5x4x4x1xf32>
  %z = "aten.mul"(%y, %w) {operands = ["self", "other"]} : (tensor<5x4x4x1xf32>, tensor<1xf32>) -> tensor<5x4x4x1xf32>
  %sum = "aten.sum"(%z) {operands = ["self"]} : (tensor<5x4x4x1xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
}

//--- statistics.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<4xf32> {torch.parameter = "w"}, %m: tensor<4xf32> {torch.buffer = "mean", torch.init = "zeros"}, %v: tensor<5xf32> {torch.buffer = "var", torch.init = "ones"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> (tensor<f32>, tensor<4xf32> {torch.updates = "mean"}, tensor<4xf32> {torch.updates = "mean"}) {
  %n:5 = "aten._native_batch_norm_legit_functional"(%x, %w, %m, %v) {training = true, momentum = 0.25 : f64, eps = 0.125 : f64, operands = ["input", "weight", "running_mean", "running_var"]} : (tensor<5x4x6x7xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>) -> (tensor<5x4x6x7xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %sum = "aten.sum"(%n#0) {operands = ["self"]} : (tensor<5x4x6x7xf32>) -> tensor<f32>
  return %sum, %n#3, %n#4 : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
}

//--- training.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<4xf32> {torch.parameter = "w"}, %m: tensor<4xf32> {torch.buffer = "mean", torch.init = "zeros"}, %v: tensor<4xf32> {torch.buffer = "var", torch.init = "ones"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> (tensor<f32>, tensor<4xf32> {torch.updates = "mean"}, tensor<4xf32> {torch.updates = "var"}) {
  %n:5 = "aten._native_batch_norm_legit_functional"(%x, %w, %m, %v) {training = false, momentum = 0.25 : f64, eps = 0.125 : f64, operands = ["input", "weight", "running_mean", "running_var"]} : (tensor<5x4x6x7xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<5x4x6x7xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %sum = "aten.sum"(%n#0) {operands = ["self"]} : (tensor<5x4x6x7xf32>) -> tensor<f32>
  return %sum, %n#3, %n#4 : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
}

//--- updates.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<4xf32> {torch.parameter = "w"}, %m: tensor<4xf32> {torch.buffer = "mean", torch.init = "zeros"}, %v: tensor<4xf32> {torch.buffer = "var", torch.init = "ones"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> (tensor<f32>, tensor<4xf32> {torch.updates = "w"}, tensor<4xf32> {torch.updates = "var"}) {
  %n:5 = "aten._native_batch_norm_legit_functional"(%x, %w, %m, %v) {training = true, momentum = 0.25 : f64, eps = 0.125 : f64, operands = ["input", "weight", "running_mean", "running_var"]} : (tensor<5x4x6x7xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<5x4x6x7xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %sum = "aten.sum"(%n#0) {operands = ["self"]} : (tensor<5x4x6x7xf32>) -> tensor<f32>
  return %sum, %n#3, %n#4 : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
}

//--- loss.mlir
module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<4xf32> {torch.parameter = "w"}, %m: tensor<4xf32> {torch.buffer = "mean", torch.init = "zeros"}, %v: tensor<4xf32> {torch.buffer = "var", torch.init = "ones"}, %x: tensor<5x4x6x7xf32> {torch.input = "x"}) -> tensor<4xf32> {
  %n:5 = "aten._native_batch_norm_legit_functional"(%x, %w, %m, %v) {training = true, momentum = 0.25 : f64, eps = 0.125 : f64, operands = ["input", "weight", "running_mean", "running_var"]} : (tensor<5x4x6x7xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<5x4x6x7xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %sum = "aten.sum"(%n#0) {operands = ["self"]} : (tensor<5x4x6x7xf32>) -> tensor<f32>
  return %n#3 : tensor<4xf32>
}
}
