// RUN: dtc-opt %s --dtc-optimize-collectives=bucket-bytes=40 | FileCheck %s

// A follower, %f, fills a bucket that waits over its axes. What follows it, %g, large enough to stay alone, must come
// after that bucket.
// CHECK-LABEL: func.func @follower_fills_bucket
// CHECK: dist.all_reduce sum %{{.*}} over @mesh ["dp"]
// CHECK: %[[B:.*]]:3 = dist.bucket
// CHECK: }
// CHECK: dist.all_gather %[[B]]#2
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @follower_fills_bucket(%x: tensor<5xf32>, %u: tensor<4xf32>, %v: tensor<3xf32>)
    -> (tensor<5xf32>, tensor<10xf32>, tensor<4xf32>, tensor<3xf32>) {
  %p = dist.all_reduce sum %u over @mesh ["tp"] : tensor<4xf32>
  %q = dist.all_reduce sum %v over @mesh ["tp"] : tensor<3xf32>
  %m = dist.all_reduce sum %x over @mesh ["dp"] : tensor<5xf32>
  %f = dist.all_reduce sum %m over @mesh ["tp"] : tensor<5xf32>
  %g = dist.all_gather %f dim 0 over @mesh ["dp"] : (tensor<5xf32>) -> tensor<10xf32>
  %n = dtc.neg %m : tensor<5xf32>
  return %n, %g, %p, %q : tensor<5xf32>, tensor<10xf32>, tensor<4xf32>, tensor<3xf32>
}
