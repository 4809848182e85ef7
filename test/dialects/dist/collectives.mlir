// RUN: dtc-opt %s | dtc-opt | FileCheck %s
// RUN: dtc-opt %s --mlir-print-op-generic | dtc-opt | FileCheck %s
// RUN: dtc-opt %s --emit-bytecode | dtc-opt | FileCheck %s

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

// CHECK-LABEL: func.func @permute(
func.func @permute(%x: tensor<16x8xf32>, %i: tensor<4xi32>) {
  // CHECK: dist.permute %{{.*}} over @mesh ["dp", "tp"] from ["tp", "dp"] : tensor<16x8xf32>
  %0 = dist.permute %x over @mesh ["dp", "tp"] from ["tp", "dp"] : tensor<16x8xf32>
  // The same order: each device gets its own value.
  // CHECK: dist.permute %{{.*}} over @mesh ["tp"] from ["tp"] {note = 1 : i64} : tensor<4xi32>
  %1 = dist.permute %i over @mesh ["tp"] from ["tp"] {note = 1} : tensor<4xi32>
  return
}

// CHECK-LABEL: func.func @buckets(
func.func @buckets(%x: tensor<16x8xf32>, %y: tensor<4xf32>) -> (tensor<16x8xf32>, tensor<4xf32>) {
  // CHECK: %[[B:.*]]:2 = dist.bucket -> tensor<16x8xf32>, tensor<4xf32> {
  // CHECK-NEXT: %[[P:.*]] = dist.all_reduce sum %{{.*}} over @mesh ["dp"] : tensor<16x8xf32>
  // CHECK-NEXT: %[[Q:.*]] = dist.all_reduce sum %{{.*}} over @mesh ["dp"] : tensor<4xf32>
  // CHECK-NEXT: dist.yield %[[P]], %[[Q]] : tensor<16x8xf32>, tensor<4xf32>
  // CHECK-NEXT: }
  %0:2 = dist.bucket -> tensor<16x8xf32>, tensor<4xf32> {
    %a = dist.all_reduce sum %x over @mesh ["dp"] : tensor<16x8xf32>
    %b = dist.all_reduce sum %y over @mesh ["dp"] : tensor<4xf32>
    dist.yield %a, %b : tensor<16x8xf32>, tensor<4xf32>
  }
  // Each tensor has its own dimension.
  // CHECK: dist.bucket -> tensor<32x8xf32>, tensor<16x16xf32> {
  %1:2 = dist.bucket -> tensor<32x8xf32>, tensor<16x16xf32> {
    %a = dist.all_gather %x dim 0 over @mesh ["dp"] : (tensor<16x8xf32>) -> tensor<32x8xf32>
    %b = dist.all_gather %x dim 1 over @mesh ["dp"] : (tensor<16x8xf32>) -> tensor<16x16xf32>
    dist.yield %a, %b : tensor<32x8xf32>, tensor<16x16xf32>
  }
  // CHECK: dist.bucket -> tensor<16x8xf32>, tensor<4xf32> {
  // CHECK-NEXT: dist.permute
  // CHECK-NEXT: dist.permute
  %2:2 = dist.bucket -> tensor<16x8xf32>, tensor<4xf32> {
    %a = dist.permute %x over @mesh ["dp", "tp"] from ["tp", "dp"] : tensor<16x8xf32>
    %b = dist.permute %y over @mesh ["dp", "tp"] from ["tp", "dp"] : tensor<4xf32>
    dist.yield %a, %b : tensor<16x8xf32>, tensor<4xf32>
  }
  // CHECK: dist.bucket attributes {note = 1 : i64} {
  // CHECK-NEXT: }
  dist.bucket attributes {note = 1} {
  }
  return %0#0, %0#1 : tensor<16x8xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @padding(
func.func @padding(%x: tensor<5x3xf32>, %i: tensor<3xi32>) {
  // 5 elements over two axes of 2 and 4: room for one each.
  // CHECK: dist.shard_slice %{{.*}} dim 0 over @mesh ["dp", "tp"] : (tensor<5x3xf32>) -> tensor<1x3xf32>
  %0 = dist.shard_slice %x dim 0 over @mesh ["dp", "tp"] : (tensor<5x3xf32>) -> tensor<1x3xf32>
  // CHECK: dist.shard_slice %{{.*}} dim 1 over @mesh ["dp"] : (tensor<5x3xf32>) -> tensor<5x2xf32>
  %1 = dist.shard_slice %x dim 1 over @mesh ["dp"] : (tensor<5x3xf32>) -> tensor<5x2xf32>
  // CHECK: dist.mask_padding zero %{{.*}} dim 0 of 9 over @mesh ["dp"] : tensor<5x3xf32>
  %2 = dist.mask_padding zero %x dim 0 of 9 over @mesh ["dp"] : tensor<5x3xf32>
  // CHECK: dist.mask_padding lowest %{{.*}} dim 1 of 20 over @mesh ["dp", "tp"] : tensor<5x3xf32>
  %3 = dist.mask_padding lowest %x dim 1 of 20 over @mesh ["dp", "tp"] : tensor<5x3xf32>
  // CHECK: dist.mask_padding highest %{{.*}} dim 0 of 17 over @mesh ["micro"] : tensor<3xi32>
  %4 = dist.mask_padding highest %i dim 0 of 17 over @mesh ["micro"] : tensor<3xi32>
  return
}
