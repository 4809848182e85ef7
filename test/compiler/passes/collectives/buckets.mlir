// RUN: dtc-opt %s --split-input-file --dtc-optimize-collectives=bucket-bytes=64 | FileCheck %s

// A bucket waits for more until one of its results is needed. It starts with the last that came.
// CHECK-LABEL: func.func @until_needed
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<2x2xf32>)
// CHECK-NEXT: %[[A:.*]] = dtc.exp %[[X]]
// CHECK-NEXT: %[[B:.*]] = dtc.exp %[[Y]]
// CHECK-NEXT: %[[R:.*]]:2 = dist.bucket -> tensor<4xf32>, tensor<2x2xf32> {
// CHECK-NEXT: %[[P:.*]] = dist.all_reduce sum %[[A]] over @mesh ["dp"]
// CHECK-NEXT: %[[Q:.*]] = dist.all_reduce sum %[[B]] over @mesh ["dp"]
// CHECK-NEXT: dist.yield %[[P]], %[[Q]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[C:.*]] = dtc.neg %[[X]]
// CHECK-NEXT: %[[D:.*]] = dtc.add %[[C]], %[[R]]#0
// CHECK-NEXT: return %[[D]], %[[R]]#1
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @until_needed(%x: tensor<4xf32>, %y: tensor<2x2xf32>) -> (tensor<4xf32>, tensor<2x2xf32>) {
  %a = dtc.exp %x : tensor<4xf32>
  %r = dist.all_reduce sum %a over @mesh ["dp"] : tensor<4xf32>
  %b = dtc.exp %y : tensor<2x2xf32>
  %s = dist.all_reduce sum %b over @mesh ["dp"] : tensor<2x2xf32>
  %c = dtc.neg %x : tensor<4xf32>
  %d = dtc.add %c, %r : tensor<4xf32>
  return %d, %s : tensor<4xf32>, tensor<2x2xf32>
}

// -----

// Needed at once: there is nothing to wait for, and a bucket of one is none.
// CHECK-LABEL: func.func @one_by_one
// CHECK-NOT: dist.bucket
// CHECK: return
dist.mesh @mesh <"dp"=2>
func.func @one_by_one(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = dist.all_reduce sum %x over @mesh ["dp"] : tensor<4xf32>
  %1 = dtc.exp %0 : tensor<4xf32>
  %2 = dist.all_reduce sum %1 over @mesh ["dp"] : tensor<4xf32>
  %3 = dtc.exp %2 : tensor<4xf32>
  return %3 : tensor<4xf32>
}

// -----

// 64 bytes: a bucket is closed with the collective that fills it, here the second of 32 bytes each, though nothing needs
// it yet. The third begins the next one.
// CHECK-LABEL: func.func @full
// CHECK-NEXT: %[[A:.*]] = dtc.exp
// CHECK-NEXT: %[[B:.*]] = dtc.neg
// CHECK-NEXT: %[[R:.*]]:2 = dist.bucket -> tensor<8xf32>, tensor<8xf32> {
// CHECK-NEXT: dist.all_reduce sum %[[A]]
// CHECK-NEXT: dist.all_reduce sum %[[B]]
// CHECK-NEXT: dist.yield
// CHECK-NEXT: }
// CHECK-NEXT: %[[C:.*]] = dtc.abs
// CHECK-NEXT: %[[S:.*]] = dist.all_reduce sum %[[C]]
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1, %[[S]]
dist.mesh @mesh <"dp"=2>
func.func @full(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %a = dtc.exp %x : tensor<8xf32>
  %r = dist.all_reduce sum %a over @mesh ["dp"] : tensor<8xf32>
  %b = dtc.neg %x : tensor<8xf32>
  %s = dist.all_reduce sum %b over @mesh ["dp"] : tensor<8xf32>
  %c = dtc.abs %x : tensor<8xf32>
  %t = dist.all_reduce sum %c over @mesh ["dp"] : tensor<8xf32>
  return %r, %s, %t : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// A collective of 64 bytes or more starts at once and alone; the larger side of it counts, here a gather's result (2 x
// 32 bytes) and a scatter's operand. Small ones around it still find each other.
// CHECK-LABEL: func.func @large
// CHECK-NEXT: %[[A:.*]] = dtc.exp
// CHECK-NEXT: %[[G:.*]] = dist.all_gather %[[A]] {{.*}} -> tensor<16xf32>
// CHECK-NEXT: %[[B:.*]] = dtc.neg
// CHECK-NEXT: %[[H:.*]]:2 = dist.bucket -> tensor<4xf32>, tensor<8xf32> {
// CHECK: }
// CHECK-NEXT: return %[[H]]#0, %[[G]], %[[H]]#1
dist.mesh @mesh <"dp"=2>
func.func @large(%x: tensor<8xf32>, %u: tensor<2xf32>, %v: tensor<4xf32>) -> (tensor<4xf32>, tensor<16xf32>, tensor<8xf32>) {
  %f = dist.all_gather %u dim 0 over @mesh ["dp"] : (tensor<2xf32>) -> tensor<4xf32>
  %a = dtc.exp %x : tensor<8xf32>
  %g = dist.all_gather %a dim 0 over @mesh ["dp"] : (tensor<8xf32>) -> tensor<16xf32>
  %b = dtc.neg %v : tensor<4xf32>
  %h = dist.all_gather %b dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
  return %f, %g, %h : tensor<4xf32>, tensor<16xf32>, tensor<8xf32>
}

// -----

// The group, the kind and the element type: each kind has its own bucket.
// CHECK-LABEL: func.func @kinds
// CHECK-DAG: dist.bucket -> tensor<1xf32>, tensor<2xf32> {
// CHECK-DAG: dist.all_reduce sum %{{.*}} over @mesh ["dp"] : tensor<1xf32>
// CHECK-DAG: dist.all_reduce sum %{{.*}} over @mesh ["dp"] : tensor<2xf32>
// CHECK-NOT: dist.bucket
// CHECK: return
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @kinds(%a: tensor<1xf32>, %b: tensor<1xf32>, %c: tensor<1xf32>, %d: tensor<1xf64>, %e: tensor<1xf32>, %f: tensor<2xf32>)
    -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf64>, tensor<2xf32>, tensor<2xf32>) {
  %0 = dist.all_reduce sum %a over @mesh ["dp"] : tensor<1xf32>
  %1 = dist.all_reduce sum %b over @mesh ["tp"] : tensor<1xf32>
  %2 = dist.all_reduce max %c over @mesh ["dp"] : tensor<1xf32>
  %3 = dist.all_reduce sum %d over @mesh ["dp"] : tensor<1xf64>
  %4 = dist.all_gather %e dim 0 over @mesh ["dp"] : (tensor<1xf32>) -> tensor<2xf32>
  %5 = dist.all_reduce sum %f over @mesh ["dp"] : tensor<2xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf64>, tensor<2xf32>, tensor<2xf32>
}

// -----

// Groups of the same devices in another order are others: rank 1 is not the same device.
// CHECK-LABEL: func.func @order_of_axes
// CHECK-NOT: dist.bucket
// CHECK: return
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @order_of_axes(%x: tensor<1xf32>, %y: tensor<1xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = dist.all_gather %x dim 0 over @mesh ["dp", "tp"] : (tensor<1xf32>) -> tensor<4xf32>
  %1 = dist.all_gather %y dim 0 over @mesh ["tp", "dp"] : (tensor<1xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// The sum over replicas of what was just scattered: first all that is scattered, then all the sums.
// CHECK-LABEL: func.func @chains
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<2xf32>)
// CHECK-NEXT: %[[S:.*]]:2 = dist.bucket -> tensor<2xf32>, tensor<1xf32> {
// CHECK-NEXT: dist.reduce_scatter sum %[[X]]
// CHECK-NEXT: dist.reduce_scatter sum %[[Y]]
// CHECK-NEXT: dist.yield
// CHECK-NEXT: }
// CHECK-NEXT: %[[R:.*]]:2 = dist.bucket -> tensor<2xf32>, tensor<1xf32> {
// CHECK-NEXT: dist.all_reduce sum %[[S]]#0
// CHECK-NEXT: dist.all_reduce sum %[[S]]#1
// CHECK-NEXT: dist.yield
// CHECK-NEXT: }
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1
dist.mesh @mesh <"fsdp"=2, "dp"=2>
func.func @chains(%x: tensor<4xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<1xf32>) {
  %a = dist.reduce_scatter sum %x dim 0 over @mesh ["fsdp"] : (tensor<4xf32>) -> tensor<2xf32>
  %b = dist.all_reduce sum %a over @mesh ["dp"] : tensor<2xf32>
  %c = dist.reduce_scatter sum %y dim 0 over @mesh ["fsdp"] : (tensor<2xf32>) -> tensor<1xf32>
  %d = dist.all_reduce sum %c over @mesh ["dp"] : tensor<1xf32>
  return %b, %d : tensor<2xf32>, tensor<1xf32>
}

// -----

// Three in a chain.
// CHECK-LABEL: func.func @long_chains
// CHECK: %[[S:.*]]:2 = dist.bucket
// CHECK-NEXT: dist.reduce_scatter
// CHECK-NEXT: dist.reduce_scatter
// CHECK: %[[R:.*]]:2 = dist.bucket
// CHECK-NEXT: dist.all_reduce sum %[[S]]#0
// CHECK-NEXT: dist.all_reduce sum %[[S]]#1
// CHECK: %[[G:.*]]:2 = dist.bucket
// CHECK-NEXT: dist.all_gather %[[R]]#0
// CHECK-NEXT: dist.all_gather %[[R]]#1
// CHECK: return %[[G]]#0, %[[G]]#1
dist.mesh @mesh <"fsdp"=2, "dp"=2>
func.func @long_chains(%x: tensor<4xf32>, %y: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  %a = dist.reduce_scatter sum %x dim 0 over @mesh ["fsdp"] : (tensor<4xf32>) -> tensor<2xf32>
  %b = dist.all_reduce sum %a over @mesh ["dp"] : tensor<2xf32>
  %e = dist.all_gather %b dim 0 over @mesh ["fsdp"] : (tensor<2xf32>) -> tensor<4xf32>
  %c = dist.reduce_scatter sum %y dim 0 over @mesh ["fsdp"] : (tensor<2xf32>) -> tensor<1xf32>
  %d = dist.all_reduce sum %c over @mesh ["dp"] : tensor<1xf32>
  %f = dist.all_gather %d dim 0 over @mesh ["fsdp"] : (tensor<1xf32>) -> tensor<2xf32>
  return %e, %f : tensor<4xf32>, tensor<2xf32>
}

// -----

// The loop's body has its own buckets, full or not, and reading a result in the body is a need for it too.
// CHECK-LABEL: func.func @loop
// CHECK: %[[B:.*]]:2 = dist.bucket
// CHECK: }
// CHECK-NEXT: dist.microbatch_loop
// CHECK: dtc.mul %{{.*}}, %[[B]]#0
// CHECK: %[[I:.*]]:2 = dist.bucket
// CHECK: dist.yield
// CHECK-NEXT: }
// CHECK-NEXT: dist.yield %[[I]]#0, %[[I]]#1
// CHECK: }
// CHECK: return %{{.*}}, %{{.*}}, %[[B]]#1
dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
func.func @loop(%x: tensor<8xf32>, %w: tensor<4xf32>, %v: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = dist.all_reduce sum %w over @mesh ["dp"] : tensor<4xf32>
  %b = dist.all_reduce sum %v over @mesh ["dp"] : tensor<4xf32>
  %l:2 = dist.microbatch_loop @mesh "micro" : tensor<4xf32>, tensor<4xf32> {
    %s = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<8xf32>) -> tensor<4xf32>
    %m = dtc.mul %s, %a : tensor<4xf32>
    %r = dist.all_reduce sum %m over @mesh ["dp"] : tensor<4xf32>
    %n = dtc.neg %s : tensor<4xf32>
    %q = dist.all_reduce sum %n over @mesh ["dp"] : tensor<4xf32>
    dist.yield %r, %q : tensor<4xf32>, tensor<4xf32>
  }
  return %l#0, %l#1, %b : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Collectives of one chunk share a bucket, those of two chunks do not: one is to run while the other chunk is computed.
dist.mesh @mesh <"dp"=2>
// CHECK-LABEL: func @chunks
// CHECK: dist.bucket
// CHECK-NEXT: dist.all_reduce sum %{{.*}} {dist.chunk = 0 : i64} : tensor<4xf32>
// CHECK-NEXT: dist.all_reduce sum %{{.*}} {dist.chunk = 0 : i64} : tensor<4xf32>
// CHECK: dist.bucket
// CHECK-NEXT: dist.all_reduce sum %{{.*}} {dist.chunk = 1 : i64} : tensor<4xf32>
// CHECK-NEXT: dist.all_reduce sum %{{.*}} {dist.chunk = 1 : i64} : tensor<4xf32>
func.func @chunks(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = dist.all_reduce sum %a over @mesh ["dp"] {dist.chunk = 0 : i64} : tensor<4xf32>
  %1 = dist.all_reduce sum %b over @mesh ["dp"] {dist.chunk = 0 : i64} : tensor<4xf32>
  %2 = dist.all_reduce sum %a over @mesh ["dp"] {dist.chunk = 1 : i64} : tensor<4xf32>
  %3 = dist.all_reduce sum %b over @mesh ["dp"] {dist.chunk = 1 : i64} : tensor<4xf32>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
