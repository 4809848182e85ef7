// RUN: dtc-opt %s --dtc-build-train-step | FileCheck %s --check-prefixes=CHECK,ADAMW
// RUN: dtc-opt %s --dtc-build-train-step="optimizer=sgd momentum=0.5 weight-decay=0.25 clip=2.0" | FileCheck %s --check-prefixes=CHECK,SGD
// RUN: dtc-opt %s --dtc-build-train-step="beta1=0.5 beta2=0.75 eps=0.125 weight-decay=0.25 clip=0.0" | FileCheck %s --check-prefix=OPTIONS
// RUN: dtc-opt %s --dtc-build-train-step=optimizer=none | FileCheck %s --check-prefix=NONE

// Argument 0 is a matrix in weights files, 1 is a vector there, 2 is one although it is a matrix here.
// ADAMW-LABEL: func.func @train_step(
// ADAMW-SAME: %[[W:[^:]*]]: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>, dtc.axes = ["mlp", ""], dtc.init = #dtc.normal<1.000000e-01>, dtc.param = "w"}
// ADAMW-SAME: %[[B:[^:]*]]: tensor<4xf32> {dtc.param = "b"}
// ADAMW-SAME: %[[C:[^:]*]]: tensor<2x2xf32> {dtc.file_shape = array<i64: 4>, dtc.param = "c"}
// ADAMW-SAME: %[[X:[^:]*]]: tensor<2x8xf32> {dtc.axes = ["batch", "mlp"], dtc.input = "x"}
// ADAMW-SAME: %[[RATES:[^:]*]]: tensor<64xf32> {dtc.scalar = "learning_rates"}, %[[FIRST:[^:]*]]: tensor<i32> {dtc.scalar = "first_step"}
// ADAMW-SAME: %[[APPLIED:[^:]*]]: tensor<i32> {dtc.step_state = "applied_steps"}, %[[SKIPPED:[^:]*]]: tensor<i32> {dtc.step_state = "skipped_steps"}
// ADAMW-SAME: %[[WM:[^:]*]]: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>, dtc.axes = ["mlp", ""], dtc.state = "exp_avg", dtc.state_of = "w"}
// ADAMW-SAME: %[[WV:[^:]*]]: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>, dtc.axes = ["mlp", ""], dtc.state = "exp_avg_sq", dtc.state_of = "w"}
// ADAMW-SAME: %[[BM:[^:]*]]: tensor<4xf32> {dtc.state = "exp_avg", dtc.state_of = "b"}
// ADAMW-SAME: %[[BV:[^:]*]]: tensor<4xf32> {dtc.state = "exp_avg_sq", dtc.state_of = "b"}
// ADAMW-SAME: %[[CM:[^:]*]]: tensor<2x2xf32> {dtc.file_shape = array<i64: 4>, dtc.state = "exp_avg", dtc.state_of = "c"}
// ADAMW-SAME: %[[CV:[^:]*]]: tensor<2x2xf32> {dtc.file_shape = array<i64: 4>, dtc.state = "exp_avg_sq", dtc.state_of = "c"}
// ADAMW-SAME: -> (tensor<f32> {dtc.output = "loss"}, tensor<f32> {dtc.output = "grad_norm"},
// ADAMW-SAME: tensor<8x4xf32> {dtc.updates = 0 : i64}, tensor<8x4xf32> {dtc.updates = 8 : i64}, tensor<8x4xf32> {dtc.updates = 9 : i64},
// ADAMW-SAME: tensor<4xf32> {dtc.updates = 1 : i64}, tensor<4xf32> {dtc.updates = 10 : i64}, tensor<4xf32> {dtc.updates = 11 : i64},
// ADAMW-SAME: tensor<2x2xf32> {dtc.updates = 2 : i64}, tensor<2x2xf32> {dtc.updates = 12 : i64}, tensor<2x2xf32> {dtc.updates = 13 : i64}, tensor<i32> {dtc.updates = 6 : i64}, tensor<i32> {dtc.updates = 7 : i64})

// SGD-LABEL: func.func @train_step(
// SGD-SAME: %[[W:[^:]*]]: tensor<8x4xf32>
// SGD-SAME: %[[B:[^:]*]]: tensor<4xf32>
// SGD-SAME: %[[C:[^:]*]]: tensor<2x2xf32>
// SGD-SAME: %[[X:[^:]*]]: tensor<2x8xf32>
// SGD-SAME: %[[RATES:[^:]*]]: tensor<64xf32> {dtc.scalar = "learning_rates"}, %[[FIRST:[^:]*]]: tensor<i32> {dtc.scalar = "first_step"}
// SGD-SAME: %[[APPLIED:[^:]*]]: tensor<i32> {dtc.step_state = "applied_steps"}, %[[SKIPPED:[^:]*]]: tensor<i32> {dtc.step_state = "skipped_steps"}
// SGD-SAME: %[[WM:[^:]*]]: tensor<8x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>, dtc.axes = ["mlp", ""], dtc.state = "momentum_buffer", dtc.state_of = "w"}
// SGD-SAME: %[[BM:[^:]*]]: tensor<4xf32> {dtc.state = "momentum_buffer", dtc.state_of = "b"}
// SGD-SAME: %[[CM:[^:]*]]: tensor<2x2xf32>
// SGD-SAME: -> (tensor<f32> {dtc.output = "loss"}, tensor<f32> {dtc.output = "grad_norm"},
// SGD-SAME: tensor<8x4xf32> {dtc.updates = 0 : i64}, tensor<8x4xf32> {dtc.updates = 8 : i64},
// SGD-SAME: tensor<4xf32> {dtc.updates = 1 : i64}, tensor<4xf32> {dtc.updates = 9 : i64},
// SGD-SAME: tensor<2x2xf32> {dtc.updates = 2 : i64}, tensor<2x2xf32> {dtc.updates = 10 : i64}, tensor<i32> {dtc.updates = 6 : i64}, tensor<i32> {dtc.updates = 7 : i64})

// The gradients: that of %w is an einsum, that of %b sums over the rows, %c has none.
// CHECK: %[[LOSS:.*]] = dtc.reduce sum %{{.*}} dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
// CHECK: %[[DY:.*]] = dtc.broadcast %{{.*}} dims [] : (tensor<f32>) -> tensor<2x4xf32>
// CHECK: %[[DB:.*]] = dtc.reduce sum %[[DY]] dims [0]
// CHECK: %[[DW:.*]] = dtc.einsum "{{.*}}" %{{.*}} -> tensor<8x4xf32>
// CHECK: %[[DC:.*]] = dtc.constant dense<0.000000e+00> : tensor<2x2xf32>
// The learning rate is that of the step, skipped ones counted; Adam's number is that of the applied ones.
// CHECK: %[[STEPS:.*]] = dtc.add %[[APPLIED]], %[[SKIPPED]] : tensor<i32>
// CHECK-NEXT: %[[INDEX:.*]] = dtc.sub %[[STEPS]], %[[FIRST]] : tensor<i32>
// CHECK-NEXT: %[[RATE:.*]] = dtc.pick %[[RATES]], %[[INDEX]] : (tensor<64xf32>, tensor<i32>) -> tensor<f32>
// ADAMW-NEXT: %[[NEXT:.*]] = dtc.constant dense<1> : tensor<i32>
// ADAMW-NEXT: %[[NUMBER:.*]] = dtc.add %[[APPLIED]], %[[NEXT]] : tensor<i32>
// ADAMW-NEXT: %[[STEP:.*]] = dtc.convert %[[NUMBER]] : (tensor<i32>) -> tensor<f32>
// The norm of all of them: the squares of each, side by side, so that one tensor is summed over devices.
// CHECK: %[[NW:.*]] = dtc.einsum "ab,ab->" %[[DW]], %[[DW]]
// CHECK: %[[SW:.*]] = dtc.reshape %[[NW]] : (tensor<f32>) -> tensor<1xf32>
// CHECK: %[[NB:.*]] = dtc.einsum "a,a->" %[[DB]], %[[DB]]
// CHECK: %[[SB:.*]] = dtc.reshape %[[NB]] : (tensor<f32>) -> tensor<1xf32>
// CHECK: %[[NC:.*]] = dtc.einsum "ab,ab->" %[[DC]], %[[DC]]
// CHECK: %[[SC:.*]] = dtc.reshape %[[NC]] : (tensor<f32>) -> tensor<1xf32>
// CHECK: %[[LIST:.*]] = dtc.concat %[[SW]], %[[SB]], %[[SC]] dim 0
// CHECK: %[[SQUARES:.*]] = dtc.reduce sum %[[LIST]] dims [0] : (tensor<3xf32>) -> tensor<f32>
// It is identical on all devices.
// CHECK: %[[NORM:.*]] = dtc.sqrt %[[SQUARES]] {dtc.agreed} : tensor<f32>
// Nothing is updated where the norm is not finite.
// CHECK: %[[INFINITY:.*]] = dtc.constant dense<0x7F800000> : tensor<f32>
// CHECK: %[[APPLY:.*]] = dtc.compare lt %[[NORM]], %[[INFINITY]]
// min(1, clip / (norm + 1e-6))
// CHECK: %[[ONE:.*]] = dtc.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[TINY:.*]] = dtc.constant dense<9.99999997E-7> : tensor<f32>
// CHECK: %[[BOUNDED:.*]] = dtc.add %[[NORM]], %[[TINY]]
// ADAMW: %[[CLIP:.*]] = dtc.constant dense<1.000000e+00> : tensor<f32>
// SGD: %[[CLIP:.*]] = dtc.constant dense<2.000000e+00> : tensor<f32>
// CHECK: %[[RATIO:.*]] = dtc.div %[[CLIP]], %[[BOUNDED]]
// CHECK: %[[SCALE:.*]] = dtc.minimum %[[ONE]], %[[RATIO]]
// Vectors do not decay.
// ADAMW: %[[NEWW:.*]], %[[NEWWM:.*]], %[[NEWWV:.*]] = dtc.adamw %[[W]], %[[DW]], %[[WM]], %[[WV]], %[[RATE]], %[[STEP]], %[[SCALE]], %[[APPLY]] {beta1 = 9.000000e-01 : f64, beta2 = 0.94999999999999996 : f64, eps = 1.000000e-08 : f64, weight_decay = 1.000000e-01 : f64}
// ADAMW: dtc.adamw %[[B]], %[[DB]], %[[BM]], %[[BV]], %[[RATE]], %[[STEP]], %[[SCALE]], %[[APPLY]] {{.*}}weight_decay = 0.000000e+00 : f64}
// ADAMW: dtc.adamw %[[C]], %[[DC]], %[[CM]], %[[CV]], %[[RATE]], %[[STEP]], %[[SCALE]], %[[APPLY]] {{.*}}weight_decay = 0.000000e+00 : f64}
// ADAMW: %[[UNIT:.*]] = dtc.constant dense<1> : tensor<i32>
// ADAMW-NEXT: %[[ISAPPLIED:.*]] = dtc.convert %[[APPLY]] : (tensor<i1>) -> tensor<i32>
// ADAMW-NEXT: %[[ISSKIPPED:.*]] = dtc.sub %[[UNIT]], %[[ISAPPLIED]] : tensor<i32>
// ADAMW-NEXT: %[[NEWAPPLIED:.*]] = dtc.add %[[APPLIED]], %[[ISAPPLIED]] : tensor<i32>
// ADAMW-NEXT: %[[NEWSKIPPED:.*]] = dtc.add %[[SKIPPED]], %[[ISSKIPPED]] : tensor<i32>
// ADAMW-NEXT: return %[[LOSS]], %[[NORM]], %[[NEWW]], %[[NEWWM]], %[[NEWWV]], {{.*}}, %[[NEWAPPLIED]], %[[NEWSKIPPED]] :
// SGD: %[[NEWW:.*]], %[[NEWWM:.*]] = dtc.sgd %[[W]], %[[DW]], %[[WM]], %[[RATE]], %[[SCALE]], %[[APPLY]] {momentum = 5.000000e-01 : f64, weight_decay = 2.500000e-01 : f64}
// SGD: dtc.sgd %[[B]], %[[DB]], %[[BM]], %[[RATE]], %[[SCALE]], %[[APPLY]] {momentum = 5.000000e-01 : f64, weight_decay = 0.000000e+00 : f64}
// SGD: dtc.sgd %[[C]], %[[DC]], {{.*}}weight_decay = 0.000000e+00 : f64}
// SGD: return %[[LOSS]], %[[NORM]], %[[NEWW]], %[[NEWWM]],

// Without clipping the scale is 1; the norm is an output still.
// OPTIONS: dtc.output = "grad_norm"
// OPTIONS: dtc.sqrt
// OPTIONS: %[[SCALE:.*]] = dtc.constant dense<1.000000e+00> : tensor<f32>
// OPTIONS-NOT: dtc.minimum
// OPTIONS: dtc.adamw %{{.*}}, %[[SCALE]], %{{[^ ]*}} {beta1 = 5.000000e-01 : f64, beta2 = 7.500000e-01 : f64, eps = 1.250000e-01 : f64, weight_decay = 2.500000e-01 : f64}

// Without an optimizer the results are the gradients, and there is no state.
// NONE-LABEL: func.func @gradients(
// NONE-SAME: %{{[^:]*}}: tensor<2x8xf32> {dtc.axes = ["batch", "mlp"], dtc.input = "x"}) -> (tensor<f32> {dtc.output = "loss"}, tensor<8x4xf32> {dtc.output = "grad:w"}, tensor<4xf32> {dtc.output = "grad:b"}, tensor<2x2xf32> {dtc.output = "grad:c"})
// NONE: %[[LOSS:.*]] = dtc.reduce sum %{{.*}} dims [0, 1]
// NONE: %[[DB:.*]] = dtc.reduce sum %{{.*}} dims [0]
// NONE: %[[DW:.*]] = dtc.einsum
// NONE: %[[DC:.*]] = dtc.constant dense<0.000000e+00> : tensor<2x2xf32>
// NONE-NEXT: return %[[LOSS]], %[[DW]], %[[DB]], %[[DC]]
dist.mesh @mesh <"tp"=2>
func.func @loss(%w: tensor<8x4xf32> {dtc.param = "w", dtc.init = #dtc.normal<0.1>, dtc.axes = ["mlp", ""], dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>},
                %b: tensor<4xf32> {dtc.param = "b"},
                %c: tensor<2x2xf32> {dtc.param = "c", dtc.file_shape = array<i64: 4>},
                %x: tensor<2x8xf32> {dtc.input = "x", dtc.axes = ["batch", "mlp"]}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %1 = dtc.broadcast %b dims [1] : (tensor<4xf32>) -> tensor<2x4xf32>
  %2 = dtc.add %0, %1 : tensor<2x4xf32>
  %3 = dtc.reduce sum %2 dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}
