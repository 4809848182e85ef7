// RUN: dtc-opt %s --split-input-file --dtc-build-train-step="optimizer=adamw number-ops=true" --dtc-propagate-shardings=default-shard=batch=dp+micro --dtc-partition-stages="stages=h.0|h.1" --dtc-insert-reshards --dtc-spmd-partition --cse --dtc-schedule-pipeline | FileCheck %s

// Work that runs once a step. A parameter is on the device whose stage uses it, with its part of the optimizer's state
// and its update; one that the loss does not depend on is on the first device. The gradient norm is made from scalars:
// each device makes the square sums of its own gradients and sends them, one makes the norm of them and sends it back,
// so that all have the same. The loss and the norm come from one device, the last.
// CHECK-LABEL: func.func @train_step.0(
// CHECK-SAME: %[[X:[^:]*]]: tensor<8x4xf32> {{[^%]*}}dtc.input = "x"}
// CHECK-SAME: %[[V:[^:]*]]: tensor<4x4xf32> {{[^%]*}}dtc.param = "v"}
// CHECK-SAME: %[[U:[^:]*]]: tensor<4xf32> {{[^%]*}}dtc.param = "unused"}
// CHECK-SAME: %[[RATES:[^:]*]]: tensor<64xf32> {{[^%]*}}dtc.scalar = "learning_rates"}, %{{[^:]*}}: tensor<i32> {{[^%]*}}dtc.scalar = "first_step"}
// CHECK-SAME: %[[APPLIED:[^:]*]]: tensor<i32> {{[^%]*}}dtc.step_state = "applied_steps"}, %[[SKIPPED:[^:]*]]: tensor<i32> {{[^%]*}}dtc.step_state = "skipped_steps"}
// CHECK-SAME: %[[VM:[^:]*]]: tensor<4x4xf32> {{[^%]*}}dtc.state = "exp_avg", dtc.state_of = "v"}
// CHECK-SAME: %[[VV:[^:]*]]: tensor<4x4xf32> {{[^%]*}}dtc.state = "exp_avg_sq", dtc.state_of = "v"}
// CHECK-SAME: %[[UM:[^:]*]]: tensor<4xf32> {{[^%]*}}dtc.state = "exp_avg", dtc.state_of = "unused"}
// CHECK-SAME: %[[UV:[^:]*]]: tensor<4xf32> {{[^%]*}}dtc.state = "exp_avg_sq", dtc.state_of = "unused"}
// CHECK-NOT: dtc.output
// CHECK-SAME: dtc.updates = 1 : i64}{{.*}}dtc.updates = 7 : i64}{{.*}}dtc.updates = 8 : i64}{{.*}}dtc.updates = 2 : i64}{{.*}}dtc.updates = 9 : i64}{{.*}}dtc.updates = 10 : i64}{{.*}}dtc.updates = 5 : i64}{{.*}}dtc.updates = 6 : i64})
// CHECK: %[[GRADIENT:.*]] = dist.microbatch_loop
// CHECK: %[[SQUARES:.*]] = dtc.einsum "ab,ab->" %[[GRADIENT]], %[[GRADIENT]]
// CHECK: %[[MINE:.*]] = dtc.reshape %[[SQUARES]]
// CHECK: %[[THEIRS:.*]] = dist.receive from 1 channel 2 : tensor<1xf32>
// CHECK: %[[ALL:.*]] = dtc.concat %[[MINE]], %[[THEIRS]], %{{.*}} dim 0
// CHECK: %[[SUM:.*]] = dtc.reduce sum %[[ALL]] dims [0] : (tensor<3xf32>) -> tensor<f32>
// CHECK-NEXT: %[[NORM:.*]] = dtc.sqrt %[[SUM]] {dtc.agreed}
// CHECK: dist.send %[[NORM]] to 1 channel 3 : tensor<f32>
// CHECK-NOT: dist.send
// CHECK: %[[SCALE:.*]] = dtc.minimum
// CHECK: dtc.adamw %[[V]], %[[GRADIENT]], %[[VM]], %[[VV]], %{{[^,]*}}, %{{[^,]*}}, %[[SCALE]]
// CHECK: dtc.adamw %[[U]], %{{.*}}, %[[UM]], %[[UV]], %{{[^,]*}}, %{{[^,]*}}, %[[SCALE]]
// CHECK-NOT: dtc.adamw
// CHECK: return

// CHECK-LABEL: func.func @train_step.1(
// CHECK-SAME: %[[W:[^:]*]]: tensor<4x4xf32> {{[^%]*}}dtc.param = "w"}
// CHECK-SAME: %[[RATES:[^:]*]]: tensor<64xf32> {{[^%]*}}dtc.scalar = "learning_rates"}
// CHECK-SAME: %[[APPLIED:[^:]*]]: tensor<i32> {{[^%]*}}dtc.step_state = "applied_steps"}
// CHECK-SAME: dtc.step_state = "skipped_steps"}, %[[WM:[^:]*]]: tensor<4x4xf32> {{[^%]*}}dtc.state = "exp_avg", dtc.state_of = "w"}, %[[WV:[^:]*]]: tensor<4x4xf32> {{[^%]*}}dtc.state = "exp_avg_sq", dtc.state_of = "w"})
// CHECK-SAME: -> (tensor<f32> {{[^%]*}}dtc.output = "loss"}, tensor<f32> {{[^%]*}}dtc.output = "grad_norm"}, tensor<4x4xf32> {{[^%]*}}dtc.updates = 0 : i64}{{.*}}dtc.updates = 5 : i64}{{.*}}dtc.updates = 6 : i64}{{.*}}dtc.updates = 3 : i64}{{.*}}dtc.updates = 4 : i64})
// CHECK: %[[SUMS:.*]]:2 = dist.microbatch_loop
// Each device takes the learning rate and counts the step by itself.
// CHECK: %[[RATE:.*]] = dtc.pick %[[RATES]],
// CHECK: %[[SQUARES:.*]] = dtc.einsum "ab,ab->"
// CHECK: %[[MINE:.*]] = dtc.reshape %[[SQUARES]]
// CHECK-NEXT: dist.send %[[MINE]] to 0 channel 2 : tensor<1xf32>
// CHECK: %[[NORM:.*]] = dist.receive from 0 channel 3 : tensor<f32>
// CHECK-NOT: dtc.sqrt
// CHECK: %[[SCALE:.*]] = dtc.minimum
// CHECK: dtc.adamw %[[W]], %{{.*}}, %[[WM]], %[[WV]], %[[RATE]], %{{.*}}, %[[SCALE]]
// CHECK: dtc.add %[[APPLIED]],
// CHECK-NOT: dist.{{send|receive}}
// CHECK: return %{{[^,]*}}, %[[NORM]],
dist.mesh @mesh <"dp"=1, "pp"=2 pipeline, "micro"=2 temporal>
func.func @loss(%x: tensor<8x4xf32> {dtc.input = "x", dtc.axes = ["batch", ""]},
                %v: tensor<4x4xf32> {dtc.param = "v"}, %w: tensor<4x4xf32> {dtc.param = "w"}, %unused: tensor<4xf32> {dtc.param = "unused"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %v : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc("h.0")
  %1 = dtc.einsum "bi,io->bo" %0, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc("h.1")
  %2 = dtc.reduce sum %1 dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32> loc("h.1")
  return %2 : tensor<f32>
}

// -----

// A parameter of two stages lives on both devices. Its gradients are exchanged and added, in the same order, on both, so that
// both have the same new value. The sum is completed over dp after that, once, and not in the loop.
// CHECK-LABEL: func.func @train_step.0(
// CHECK-SAME: %[[W:[^:]*]]: tensor<4x4xf32> {{[^%]*}}dtc.param = "w"}
// CHECK-SAME: dtc.state_of = "w"
// CHECK: %[[MINE:.*]] = dist.microbatch_loop
// CHECK-NOT: dist.all_reduce
// CHECK: dist.fragment backward 0
// CHECK-NOT: dist.all_reduce
// CHECK: dist.send %[[MINE]] to 1 channel 2 : tensor<4x4xf32>
// CHECK-NEXT: %[[THEIRS:.*]] = dist.receive from 1 channel 3 : tensor<4x4xf32>
// CHECK-NEXT: %[[SUM:.*]] = dtc.add %[[THEIRS]], %[[MINE]]
// CHECK: %[[COMPLETE:.*]] = dist.all_reduce sum %[[SUM]] over @mesh ["dp"]
// CHECK: dist.all_reduce max %{{.*}} over @mesh ["dp"] {{.*}} : tensor<f32>
// CHECK: dtc.adamw %[[W]], %[[COMPLETE]],

// CHECK-LABEL: func.func @train_step.1(
// CHECK-SAME: %[[W:[^:]*]]: tensor<4x4xf32> {{[^%]*}}dtc.param = "w"}
// CHECK-SAME: dtc.state_of = "w"
// CHECK: %[[SUMS:.*]]:2 = dist.microbatch_loop
// CHECK-NOT: dist.all_reduce
// CHECK: dist.fragment backward 1
// CHECK-NOT: dist.all_reduce
// CHECK: %[[THEIRS:.*]] = dist.receive from 0 channel 2 : tensor<4x4xf32>
// CHECK-NEXT: dist.send %[[MINE:.*]] to 0 channel 3 : tensor<4x4xf32>
// CHECK-NEXT: %[[SUM:.*]] = dtc.add %[[MINE]], %[[THEIRS]]
// CHECK: %[[COMPLETE:.*]] = dist.all_reduce sum %[[SUM]] over @mesh ["dp"]
// CHECK: dist.all_reduce max %{{.*}} over @mesh ["dp"] {{.*}} : tensor<f32>
// CHECK: dtc.adamw %[[W]], %[[COMPLETE]],
dist.mesh @mesh <"dp"=2, "pp"=2 pipeline, "micro"=2 temporal>
func.func @loss(%x: tensor<8x4xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<4x4xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc("h.0")
  %1 = dtc.einsum "bi,io->bo" %0, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc("h.1")
  %2 = dtc.reduce sum %1 dims [0, 1] : (tensor<8x4xf32>) -> tensor<f32> loc("h.1")
  return %2 : tensor<f32>
}
