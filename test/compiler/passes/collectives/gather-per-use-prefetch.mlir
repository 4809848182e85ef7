// RUN: dtc-opt %s --dtc-gather-parameters-per-use="axes=dp prefetch=0" | FileCheck %s --check-prefixes CHECK,NONE
// RUN: dtc-opt %s --dtc-gather-parameters-per-use="axes=dp prefetch=1" | FileCheck %s --check-prefixes CHECK,ONE
// RUN: dtc-opt %s --dtc-gather-parameters-per-use="axes=dp" | FileCheck %s --check-prefixes CHECK,ONE
// RUN: dtc-opt %s --dtc-gather-parameters-per-use="axes=dp prefetch=2" | FileCheck %s --check-prefixes CHECK,TWO
// RUN: dtc-opt %s --dtc-gather-parameters-per-use="axes=dp prefetch=1000" | FileCheck %s --check-prefixes CHECK,ALL

// RUN: dtc-opt %s --dtc-gather-parameters-per-use="axes=dp prefetch=0 bucket-bytes=32" | FileCheck %s --check-prefix SMALL
// RUN: dtc-opt %s --dtc-gather-parameters-per-use="axes=dp prefetch=0 bucket-bytes=0" | FileCheck %s --check-prefix SMALL
// RUN: dtc-opt %s --dtc-gather-parameters-per-use="axes=tp" | FileCheck %s --check-prefix SAME
// RUN: dtc-opt %s --dtc-gather-parameters-per-use | FileCheck %s --check-prefix SAME

// The gather is `prefetch` visits earlier, and never before the block: there a visit is in the loop, or not.
// CHECK-LABEL: func.func @prefetch
// CHECK-SAME: %[[U:[^:]*]]: tensor<4xf32> {dtc.param = "u"}, %[[V:[^:]*]]: tensor<4xf32> {dtc.param = "v"}, %[[W:[^:]*]]: tensor<4xf32> {dtc.param = "w"}

// NONE: dist.all_gather %[[U]]
// NONE-NEXT: dtc.exp
// NONE-NEXT: dist.all_gather %[[V]]
// NONE-NEXT: dtc.neg
// NONE-NEXT: dist.bucket
// NONE-NEXT: dist.all_gather %[[W]]
// NONE-NEXT: dist.all_gather %[[U]]
// NONE: }
// NONE-NEXT: dtc.mul
// NONE-NEXT: dist.microbatch_loop
// NONE-NEXT: dist.all_gather %[[W]]
// NONE-NEXT: dtc.abs

// ONE: dist.all_gather %[[U]]
// ONE-NEXT: dist.all_gather %[[V]]
// ONE-NEXT: dtc.exp
// ONE-NEXT: dist.bucket
// ONE-NEXT: dist.all_gather %[[W]]
// ONE-NEXT: dist.all_gather %[[U]]
// ONE: }
// ONE-NEXT: dtc.neg
// ONE-NEXT: dtc.mul
// ONE-NEXT: dist.microbatch_loop
// ONE-NEXT: dist.all_gather %[[W]]
// ONE-NEXT: dtc.abs

// TWO: dist.all_gather %[[U]]
// TWO-NEXT: dist.all_gather %[[V]]
// TWO-NEXT: dist.bucket
// TWO-NEXT: dist.all_gather %[[W]]
// TWO-NEXT: dist.all_gather %[[U]]
// TWO: }
// TWO-NEXT: dtc.exp
// TWO-NEXT: dtc.neg
// TWO-NEXT: dtc.mul
// TWO-NEXT: dist.microbatch_loop
// TWO-NEXT: dist.all_gather %[[W]]
// TWO-NEXT: dtc.abs

// ALL: dist.all_gather %[[U]]
// ALL-NEXT: dist.all_gather %[[V]]
// ALL-NEXT: dist.bucket
// ALL: }
// ALL-NEXT: dtc.exp
// ALL: dist.microbatch_loop
// ALL-NEXT: dist.all_gather %[[W]]

// Two gathers of 32 bytes each are more than a bucket of 32.
// SMALL-NOT: dist.bucket
// SMALL: dtc.neg
// SMALL-NEXT: dist.all_gather
// SMALL-NEXT: dist.all_gather
// SMALL-NEXT: dtc.mul
// SMALL-NOT: dist.bucket

// Gathers over other axes are none of its business.
// SAME-LABEL: func.func @prefetch
// SAME-NEXT: dist.all_gather
// SAME-NEXT: dist.all_gather
// SAME-NEXT: dist.all_gather
// SAME-NEXT: dtc.exp
// SAME-NOT: dist.all_gather
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=2 temporal>
func.func @prefetch(%u: tensor<4xf32> {dtc.param = "u"}, %v: tensor<4xf32> {dtc.param = "v"}, %w: tensor<4xf32> {dtc.param = "w"})
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %gu = dist.all_gather %u dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
  %gv = dist.all_gather %v dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
  %gw = dist.all_gather %w dim 0 over @mesh ["dp"] : (tensor<4xf32>) -> tensor<8xf32>
  %a = dtc.exp %gu : tensor<8xf32> loc("h.0")
  %b = dtc.neg %gv : tensor<8xf32> loc("h.1")
  %c = dtc.mul %gw, %gu : tensor<8xf32> loc("h.2")
  %l = dist.microbatch_loop @mesh "micro" : tensor<8xf32> {
    %d = dtc.abs %gw : tensor<8xf32> loc("h.3")
    dist.yield %d : tensor<8xf32>
  }
  return %a, %b, %c, %l : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
