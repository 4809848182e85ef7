// RUN: dtc-opt %s --dtc-build-outer-step="axis=dp step=mean clients=true" | FileCheck %s
// RUN: dtc-opt %s --dtc-build-outer-step="axis=dp step=mean clients=true begins=true" | FileCheck %s --check-prefix=BEGIN
// RUN: dtc-opt %s --dtc-build-outer-step="axis=dp step=mean clients=true checks=true" | FileCheck %s --check-prefix=CHECKS
// RUN: dtc-opt %s --dtc-build-outer-step="axis=dp step=mean clients=true compressed=true" | FileCheck %s --check-prefix=COMPRESSED
// RUN: dtc-opt %s --dtc-build-outer-step="axis=dp step=yogi learning-rate=0.5" | FileCheck %s --check-prefix=YOGI
// RUN: dtc-opt %s --dtc-build-outer-step="axis=dp step=adam begins=true tau=0.5" | FileCheck %s --check-prefix=ADAM-BEGIN
// RUN: dtc-opt %s --dtc-build-outer-step="axis=dp step=mean clients=true noise=true" | FileCheck %s --check-prefix=NOISE
// RUN: not dtc-opt %s --dtc-build-outer-step="axis=dp step=mean noise=true" 2>&1 | FileCheck %s --check-prefix=NO-CLIENTS
// RUN: not dtc-opt %s --dtc-build-outer-step="axis=dp step=lamb" 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// A mean weighted by an input, in which a replica of weight 0 has the outer parameters instead of its own. Where all weights are 0
// the outer parameters stay. The states of the inner optimizer become zeros.
// CHECK-LABEL: func.func @outer_train_step(
// CHECK-SAME:    %[[W:[^:]*]]: tensor<2xf32> {{[^%]*}}dtc.param = "w"}
// CHECK-SAME:    %[[P:[^:]*]]: tensor<1xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}]>, dtc.global_shape = array<i64: 2>, dtc.input = "client_weights"}
// CHECK-SAME:    %[[S:[^:]*]]: tensor<2xf32> {{[^%]*}}dtc.state = "outer_params", dtc.state_of = "w"})
// CHECK:         %[[OWN:.*]] = dtc.reshape %[[P]]
// CHECK-NEXT:    %[[ALL:.*]] = dist.all_reduce sum %[[OWN]] over @mesh ["dp"]
// CHECK:         %[[ANY:.*]] = dtc.compare gt %[[ALL]],
// CHECK:         %[[TAKEN:.*]] = dtc.compare gt %[[OWN]],
// CHECK-NEXT:    %[[MASK:.*]] = dtc.broadcast %[[TAKEN]]
// CHECK-NEXT:    %[[FINITE:.*]] = dtc.select %[[MASK]], %[[W]], %[[S]]
// CHECK-NEXT:    %[[WEIGHT:.*]] = dtc.broadcast %[[OWN]]
// CHECK-NEXT:    %[[PART:.*]] = dtc.mul %[[FINITE]], %[[WEIGHT]]
// CHECK-NEXT:    %[[MEAN:.*]] = dist.all_reduce sum %[[PART]] over @mesh ["dp"]
// CHECK-NEXT:    %[[SOME:.*]] = dtc.broadcast %[[ANY]]
// CHECK-NEXT:    %[[NEW:.*]] = dtc.select %[[SOME]], %[[MEAN]], %[[S]]
// CHECK-NEXT:    %[[ZERO:.*]] = dtc.constant dense<0.000000e+00>
// CHECK-NEXT:    %[[ZEROS:.*]] = dtc.broadcast %[[ZERO]]
// CHECK-NEXT:    %[[NONE:.*]] = dtc.constant dense<0> : tensor<i32>
// CHECK-NEXT:    return %[[NEW]], %[[NEW]], %[[ZEROS]], %[[NONE]]

// BEGIN-LABEL:   func.func @outer_begin_train_step(
// BEGIN-SAME:    %[[W:[^:]*]]: tensor<2xf32>
// BEGIN-NOT:     client_weights
// BEGIN:         return %[[W]] : tensor<2xf32>

// The changes, without padding, over all shards of the replica; and the steps.
// CHECKS-LABEL:  func.func @outer_check_train_step(
// CHECKS-SAME:     -> (tensor<1xf32> {{[^%]*}}dtc.output = "update_squares.0"}, tensor<1xi32> {{[^%]*}}dtc.output = "inner_steps.0"})
// CHECKS:          %[[CHANGE:.*]] = dtc.sub %{{.*}}, %{{.*}} : tensor<2xf32>
// CHECKS-NEXT:     %[[MASKED:.*]] = dist.mask_padding zero %[[CHANGE]] dim 0 of 4 over @mesh ["tp"]
// CHECKS-NEXT:     %[[SQUARES:.*]] = dtc.einsum "a,a->" %[[MASKED]], %[[MASKED]]
// CHECKS-NEXT:     %[[ALL:.*]] = dist.all_reduce sum %[[SQUARES]] over @mesh ["tp"]
// CHECKS-NEXT:     dtc.reshape %[[ALL]]

// COMPRESSED:      %[[OWN:.*]] = dtc.select %{{.*}}, %[[W:.*]], %[[S:.*]] : tensor<2xf32>
// COMPRESSED-NEXT: %[[CHANGE:.*]] = dtc.sub %[[S]], %[[OWN]]
// COMPRESSED:      %[[PART:.*]] = dtc.mul %[[CHANGE]],
// COMPRESSED-NEXT: %[[MEAN:.*]] = dist.all_reduce sum %[[PART]] {{.*}}dtc.outer_gradient
// COMPRESSED-NEXT: dtc.sub %[[S]], %[[MEAN]]

// v - (1 - beta2) d^2 sign(v - d^2)
// YOGI-LABEL:    func.func @outer_train_step(
// YOGI-SAME:       %[[S:[^:]*]]: tensor<2xf32> {{[^%]*}}dtc.state = "outer_params"
// YOGI-SAME:       dtc.state = "outer_exp_avg"
// YOGI-SAME:       %[[V:[^:]*]]: tensor<2xf32> {{[^%]*}}dtc.state = "outer_exp_avg_sq"
// YOGI:            %[[D:.*]] = dtc.sub %{{.*}}, %[[S]]
// YOGI-NEXT:       %[[SQUARE:.*]] = dtc.mul %[[D]], %[[D]]
// YOGI:            %[[PART:.*]] = dtc.mul %[[SQUARE]],
// YOGI-NEXT:       %[[LESS:.*]] = dtc.compare lt %[[V]], %[[SQUARE]]
// YOGI-NEXT:       %[[MORE:.*]] = dtc.compare gt %[[V]], %[[SQUARE]]
// YOGI-NEXT:       %[[FALLS:.*]] = dtc.sub %[[V]], %[[PART]]
// YOGI-NEXT:       %[[SMALLER:.*]] = dtc.select %[[MORE]], %[[FALLS]], %[[V]]
// YOGI-NEXT:       %[[RISES:.*]] = dtc.add %[[V]], %[[PART]]
// YOGI-NEXT:       %[[NEW:.*]] = dtc.select %[[LESS]], %[[RISES]], %[[SMALLER]]
// YOGI-NEXT:       dtc.sqrt %[[NEW]]

// The mean of changes, with noise.
// NOISE-LABEL:   func.func @outer_train_step(
// NOISE-SAME:      tensor<1xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>, dtc.global_shape = array<i64: 1>, dtc.input = "noise_scale"}
// NOISE-SAME:      %[[Z:[^ :]*]]: tensor<2xf32> {{[^%]*}}dtc.state = "outer_noise", dtc.state_of = "w"})
// NOISE:           %[[MEAN:.*]] = dist.all_reduce sum %{{.*}} over @mesh ["dp"] {{.*}}value = "w"
// NOISE:           %[[NOISE:.*]] = dtc.mul %[[Z]],
// NOISE-NEXT:      %[[SUM:.*]] = dtc.add %[[MEAN]], %[[NOISE]]
// NOISE-NEXT:      dtc.sub %{{.*}}, %[[SUM]]

// NO-CLIENTS:      error: noise is for clients; set clients as well
// ADAM-BEGIN:      dtc.constant dense<2.500000e-01>
// UNKNOWN:         error: unknown outer step 'lamb'; known are mean, nesterov, adam, yogi and adagrad

dist.mesh @mesh <"dp"=2, "tp"=3>
func.func @train_step(%w: tensor<2xf32> {dtc.param = "w", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{"tp"}]>},
                      %m: tensor<2xf32> {dtc.state = "momentum_buffer", dtc.state_of = "w", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{"tp"}]>},
                      %n: tensor<i32> {dtc.state = "inner_steps", dtc.state_of = "w", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
                      %x: tensor<2xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{"dp"}]>})
    -> (tensor<2xf32> {dtc.updates = 0 : i64}, tensor<2xf32> {dtc.updates = 1 : i64}, tensor<i32> {dtc.updates = 2 : i64}) {
  %0 = dtc.add %w, %x : tensor<2xf32>
  %1 = dtc.add %m, %x : tensor<2xf32>
  %c = dtc.constant dense<1> : tensor<i32>
  %2 = dtc.add %n, %c : tensor<i32>
  return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<i32>
}
