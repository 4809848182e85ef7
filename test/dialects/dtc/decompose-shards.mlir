// RUN: dtc-opt %s --test-decompose=shards=4 | FileCheck %s

// Each shard of the classes keeps the fused op, and no tensor of the shape of the logits is widened. Without a label, the
// loss of a shard is its lse less the part of label smoothing.
// CHECK-LABEL: func.func @shards(
// CHECK-SAME: %[[ARG0:[^ ,:)]+]]: tensor<3x8xbf16>, %[[ARG1:[^ ,:)]+]]: tensor<3xi32>
// CHECK: %[[SPLIT:[^ ,:)]+]] = dtc.reshape %[[ARG0]] : (tensor<3x8xbf16>) -> tensor<3x4x2xbf16>
// CHECK: %[[NONE:[^ ,:)]+]] = dtc.constant dense<-1> : tensor<3x4xi32>
// CHECK: %[[PART:[^ ,:)]+]], %[[PART_LSE:[^ ,:)]+]] = dtc.cross_entropy %[[SPLIT]], %[[NONE]] {label_smoothing = 2.500000e-01 : f64} : (tensor<3x4x2xbf16>, tensor<3x4xi32>) -> (tensor<3x4xf32>, tensor<3x4xf32>)
// CHECK: %[[MAX:[^ ,:)]+]] = dtc.reduce max %[[PART_LSE]] dims [1]
// CHECK: %[[V0:[^ ,:)]+]] = dtc.broadcast %[[MAX]] dims [0]
// CHECK: %[[V1:[^ ,:)]+]] = dtc.sub %[[PART_LSE]], %[[V0]]
// CHECK: %[[V2:[^ ,:)]+]] = dtc.exp %[[V1]]
// CHECK: %[[V3:[^ ,:)]+]] = dtc.reduce sum %[[V2]] dims [1]
// CHECK: %[[V4:[^ ,:)]+]] = dtc.log %[[V3]]
// CHECK: %[[LSE:[^ ,:)]+]] = dtc.add %[[V4]], %[[MAX]]
// CHECK: %[[PICKED:[^ ,:)]+]] = dtc.pick %[[ARG0]], %[[ARG1]] : (tensor<3x8xbf16>, tensor<3xi32>) -> tensor<3xbf16>
// CHECK: %[[LABEL:[^ ,:)]+]] = dtc.convert %[[PICKED]]
// CHECK: %[[REST:[^ ,:)]+]] = dtc.constant dense<7.500000e-01> : tensor<3xf32>
// CHECK: %[[V5:[^ ,:)]+]] = dtc.mul %[[LABEL]], %[[REST]]
// CHECK: %[[V6:[^ ,:)]+]] = dtc.sub %[[LSE]], %[[V5]]
// CHECK: %[[V7:[^ ,:)]+]] = dtc.sub %[[PART_LSE]], %[[PART]]
// CHECK: %[[V8:[^ ,:)]+]] = dtc.reduce sum %[[V7]] dims [1]
// CHECK: %[[QUARTER:[^ ,:)]+]] = dtc.constant dense<2.500000e-01> : tensor<3xf32>
// CHECK: %[[V9:[^ ,:)]+]] = dtc.mul %[[V8]], %[[QUARTER]]
// CHECK: %[[LOSS:[^ ,:)]+]] = dtc.sub %[[V6]], %[[V9]]
// CHECK: return %[[LOSS]], %[[LSE]]
func.func @shards(%logits: tensor<3x8xbf16>, %labels: tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0:2 = dtc.cross_entropy %logits, %labels {label_smoothing = 0.25} : (tensor<3x8xbf16>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>)
  return %0#0, %0#1 : tensor<3xf32>, tensor<3xf32>
}

// Shards of unequal sizes have no op of their own.
// CHECK-LABEL: func.func @unequal_shards(
// CHECK-NOT: dtc.cross_entropy
// CHECK: dtc.pick %{{.*}} : (tensor<3x7xf32>, tensor<3xi32>) -> tensor<3xf32>
func.func @unequal_shards(%logits: tensor<3x7xbf16>, %labels: tensor<3xi32>) -> tensor<3xf32> {
  %0:2 = dtc.cross_entropy %logits, %labels : (tensor<3x7xbf16>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>)
  return %0#0 : tensor<3xf32>
}
