// RUN: dtc-opt %s --split-input-file --dtc-offload-states | FileCheck %s
// RUN: dtc-opt %s --split-input-file --dtc-offload-states=fraction=0.6 | FileCheck %s --check-prefix PART

// The momentum lies on the host, the parameter without master weights goes there with its gradient and comes back.
// CHECK-LABEL: func.func @no_master
// CHECK-SAME: %[[P:arg0]]: tensor<4xf32> {dtc.param = "w"}
// CHECK-SAME: %[[M:arg1]]: tensor<4xf32> {dist.host, dtc.state = "momentum_buffer", dtc.state_of = "w"}
// CHECK: %[[G:.*]] = dtc.mul %[[P]]
// CHECK-NEXT: %[[HG:.*]] = dist.copy %[[G]] to "host"
// CHECK-NEXT: %[[HP:.*]] = dist.copy %[[P]] to "host"
// CHECK: %[[NP:.*]], %[[NM:.*]] = dtc.sgd %[[HP]], %[[HG]], %[[M]], {{.*}} {dist.host,
// CHECK-NEXT: %[[BACK:.*]] = dist.copy %[[NP]] to "device"
// CHECK: return %[[BACK]], %[[NM]]
dist.mesh @mesh <>
func.func @no_master(%p: tensor<4xf32> {dtc.param = "w"},
                     %m: tensor<4xf32> {dtc.state = "momentum_buffer", dtc.state_of = "w"},
                     %x: tensor<4xf32> {dtc.input = "x"}, %lr: tensor<f32>, %scale: tensor<f32>, %apply: tensor<i1>)
    -> (tensor<4xf32> {dtc.updates = 0 : i64}, tensor<4xf32> {dtc.updates = 1 : i64}) {
  %g = dtc.mul %p, %x : tensor<4xf32>
  %new_p, %new_m = dtc.sgd %p, %g, %m, %lr, %scale, %apply {momentum = 0.9 : f64, weight_decay = 0.0 : f64}
    : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %new_p, %new_m : tensor<4xf32>, tensor<4xf32>
}

// -----

// Master weights lie on the host, which rounds them: the parameter goes back in 16 bits.
// CHECK-LABEL: func.func @master
// CHECK-SAME: tensor<4xf32> {dist.host, dtc.state = "master"
// CHECK-SAME: tensor<4xf32> {dist.host, dtc.state = "momentum_buffer"
// CHECK-NOT: dist.copy %arg0
// CHECK: %[[NP:.*]], %{{.*}} = dtc.sgd %arg1, %{{.*}}, %arg2
// CHECK-NEXT: %[[ROUNDED:.*]] = dtc.convert %[[NP]] {dist.host} : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK-NEXT: %[[BACK:.*]] = dist.copy %[[ROUNDED]] to "device" : tensor<4xbf16>
// CHECK: return %[[BACK]], %[[NP]]
dist.mesh @mesh <>
func.func @master(%p: tensor<4xbf16> {dtc.param = "w"},
                  %master: tensor<4xf32> {dtc.state = "master", dtc.state_of = "w"},
                  %m: tensor<4xf32> {dtc.state = "momentum_buffer", dtc.state_of = "w"},
                  %x: tensor<4xbf16> {dtc.input = "x"}, %lr: tensor<f32>, %scale: tensor<f32>, %apply: tensor<i1>)
    -> (tensor<4xbf16> {dtc.updates = 0 : i64}, tensor<4xf32> {dtc.updates = 1 : i64},
        tensor<4xf32> {dtc.updates = 2 : i64}) {
  %0 = dtc.mul %p, %x : tensor<4xbf16>
  %g = dtc.convert %0 : (tensor<4xbf16>) -> tensor<4xf32>
  %new_p, %new_m = dtc.sgd %master, %g, %m, %lr, %scale, %apply {momentum = 0.9 : f64, weight_decay = 0.0 : f64}
    : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  %rounded = dtc.convert %new_p : (tensor<4xf32>) -> tensor<4xbf16>
  return %rounded, %new_p, %new_m : tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>
}

// -----

// The largest parameter first, and its update before that of the others, which stay on the device. One copy of a scalar
// is enough.
// CHECK-LABEL: func.func @two
// CHECK: dist.copy %[[LR:arg[0-9]+]] to "host" : tensor<f32>
// CHECK-NOT: dist.copy %[[LR]]
// PART-LABEL: func.func @two
// PART-SAME: tensor<4xf32> {dtc.state = "momentum_buffer", dtc.state_of = "small"}
// PART-SAME: tensor<8xf32> {dist.host, dtc.state = "momentum_buffer", dtc.state_of = "large"}
// PART: dtc.sgd {{.*}} {dist.host, {{.*}} : (tensor<8xf32>
// PART-NEXT: dist.copy {{.*}} to "device" : tensor<8xf32>
// PART: dtc.sgd {{.*}} {momentum {{.*}} : (tensor<4xf32>
dist.mesh @mesh <>
func.func @two(%p: tensor<4xf32> {dtc.param = "small"}, %q: tensor<8xf32> {dtc.param = "large"},
               %m: tensor<4xf32> {dtc.state = "momentum_buffer", dtc.state_of = "small"},
               %n: tensor<8xf32> {dtc.state = "momentum_buffer", dtc.state_of = "large"},
               %x: tensor<4xf32> {dtc.input = "x"}, %y: tensor<8xf32> {dtc.input = "y"},
               %lr: tensor<f32>, %scale: tensor<f32>, %apply: tensor<i1>)
    -> (tensor<4xf32> {dtc.updates = 0 : i64}, tensor<8xf32> {dtc.updates = 1 : i64},
        tensor<4xf32> {dtc.updates = 2 : i64}, tensor<8xf32> {dtc.updates = 3 : i64}) {
  %g = dtc.mul %p, %x : tensor<4xf32>
  %h = dtc.mul %q, %y : tensor<8xf32>
  %new_p, %new_m = dtc.sgd %p, %g, %m, %lr, %scale, %apply {momentum = 0.9 : f64, weight_decay = 0.0 : f64}
    : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  %new_q, %new_n = dtc.sgd %q, %h, %n, %lr, %scale, %apply {momentum = 0.9 : f64, weight_decay = 0.0 : f64}
    : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>)
  return %new_p, %new_q, %new_m, %new_n : tensor<4xf32>, tensor<8xf32>, tensor<4xf32>, tensor<8xf32>
}

// -----

// Other readers of a state get a copy. A function without an optimizer stays as it is.
// CHECK-LABEL: func.func @reader
// CHECK-NEXT: %[[COPY:.*]] = dist.copy %arg1 to "device"
// CHECK: dtc.mul %[[COPY]]
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT: dist.
// CHECK: return
dist.mesh @mesh <>
func.func @reader(%p: tensor<4xf32> {dtc.param = "w"},
                  %m: tensor<4xf32> {dtc.state = "momentum_buffer", dtc.state_of = "w"},
                  %lr: tensor<f32>, %scale: tensor<f32>, %apply: tensor<i1>)
    -> (tensor<4xf32> {dtc.updates = 0 : i64}, tensor<4xf32> {dtc.updates = 1 : i64}) {
  %g = dtc.mul %m, %p : tensor<4xf32>
  %new_p, %new_m = dtc.sgd %p, %g, %m, %lr, %scale, %apply {momentum = 0.9 : f64, weight_decay = 0.0 : f64}
    : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %new_p, %new_m : tensor<4xf32>, tensor<4xf32>
}
func.func @evaluate(%p: tensor<4xf32> {dtc.param = "w"}) -> (tensor<4xf32> {dtc.output = "y"}) {
  %0 = dtc.exp %p : tensor<4xf32>
  return %0 : tensor<4xf32>
}
