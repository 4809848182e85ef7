// RUN: dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages -o /dev/null 2>&1 | FileCheck %s
// RUN: dtc-opt %s --dtc-build-train-step="optimizer=none number-ops=true" --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages -o /dev/null 2>&1 | FileCheck %s --check-prefix=TRAIN

// For each stage a remark with its ends and its part of the time.
// CHECK: remark: loc("h.0.fc"): stage 0 goes from h.0.fc to h.0.proj: 2 of 5 ops, 49.9% of the estimated time
// CHECK: partition-stages-remarks.mlir:[[#@LINE+10]]:8: remark: stage 1 goes from {{.*}}:[[#@LINE+10]]:8 to {{.*}}:[[#@LINE+12]]:10: 3 of 5 ops, 50.1% of the estimated time
// CHECK-NOT: remark

// Ops of the loss are counted, with the time of their gradients. The first layer has none for its input.
// TRAIN: stage 0 goes from h.0.fc to h.0.proj: 2 of 5 ops, 45.4% of the estimated time
// TRAIN: stage 1 goes from {{.*}}: 3 of 5 ops, 54.6% of the estimated time
dist.mesh @mesh <"pp"=2 pipeline link 1.0e12 0.0, "micro"=4 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
func.func @loss(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("h.0.fc")
  %1 = dtc.einsum "bi,io->bo" %0, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("h.0.proj")
  %2 = dtc.einsum "bi,io->bo" %1, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = dtc.einsum "bi,io->bo" %2, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("h.1.proj")
  %sum = dtc.reduce sum %3 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
