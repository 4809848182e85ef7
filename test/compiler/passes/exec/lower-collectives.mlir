// RUN: dtc-opt %s --split-input-file --dtc-lower-to-exec | FileCheck %s

// A bucket is one collective of several tensors. A sum takes the place of its operand where nothing else reads that; the
// input's storage is no place for a sum.
// CHECK-LABEL: exec.program @bucket
// CHECK: %[[X:[^ :]*]] = exec.buffer input : memref<4xf32>
// CHECK: %[[A:[^ :]*]] = exec.buffer activation : memref<4xf32>
// CHECK: %[[SUM:[^ :]*]] = exec.reuse %[[A]] : memref<4xf32>
// CHECK: %[[R:[^ :]*]] = exec.buffer activation : memref<4xf32>
// CHECK: %[[O:[^ :]*]] = exec.buffer output : memref<4xf32>
// CHECK: exec.task @step seconds {{.*}} {
// CHECK-NEXT: exec.kernel "exp"(%[[X]]) to(%[[A]]) {}
// CHECK-NEXT: exec.collective all_reduce reducing sum over ["dp"](%[[A]], %[[X]]) to(%[[SUM]], %[[R]]) dims [0, 0] split_dims [0, 0] {reasons = [{op = "dtc.exp", producer = "{{.*}}lower-collectives.mlir:{{[0-9]+:[0-9]+}}"}, {}]} : (memref<4xf32>, memref<4xf32>) -> (memref<4xf32>, memref<4xf32>)
// CHECK-NEXT: exec.kernel "add"(%[[SUM]], %[[R]]) to(%[[O]])
// CHECK-NEXT: {{^ *}}}
// CHECK-NEXT: exec.run @step
dist.mesh @mesh <"dp"=2>
func.func @bucket(%x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %a = dtc.exp %x : tensor<4xf32>
  %0:2 = dist.bucket -> tensor<4xf32>, tensor<4xf32> {
    %r = dist.all_reduce sum %a over @mesh ["dp"] {dist.reason = {op = "dtc.exp"}} : tensor<4xf32>
    %s = dist.all_reduce sum %x over @mesh ["dp"] : tensor<4xf32>
    dist.yield %r, %s : tensor<4xf32>, tensor<4xf32>
  }
  %1 = dtc.add %0#0, %0#1 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// The tensors of a bucket are read and written at the same time: the storage that two of them read, one through a view,
// is not written. Nor is one that is read later.
// CHECK-LABEL: exec.program @shared
// CHECK: %[[X:[^ :]*]] = exec.buffer input : memref<4xf32>
// CHECK: %[[A:[^ :]*]] = exec.buffer activation : memref<4xf32>
// CHECK: %[[V:[^ :]*]] = exec.view %[[A]] : memref<4xf32> to memref<2x2xf32>
// CHECK: %[[B:[^ :]*]] = exec.buffer activation : memref<4xf32>
// CHECK: %[[R:[^ :]*]] = exec.buffer {{.*}} : memref<4xf32>
// CHECK: %[[S:[^ :]*]] = exec.buffer {{.*}} : memref<2x2xf32>
// CHECK: %[[T:[^ :]*]] = exec.buffer {{.*}} : memref<4xf32>
// CHECK: %[[U:[^ :]*]] = exec.buffer output : memref<4xf32>
// CHECK: exec.collective all_reduce reducing sum over ["dp"](%[[A]], %[[V]], %[[B]]) to(%[[R]], %[[S]], %[[T]])
// CHECK-NEXT: exec.kernel "exp"(%[[B]]) to(%[[U]])
dist.mesh @mesh <"dp"=2>
func.func @shared(%x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<2x2xf32> {dtc.global_shape = array<i64: 2, 2>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>},
        tensor<4xf32> {dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<4xf32> {dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %a = dtc.exp %x : tensor<4xf32>
  %v = dtc.reshape %a : (tensor<4xf32>) -> tensor<2x2xf32>
  %b = dtc.neg %x : tensor<4xf32>
  %0:3 = dist.bucket -> tensor<4xf32>, tensor<2x2xf32>, tensor<4xf32> {
    %r = dist.all_reduce sum %a over @mesh ["dp"] : tensor<4xf32>
    %s = dist.all_reduce sum %v over @mesh ["dp"] : tensor<2x2xf32>
    %t = dist.all_reduce sum %b over @mesh ["dp"] : tensor<4xf32>
    dist.yield %r, %s, %t : tensor<4xf32>, tensor<2x2xf32>, tensor<4xf32>
  }
  %u = dtc.exp %b : tensor<4xf32>
  return %0#0, %0#1, %0#2, %u : tensor<4xf32>, tensor<2x2xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// The same where both results are intermediate values, so that only what the bucket reads keeps them apart; and a sum
// stays where it is until its last reader.
// CHECK-LABEL: exec.program @same_operand
// CHECK: exec.kernel "exp"(%[[X:[^ ,)]*]]) to(%[[A:[^ ,)]*]])
// CHECK-NEXT: exec.collective all_reduce reducing sum over ["dp"](%[[A]], %[[A]]) to(%[[R:[^ ,)]*]], %[[S:[^ ,)]*]]) dims
// CHECK-NEXT: exec.kernel "neg"(%[[R]]) to(%[[N:[^ ,)]*]])
// CHECK-NEXT: exec.kernel "mul"(%[[N]], %[[S]]) to(%[[M:[^ ,)]*]])
// CHECK-NEXT: exec.kernel "add"(%[[M]], %[[R]]) to(%{{.*}})
dist.mesh @mesh <"dp"=2>
func.func @same_operand(%x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %a = dtc.exp %x : tensor<4xf32>
  %0:2 = dist.bucket -> tensor<4xf32>, tensor<4xf32> {
    %r = dist.all_reduce sum %a over @mesh ["dp"] : tensor<4xf32>
    %s = dist.all_reduce sum %a over @mesh ["dp"] : tensor<4xf32>
    dist.yield %r, %s : tensor<4xf32>, tensor<4xf32>
  }
  %n = dtc.neg %0#0 : tensor<4xf32>
  %m = dtc.mul %n, %0#1 : tensor<4xf32>
  %p = dtc.add %m, %0#0 : tensor<4xf32>
  return %p : tensor<4xf32>
}

// -----

// Dimensions are each tensor's own; a permutation has the axes that it comes from.
// CHECK-LABEL: exec.program @dimensions
// CHECK: exec.collective all_gather over ["dp"](%[[X:[^ ,)]*]], %[[X]]) to(%[[G:[^ ,)]*]], %[[H:[^ ,)]*]]) dims [1, 0] split_dims [0, 0] {{.*}} : (memref<4x4xf32>, memref<4x4xf32>) -> (memref<4x8xf32>, memref<8x4xf32>)
// CHECK-NEXT: exec.collective all_to_all over ["dp"](%[[H]], %[[G]]) to(%{{.*}}, %{{.*}}) dims [0, 1] split_dims [1, 0] {{.*}} : (memref<8x4xf32>, memref<4x8xf32>) -> (memref<16x2xf32>, memref<2x16xf32>)
// CHECK-NEXT: exec.collective permute over ["dp", "tp"] from ["tp", "dp"](%[[X]]) to(%[[P:[^ ,)]*]]) dims [0] split_dims [0] {{.*}} : (memref<4x4xf32>) -> memref<4x4xf32>
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @dimensions(%x: tensor<4x4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4, 4>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>})
    -> (tensor<16x2xf32> {dtc.global_shape = array<i64: 16, 2>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>},
        tensor<2x16xf32> {dtc.global_shape = array<i64: 2, 16>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>},
        tensor<4x4xf32> {dtc.global_shape = array<i64: 4, 4>, dist.sharding = #dist.sharding<@mesh, [{}, {}]>}) {
  %0:2 = dist.bucket -> tensor<4x8xf32>, tensor<8x4xf32> {
    %g = dist.all_gather %x dim 1 over @mesh ["dp"] : (tensor<4x4xf32>) -> tensor<4x8xf32>
    %h = dist.all_gather %x dim 0 over @mesh ["dp"] : (tensor<4x4xf32>) -> tensor<8x4xf32>
    dist.yield %g, %h : tensor<4x8xf32>, tensor<8x4xf32>
  }
  %1:2 = dist.bucket -> tensor<16x2xf32>, tensor<2x16xf32> {
    %g = dist.all_to_all %0#1 split_dim 1 dim 0 over @mesh ["dp"] : (tensor<8x4xf32>) -> tensor<16x2xf32>
    %h = dist.all_to_all %0#0 split_dim 0 dim 1 over @mesh ["dp"] : (tensor<4x8xf32>) -> tensor<2x16xf32>
    dist.yield %g, %h : tensor<16x2xf32>, tensor<2x16xf32>
  }
  %p = dist.permute %x over @mesh ["dp", "tp"] from ["tp", "dp"] : tensor<4x4xf32>
  return %1#0, %1#1, %p : tensor<16x2xf32>, tensor<2x16xf32>, tensor<4x4xf32>
}

// -----

// In the loop. Gradients are gradients through a bucket: before it, in it and after it. An empty bucket is nothing.
// CHECK-LABEL: exec.program @loop
// CHECK: %[[S:[^ ]*]] = exec.buffer activation : memref<2xf32>
// CHECK-NEXT: %[[N:[^ ]*]] = exec.buffer activation : memref<2xf32>
// CHECK-NEXT: %[[E:[^ ]*]] = exec.reuse %[[S]] : memref<2xf32>
// CHECK-NEXT: %[[ES:[^ ]*]] = exec.reuse %[[E]] : memref<2xf32>
// CHECK-NEXT: %[[NS:[^ ]*]] = exec.reuse %[[N]] : memref<2xf32>
// CHECK: exec.task @microbatch seconds {{.*}} {
// CHECK-NEXT: exec.kernel "shard_slice"(%{{.*}}) to(%[[S]]) {axes = ["micro"], dim = 0 : i64}
// CHECK-NEXT: exec.kernel "neg"(%[[S]]) to(%[[N]])
// CHECK-NEXT: exec.kernel "exp"(%[[S]]) to(%[[E]])
// CHECK-NEXT: exec.collective all_reduce reducing sum over ["dp"](%[[E]], %[[N]]) to(%[[ES]], %[[NS]])
// CHECK-NEXT: exec.kernel "accumulate"(%[[ES]]) to(%[[SUM:[^ ,)]*]]) {axis = "micro"}
// CHECK-NEXT: exec.kernel "accumulate"(%[[NS]]) to(%[[OUT:[^ ,)]*]]) {axis = "micro"}
// CHECK: exec.task @update seconds {{.*}} {
// CHECK-NEXT: exec.kernel "fill"
// CHECK-NEXT: exec.kernel "sgd"
dist.mesh @mesh <"dp"=2, "micro"=3 temporal>
func.func @loop(%w: tensor<2xf32> {dtc.param = "w", dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                %x: tensor<6xf32> {dtc.input = "x", dtc.global_shape = array<i64: 6>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                %lr: tensor<f32> {dtc.scalar = "batches", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
                %m: tensor<2xf32> {dtc.state = "momentum_buffer", dtc.state_of = "w", dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<2xf32> {dtc.output = "sums", dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<2xf32> {dtc.updates = 0 : i64, dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<2xf32> {dtc.updates = 3 : i64, dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %grad, %sums = dist.microbatch_loop @mesh "micro" : tensor<2xf32>, tensor<2xf32> {
    %s = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<6xf32>) -> tensor<2xf32>
    %n = dtc.neg %s : tensor<2xf32>
    %e = dtc.exp %s : tensor<2xf32>
    dist.bucket {
    }
    %0:2 = dist.bucket -> tensor<2xf32>, tensor<2xf32> {
      %a = dist.all_reduce sum %e over @mesh ["dp"] : tensor<2xf32>
      %b = dist.all_reduce sum %n over @mesh ["dp"] : tensor<2xf32>
      dist.yield %a, %b : tensor<2xf32>, tensor<2xf32>
    }
    dist.yield %0#0, %0#1 : tensor<2xf32>, tensor<2xf32>
  }
  %ap = dtc.constant dense<true> : tensor<i1>
  %w2, %m2 = dtc.sgd %w, %grad, %m, %lr, %lr, %ap {momentum = 0.9, weight_decay = 0.0} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>)
  return %sums, %w2, %m2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// CHECK-LABEL: exec.program @gradients
// CHECK: exec.buffer gradient : memref<2xf32>
// CHECK-NOT: exec.buffer activation
// CHECK: exec.collective all_reduce
dist.mesh @mesh <"dp"=2>
func.func @gradients(%w: tensor<2xf32> {dtc.param = "w", dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                     %v: tensor<2xf32> {dtc.param = "v", dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                     %lr: tensor<f32> {dtc.scalar = "batches", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
                     %m: tensor<2xf32> {dtc.state = "momentum_buffer", dtc.state_of = "w", dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                     %k: tensor<2xf32> {dtc.state = "momentum_buffer", dtc.state_of = "v", dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<2xf32> {dtc.updates = 0 : i64, dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<2xf32> {dtc.updates = 3 : i64, dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<2xf32> {dtc.updates = 1 : i64, dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<2xf32> {dtc.updates = 4 : i64, dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %gw = dtc.exp %w : tensor<2xf32>
  %gv = dtc.exp %v : tensor<2xf32>
  %0:2 = dist.bucket -> tensor<2xf32>, tensor<2xf32> {
    %a = dist.all_reduce sum %gw over @mesh ["dp"] : tensor<2xf32>
    %b = dist.all_reduce sum %gv over @mesh ["dp"] : tensor<2xf32>
    dist.yield %a, %b : tensor<2xf32>, tensor<2xf32>
  }
  %ap = dtc.constant dense<true> : tensor<i1>
  %w2, %m2 = dtc.sgd %w, %0#0, %m, %lr, %lr, %ap {momentum = 0.9, weight_decay = 0.0} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>)
  %v2, %k2 = dtc.sgd %v, %0#1, %k, %lr, %lr, %ap {momentum = 0.9, weight_decay = 0.0} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>)
  return %w2, %m2, %v2, %k2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// Kernels that fill padding work in place; a shard of five over two has room for three.
// CHECK-LABEL: exec.program @padding
// CHECK: exec.reuse
// CHECK: exec.kernel "shard_slice"(%{{.*}}) to(%[[S:[^ ,)]*]]) {axes = ["dp"], dim = 0 : i64} : (memref<5xf32>) -> memref<3xf32>
// CHECK-NEXT: exec.kernel "mask_padding"(%[[S]]) to(%[[M:[^ ,)]*]]) {axes = ["dp"], dim = 0 : i64, size = 5 : i64, value = "lowest"} : (memref<3xf32>) -> memref<3xf32>
// CHECK-NEXT: exec.kernel "exp"(%[[M]])
dist.mesh @mesh <"dp"=2>
func.func @padding(%x: tensor<5xf32> {dtc.input = "x", dtc.global_shape = array<i64: 5>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<3xf32> {dtc.global_shape = array<i64: 5>, dist.sharding = #dist.sharding<@mesh, [{"dp"}]>}) {
  %0 = dist.shard_slice %x dim 0 over @mesh ["dp"] : (tensor<5xf32>) -> tensor<3xf32>
  %1 = dist.mask_padding lowest %0 dim 0 of 5 over @mesh ["dp"] : tensor<3xf32>
  %2 = dtc.exp %1 : tensor<3xf32>
  return %2 : tensor<3xf32>
}

// -----

// The result of a collective of the loop is added to its sum when the next collective comes, or at the end: until then
// it may run. A value that is yielded twice is added twice, one from outside the loop is added at the end.
// CHECK-LABEL: exec.program @accumulate
// CHECK: exec.task @microbatch seconds {{.*}} {
// CHECK-NEXT: exec.kernel "shard_slice"(%{{.*}}) to(%[[S:[^ ,)]*]])
// CHECK-NEXT: exec.kernel "exp"(%[[S]]) to(%[[A:[^ ,)]*]])
// CHECK-NEXT: exec.collective all_reduce reducing sum over ["dp"](%[[A]]) to(%[[AS:[^ ,)]*]])
// CHECK-NEXT: exec.kernel "neg"(%[[S]]) to(%[[B:[^ ,)]*]])
// CHECK-NEXT: exec.kernel "accumulate"(%[[AS]]) to(%[[SUM:[^ ,)]*]])
// CHECK-NEXT: exec.kernel "accumulate"(%[[AS]]) to(%[[TWICE:[^ ,)]*]])
// CHECK-NEXT: exec.collective all_reduce reducing sum over ["dp"](%[[B]]) to(%[[BS:[^ ,)]*]])
// CHECK-NEXT: exec.kernel "accumulate"(%[[BS]]) to
// CHECK-NEXT: exec.kernel "accumulate"(%[[W:[^ ,)]*]]) to
// CHECK-NEXT: {{^ *}}}
// CHECK-NEXT: exec.run @microbatch
dist.mesh @mesh <"dp"=2, "micro"=3 temporal>
func.func @accumulate(%w: tensor<2xf32> {dtc.param = "w", dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                      %x: tensor<6xf32> {dtc.input = "x", dtc.global_shape = array<i64: 6>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<2xf32> {dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<2xf32> {dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<2xf32> {dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<2xf32> {dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %l:4 = dist.microbatch_loop @mesh "micro" : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32> {
    %s = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<6xf32>) -> tensor<2xf32>
    %a = dtc.exp %s : tensor<2xf32>
    %ra = dist.all_reduce sum %a over @mesh ["dp"] : tensor<2xf32>
    %b = dtc.neg %s : tensor<2xf32>
    %rb = dist.all_reduce sum %b over @mesh ["dp"] : tensor<2xf32>
    dist.yield %ra, %rb, %ra, %w : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  }
  return %l#0, %l#1, %l#2, %l#3 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
