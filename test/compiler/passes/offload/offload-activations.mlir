// RUN: dtc-opt %s --split-input-file --dtc-offload-activations=prefetch=0 | FileCheck %s
// RUN: dtc-opt %s --split-input-file --dtc-offload-activations | FileCheck %s --check-prefix AHEAD
// RUN: dtc-opt %s --split-input-file --dtc-offload-activations="prefetch=0 fraction=0.4" | FileCheck %s --check-prefix PART
// RUN: dtc-opt %s --split-input-file --dtc-offload-activations="prefetch=0 keep-loop" | FileCheck %s --check-prefix LOOP

// Values leave after their last use in the forward pass, before the next product, and are fetched for their first use in
// the backward pass, before the product that this follows. The loop over one microbatch becomes its body. What the backward pass
// needs first stays where copies start one value ahead; with a fraction the value that is made first is taken.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT: %[[A:.*]] = dtc.exp %arg0
// CHECK-NEXT: %[[B:.*]] = dtc.einsum "ij,jk->ik" %[[A]], %[[A]]
// CHECK-NEXT: %[[C:.*]] = dtc.sqrt %[[B]]
// CHECK-NEXT: %[[HA:.*]] = dist.copy %[[A]] to "host" {dist.stage = #dist.stage<0 forward>}
// CHECK-NEXT: %[[HB:.*]] = dist.copy %[[B]] to "host"
// CHECK-NEXT: %[[L:.*]] = dtc.einsum "ij,jk->ik" %[[C]], %[[C]]
// CHECK-NEXT: %[[FB:.*]] = dist.copy %[[HB]] to "device" {dist.stage = #dist.stage<0 backward>}
// CHECK-NEXT: %[[D:.*]] = dtc.einsum "ij,jk->ik" %[[L]], %[[L]]
// CHECK-NEXT: %[[E:.*]] = dtc.mul %[[D]], %[[FB]]
// CHECK-NEXT: %[[FA:.*]] = dist.copy %[[HA]] to "device"
// CHECK-NEXT: %[[F:.*]] = dtc.einsum "ij,jk->ik" %[[E]], %[[FA]]
// CHECK-NEXT: return %[[L]], %[[F]]
// AHEAD-LABEL: func.func @chain
// AHEAD-COUNT-1: to "host"
// AHEAD-NEXT: %[[L:.*]] = dtc.einsum
// AHEAD-NEXT: %[[FA:.*]] = dist.copy %{{.*}} to "device"
// AHEAD-NEXT: %[[D:.*]] = dtc.einsum "ij,jk->ik" %[[L]], %[[L]]
// AHEAD-NEXT: %[[E:.*]] = dtc.mul %[[D]]
// AHEAD-NEXT: dtc.einsum "ij,jk->ik" %[[E]], %[[FA]]
// PART-LABEL: func.func @chain
// PART: %[[A:.*]] = dtc.exp %arg0
// PART: dist.copy %[[A]] to "host"
// PART-NOT: to "host"
// PART: return
// LOOP-LABEL: func.func @chain
// LOOP-NEXT: dist.microbatch_loop
dist.mesh @mesh <"micro"=1 temporal>
func.func @chain(%x: tensor<4x4xf32> {dtc.input = "x"}) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0:2 = dist.microbatch_loop @mesh "micro" : tensor<4x4xf32>, tensor<4x4xf32> {
    %a = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<4x4xf32>
    %b = dtc.einsum "ij,jk->ik" %a, %a {dist.stage = #dist.stage<0 forward>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %c = dtc.sqrt %b {dist.stage = #dist.stage<0 forward>} : tensor<4x4xf32>
    %loss = dtc.einsum "ij,jk->ik" %c, %c {dist.stage = #dist.stage<0 forward>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %d = dtc.einsum "ij,jk->ik" %loss, %loss {dist.stage = #dist.stage<0 backward>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %e = dtc.mul %d, %b {dist.stage = #dist.stage<0 backward>} : tensor<4x4xf32>
    %f = dtc.einsum "ij,jk->ik" %e, %a {dist.stage = #dist.stage<0 backward>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    dist.yield %loss, %f : tensor<4x4xf32>, tensor<4x4xf32>
  }
  return %0#0, %0#1 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// What is made of a kept value without work is made again of its copy: a reshape, and slices that together have all of
// it. A slice that is less is kept by itself.
// CHECK-LABEL: func.func @parts
// CHECK: %[[A:.*]] = dtc.exp %arg0
// CHECK: %[[HA:.*]] = dist.copy %[[A]] to "host" {{.*}} : tensor<2x8xf32>
// CHECK: %[[FA:.*]] = dist.copy %[[HA]] to "device" {{.*}} : tensor<2x8xf32>
// CHECK-DAG: dtc.slice %[[FA]] offsets [0, 0] sizes [1, 8] {dist.stage = #dist.stage<0 backward>}
// CHECK-DAG: dtc.slice %[[FA]] offsets [1, 0] sizes [1, 8] {dist.stage = #dist.stage<0 backward>}
// CHECK: return
// CHECK-LABEL: func.func @part
// CHECK: %[[S:.*]] = dtc.slice
// CHECK: dist.copy %[[S]] to "host" {{.*}} : tensor<1x8xf32>
// CHECK-NOT: to "host"
// CHECK: return
dist.mesh @mesh <"micro"=1 temporal>
func.func @parts(%x: tensor<2x8xf32> {dtc.input = "x"}) -> tensor<8xf32> {
  %0 = dist.microbatch_loop @mesh "micro" : tensor<8xf32> {
    %a = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<2x8xf32>
    %b = dtc.slice %a offsets [0, 0] sizes [1, 8] {dist.stage = #dist.stage<0 forward>} : (tensor<2x8xf32>) -> tensor<1x8xf32>
    %c = dtc.reshape %b {dist.stage = #dist.stage<0 forward>} : (tensor<1x8xf32>) -> tensor<8xf32>
    %d = dtc.slice %a offsets [1, 0] sizes [1, 8] {dist.stage = #dist.stage<0 forward>} : (tensor<2x8xf32>) -> tensor<1x8xf32>
    %e = dtc.reshape %d {dist.stage = #dist.stage<0 forward>} : (tensor<1x8xf32>) -> tensor<8xf32>
    %f = dtc.mul %c, %e {dist.stage = #dist.stage<0 backward>} : tensor<8xf32>
    dist.yield %f : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}
func.func @part(%x: tensor<2x8xf32> {dtc.input = "x"}) -> tensor<8xf32> {
  %0 = dist.microbatch_loop @mesh "micro" : tensor<8xf32> {
    %a = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<2x8xf32>
    %b = dtc.slice %a offsets [0, 0] sizes [1, 8] {dist.stage = #dist.stage<0 forward>} : (tensor<2x8xf32>) -> tensor<1x8xf32>
    %c = dtc.reshape %b {dist.stage = #dist.stage<0 forward>} : (tensor<1x8xf32>) -> tensor<8xf32>
    %f = dtc.mul %c, %c {dist.stage = #dist.stage<0 backward>} : tensor<8xf32>
    dist.yield %f : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

// Small values stay: a row's sum has 1/512 of the bytes of the rows. So do constants and what leaves the loop.
// CHECK-LABEL: func.func @small
// CHECK: %[[A:.*]] = dtc.exp
// CHECK: dist.copy %[[A]] to "host"
// CHECK-NOT: to "host"
// CHECK: return
dist.mesh @mesh <"micro"=1 temporal>
func.func @small(%x: tensor<2x512xf32> {dtc.input = "x"}) -> (tensor<2x512xf32>, tensor<2xf32>, tensor<2x512xf32>) {
  %0:3 = dist.microbatch_loop @mesh "micro" : tensor<2x512xf32>, tensor<2xf32>, tensor<2x512xf32> {
    %a = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<2x512xf32>
    %s = dtc.reduce sum %a dims [1] {dist.stage = #dist.stage<0 forward>} : (tensor<2x512xf32>) -> tensor<2xf32>
    %r = dtc.sqrt %s {dist.stage = #dist.stage<0 forward>} : tensor<2xf32>
    %k = dtc.constant {dist.stage = #dist.stage<0 forward>} dense<2.0> : tensor<2x512xf32>
    %out = dtc.sqrt %a {dist.stage = #dist.stage<0 forward>} : tensor<2x512xf32>
    %b = dtc.mul %a, %k {dist.stage = #dist.stage<0 backward>} : tensor<2x512xf32>
    %c = dtc.mul %r, %s {dist.stage = #dist.stage<0 backward>} : tensor<2xf32>
    %d = dtc.mul %out, %b {dist.stage = #dist.stage<0 backward>} : tensor<2x512xf32>
    dist.yield %out, %c, %d : tensor<2x512xf32>, tensor<2xf32>, tensor<2x512xf32>
  }
  return %0#0, %0#1, %0#2 : tensor<2x512xf32>, tensor<2xf32>, tensor<2x512xf32>
}

// -----

// Each stage of a pipeline keeps what it makes or gets on its own host. Nothing but the last stage's first values stays
// on the device where copies start ahead.
// CHECK-LABEL: func.func @stages
// CHECK: %[[A:.*]] = dtc.exp %arg0
// CHECK-NEXT: dist.copy %[[A]] to "host" {dist.stage = #dist.stage<0 forward>}
// CHECK-NEXT: %[[B:.*]] = dtc.sqrt %[[A]]
// CHECK-NEXT: %[[C:.*]] = dtc.sqrt %[[B]]
// CHECK-NEXT: dist.copy %[[A]] to "host" {dist.stage = #dist.stage<1 forward>}
// CHECK-NEXT: dist.copy %[[B]] to "host" {dist.stage = #dist.stage<1 forward>}
// CHECK-NEXT: dist.copy %[[C]] to "host" {dist.stage = #dist.stage<1 forward>}
// CHECK-COUNT-3: to "device" {dist.stage = #dist.stage<1 backward>}
// CHECK: to "device" {dist.stage = #dist.stage<0 backward>}
// AHEAD-LABEL: func.func @stages
// AHEAD-COUNT-3: to "host"
// AHEAD-NOT: to "host"
// AHEAD: return
dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
func.func @stages(%x: tensor<4xf32> {dtc.input = "x"}) -> tensor<4xf32> {
  %0 = dist.microbatch_loop @mesh "micro" : tensor<4xf32> {
    %a = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
    %b = dtc.sqrt %a {dist.stage = #dist.stage<1 forward>} : tensor<4xf32>
    %c = dtc.sqrt %b {dist.stage = #dist.stage<1 forward>} : tensor<4xf32>
    %d = dtc.mul %c, %b {dist.stage = #dist.stage<1 backward>} : tensor<4xf32>
    %e = dtc.mul %d, %a {dist.stage = #dist.stage<1 backward>} : tensor<4xf32>
    %f = dtc.mul %e, %a {dist.stage = #dist.stage<0 backward>} : tensor<4xf32>
    dist.yield %f : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
