// RUN: dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages | FileCheck %s

// A reshape moves nothing when the plan runs: a stage of reshapes would be none.
// CHECK: dtc.einsum{{.*}}#dist.stage<0 forward>
// CHECK: dtc.reshape{{.*}}#dist.stage<0 forward>
// CHECK: dtc.reshape{{.*}}#dist.stage<0 forward>
// CHECK: dtc.einsum{{.*}}#dist.stage<1 forward>
// CHECK: dtc.reduce{{.*}}#dist.stage<2 forward>
dist.mesh @mesh <"pp"=3 pipeline link 1.0e12 0.0, "micro"=4 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
func.func @loss(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dtc.reshape %0 : (tensor<64x64xf32>) -> tensor<64x8x8xf32>
  %2 = dtc.reshape %1 : (tensor<64x8x8xf32>) -> tensor<64x64xf32>
  %3 = dtc.einsum "bi,io->bo" %2, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = dtc.reduce sum %3 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %4 : tensor<f32>
}
