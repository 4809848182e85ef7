// RUN: dtc-opt %s --dtc-lower-to-exec | FileCheck %s

// The estimated seconds of a task are those of its own instructions: with devices of one byte a second, what they read and
// write. Transfers are no work of the task.
// CHECK: exec.task @prepare seconds 3.200000e+01 {
// CHECK: exec.task @receive.0 seconds 0.000000e+00 {
// CHECK: exec.task @forward.0 pass forward 0 seconds 8.000000e+01 {
// CHECK: exec.task @update seconds 6.400000e+01 {
dist.mesh @mesh <"pp"=1 pipeline, "micro"=2 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0}
func.func @step.0(%w: tensor<4xf32> {dtc.param = "w", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {dtc.output = "y", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) attributes {dist.pipeline = {schedule = "1f1b", stages = 1}} {
  %0 = dtc.exp %w : tensor<4xf32>
  %1 = dist.microbatch_loop @mesh "micro" attributes {schedule = array<i64: 0, 0, 1, 0, 0, 1, 1, 1>} : tensor<4xf32> {
    %2 = dist.receive from 0 channel 0 : tensor<4xf32>
    %3 = dist.fragment forward 0 -> tensor<4xf32> {
      %4 = dtc.mul %0, %2 : tensor<4xf32>
      %5 = dtc.exp %4 : tensor<4xf32>
      dist.yield %5 : tensor<4xf32>
    }
    dist.yield %3 : tensor<4xf32>
  }
  %6 = dtc.exp %1 : tensor<4xf32>
  %7 = dtc.exp %6 : tensor<4xf32>
  return %7 : tensor<4xf32>
}
