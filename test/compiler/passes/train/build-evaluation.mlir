// RUN: dtc-opt %s --split-input-file --dtc-build-evaluation | FileCheck %s

// Only the loss is left of a train step. States stay though nothing reads some of them; the learning rate, the key of
// dropout and the labels that only gradients read do not.
// CHECK-LABEL: func.func @evaluate
// CHECK-SAME: (%[[W:[^:]*]]: tensor<4xf32> {{.*}}dtc.param = "w"
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32> {{.*}}dtc.input = "x"
// CHECK-SAME: %{{[^:]*}}: tensor<4xf32> {{.*}}dtc.state = "m", dtc.state_of = "w"
// CHECK-SAME: -> (tensor<f32> {dist.sharding = #dist.sharding<@mesh, []>, dtc.global_shape = array<i64>, dtc.output = "loss"})
// CHECK-NEXT: %[[Y:.*]] = dtc.mul %[[X]], %[[W]]
// CHECK-NEXT: %[[LOSS:.*]] = dtc.reduce sum %[[Y]]
// CHECK-NEXT: return %[[LOSS]] : tensor<f32>
dist.mesh @mesh <>
func.func @train_step(%w: tensor<4xf32> {dtc.param = "w", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                      %x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                      %rate: tensor<f32> {dtc.scalar = "batches", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
                      %key: tensor<2xi32> {dtc.scalar = "random_key", dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                      %m: tensor<4xf32> {dtc.state = "m", dtc.state_of = "w", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {dtc.updates = 0 : i64, dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<f32> {dtc.output = "loss", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
        tensor<4xf32> {dtc.updates = 4 : i64, dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %d = dtc.dropout %x, %key {rate = 0.5, number = 0} : (tensor<4xf32>, tensor<2xi32>) -> tensor<4xf32>
  %y = dtc.mul %d, %w : tensor<4xf32>
  %loss = dtc.reduce sum %y dims [0] : (tensor<4xf32>) -> tensor<f32>
  %r = dtc.broadcast %rate dims [] : (tensor<f32>) -> tensor<4xf32>
  %g = dtc.mul %d, %r : tensor<4xf32>
  %new = dtc.sub %w, %g : tensor<4xf32>
  %newm = dtc.add %m, %g : tensor<4xf32>
  return %new, %loss, %newm : tensor<4xf32>, tensor<f32>, tensor<4xf32>
}

// -----

// A loop over microbatches sums the loss alone; after the loop comes its mean over devices.
// CHECK-LABEL: func.func @evaluate
// CHECK-NEXT: %[[SUM:.*]] = dist.microbatch_loop @mesh "micro" : tensor<f32> {
// CHECK-NEXT: dist.shard_slice
// CHECK-NEXT: %[[Y:.*]] = dtc.mul
// CHECK-NEXT: %[[L:.*]] = dtc.reduce sum %[[Y]]
// CHECK-NEXT: dist.yield %[[L]] : tensor<f32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[ALL:.*]] = dist.all_reduce sum %[[SUM]] over
// CHECK-NEXT: return %[[ALL]] : tensor<f32>
dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
func.func @train_step(%w: tensor<2xf32> {dtc.param = "w", dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                      %x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 8>, dist.sharding = #dist.sharding<@mesh, [{"dp"}]>})
    -> (tensor<f32> {dtc.output = "loss", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
        tensor<2xf32> {dtc.updates = 0 : i64, dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %0:2 = dist.microbatch_loop @mesh "micro" : tensor<2xf32>, tensor<f32> {
    %part = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<4xf32>) -> tensor<2xf32>
    %y = dtc.mul %part, %w : tensor<2xf32>
    %l = dtc.reduce sum %y dims [0] : (tensor<2xf32>) -> tensor<f32>
    %g = dtc.neg %part : tensor<2xf32>
    dist.yield %g, %l : tensor<2xf32>, tensor<f32>
  }
  %loss = dist.all_reduce sum %0#1 over @mesh ["dp"] : tensor<f32>
  %sum = dist.all_reduce sum %0#0 over @mesh ["dp"] : tensor<2xf32>
  %new = dtc.add %w, %sum : tensor<2xf32>
  return %loss, %new : tensor<f32>, tensor<2xf32>
}

// -----

// Metrics that must be zero stay beside the loss, in the order in which the step returns them; others do not.
// CHECK-LABEL: func.func @evaluate
// CHECK-SAME: -> (tensor<2xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>, dtc.global_shape = array<i64: 2>, dtc.metric = "lost:h.0", dtc.must_be_zero, dtc.output = "lost:h.0"},
// CHECK-SAME: tensor<f32> {dist.sharding = #dist.sharding<@mesh, []>, dtc.global_shape = array<i64>, dtc.output = "loss"},
// CHECK-SAME: tensor<f32> {dist.sharding = #dist.sharding<@mesh, []>, dtc.global_shape = array<i64>, dtc.metric = "lost:h.1", dtc.must_be_zero, dtc.output = "lost:h.1"})
// CHECK-NEXT: %[[SUMS:.*]]:3 = dist.microbatch_loop @mesh "micro" : tensor<f32>, tensor<2xf32>, tensor<f32> {
// CHECK: %[[SUM:.*]] = dtc.reduce sum
// CHECK-NEXT: %[[LOST:.*]] = dtc.relu
// CHECK-NEXT: %[[MORE:.*]] = dtc.reduce max
// CHECK-NEXT: dist.yield %[[SUM]], %[[LOST]], %[[MORE]] : tensor<f32>, tensor<2xf32>, tensor<f32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[SUMS]]#1, %[[SUMS]]#0, %[[SUMS]]#2 : tensor<2xf32>, tensor<f32>, tensor<f32>
dist.mesh @mesh <"micro"=2 temporal>
func.func @train_step(%w: tensor<2xf32> {dtc.param = "w", dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
                      %x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<2xf32> {dtc.output = "lost:h.0", dtc.metric = "lost:h.0", dtc.must_be_zero, dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<f32> {dtc.output = "loss", dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
        tensor<2xf32> {dtc.output = "tokens:h.0", dtc.metric = "tokens:h.0", dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>},
        tensor<f32> {dtc.output = "lost:h.1", dtc.metric = "lost:h.1", dtc.must_be_zero, dtc.global_shape = array<i64>, dist.sharding = #dist.sharding<@mesh, []>},
        tensor<2xf32> {dtc.updates = 0 : i64, dtc.global_shape = array<i64: 2>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  %0:5 = dist.microbatch_loop @mesh "micro" : tensor<f32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32> {
    %part = dist.shard_slice %x dim 0 over @mesh ["micro"] : (tensor<4xf32>) -> tensor<2xf32>
    %l = dtc.reduce sum %part dims [0] : (tensor<2xf32>) -> tensor<f32>
    %tokens = dtc.exp %part : tensor<2xf32>
    %lost = dtc.relu %part : tensor<2xf32>
    %g = dtc.neg %part : tensor<2xf32>
    %more = dtc.reduce max %lost dims [0] : (tensor<2xf32>) -> tensor<f32>
    dist.yield %l, %lost, %tokens, %g, %more : tensor<f32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>
  }
  %new = dtc.add %w, %0#3 : tensor<2xf32>
  return %0#1, %0#0, %0#2, %0#4, %new : tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>
}
