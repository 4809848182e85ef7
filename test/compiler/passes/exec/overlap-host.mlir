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

// -----

// Values that leave and are fetched again keep their memory on the device for few copies at a time: the device waits for
// the first of 14 before the 13th starts, and for one that still leaves before it is fetched.
// CHECK-LABEL: exec.program @leaving
// CHECK: %[[FIRST:.*]] = exec.kernel "copy"
// CHECK-NEXT: %[[SECOND:.*]] = exec.kernel "copy"
// CHECK-COUNT-10: exec.kernel "copy"
// CHECK-NEXT: exec.wait %[[FIRST]]
// CHECK-NEXT: exec.kernel "copy"
// CHECK-NEXT: exec.wait %[[SECOND]]
// CHECK-NEXT: %[[LAST:.*]] = exec.kernel "copy"
// CHECK-NEXT: exec.wait %[[LAST]]
// CHECK-NEXT: %[[BACK:.*]] = exec.kernel "copy"({{.*}}) to(%{{.*}}) {} : (memref<4xf32, "host">) -> memref<4xf32> async !exec.token
// CHECK-NEXT: exec.wait %[[BACK]]
// CHECK-NEXT: exec.kernel "exp"
dist.mesh @mesh <>
exec.program @leaving on @mesh {
  %a0 = exec.buffer activation : memref<4xf32>
  %h0 = exec.buffer activation : memref<4xf32, "host">
  %b0 = exec.buffer activation : memref<4xf32>
  %a1 = exec.buffer activation : memref<4xf32>
  %h1 = exec.buffer activation : memref<4xf32, "host">
  %b1 = exec.buffer activation : memref<4xf32>
  %a2 = exec.buffer activation : memref<4xf32>
  %h2 = exec.buffer activation : memref<4xf32, "host">
  %b2 = exec.buffer activation : memref<4xf32>
  %a3 = exec.buffer activation : memref<4xf32>
  %h3 = exec.buffer activation : memref<4xf32, "host">
  %b3 = exec.buffer activation : memref<4xf32>
  %a4 = exec.buffer activation : memref<4xf32>
  %h4 = exec.buffer activation : memref<4xf32, "host">
  %b4 = exec.buffer activation : memref<4xf32>
  %a5 = exec.buffer activation : memref<4xf32>
  %h5 = exec.buffer activation : memref<4xf32, "host">
  %b5 = exec.buffer activation : memref<4xf32>
  %a6 = exec.buffer activation : memref<4xf32>
  %h6 = exec.buffer activation : memref<4xf32, "host">
  %b6 = exec.buffer activation : memref<4xf32>
  %a7 = exec.buffer activation : memref<4xf32>
  %h7 = exec.buffer activation : memref<4xf32, "host">
  %b7 = exec.buffer activation : memref<4xf32>
  %a8 = exec.buffer activation : memref<4xf32>
  %h8 = exec.buffer activation : memref<4xf32, "host">
  %b8 = exec.buffer activation : memref<4xf32>
  %a9 = exec.buffer activation : memref<4xf32>
  %h9 = exec.buffer activation : memref<4xf32, "host">
  %b9 = exec.buffer activation : memref<4xf32>
  %a10 = exec.buffer activation : memref<4xf32>
  %h10 = exec.buffer activation : memref<4xf32, "host">
  %b10 = exec.buffer activation : memref<4xf32>
  %a11 = exec.buffer activation : memref<4xf32>
  %h11 = exec.buffer activation : memref<4xf32, "host">
  %b11 = exec.buffer activation : memref<4xf32>
  %a12 = exec.buffer activation : memref<4xf32>
  %h12 = exec.buffer activation : memref<4xf32, "host">
  %b12 = exec.buffer activation : memref<4xf32>
  %a13 = exec.buffer activation : memref<4xf32>
  %h13 = exec.buffer activation : memref<4xf32, "host">
  %b13 = exec.buffer activation : memref<4xf32>
  exec.task @t {
    exec.kernel "copy"(%a0) to(%h0) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%a1) to(%h1) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%a2) to(%h2) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%a3) to(%h3) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%a4) to(%h4) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%a5) to(%h5) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%a6) to(%h6) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%a7) to(%h7) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%a8) to(%h8) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%a9) to(%h9) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%a10) to(%h10) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%a11) to(%h11) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%a12) to(%h12) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%a13) to(%h13) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%h13) to(%b13) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "exp"(%b13) to(%b13) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "copy"(%h12) to(%b12) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "exp"(%b12) to(%b12) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "copy"(%h11) to(%b11) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "exp"(%b11) to(%b11) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "copy"(%h10) to(%b10) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "exp"(%b10) to(%b10) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "copy"(%h9) to(%b9) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "exp"(%b9) to(%b9) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "copy"(%h8) to(%b8) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "exp"(%b8) to(%b8) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "copy"(%h7) to(%b7) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "exp"(%b7) to(%b7) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "copy"(%h6) to(%b6) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "exp"(%b6) to(%b6) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "copy"(%h5) to(%b5) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "exp"(%b5) to(%b5) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "copy"(%h4) to(%b4) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "exp"(%b4) to(%b4) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "copy"(%h3) to(%b3) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "exp"(%b3) to(%b3) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "copy"(%h2) to(%b2) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "exp"(%b2) to(%b2) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "copy"(%h1) to(%b1) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "exp"(%b1) to(%b1) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "copy"(%h0) to(%b0) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "exp"(%b0) to(%b0) {} : (memref<4xf32>) -> memref<4xf32>
  }
  exec.run @t
}

// -----

// What starts to be fetched together is waited for together, before the products that the first reader follows.
// CHECK-LABEL: exec.program @fetched
// CHECK: exec.kernel "copy"({{.*}}) to({{.*}}) {} : (memref<4xf32>) -> memref<4xf32, "host">
// CHECK: %[[A:.*]] = exec.kernel "copy"({{.*}}) {} : (memref<4xf32, "host">) -> memref<4xf32> async
// CHECK: %[[B:.*]] = exec.kernel "copy"({{.*}}) {} : (memref<4xf32, "host">) -> memref<4xf32> async
// CHECK-NEXT: exec.kernel "exp"
// CHECK: %[[C:.*]] = exec.kernel "copy"({{.*}}) {} : (memref<4xf32, "host">) -> memref<4xf32> async
// CHECK-NEXT: exec.wait %[[A]]
// CHECK-NEXT: exec.wait %[[B]]
// CHECK-NEXT: exec.kernel "einsum"
// CHECK-NEXT: exec.kernel "einsum"
// CHECK-NEXT: exec.kernel "mul"
// CHECK-NEXT: exec.kernel "neg"
// CHECK-NEXT: exec.wait %[[C]]
// CHECK-NEXT: exec.kernel "einsum"
// CHECK-NEXT: exec.kernel "exp"
dist.mesh @mesh <>
exec.program @fetched on @mesh {
  %x = exec.buffer activation : memref<4xf32>
  %y = exec.buffer activation : memref<4xf32>
  %ha = exec.buffer activation : memref<4xf32, "host">
  %hb = exec.buffer activation : memref<4xf32, "host">
  %hc = exec.buffer activation : memref<4xf32, "host">
  %a = exec.buffer activation : memref<4xf32>
  %b = exec.buffer activation : memref<4xf32>
  %c = exec.buffer activation : memref<4xf32>
  exec.task @t {
    exec.kernel "copy"(%x) to(%ha) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%x) to(%hb) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%x) to(%hc) {} : (memref<4xf32>) -> memref<4xf32, "host">
    exec.kernel "copy"(%ha) to(%a) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "copy"(%hb) to(%b) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "exp"(%x) to(%y) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "copy"(%hc) to(%c) {} : (memref<4xf32, "host">) -> memref<4xf32>
    exec.kernel "einsum"(%y, %y) to(%x) {equation = "i,i->i"} : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
    exec.kernel "einsum"(%x, %x) to(%y) {equation = "i,i->i"} : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
    exec.kernel "mul"(%y, %a) to(%x) {} : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
    exec.kernel "neg"(%b) to(%y) {} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "einsum"(%y, %y) to(%x) {equation = "i,i->i"} : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
    exec.kernel "exp"(%c) to(%y) {} : (memref<4xf32>) -> memref<4xf32>
  }
  exec.run @t
}
