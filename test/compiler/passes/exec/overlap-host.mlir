// RUN: dtc-opt %s --split-input-file --dtc-overlap-collectives | FileCheck %s

// Each lane waits for what it needs of the others, and the device for nothing before the end of the task.
// CHECK-LABEL: exec.program @update
// CHECK: exec.task @t {
// CHECK-NEXT: exec.kernel "exp"
// CHECK-NEXT: %[[G:.*]] = exec.kernel "copy"({{.*}}) to({{.*}}) {} : {{.*}} async !exec.token
// CHECK-NEXT: %[[P:.*]] = exec.kernel "copy"({{.*}}) to({{.*}}) {} : {{.*}} async !exec.token
// CHECK-NEXT: %[[U:.*]] = exec.kernel "add"({{.*}}) to({{.*}}) {} after(%[[P]]) : {{.*}} async !exec.token
// CHECK-NEXT: %[[B:.*]] = exec.kernel "copy"({{.*}}) to({{.*}}) {} after(%[[P]], %[[U]]) : {{.*}} async !exec.token
// CHECK-NEXT: exec.kernel "neg"
// CHECK-DAG: exec.wait %[[G]]
// CHECK-DAG: exec.wait %[[P]]
// CHECK-DAG: exec.wait %[[U]]
// CHECK-DAG: exec.wait %[[B]]
// CHECK: exec.run
dist.mesh @mesh <>
exec.program @update on @mesh {
  %p = exec.buffer parameter : memref<4xf32>
  %g = exec.buffer gradient : memref<4xf32>
  %other = exec.buffer activation : memref<4xf32>
  %hg = exec.buffer gradient : memref<4xf32, "host">
  %hp = exec.buffer activation : memref<4xf32, "host">
  exec.task @t {
    exec.kernel "exp"(%p) to(%g) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "copy"(%g) to(%hg) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%p) to(%hp) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "add"(%hp, %hg) to(%hp) {} : (memref<4xf32, "host">, memref<4xf32, "host">) -> memref<4xf32, "host">
    exec.kernel "copy"(%hp) to(%p) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "neg"(%other) to(%other) {} : (memref<4xf32>) -> memref<4xf32>
  }
  exec.run @t
}

// -----

// The device waits before it overwrites what is being copied, and reads what comes back.
// CHECK-LABEL: exec.program @device_waits
// CHECK: %[[A:.*]] = exec.kernel "copy"
// CHECK-NEXT: exec.kernel "exp"
// CHECK-NEXT: exec.wait %[[A]]
// CHECK-NEXT: exec.kernel "fill"
// CHECK-NEXT: %[[B:.*]] = exec.kernel "copy"
// CHECK-NEXT: exec.wait %[[B]]
// CHECK-NEXT: exec.kernel "neg"
dist.mesh @mesh <>
exec.program @device_waits on @mesh {
  %a = exec.buffer activation : memref<4xf32>
  %b = exec.buffer activation : memref<4xf32>
  %h = exec.buffer activation : memref<4xf32, "host">
  exec.task @t {
    exec.kernel "copy"(%a) to(%h) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "exp"(%a) to(%b) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "fill"() to(%a) {} : () -> memref<4xf32>
    exec.kernel "copy"(%h) to(%a) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "neg"(%a) to(%b) {} : (memref<4xf32>) -> memref<4xf32>
  }
  exec.run @t
}

// -----

// A copy comes after the collective that makes the gradient, and a collective after the copy of the new parameter.
// CHECK-LABEL: exec.program @collectives
// CHECK: %[[R:.*]] = exec.collective all_reduce {{.*}} async !exec.token
// CHECK-NEXT: %[[C:.*]] = exec.kernel "copy"({{.*}}) {} after(%[[R]])
// CHECK-NEXT: exec.kernel "exp"
// CHECK: %[[B:.*]] = exec.kernel "copy"
// CHECK-NEXT: %{{.*}} = exec.collective all_gather over ["dp"]({{.*}}) to({{.*}}) dims [0] split_dims [0] after(%[[B]])
dist.mesh @mesh <"dp"=2>
exec.program @collectives on @mesh {
  %g = exec.buffer gradient : memref<4xf32>
  %p = exec.buffer activation : memref<2xf32>
  %whole = exec.buffer activation : memref<4xf32>
  %other = exec.buffer activation : memref<4xf32>
  %hg = exec.buffer gradient : memref<4xf32, "host">
  %hp = exec.buffer activation : memref<2xf32, "host">
  exec.task @t {
    exec.collective all_reduce reducing sum over ["dp"](%g) to(%g) dims [0] split_dims [0] : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "copy"(%g) to(%hg) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "exp"(%other) to(%other) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "slice"(%hg) to(%hp) {} : (memref<4xf32, "host">) -> memref<2xf32, "host">
    exec.kernel "copy"(%hp) to(%p) {} : (memref<2xf32, "host">) -> memref<2xf32>
    exec.collective all_gather over ["dp"](%p) to(%whole) dims [0] split_dims [0] : (memref<2xf32>) -> memref<4xf32>
  }
  exec.run @t
}
