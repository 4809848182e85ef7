// RUN: dtc-opt %s --dtc-overlap-collectives --dtc-plan-memory | FileCheck %s

dist.mesh @mesh <"dp"=2, "pp"=2 pipeline, "micro"=2 temporal>

// A reduction of a sum goes to the place after the sum, with what pads it; the device does not wait for it before the
// task ends. What is made of a sum by a kernel of several operands stays, and so does its reduction.
// CHECK-LABEL: exec.program @moves
exec.program @moves on @mesh {
  %x = exec.buffer activation : memref<3xf32>
  %y = exec.buffer activation : memref<4xf32>
  %a = exec.buffer activation : memref<3xf32>
  %b = exec.buffer activation : memref<4xf32>
  %c = exec.buffer activation : memref<4xf32>
  %padded = exec.buffer activation : memref<4xf32>
  %part = exec.buffer activation : memref<2xf32>
  %all = exec.reuse %b : memref<4xf32>
  %other = exec.buffer activation : memref<4xf32>
  %whole = exec.buffer activation : memref<4xf32>
  %many = exec.buffer activation : memref<400xf32>
  %d = exec.buffer activation : memref<400xf32>

  // CHECK: exec.task @backward.0
  // CHECK-NEXT: exec.kernel "fill"
  // CHECK-NEXT: exec.kernel "accumulate"([[X:%[0-9]+]]) to([[A:%[0-9]+]])
  // CHECK-NEXT: exec.kernel "pad"([[A]]) to([[PADDED:%[0-9]+]]) {low
  // CHECK-NEXT: [[T:%[0-9]+]] = exec.collective reduce_scatter reducing sum over ["dp"]([[PADDED]])
  // CHECK-NEXT: exec.kernel "fill"
  // CHECK-NEXT: exec.kernel "accumulate"([[Y:%[0-9]+]]) to([[B:%[0-9]+]])
  // CHECK-NEXT: [[U:%[0-9]+]] = exec.collective all_reduce reducing sum over ["dp"]([[B]])
  // CHECK-NEXT: exec.kernel "accumulate"([[Y]]) to([[C:%[0-9]+]])
  // CHECK-NEXT: exec.kernel "fill"
  // CHECK-NEXT: exec.kernel "accumulate"
  // CHECK-DAG: exec.wait [[T]]
  // CHECK-DAG: exec.wait [[U]]
  // CHECK: exec.task @update
  // CHECK-NEXT: exec.kernel "mul"([[C]]
  // CHECK-NEXT: exec.collective all_reduce
  // CHECK-NEXT: }
  exec.task @backward.0 pass backward 0 {
    exec.kernel "fill"() to (%x) {value = 1.0 : f64} : () -> memref<3xf32>
    exec.kernel "accumulate"(%x) to (%a) {axis = "micro"} : (memref<3xf32>) -> memref<3xf32>
    exec.kernel "fill"() to (%y) {value = 1.0 : f64} : () -> memref<4xf32>
    exec.kernel "accumulate"(%y) to (%b) {axis = "micro"} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "accumulate"(%y) to (%c) {axis = "micro"} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "fill"() to (%many) {value = 1.0 : f64} : () -> memref<400xf32>
    exec.kernel "accumulate"(%many) to (%d) {axis = "micro"} : (memref<400xf32>) -> memref<400xf32>
  }
  exec.task @update {
    exec.kernel "pad"(%a) to (%padded) {low = array<i64: 0>, value = 0.0 : f64} : (memref<3xf32>) -> memref<4xf32>
    exec.collective reduce_scatter reducing sum over ["dp"] (%padded) to (%part) dims [0] split_dims [0] : (memref<4xf32>) -> memref<2xf32>
    exec.collective all_reduce reducing sum over ["dp"] (%b) to (%all) dims [0] split_dims [0] : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "mul"(%c, %c) to (%other) {} : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
    exec.collective all_reduce reducing sum over ["dp"] (%other) to (%whole) dims [0] split_dims [0] : (memref<4xf32>) -> memref<4xf32>
  }
  exec.run @backward.0 in_loop
  exec.run @backward.0 microbatch 1 in_loop
  exec.run @update
}

// A shard lies in the bytes of a sum that is reduced before it, each in bytes of its own: the second and the third in those
// of the first sum. The first shard finds none.
// CHECK-LABEL: exec.program @in_sums
// CHECK-SAME: arena_bytes = 9216 : i64
exec.program @in_sums on @mesh {
  // CHECK: exec.buffer activation at [[Y:[0-9]+]] : memref<512xf32>
  // CHECK-NEXT: exec.buffer activation at 0 : memref<512xf32>
  // CHECK-NEXT: exec.buffer activation at 2048 : memref<512xf32>
  // CHECK-NEXT: exec.buffer activation at 4096 : memref<512xf32>
  // CHECK-NEXT: exec.buffer activation at [[FIRST:[0-9]+]] : memref<256xf32>
  // CHECK-NEXT: exec.buffer activation at 0 : memref<256xf32>
  // CHECK-NEXT: exec.buffer activation at 1024 : memref<256xf32>
  %y = exec.buffer activation : memref<512xf32>
  %a = exec.buffer activation : memref<512xf32>
  %b = exec.buffer activation : memref<512xf32>
  %c = exec.buffer activation : memref<512xf32>
  %part_a = exec.buffer activation : memref<256xf32>
  %part_b = exec.buffer activation : memref<256xf32>
  %part_c = exec.buffer activation : memref<256xf32>
  %used_a = exec.buffer activation : memref<256xf32>
  %used_b = exec.buffer activation : memref<256xf32>
  %used_c = exec.buffer activation : memref<256xf32>

  // CHECK: exec.task @backward.0
  // CHECK-COUNT-3: exec.collective reduce_scatter
  // CHECK: exec.task @update
  // CHECK-NOT: reduce_scatter
  exec.task @backward.0 pass backward 0 {
    exec.kernel "fill"() to (%y) {value = 1.0 : f64} : () -> memref<512xf32>
    exec.kernel "accumulate"(%y) to (%a) {axis = "micro"} : (memref<512xf32>) -> memref<512xf32>
    exec.kernel "accumulate"(%y) to (%b) {axis = "micro"} : (memref<512xf32>) -> memref<512xf32>
    exec.kernel "accumulate"(%y) to (%c) {axis = "micro"} : (memref<512xf32>) -> memref<512xf32>
    exec.kernel "fill"() to (%y) {value = 1.0 : f64} : () -> memref<512xf32>
  }
  exec.task @update {
    exec.collective reduce_scatter reducing sum over ["dp"] (%a) to (%part_a) dims [0] split_dims [0] : (memref<512xf32>) -> memref<256xf32>
    exec.collective reduce_scatter reducing sum over ["dp"] (%b) to (%part_b) dims [0] split_dims [0] : (memref<512xf32>) -> memref<256xf32>
    exec.collective reduce_scatter reducing sum over ["dp"] (%c) to (%part_c) dims [0] split_dims [0] : (memref<512xf32>) -> memref<256xf32>
    exec.kernel "neg"(%part_a) to (%used_a) {} : (memref<256xf32>) -> memref<256xf32>
    exec.kernel "neg"(%part_b) to (%used_b) {} : (memref<256xf32>) -> memref<256xf32>
    exec.kernel "neg"(%part_c) to (%used_c) {} : (memref<256xf32>) -> memref<256xf32>
  }
  exec.run @backward.0 in_loop
  exec.run @backward.0 microbatch 1 in_loop
  exec.run @update
}

// The shards that find no bytes of sums take no more than those of one reduction: where the first sum is read behind the
// loop, the second reduction stays there, where it can take the bytes of sums. A reduction in place takes none.
// CHECK-LABEL: exec.program @holds_little
exec.program @holds_little on @mesh {
  %y = exec.buffer activation : memref<4xf32>
  %a = exec.buffer activation : memref<4xf32>
  %b = exec.buffer activation : memref<4xf32>
  %c = exec.buffer activation : memref<4xf32>
  %part_a = exec.buffer activation : memref<2xf32>
  %part_c = exec.buffer activation : memref<2xf32>
  %all = exec.reuse %b : memref<4xf32>
  %norm = exec.buffer activation : memref<4xf32>

  // CHECK: exec.task @backward.0
  // CHECK: exec.collective reduce_scatter
  // CHECK-NOT: reduce_scatter
  // CHECK: exec.collective all_reduce
  // CHECK-NOT: reduce_scatter
  // CHECK: exec.task @update
  // CHECK: exec.collective reduce_scatter
  exec.task @backward.0 pass backward 0 {
    exec.kernel "fill"() to (%y) {value = 1.0 : f64} : () -> memref<4xf32>
    exec.kernel "accumulate"(%y) to (%a) {axis = "micro"} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "accumulate"(%y) to (%c) {axis = "micro"} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "accumulate"(%y) to (%b) {axis = "micro"} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "fill"() to (%y) {value = 1.0 : f64} : () -> memref<4xf32>
  }
  exec.task @update {
    exec.collective reduce_scatter reducing sum over ["dp"] (%a) to (%part_a) dims [0] split_dims [0] : (memref<4xf32>) -> memref<2xf32>
    exec.collective reduce_scatter reducing sum over ["dp"] (%c) to (%part_c) dims [0] split_dims [0] : (memref<4xf32>) -> memref<2xf32>
    exec.collective all_reduce reducing sum over ["dp"] (%b) to (%all) dims [0] split_dims [0] : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "neg"(%a) to (%norm) {} : (memref<4xf32>) -> memref<4xf32>
  }
  exec.run @backward.0 in_loop
  exec.run @backward.0 microbatch 1 in_loop
  exec.run @update
}

// Between a sum and its reduction are the kernels before the next product, which one kernel of a GPU may compute with those
// before the sum.
// CHECK-LABEL: exec.program @leaves_together
exec.program @leaves_together on @mesh {
  %y = exec.buffer activation : memref<4x4xf32>
  %z = exec.buffer activation : memref<4x4xf32>
  %a = exec.buffer activation : memref<4x4xf32>
  %b = exec.buffer activation : memref<4x4xf32>
  %all_a = exec.reuse %a : memref<4x4xf32>
  %all_b = exec.reuse %b : memref<4x4xf32>

  // CHECK: exec.task @backward.0
  // CHECK-NEXT: exec.kernel "fill"
  // CHECK-NEXT: exec.kernel "accumulate"([[Y:%[0-9]+]]) to([[A:%[0-9]+]])
  // CHECK-NEXT: exec.kernel "neg"
  // CHECK-NEXT: exec.kernel "accumulate"([[Y]]) to([[B:%[0-9]+]])
  // CHECK-NEXT: exec.kernel "neg"
  // CHECK-NEXT: exec.collective all_reduce reducing sum over ["dp"]([[A]])
  // CHECK-NEXT: exec.collective all_reduce reducing sum over ["dp"]([[B]])
  // CHECK-NEXT: exec.kernel "einsum"
  exec.task @backward.0 pass backward 0 {
    exec.kernel "fill"() to (%y) {value = 1.0 : f64} : () -> memref<4x4xf32>
    exec.kernel "accumulate"(%y) to (%a) {axis = "micro"} : (memref<4x4xf32>) -> memref<4x4xf32>
    exec.kernel "neg"(%y) to (%z) {} : (memref<4x4xf32>) -> memref<4x4xf32>
    exec.kernel "accumulate"(%y) to (%b) {axis = "micro"} : (memref<4x4xf32>) -> memref<4x4xf32>
    exec.kernel "neg"(%y) to (%z) {} : (memref<4x4xf32>) -> memref<4x4xf32>
    exec.kernel "einsum"(%y, %y) to (%z) {equation = "ab,bc->ac"} : (memref<4x4xf32>, memref<4x4xf32>) -> memref<4x4xf32>
  }
  exec.task @update {
    exec.collective all_reduce reducing sum over ["dp"] (%a) to (%all_a) dims [0] split_dims [0] : (memref<4x4xf32>) -> memref<4x4xf32>
    exec.collective all_reduce reducing sum over ["dp"] (%b) to (%all_b) dims [0] split_dims [0] : (memref<4x4xf32>) -> memref<4x4xf32>
  }
  exec.run @backward.0 in_loop
  exec.run @backward.0 microbatch 1 in_loop
  exec.run @update
}

// A task that sends takes none.
// CHECK-LABEL: exec.program @stays
exec.program @stays on @mesh {
  %y = exec.buffer activation : memref<4xf32>
  %b = exec.buffer activation : memref<4xf32>
  %all = exec.reuse %b : memref<4xf32>
  %sent = exec.buffer activation slots 0 : memref<4xf32>
  exec.transfer @out send_to 1 channel 0 (%sent) : memref<4xf32>
  // CHECK: exec.task @backward.1
  // CHECK-NOT: exec.collective
  // CHECK: exec.task @update
  // CHECK: exec.collective all_reduce
  exec.task @backward.1 pass backward 1 {
    exec.kernel "fill"() to (%y) {value = 1.0 : f64} : () -> memref<4xf32>
    exec.kernel "accumulate"(%y) to (%b) {axis = "micro"} : (memref<4xf32>) -> memref<4xf32>
    exec.kernel "fill"() to (%sent) {value = 1.0 : f64} : () -> memref<4xf32>
    exec.start @out
  }
  exec.task @sent.0 {
    exec.finish @out
  }
  exec.task @update {
    exec.collective all_reduce reducing sum over ["dp"] (%b) to (%all) dims [0] split_dims [0] : (memref<4xf32>) -> memref<4xf32>
  }
  exec.run @backward.1 in_loop
  exec.run @sent.0 in_loop
  exec.run @backward.1 microbatch 1 in_loop
  exec.run @sent.0 microbatch 1 in_loop
  exec.run @update
}

// A reduction in the place of a sum stays where something else reads the sum.
// CHECK-LABEL: exec.program @reads_before
exec.program @reads_before on @mesh {
  %y = exec.buffer activation : memref<4xf32>
  %b = exec.buffer activation : memref<4xf32>
  %all = exec.reuse %b : memref<4xf32>
  %norm = exec.buffer activation : memref<4xf32>
  // CHECK: exec.task @microbatch
  // CHECK-NOT: exec.collective
  // CHECK: exec.task @update
  // CHECK-NEXT: exec.kernel "neg"
  // CHECK-NEXT: exec.collective all_reduce
  exec.task @microbatch {
    exec.kernel "fill"() to (%y) {value = 1.0 : f64} : () -> memref<4xf32>
    exec.kernel "accumulate"(%y) to (%b) {axis = "micro"} : (memref<4xf32>) -> memref<4xf32>
  }
  exec.task @update {
    exec.kernel "neg"(%b) to (%norm) {} : (memref<4xf32>) -> memref<4xf32>
    exec.collective all_reduce reducing sum over ["dp"] (%b) to (%all) dims [0] split_dims [0] : (memref<4xf32>) -> memref<4xf32>
  }
  exec.run @microbatch in_loop
  exec.run @microbatch microbatch 1 in_loop
  exec.run @update
}
