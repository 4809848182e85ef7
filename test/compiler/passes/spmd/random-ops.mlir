// RUN: dtc-opt %s --split-input-file --dtc-propagate-shardings --dtc-insert-reshards --dtc-spmd-partition 2>/dev/null | FileCheck %s

// The numbers that a device draws depend on the place of its shard in the whole tensor. Its op is told the shape of
// that, and which axes split each dimension, the temporal one too: an op in the loop has a shard of the microbatch. The
// key is whole.
// CHECK-LABEL: func.func @dropout(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x3xf32>{{.*}} %[[KEY:[^:]*]]: tensor<2xi32> {dist.sharding = #dist.sharding<@mesh, [{}]>, dtc.global_shape = array<i64: 2>, dtc.scalar = "random_key"}
// CHECK: dist.microbatch_loop
// CHECK-NEXT: %[[PART:.*]] = dist.shard_slice %[[X]] dim 0 over @mesh ["micro"] : (tensor<4x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: dtc.dropout %[[PART]], %[[KEY]] {number = 3 : i64, rate = 5.000000e-01 : f64, shape = array<i64: 8, 6>, sharding = ["dp,micro", "tp"]} : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=2 temporal>
func.func @dropout(%x: tensor<8x6xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {"tp"}]>}, %key: tensor<2xi32> {dtc.scalar = "random_key"}) -> tensor<f32> {
  %0 = dtc.dropout %x, %key {number = 3, rate = 0.5} : (tensor<8x6xf32>, tensor<2xi32>) -> tensor<8x6xf32>
  %1 = dtc.reduce sum %0 dims [0, 1] : (tensor<8x6xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// The mask of a tensor that is whole everywhere is the same everywhere; a scalar has no dimension
// to split, so nothing is said.
// CHECK-LABEL: func.func @whole(
// CHECK: dtc.dropout %{{.*}} {number = 3 : i64, rate = 5.000000e-01 : f64, shape = array<i64: 8, 6>, sharding = ["", ""]} : (tensor<8x6xf32>, tensor<2xi32>)
// CHECK: dtc.dropout %{{.*}} {number = 4 : i64, rate = 5.000000e-01 : f64} : (tensor<f32>, tensor<2xi32>)
dist.mesh @mesh <"dp"=2>
func.func @whole(%x: tensor<8x6xf32> {dtc.input = "x"}, %s: tensor<f32> {dtc.input = "s"}, %key: tensor<2xi32> {dtc.scalar = "random_key"}) -> (tensor<8x6xf32>, tensor<f32>) {
  %0 = dtc.dropout %x, %key {number = 3, rate = 0.5} : (tensor<8x6xf32>, tensor<2xi32>) -> tensor<8x6xf32>
  %1 = dtc.dropout %s, %key {number = 4, rate = 0.5} : (tensor<f32>, tensor<2xi32>) -> tensor<f32>
  return %0, %1 : tensor<8x6xf32>, tensor<f32>
}

// -----

// Five rows in shards of three: the shape is that of what exists. Padding may be dropped or not.
// CHECK-LABEL: func.func @padding(
// CHECK-NEXT: dtc.dropout %{{.*}} {number = 3 : i64, rate = 5.000000e-01 : f64, shape = array<i64: 5>, sharding = ["dp"]} : (tensor<3xf32>, tensor<2xi32>) -> tensor<3xf32>
// CHECK-NEXT: return
dist.mesh @mesh <"dp"=2>
func.func @padding(%x: tensor<5xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp"}]>}, %key: tensor<2xi32> {dtc.scalar = "random_key"}) -> tensor<5xf32> {
  %0 = dtc.dropout %x, %key {number = 3, rate = 0.5} : (tensor<5xf32>, tensor<2xi32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

// A partial sum drops out as its sum would: devices over which it is one draw the same mask.
// CHECK-LABEL: func.func @partial(
// CHECK: %[[PART:.*]] = dtc.einsum
// CHECK-NEXT: %[[DROPPED:.*]] = dtc.dropout %[[PART]], %{{.*}} {number = 3 : i64, rate = 5.000000e-01 : f64, shape = array<i64: 8, 4>, sharding = ["dp", ""]} : (tensor<4x4xf32>, tensor<2xi32>) -> tensor<4x4xf32>
// CHECK-NEXT: dist.all_reduce sum %[[DROPPED]] over @mesh ["tp"]
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @partial(%x: tensor<8x6xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>}, %w: tensor<6x4xf32> {dtc.param = "w", dist.sharding = #dist.sharding<@mesh, [{"tp"}, {}]>}, %key: tensor<2xi32> {dtc.scalar = "random_key"}) -> tensor<8x4xf32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  %1 = dtc.dropout %0, %key {number = 3, rate = 0.5} : (tensor<8x4xf32>, tensor<2xi32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

// The mask of attention is over [batch, heads, queries, keys], of the gradient too. The lengths are not split.
// CHECK-LABEL: func.func @attention(
// CHECK: dist.microbatch_loop
// CHECK: dtc.attention {{.*}} key %{{.*}} {causal = true, dropout = 5.000000e-01 : f64, number = 3 : i64, scale = 1.000000e+00 : f64, shape = array<i64: 8, 4, 3, 5>, sharding = ["dp,micro", "tp", "", ""]} : (tensor<2x3x2x2xf32>, tensor<2x5x2x2xf32>, tensor<2x5x2x2xf32>, tensor<2xi32>)
// CHECK: dtc.attention_grad {{.*}} key %{{.*}} {causal = true, dropout = 5.000000e-01 : f64, number = 3 : i64, scale = 1.000000e+00 : f64, shape = array<i64: 8, 4, 3, 5>, sharding = ["dp,micro", "tp", "", ""]} : (tensor<2x3x2x2xf32>, tensor<2x5x2x2xf32>,
dist.mesh @mesh <"dp"=2, "tp"=2, "micro"=2 temporal>
func.func @attention(%q: tensor<8x3x4x2xf32> {dtc.input = "q", dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {}, {"tp"}, {}]>},
                     %k: tensor<8x5x4x2xf32> {dtc.input = "k", dist.sharding = #dist.sharding<@mesh, [{"dp", "micro"}, {}, {"tp"}, {}]>}, %key: tensor<2xi32> {dtc.scalar = "random_key"}) -> (tensor<f32>, tensor<f32>) {
  %out, %lse = dtc.attention %q, %k, %k key %key {causal = true, scale = 1.0, number = 3, dropout = 0.5} : (tensor<8x3x4x2xf32>, tensor<8x5x4x2xf32>, tensor<8x5x4x2xf32>, tensor<2xi32>) -> (tensor<8x3x4x2xf32>, tensor<8x4x3xf32>)
  %sum = dtc.reduce sum %out dims [0, 1, 2, 3] : (tensor<8x3x4x2xf32>) -> tensor<f32>
  %dq, %dk, %dv = dtc.attention_grad %q, %k, %k, %out, %lse, %q key %key {causal = true, scale = 1.0, number = 3, dropout = 0.5} : (tensor<8x3x4x2xf32>, tensor<8x5x4x2xf32>, tensor<8x5x4x2xf32>, tensor<8x3x4x2xf32>, tensor<8x4x3xf32>, tensor<8x3x4x2xf32>, tensor<2xi32>) -> (tensor<8x3x4x2xf32>, tensor<8x5x4x2xf32>, tensor<8x5x4x2xf32>)
  %grad = dtc.reduce sum %dq dims [0, 1, 2, 3] : (tensor<8x3x4x2xf32>) -> tensor<f32>
  return %sum, %grad : tensor<f32>, tensor<f32>
}

// -----

// Several heads of queries for one of keys: the heads are those of the queries, here eight, and are split by what splits the
// heads of keys and by what splits those that share one.
// CHECK-LABEL: func.func @grouped(
// CHECK: dtc.attention {{.*}} key %{{.*}} {causal = true, dropout = 5.000000e-01 : f64, number = 3 : i64, scale = 1.000000e+00 : f64, shape = array<i64: 2, 8, 4, 4>, sharding = ["", "tp,group", "", ""]} : (tensor<2x4x2x2xf32>, tensor<2x4x1x2xf32>, tensor<2x4x1x2xf32>, tensor<2xi32>)
dist.mesh @mesh <"tp"=2, "group"=2>
func.func @grouped(%q: tensor<2x4x8x2xf32> {dtc.input = "q", dist.sharding = #dist.sharding<@mesh, [{}, {}, {"tp", "group"}, {}]>},
                   %k: tensor<2x4x2x2xf32> {dtc.input = "k", dist.sharding = #dist.sharding<@mesh, [{}, {}, {"tp"}, {}]>}, %key: tensor<2xi32> {dtc.scalar = "random_key"}) -> tensor<f32> {
  %out, %lse = dtc.attention %q, %k, %k key %key {causal = true, scale = 1.0, number = 3, dropout = 0.5} : (tensor<2x4x8x2xf32>, tensor<2x4x2x2xf32>, tensor<2x4x2x2xf32>, tensor<2xi32>) -> (tensor<2x4x8x2xf32>, tensor<2x8x4xf32>)
  %sum = dtc.reduce sum %out dims [0, 1, 2, 3] : (tensor<2x4x8x2xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}

// -----

// Attention without dropout has neither attribute.
// CHECK-LABEL: func.func @without(
// CHECK: dtc.attention {{.*}} {causal = true, scale = 1.000000e+00 : f64} :
dist.mesh @mesh <"dp"=2>
func.func @without(%q: tensor<2x4x8x2xf32> {dtc.input = "q", dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}, {}, {}]>}) -> tensor<2x4x8x2xf32> {
  %out, %lse = dtc.attention %q, %q, %q {causal = true, scale = 1.0} : (tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>, tensor<2x4x8x2xf32>) -> (tensor<2x4x8x2xf32>, tensor<2x8x4xf32>)
  return %out : tensor<2x4x8x2xf32>
}

// -----

// Tensors of many dimensions, such as the scores of grouped heads.
// CHECK-LABEL: func.func @five(
// CHECK: dtc.dropout %{{.*}} {number = 3 : i64, rate = 5.000000e-01 : f64, shape = array<i64: 4, 2, 6, 3, 5>, sharding = ["dp", "", "tp", "", ""]} : (tensor<2x2x3x3x5xf32>, tensor<2xi32>) -> tensor<2x2x3x3x5xf32>
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @five(%x: tensor<4x2x6x3x5xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}, {"tp"}, {}, {}]>}, %key: tensor<2xi32> {dtc.scalar = "random_key"}) -> tensor<4x2x6x3x5xf32> {
  %0 = dtc.dropout %x, %key {number = 3, rate = 0.5} : (tensor<4x2x6x3x5xf32>, tensor<2xi32>) -> tensor<4x2x6x3x5xf32>
  return %0 : tensor<4x2x6x3x5xf32>
}
