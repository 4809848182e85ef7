// RUN: dtc-opt %s --dtc-propagate-shardings="shard=embed=tp,res=dp@1" | FileCheck %s

// A softmax whose row is split is written as simpler ops before the less urgent request for its result comes: the
// request is then for what stands for it.
// CHECK-LABEL: func.func @request
// CHECK-NOT: dtc.softmax
// CHECK: return %{{.*}} : tensor<8x16xf32>
// CHECK-NOT: dtc.softmax
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @request(%x: tensor<8x16xf32> {dtc.input = "x", dtc.axes = ["batch", "embed"]})
    -> (tensor<8x16xf32> {dtc.output = "y"}) {
  %y = dtc.softmax %x {dtc.axes = ["res", ""]} : tensor<8x16xf32>
  %z = dtc.softmax %y {dtc.axes = ["res", ""]} : tensor<8x16xf32>
  return %z : tensor<8x16xf32>
}
