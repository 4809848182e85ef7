// RUN: dtc-opt %s --split-input-file --dtc-propagate-shardings --dtc-insert-reshards | FileCheck %s
// RUN: dtc-opt %s --split-input-file --dtc-propagate-shardings --dtc-insert-reshards --dtc-spmd-partition | FileCheck %s --check-prefix=LOOP

// Sums over microbatches that two stages of a pipeline make, the gradients of a parameter that both use, are completed
// before they are added, once a step: the loop of neither stage adds what the other one makes.
// CHECK-LABEL: func.func @two_stages(
// CHECK: %[[A:.*]] = dtc.einsum "bi,bo->io" %arg0, %arg0
// CHECK: %[[B:.*]] = dtc.einsum "bi,bo->io" %arg0, %arg1
// CHECK: %[[FULL_A:.*]] = dist.reshard %[[A]] from <@mesh, [{}, {}], partial = sum{"micro"}> to <@mesh, [{}, {}]>
// CHECK: %[[FULL_B:.*]] = dist.reshard %[[B]] from <@mesh, [{}, {}], partial = sum{"micro"}> to <@mesh, [{}, {}]>
// CHECK: dtc.add %[[FULL_A]], %[[FULL_B]]
// LOOP-LABEL: func.func @two_stages(
// LOOP: dist.microbatch_loop @mesh "micro" : tensor<4x4xf32>, tensor<4x4xf32> {
// LOOP-NOT: dtc.add
// LOOP: dist.yield
// LOOP: dtc.add
dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
func.func @two_stages(%x: tensor<8x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"micro"}, {}]>},
                      %y: tensor<8x4xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{"micro"}, {}]>}) -> tensor<4x4xf32> {
  %0 = dtc.einsum "bi,bo->io" %x, %x {dist.stage = #dist.stage<1 backward>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = dtc.einsum "bi,bo->io" %x, %y {dist.stage = #dist.stage<0 backward>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %2 = dtc.add %0, %1 : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// Those of one stage are added in the loop, so that the loop has one sum.
// CHECK-LABEL: func.func @one_stage(
// CHECK-NOT: dist.reshard
// CHECK: %[[SUM:.*]] = dtc.add {{.*}}partial = sum{"micro"}
// CHECK: dist.reshard %[[SUM]] from <@mesh, [{}, {}], partial = sum{"micro"}> to <@mesh, [{}, {}]>
// LOOP-LABEL: func.func @one_stage(
// LOOP: dist.microbatch_loop @mesh "micro" : tensor<4x4xf32> {
// LOOP: dtc.add
// LOOP: dist.yield
// LOOP-NOT: dtc.add
dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
func.func @one_stage(%x: tensor<8x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"micro"}, {}]>},
                     %y: tensor<8x4xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{"micro"}, {}]>}) -> tensor<4x4xf32> {
  %0 = dtc.einsum "bi,bo->io" %x, %x {dist.stage = #dist.stage<1 backward>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = dtc.einsum "bi,bo->io" %x, %y {dist.stage = #dist.stage<1 backward>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %2 = dtc.add %0, %1 : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}

// -----

// Sums over devices go on through the addition: on each device there is one of both stages' gradients, and one collective.
// CHECK-LABEL: func.func @devices(
// CHECK: %[[A:.*]] = dtc.einsum "bi,bo->io" %arg0, %arg0
// CHECK: %[[B:.*]] = dtc.einsum "bi,bo->io" %arg0, %arg1
// CHECK: %[[FULL_A:.*]] = dist.reshard %[[A]] from <@mesh, [{}, {}], partial = sum{"dp", "micro"}> to <@mesh, [{}, {}], partial = sum{"dp"}>
// CHECK: %[[FULL_B:.*]] = dist.reshard %[[B]] from <@mesh, [{}, {}], partial = sum{"dp", "micro"}> to <@mesh, [{}, {}], partial = sum{"dp"}>
// CHECK: %[[SUM:.*]] = dtc.add %[[FULL_A]], %[[FULL_B]] {{.*}}partial = sum{"dp"}
// CHECK: dist.reshard %[[SUM]] from <@mesh, [{}, {}], partial = sum{"dp"}> to <@mesh, [{}, {}]>
// LOOP-LABEL: func.func @devices(
// LOOP: dist.microbatch_loop
// LOOP-NOT: dtc.add
// LOOP: dist.yield
// LOOP: %[[SUM:.*]] = dtc.add
// LOOP: dist.all_reduce sum %[[SUM]] over @mesh ["dp"]
dist.mesh @mesh <"dp"=2, "pp"=2 pipeline, "micro"=2 temporal>
func.func @devices(%x: tensor<8x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {}]>},
                   %y: tensor<8x4xf32> {dtc.input = "y", dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {}]>}) -> tensor<4x4xf32> {
  %0 = dtc.einsum "bi,bo->io" %x, %x {dist.stage = #dist.stage<1 backward>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = dtc.einsum "bi,bo->io" %x, %y {dist.stage = #dist.stage<0 backward>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %2 = dtc.add %0, %1 : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
