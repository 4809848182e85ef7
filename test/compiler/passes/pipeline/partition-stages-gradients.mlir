// RUN: dtc-opt %s --split-input-file --dtc-build-train-step="optimizer=sgd number-ops=true" --canonicalize --cse --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages | FileCheck %s

// Gradients are computed in the stage of the op that they belong to, also of a parameter that two stages use: those are
// added once a step, and the ops after that have no stage either.
// CHECK-LABEL: func.func @train_step(
// CHECK-NOT: dtc.gradient_of
// CHECK-NOT: dtc.op =
// CHECK: dtc.einsum "bi,io->bo"{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.exp{{.*}}#dist.stage<0 forward>
// CHECK: dtc.einsum "bi,io->bo"{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum "bi,io->bo"{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.reduce{{.*}}#dist.stage<1 forward>
// CHECK: dtc.einsum "bo,io->bi"{{.*}}dist.stage = #dist.stage<1 backward>
// CHECK: %[[TIED1:.*]] = dtc.einsum "bi,bo->io"{{.*}}dist.stage = #dist.stage<1 backward>
// CHECK: dtc.einsum "bo,io->bi"{{.*}}dist.stage = #dist.stage<0 backward>
// CHECK: %[[V:.*]] = dtc.einsum "bi,bo->io"{{.*}}dist.stage = #dist.stage<0 backward>
// CHECK: dtc.mul{{.*}}#dist.stage<0 backward>
// CHECK: %[[TIED0:.*]] = dtc.einsum "bi,bo->io"{{.*}}dist.stage = #dist.stage<0 backward>
// CHECK-NOT: #dist.stage
// CHECK: dtc.add %[[TIED1]], %[[TIED0]]
// CHECK-NOT: #dist.stage
// CHECK: dtc.sgd
// CHECK-NOT: #dist.stage
// CHECK: return
dist.mesh @mesh <"pp"=2 pipeline link 1.0e12 0.0, "micro"=4 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
func.func @loss(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %v: tensor<64x64xf32> {dtc.param = "v"}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dtc.exp %0 : tensor<64x64xf32>
  %2 = dtc.einsum "bi,io->bo" %1, %v : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = dtc.einsum "bi,io->bo" %2, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %sum = dtc.reduce sum %3 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// Gradients of a value that skips a stage meet in the stage that made it.
// CHECK-LABEL: func.func @train_step(
// CHECK: dtc.einsum "bi,io->bo"{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum "bi,io->bo"{{.*}}dist.stage = #dist.stage<0 forward>
// CHECK: dtc.einsum "bi,io->bo"{{.*}}dist.stage = #dist.stage<1 forward>
// CHECK: dtc.add{{.*}}#dist.stage<1 forward>
// CHECK: dtc.einsum "bi,io->bo"{{.*}}dist.stage = #dist.stage<2 forward>
// CHECK: %[[D3:.*]] = dtc.einsum "bo,io->bi"{{.*}}dist.stage = #dist.stage<2 backward>
// CHECK: %[[D2:.*]] = dtc.einsum "bo,io->bi"{{.*}}dist.stage = #dist.stage<1 backward>
// CHECK: dtc.einsum "bi,bo->io"{{.*}}dist.stage = #dist.stage<1 backward>
// CHECK: %[[D1:.*]] = dtc.einsum "bo,io->bi"{{.*}}dist.stage = #dist.stage<0 backward>
// CHECK: dtc.einsum "bi,bo->io"{{.*}}dist.stage = #dist.stage<0 backward>
// CHECK: dtc.add %[[D3]], %[[D1]]{{.*}}#dist.stage<0 backward>
// CHECK: dtc.einsum "bi,bo->io"{{.*}}dist.stage = #dist.stage<0 backward>
dist.mesh @mesh <"pp"=3 pipeline link 1.0e12 0.0, "micro"=4 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
func.func @loss(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %v: tensor<64x64xf32> {dtc.param = "v"}, %w: tensor<64x64xf32> {dtc.param = "w"}, %a: tensor<64x64xf32> {dtc.param = "a"}, %b: tensor<64x64xf32> {dtc.param = "b"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %a : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dtc.einsum "bi,io->bo" %0, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = dtc.einsum "bi,io->bo" %1, %v : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = dtc.add %2, %0 : tensor<64x64xf32>
  %4 = dtc.einsum "bi,io->bo" %3, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %sum = dtc.reduce sum %4 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
