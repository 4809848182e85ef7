// RUN: dtc-opt %s --split-input-file --dtc-optimize-collectives=bucket-bytes=0 | FileCheck %s

// A collective starts right after the op that makes its operand, so that what does not need it can overlap with it.
// CHECK-LABEL: func.func @behind_operand
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[A:.*]] = dtc.exp %[[X]]
// CHECK-NEXT: %[[R:.*]] = dist.all_reduce sum %[[A]]
// CHECK-NEXT: %[[B:.*]] = dtc.neg %[[X]]
// CHECK-NEXT: %[[C:.*]] = dtc.exp %[[B]]
// CHECK-NEXT: %[[D:.*]] = dtc.add %[[C]], %[[R]]
// CHECK-NEXT: return %[[D]]
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @behind_operand(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = dtc.exp %x : tensor<4xf32>
  %b = dtc.neg %x : tensor<4xf32>
  %c = dtc.exp %b : tensor<4xf32>
  %r = dist.all_reduce sum %a over @mesh ["dp"] : tensor<4xf32>
  %d = dtc.add %c, %r : tensor<4xf32>
  return %d : tensor<4xf32>
}

// -----

// Every kind, in a chain: each one after the one before.
// CHECK-LABEL: func.func @kinds
// CHECK-NEXT: %[[A:.*]] = dtc.exp
// CHECK-NEXT: %[[P:.*]] = dist.permute %[[A]]
// CHECK-NEXT: %[[S:.*]] = dist.reduce_scatter sum %[[P]]
// CHECK-NEXT: %[[T:.*]] = dist.all_to_all %[[S]]
// CHECK-NEXT: %[[G:.*]] = dist.all_gather %[[T]]
// CHECK-NEXT: %[[R:.*]] = dist.all_reduce max %[[G]]
// CHECK-NEXT: %[[B:.*]] = dtc.neg
// CHECK-NEXT: return %[[R]], %[[B]]
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @kinds(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %a = dtc.exp %x : tensor<4x4xf32>
  %b = dtc.neg %x : tensor<4x4xf32>
  %p = dist.permute %a over @mesh ["dp", "tp"] from ["tp", "dp"] : tensor<4x4xf32>
  %s = dist.reduce_scatter sum %p dim 0 over @mesh ["dp"] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %t = dist.all_to_all %s split_dim 1 dim 0 over @mesh ["dp"] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %g = dist.all_gather %t dim 1 over @mesh ["dp"] : (tensor<4x2xf32>) -> tensor<4x4xf32>
  %r = dist.all_reduce max %g over @mesh ["tp"] : tensor<4x4xf32>
  return %r, %b : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A collective of a value from outside stays at its use: at the start its result would only be held.
// CHECK-LABEL: func.func @arguments
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[W:.*]]: tensor<2xf32>)
// CHECK-NEXT: %[[A:.*]] = dtc.exp %[[X]]
// CHECK-NEXT: %[[G:.*]] = dist.all_gather %[[W]]
// CHECK-NEXT: dtc.add %[[A]], %[[G]]
dist.mesh @mesh <"dp"=2>
func.func @arguments(%x: tensor<4xf32>, %w: tensor<2xf32>) -> tensor<4xf32> {
  %a = dtc.exp %x : tensor<4xf32>
  %g = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
  %b = dtc.add %a, %g : tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

// Collectives of one value keep their order, which all devices must agree on.
// CHECK-LABEL: func.func @one_operand
// CHECK-NEXT: %[[A:.*]] = dtc.exp
// CHECK-NEXT: dist.all_reduce sum %[[A]]
// CHECK-NEXT: dist.all_reduce max %[[A]]
// CHECK-NEXT: dist.all_reduce min %[[A]]
// CHECK-NEXT: dtc.neg
dist.mesh @mesh <"dp"=2>
func.func @one_operand(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = dtc.exp %x : tensor<4xf32>
  %b = dtc.neg %x : tensor<4xf32>
  %r = dist.all_reduce sum %a over @mesh ["dp"] : tensor<4xf32>
  %s = dist.all_reduce max %a over @mesh ["dp"] : tensor<4xf32>
  %t = dist.all_reduce min %a over @mesh ["dp"] : tensor<4xf32>
  return %r, %s, %t, %b : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// In the loop as well as around it. Values from outside are not made in the loop, so their collective stays.
// CHECK-LABEL: func.func @loop
// CHECK-NEXT: %[[W:.*]] = dtc.exp
// CHECK-NEXT: dist.all_reduce sum %[[W]] over @mesh ["tp"]
// CHECK-NEXT: %[[L:.*]] = dist.microbatch_loop
// CHECK-NEXT: %[[S:.*]] = dist.shard_slice
// CHECK-NEXT: %[[A:.*]] = dtc.exp %[[S]]
// CHECK-NEXT: %[[RA:.*]] = dist.all_reduce sum %[[A]] over @mesh ["tp"]
// CHECK-NEXT: dtc.neg
// CHECK-NEXT: dist.all_reduce max %[[W]] over @mesh ["tp"]
// CHECK: dist.yield
// CHECK: }
// CHECK-NEXT: dist.all_reduce sum %[[L]] over @mesh ["dp"]
// CHECK-NEXT: dtc.neg
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=2 temporal>
func.func @loop(%x: tensor<8xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = dtc.exp %w : tensor<4xf32>
  %l = dist.microbatch_loop @mesh "micro" : tensor<4xf32> {
    %s = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<8xf32>) -> tensor<4xf32>
    %a = dtc.exp %s : tensor<4xf32>
    %n = dtc.neg %s : tensor<4xf32>
    %ra = dist.all_reduce sum %a over @mesh ["tp"] : tensor<4xf32>
    %rw = dist.all_reduce max %0 over @mesh ["tp"] : tensor<4xf32>
    %m = dtc.mul %ra, %rw : tensor<4xf32>
    %p = dtc.mul %m, %n : tensor<4xf32>
    dist.yield %p : tensor<4xf32>
  }
  %n = dtc.neg %0 : tensor<4xf32>
  %r0 = dist.all_reduce sum %0 over @mesh ["tp"] : tensor<4xf32>
  %r = dist.all_reduce sum %l over @mesh ["dp"] : tensor<4xf32>
  %q = dtc.add %r0, %n : tensor<4xf32>
  return %r, %q : tensor<4xf32>, tensor<4xf32>
}

// -----

// 0 bytes: no buckets, however small collectives are.
// CHECK-LABEL: func.func @no_buckets
// CHECK-NOT: dist.bucket
dist.mesh @mesh <"dp"=2>
func.func @no_buckets(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = dist.all_reduce sum %x over @mesh ["dp"] : tensor<4xf32>
  %1 = dist.all_reduce sum %y over @mesh ["dp"] : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
