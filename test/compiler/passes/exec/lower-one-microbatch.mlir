// RUN: dtc-opt %s --dtc-lower-to-exec | FileCheck %s
// RUN: dtc-opt %s --dtc-lower-to-exec=keep-sums | FileCheck %s --check-prefix=SUMS

// A loop over one microbatch hands on its values, and is not marked: it cannot run again.
// CHECK-NOT: "accumulate"
// CHECK: exec.kernel "neg"
// CHECK-NOT: in_loop
// CHECK: exec.run
// CHECK-NOT: in_loop

// Where sums are to be kept it makes them, as a loop over several does.
// SUMS: exec.task @microbatch
// SUMS: exec.kernel "neg"(%{{.*}}) to(%[[VALUE:[^)]*]])
// SUMS-NEXT: exec.kernel "accumulate"(%[[VALUE]]) to(%{{[^)]*}}) {axis = "micro"}
// SUMS: exec.run @microbatch in_loop
// SUMS-NEXT: exec.run @update{{$}}
dist.mesh @mesh <"micro"=1 temporal>
func.func @step(%w: tensor<4xf32> {dtc.param = "w", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {dtc.output = "a", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %0 = dist.microbatch_loop @mesh "micro" : tensor<4xf32> {
    %1 = dtc.neg %w : tensor<4xf32>
    dist.yield %1 : tensor<4xf32>
  }
  %2 = dtc.exp %0 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
