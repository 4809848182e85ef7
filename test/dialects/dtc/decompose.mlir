// RUN: dtc-opt %s --test-decompose | FileCheck %s

// CHECK-LABEL: func.func @softmax(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.reduce max %[[ARG0]] dims [2]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.broadcast %[[V0]] dims [0, 1]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.sub %[[ARG0]], %[[V1]]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.exp %[[V2]]
// CHECK: %[[V4:[^ ,:)]+]] = dtc.reduce sum %[[V3]] dims [2]
// CHECK: %[[V5:[^ ,:)]+]] = dtc.broadcast %[[V4]] dims [0, 1]
// CHECK: %[[V6:[^ ,:)]+]] = dtc.div %[[V3]], %[[V5]]
// CHECK: return %[[V6]]
func.func @softmax(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = dtc.softmax %x : tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @softmax_grad(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<3x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<3x4xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.mul %[[ARG0]], %[[ARG1]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.reduce sum %[[V0]] dims [1]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.broadcast %[[V1]] dims [0]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.sub %[[ARG1]], %[[V2]]
// CHECK: %[[V4:[^ ,:)]+]] = dtc.mul %[[ARG0]], %[[V3]]
// CHECK: return %[[V4]]
func.func @softmax_grad(%y: tensor<3x4xf32>, %dy: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = dtc.softmax_grad %y, %dy : tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @scaled_softmax(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<3x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<3x4xf32>
// CHECK: %[[C0:[^ ,:)]+]] = dtc.constant dense<1.250000e-01> : tensor<3x4xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.mul %[[ARG0]], %[[C0]]
// CHECK: dtc.reduce max %[[V0]] dims [1]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.div
// CHECK: dtc.sub %[[ARG1]],
// CHECK: %[[V2:[^ ,:)]+]] = dtc.mul %[[V1]],
// CHECK: %[[C1:[^ ,:)]+]] = dtc.constant dense<1.250000e-01> : tensor<3x4xf32>
// CHECK: %[[V3:[^ ,:)]+]] = dtc.mul %[[V2]], %[[C1]]
// CHECK: return %[[V3]]
func.func @scaled_softmax(%x: tensor<3x4xf32>, %dy: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = dtc.softmax %x {scale = 0.125} : tensor<3x4xf32>
  %1 = dtc.softmax_grad %0, %dy {scale = 0.125} : tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}

// It stays as it is: where the mask lies depends on the numbers of rows and columns.
// CHECK-LABEL: func.func @causal_softmax(
// CHECK: dtc.softmax %{{.*}} {causal = true}
func.func @causal_softmax(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = dtc.softmax %x {causal = true} : tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @layer_norm(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<3x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<4xf32>, %[[ARG2:[^ ,:)]+]]: tensor<4xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.reduce sum %[[ARG0]] dims [1]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.constant dense<2.500000e-01> : tensor<3xf32>
// CHECK: %[[V2:[^ ,:)]+]] = dtc.mul %[[V0]], %[[V1]]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.broadcast %[[V2]] dims [0]
// CHECK: %[[V4:[^ ,:)]+]] = dtc.sub %[[ARG0]], %[[V3]]
// CHECK: %[[V5:[^ ,:)]+]] = dtc.mul %[[V4]], %[[V4]]
// CHECK: %[[V6:[^ ,:)]+]] = dtc.reduce sum %[[V5]] dims [1]
// CHECK: %[[V7:[^ ,:)]+]] = dtc.constant dense<2.500000e-01> : tensor<3xf32>
// CHECK: %[[V8:[^ ,:)]+]] = dtc.mul %[[V6]], %[[V7]]
// CHECK: %[[V9:[^ ,:)]+]] = dtc.constant dense<9.99999974E-6> : tensor<3xf32>
// CHECK: %[[V10:[^ ,:)]+]] = dtc.add %[[V8]], %[[V9]]
// CHECK: %[[V11:[^ ,:)]+]] = dtc.rsqrt %[[V10]]
// CHECK: %[[V12:[^ ,:)]+]] = dtc.broadcast %[[V11]] dims [0]
// CHECK: %[[V13:[^ ,:)]+]] = dtc.mul %[[V4]], %[[V12]]
// CHECK: %[[V14:[^ ,:)]+]] = dtc.broadcast %[[ARG1]] dims [1]
// CHECK: %[[V15:[^ ,:)]+]] = dtc.mul %[[V13]], %[[V14]]
// CHECK: %[[V16:[^ ,:)]+]] = dtc.broadcast %[[ARG2]] dims [1]
// CHECK: %[[V17:[^ ,:)]+]] = dtc.add %[[V15]], %[[V16]]
// CHECK: return %[[V17]], %[[V2]], %[[V11]]
func.func @layer_norm(%x: tensor<3x4xf32>, %gamma: tensor<4xf32>, %beta: tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3xf32>, tensor<3xf32>) {
  %0:3 = dtc.layer_norm %x, %gamma, %beta {eps = 1.0e-5} : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  return %0#0, %0#1, %0#2 : tensor<3x4xf32>, tensor<3xf32>, tensor<3xf32>
}

// CHECK-LABEL: func.func @layer_norm_grad(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<4xf32>, %[[ARG2:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG3:[^ ,:)]+]]: tensor<2x3xf32>, %[[ARG4:[^ ,:)]+]]: tensor<2x3x4xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.broadcast %[[ARG3]] dims [0, 1]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.broadcast %[[ARG2]] dims [0, 1]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.sub %[[ARG0]], %[[V1]]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.mul %[[V2]], %[[V0]]
// CHECK: %[[V4:[^ ,:)]+]] = dtc.broadcast %[[ARG1]] dims [2]
// CHECK: %[[V5:[^ ,:)]+]] = dtc.mul %[[ARG4]], %[[V4]]
// CHECK: %[[V6:[^ ,:)]+]] = dtc.reduce sum %[[V5]] dims [2]
// CHECK: %[[V7:[^ ,:)]+]] = dtc.constant dense<2.500000e-01> : tensor<2x3xf32>
// CHECK: %[[V8:[^ ,:)]+]] = dtc.mul %[[V6]], %[[V7]]
// CHECK: %[[V9:[^ ,:)]+]] = dtc.broadcast %[[V8]] dims [0, 1]
// CHECK: %[[V10:[^ ,:)]+]] = dtc.mul %[[V5]], %[[V3]]
// CHECK: %[[V11:[^ ,:)]+]] = dtc.reduce sum %[[V10]] dims [2]
// CHECK: %[[V12:[^ ,:)]+]] = dtc.constant dense<2.500000e-01> : tensor<2x3xf32>
// CHECK: %[[V13:[^ ,:)]+]] = dtc.mul %[[V11]], %[[V12]]
// CHECK: %[[V14:[^ ,:)]+]] = dtc.broadcast %[[V13]] dims [0, 1]
// CHECK: %[[V15:[^ ,:)]+]] = dtc.mul %[[V3]], %[[V14]]
// CHECK: %[[V16:[^ ,:)]+]] = dtc.sub %[[V5]], %[[V9]]
// CHECK: %[[V17:[^ ,:)]+]] = dtc.sub %[[V16]], %[[V15]]
// CHECK: %[[V18:[^ ,:)]+]] = dtc.mul %[[V0]], %[[V17]]
// CHECK: %[[V19:[^ ,:)]+]] = dtc.mul %[[ARG4]], %[[V3]]
// CHECK: %[[V20:[^ ,:)]+]] = dtc.reduce sum %[[V19]] dims [0, 1]
// CHECK: %[[V21:[^ ,:)]+]] = dtc.reduce sum %[[ARG4]] dims [0, 1]
// CHECK: return %[[V18]], %[[V20]], %[[V21]]
func.func @layer_norm_grad(%x: tensor<2x3x4xf32>, %gamma: tensor<4xf32>, %mean: tensor<2x3xf32>, %rstd: tensor<2x3xf32>, %dy: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0:3 = dtc.layer_norm_grad %x, %gamma, %mean, %rstd, %dy : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1, %0#2 : tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @rms_norm(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<3x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<4xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.mul %[[ARG0]], %[[ARG0]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.reduce sum %[[V0]] dims [1]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.constant dense<2.500000e-01> : tensor<3xf32>
// CHECK: %[[V3:[^ ,:)]+]] = dtc.mul %[[V1]], %[[V2]]
// CHECK: %[[V4:[^ ,:)]+]] = dtc.constant dense<9.99999974E-6> : tensor<3xf32>
// CHECK: %[[V5:[^ ,:)]+]] = dtc.add %[[V3]], %[[V4]]
// CHECK: %[[V6:[^ ,:)]+]] = dtc.rsqrt %[[V5]]
// CHECK: %[[V7:[^ ,:)]+]] = dtc.broadcast %[[V6]] dims [0]
// CHECK: %[[V8:[^ ,:)]+]] = dtc.mul %[[ARG0]], %[[V7]]
// CHECK: %[[V9:[^ ,:)]+]] = dtc.broadcast %[[ARG1]] dims [1]
// CHECK: %[[V10:[^ ,:)]+]] = dtc.mul %[[V8]], %[[V9]]
// CHECK: return %[[V10]], %[[V6]]
func.func @rms_norm(%x: tensor<3x4xf32>, %gamma: tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3xf32>) {
  %0:2 = dtc.rms_norm %x, %gamma {eps = 1.0e-5} : (tensor<3x4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3xf32>)
  return %0#0, %0#1 : tensor<3x4xf32>, tensor<3xf32>
}

// CHECK-LABEL: func.func @rms_norm_grad(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<3x4xf32>, %[[ARG1:[^ ,:)]+]]: tensor<4xf32>, %[[ARG2:[^ ,:)]+]]: tensor<3xf32>, %[[ARG3:[^ ,:)]+]]: tensor<3x4xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.broadcast %[[ARG2]] dims [0]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.mul %[[ARG0]], %[[V0]]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.broadcast %[[ARG1]] dims [1]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.mul %[[ARG3]], %[[V2]]
// CHECK: %[[V4:[^ ,:)]+]] = dtc.mul %[[V3]], %[[V1]]
// CHECK: %[[V5:[^ ,:)]+]] = dtc.reduce sum %[[V4]] dims [1]
// CHECK: %[[V6:[^ ,:)]+]] = dtc.constant dense<2.500000e-01> : tensor<3xf32>
// CHECK: %[[V7:[^ ,:)]+]] = dtc.mul %[[V5]], %[[V6]]
// CHECK: %[[V8:[^ ,:)]+]] = dtc.broadcast %[[V7]] dims [0]
// CHECK: %[[V9:[^ ,:)]+]] = dtc.mul %[[V1]], %[[V8]]
// CHECK: %[[V10:[^ ,:)]+]] = dtc.sub %[[V3]], %[[V9]]
// CHECK: %[[V11:[^ ,:)]+]] = dtc.mul %[[V0]], %[[V10]]
// CHECK: %[[V12:[^ ,:)]+]] = dtc.mul %[[ARG3]], %[[V1]]
// CHECK: %[[V13:[^ ,:)]+]] = dtc.reduce sum %[[V12]] dims [0]
// CHECK: return %[[V11]], %[[V13]]
func.func @rms_norm_grad(%x: tensor<3x4xf32>, %gamma: tensor<4xf32>, %rstd: tensor<3xf32>, %dy: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>) {
  %0:2 = dtc.rms_norm_grad %x, %gamma, %rstd, %dy : (tensor<3x4xf32>, tensor<4xf32>, tensor<3xf32>, tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<3x4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @cross_entropy(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x8xf32>, %[[ARG1:[^ ,:)]+]]: tensor<2x3xi32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.reduce max %[[ARG0]] dims [2]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.broadcast %[[V0]] dims [0, 1]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.sub %[[ARG0]], %[[V1]]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.exp %[[V2]]
// CHECK: %[[V4:[^ ,:)]+]] = dtc.reduce sum %[[V3]] dims [2]
// CHECK: %[[V5:[^ ,:)]+]] = dtc.log %[[V4]]
// CHECK: %[[V6:[^ ,:)]+]] = dtc.add %[[V5]], %[[V0]]
// CHECK: %[[V7:[^ ,:)]+]] = dtc.pick %[[ARG0]], %[[ARG1]]
// CHECK: %[[V8:[^ ,:)]+]] = dtc.sub %[[V6]], %[[V7]]
// CHECK: return %[[V8]], %[[V6]]
func.func @cross_entropy(%logits: tensor<2x3x8xf32>, %labels: tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0:2 = dtc.cross_entropy %logits, %labels : (tensor<2x3x8xf32>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return %0#0, %0#1 : tensor<2x3xf32>, tensor<2x3xf32>
}

// (1 - s) of the label's logit, and s of the mean of all.
// CHECK-LABEL: func.func @label_smoothing(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<3x8xf32>, %[[ARG1:[^ ,:)]+]]: tensor<3xi32>
// CHECK: %[[LSE:[^ ,:)]+]] = dtc.add
// CHECK: %[[LABEL:[^ ,:)]+]] = dtc.pick %[[ARG0]], %[[ARG1]]
// CHECK: %[[REST:[^ ,:)]+]] = dtc.constant dense<7.500000e-01> : tensor<3xf32>
// CHECK: %[[V0:[^ ,:)]+]] = dtc.mul %[[LABEL]], %[[REST]]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.sub %[[LSE]], %[[V0]]
// CHECK: %[[SUM:[^ ,:)]+]] = dtc.reduce sum %[[ARG0]] dims [1]
// CHECK: %[[EIGHTH:[^ ,:)]+]] = dtc.constant dense<1.250000e-01> : tensor<3xf32>
// CHECK: %[[MEAN:[^ ,:)]+]] = dtc.mul %[[SUM]], %[[EIGHTH]]
// CHECK: %[[SMOOTHING:[^ ,:)]+]] = dtc.constant dense<2.500000e-01> : tensor<3xf32>
// CHECK: %[[V2:[^ ,:)]+]] = dtc.mul %[[MEAN]], %[[SMOOTHING]]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.sub %[[V1]], %[[V2]]
// CHECK: return %[[V3]], %[[LSE]]
func.func @label_smoothing(%logits: tensor<3x8xf32>, %labels: tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0:2 = dtc.cross_entropy %logits, %labels {label_smoothing = 0.25} : (tensor<3x8xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>)
  return %0#0, %0#1 : tensor<3xf32>, tensor<3xf32>
}

// 16-bit floats are widened first, and the result is rounded once; statistics are not rounded.
// CHECK-LABEL: func.func @rms_norm_low(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<3x4xbf16>, %[[ARG1:[^ ,:)]+]]: tensor<4xbf16>
// CHECK: %[[X:[^ ,:)]+]] = dtc.convert %[[ARG0]] : (tensor<3x4xbf16>) -> tensor<3x4xf32>
// CHECK: %[[GAMMA:[^ ,:)]+]] = dtc.convert %[[ARG1]] : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK: dtc.mul %[[X]], %[[X]] : tensor<3x4xf32>
// CHECK: %[[RSTD:[^ ,:)]+]] = dtc.rsqrt %{{.*}} : tensor<3xf32>
// CHECK: dtc.broadcast %[[GAMMA]]
// CHECK: %[[Y:[^ ,:)]+]] = dtc.mul %{{.*}} : tensor<3x4xf32>
// CHECK: %[[ROUNDED:[^ ,:)]+]] = dtc.convert %[[Y]] : (tensor<3x4xf32>) -> tensor<3x4xbf16>
// CHECK: return %[[ROUNDED]], %[[RSTD]]
func.func @rms_norm_low(%x: tensor<3x4xbf16>, %gamma: tensor<4xbf16>) -> (tensor<3x4xbf16>, tensor<3xf32>) {
  %0:2 = dtc.rms_norm %x, %gamma {eps = 1.0e-5} : (tensor<3x4xbf16>, tensor<4xbf16>) -> (tensor<3x4xbf16>, tensor<3xf32>)
  return %0#0, %0#1 : tensor<3x4xbf16>, tensor<3xf32>
}

// Other ops have no simpler form.
// CHECK-LABEL: func.func @attention(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<2x3x4x2xf32>
// CHECK: %[[OUT:[^ ,:)]+]], %[[LSE:[^ ,:)]+]] = dtc.attention %[[ARG0]], %[[ARG0]], %[[ARG0]] {causal = true, scale = 1.000000e+00 : f64}
// CHECK: return %[[OUT]]
func.func @attention(%q: tensor<2x3x4x2xf32>) -> tensor<2x3x4x2xf32> {
  %0:2 = dtc.attention %q, %q, %q {causal = true, scale = 1.0} : (tensor<2x3x4x2xf32>, tensor<2x3x4x2xf32>, tensor<2x3x4x2xf32>) -> (tensor<2x3x4x2xf32>, tensor<2x4x3xf32>)
  return %0#0 : tensor<2x3x4x2xf32>
}
