// RUN: dtc-opt %s --dtc-build-outer-step="axis=dp fragments=2 fragment=0 part=take" | FileCheck %s --check-prefix=TAKE
// RUN: dtc-opt %s --dtc-build-outer-step="axis=dp fragments=2 fragment=1 part=send" | FileCheck %s --check-prefix=SEND
// RUN: dtc-opt %s --dtc-build-outer-step="axis=dp fragments=2 fragment=1 part=apply step=mean blend=0.25" | FileCheck %s --check-prefix=APPLY
// RUN: not dtc-opt %s --dtc-build-outer-step="axis=dp fragments=4" 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not dtc-opt %s --dtc-build-outer-step="axis=dp fragments=2 fragment=2 part=send" 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not dtc-opt %s --dtc-build-outer-step="axis=dp part=all" 2>&1 | FileCheck %s --check-prefix=PART
// RUN: not dtc-opt %s --dtc-build-outer-step="axis=dp part=send clients=true" 2>&1 | FileCheck %s --check-prefix=CLIENTS

// Layers take turns: both parameters of layer 0, with 3 elements, are of fragment 0, that of layer 1, with 2, of fragment 1, which
// gets the parameter of no layer as well.
// TAKE-LABEL: func.func @outer_take_0_train_step(
// TAKE-SAME:    %[[A:[^:]*]]: tensor<2xf32> {{[^%]*}}dtc.param = "h.0.a"}
// TAKE-SAME:    %[[B:[^:]*]]: tensor<f32> {{[^%]*}}dtc.param = "h.0.b"}
// TAKE-SAME:    %[[SA:[^:]*]]: tensor<2xf32> {{[^%]*}}dtc.state = "outer_params", dtc.state_of = "h.0.a"}
// TAKE-SAME:    %[[SB:[^:]*]]: tensor<f32> {{[^%]*}}dtc.state = "outer_params", dtc.state_of = "h.0.b"}
// TAKE-NEXT:    %[[CA:.*]] = dtc.sub %[[SA]], %[[A]]
// TAKE-NEXT:    %[[CB:.*]] = dtc.sub %[[SB]], %[[B]]
// TAKE-NEXT:    return %[[CA]], %[[CB]] :

// SEND-LABEL: func.func @outer_send_1_train_step(
// SEND-SAME:    %[[E:[^:]*]]: tensor<f32> {{[^%]*}}dtc.state = "outer_pending", dtc.state_of = "e"}
// SEND-SAME:    %[[P:[^:]*]]: tensor<2xf32> {{[^%]*}}dtc.state = "outer_pending", dtc.state_of = "h.1.a"}
// SEND-NEXT:    %[[SUM:.*]] = dist.all_reduce sum %[[E]] over @mesh ["dp"]
// SEND-NEXT:    %[[HALF:.*]] = dtc.constant dense<5.000000e-01>
// SEND-NEXT:    %[[MEAN:.*]] = dtc.mul %[[SUM]], %[[HALF]]
// SEND-NEXT:    dist.all_reduce sum %[[P]] over @mesh ["dp"]
// SEND:         return %[[MEAN]],

// APPLY-LABEL: func.func @outer_apply_1_train_step(
// APPLY-SAME:    %[[W:[^:]*]]: tensor<f32> {{[^%]*}}dtc.param = "e"}
// APPLY-SAME:    %[[S:[^:]*]]: tensor<f32> {{[^%]*}}dtc.state = "outer_params", dtc.state_of = "e"}
// APPLY-SAME:    %[[P:[^:]*]]: tensor<f32> {{[^%]*}}dtc.state = "outer_pending", dtc.state_of = "e"}
// APPLY-NEXT:    %[[NEW:.*]] = dtc.sub %[[S]], %[[P]]
// APPLY-NEXT:    %[[A:.*]] = dtc.constant dense<2.500000e-01>
// APPLY-NEXT:    %[[OWN:.*]] = dtc.mul %[[W]], %[[A]]
// APPLY-NEXT:    %[[B:.*]] = dtc.constant dense<7.500000e-01>
// APPLY-NEXT:    %[[REST:.*]] = dtc.mul %[[NEW]], %[[B]]
// APPLY-NEXT:    %[[BLENDED:.*]] = dtc.add %[[OWN]], %[[REST]]
// APPLY:         return %[[NEW]], %[[BLENDED]],

// MANY: error: there are 4 fragments of outer steps, and 3 layers and other parameters that train; choose at most as many fragments
// NUMBER: error: the option fragment is 2, expected at most 1
// PART: error: part is 'all', expected whole, take, send or apply
// CLIENTS: error: part is 'send', expected whole, as with clients

dist.mesh @mesh <"dp"=2>
func.func @train_step(%e: tensor<f32> {dtc.param = "e", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
                      %a: tensor<2xf32> {dtc.param = "h.0.a", dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                      %b: tensor<f32> {dtc.param = "h.0.b", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
                      %c: tensor<2xf32> {dtc.param = "h.1.a", dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<f32> {dtc.updates = 0 : i64}, tensor<2xf32> {dtc.updates = 1 : i64}, tensor<f32> {dtc.updates = 2 : i64},
        tensor<2xf32> {dtc.updates = 3 : i64}) {
  %0 = dtc.add %e, %e : tensor<f32>
  %1 = dtc.add %a, %a : tensor<2xf32>
  %2 = dtc.add %b, %b : tensor<f32>
  %3 = dtc.add %c, %c : tensor<2xf32>
  return %0, %1, %2, %3 : tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>
}
