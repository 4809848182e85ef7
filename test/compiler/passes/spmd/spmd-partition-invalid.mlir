// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-spmd-partition

// expected-error@+1 {{'builtin.module' op has no dist.mesh}}
module {
}

// -----

dist.mesh @mesh <"tp"=2>
// expected-error@+1 {{'func.func' op argument 0 has no sharding; run dtc-propagate-shardings first}}
func.func @argument(%x: tensor<4xf32>) {
  return
}

// -----

dist.mesh @mesh <"tp"=2>
func.func @result(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  // expected-error@+1 {{'dtc.exp' op result 0 has no sharding; run dtc-propagate-shardings first}}
  %0 = dtc.exp %x : tensor<4xf32>
  return
}

// -----

dist.mesh @mesh <"tp"=2>
// expected-error@+1 {{'func.func' op argument 0 has type 'index', expected a ranked tensor}}
func.func @index(%x: index) {
  return
}

// -----

dist.mesh @mesh <"tp"=2>
// expected-error@+1 {{'func.func' op has branches, expected straight-line code}}
func.func @branches(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
^unreachable:
  return %x : tensor<4xf32>
}

// -----

dist.mesh @mesh <"tp"=2>
func.func private @g(tensor<4xf32>) -> tensor<4xf32>
func.func @call(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) -> tensor<4xf32> {
  // expected-error@+1 {{'func.call' op has no sharding rule; implement ShardingRuleOpInterface}}
  %0 = func.call @g(%x) {dist.sharding = #dist.sharding<@mesh, [{}]>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Functions that are local already.
dist.mesh @mesh <"tp"=2>
func.func @local(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) -> tensor<4xf32> {
  // expected-error@+1 {{'dist.all_reduce' op has no sharding rule}}
  %0 = dist.all_reduce sum %x over @mesh ["tp"] {dist.sharding = #dist.sharding<@mesh, [{}]>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Shardings that do not follow from each other: without dtc-insert-reshards nothing moves.
dist.mesh @mesh <"tp"=2>
func.func @follow(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{"tp"}]>}) -> tensor<4xf32> {
  // expected-error@+1 {{'dtc.exp' op result 0 is laid out as [{}], which does not follow from the op's other tensors; run dtc-insert-reshards first}}
  %0 = dtc.exp %x {dist.sharding = #dist.sharding<@mesh, [{}]>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

dist.mesh @mesh <"tp"=2>
func.func @disagree(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{"tp"}]>}, %y: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) -> tensor<4xf32> {
  // expected-error@+1 {{'dtc.add' op operand 1 is laid out as [{}], which does not follow}}
  %0 = dtc.add %x, %y {dist.sharding = #dist.sharding<@mesh, [{"tp"}]>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A softmax needs its rows whole.
dist.mesh @mesh <"tp"=2>
func.func @whole(%x: tensor<4x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>}) -> tensor<4x4xf32> {
  // expected-error@+1 {{'dtc.softmax' op operand 0 is laid out as [{}, {"tp"}], which does not follow}}
  %0 = dtc.softmax %x {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>} : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

dist.mesh @mesh <"tp"=2>
func.func @reshard(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) -> tensor<4xf32> {
  // expected-error@+1 {{'dist.reshard' op goes from [{}] to [{}], and says otherwise}}
  %0 = dist.reshard %x from <@mesh, [{"tp"}]> to <@mesh, [{}]> {dist.sharding = #dist.sharding<@mesh, [{}]>} : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A shard with a piece of each microbatch: pieces are even parts of the first dimension.
dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
// expected-error@+1 {{argument 0 has size 6 in dimension 0, which is sharded over {"micro", "dp"}; where the temporal axis does not come last, the first dimension is split, and evenly}}
func.func @uneven_pieces(%x: tensor<6xf32> {dist.sharding = #dist.sharding<@mesh, [{"micro", "dp"}]>}) {
  return
}

// -----

dist.mesh @mesh <"dp"=2, "micro"=2 temporal>
// expected-error@+1 {{argument 1 has size 8 in dimension 1, which is sharded over {"micro", "dp"}; where the temporal axis does not come last, the first dimension is split, and evenly}}
func.func @pieces_of_columns(%x: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}, %y: tensor<4x8xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"micro", "dp"}]>}) {
  return
}

// -----

dist.mesh @mesh <"micro"=2 temporal>
func.func @gather(%x: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"micro"}]>}) -> tensor<8xf32> {
  // expected-error@+1 {{a value of shape 'tensor<8xf32>' that each microbatch has a part of ([{"micro"}]) is needed as a whole ([{}]); microbatches cannot see each other; use one microbatch, or an op that does not mix samples}}
  %0 = dist.reshard %x from <@mesh, [{"micro"}]> to <@mesh, [{}]> {dist.sharding = #dist.sharding<@mesh, [{}]>} : tensor<8xf32>
  %1 = dtc.exp %0 {dist.sharding = #dist.sharding<@mesh, [{}]>} : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

dist.mesh @mesh <"micro"=2 temporal>
func.func @exchange(%x: tensor<8x8xf32> {dist.sharding = #dist.sharding<@mesh, [{"micro"}, {}]>}) {
  // expected-error@+1 {{that each microbatch has a part of ([{"micro"}, {}]) is needed as a whole ([{}, {"micro"}])}}
  %0 = dist.reshard %x from <@mesh, [{"micro"}, {}]> to <@mesh, [{}, {"micro"}]> {dist.sharding = #dist.sharding<@mesh, [{}, {"micro"}]>} : tensor<8x8xf32>
  return
}

// -----

dist.mesh @mesh <"micro"=2 temporal>
func.func @maximum(%x: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"micro"}]>}) -> tensor<f32> {
  %0 = dtc.reduce max %x dims [0] {dist.sharding = #dist.sharding<@mesh, [], partial = max{"micro"}>} : (tensor<8xf32>) -> tensor<f32>
  // expected-error@+1 {{needs the maximum over microbatches; only sums are carried from one microbatch to the next; use one microbatch}}
  %1 = dist.reshard %0 from <@mesh, [], partial = max{"micro"}> to <@mesh, []> {dist.sharding = #dist.sharding<@mesh, []>} : tensor<f32>
  return %1 : tensor<f32>
}

// -----

dist.mesh @mesh <"micro"=2 temporal>
func.func @returned(%x: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"micro"}]>}) -> tensor<8xf32> {
  // expected-error@+1 {{'func.return' op returns as result 0 what each microbatch has a part of ([{"micro"}]); run dtc-insert-reshards first}}
  return %x : tensor<8xf32>
}

// -----

dist.mesh @mesh <"micro"=2 temporal>
func.func @loses_time(%x: tensor<8xf32> {dist.sharding = #dist.sharding<@mesh, [{"micro"}]>}) {
  // expected-error@+1 {{'dtc.exp' op computes on a microbatch, but its result is laid out as [{}]; run dtc-insert-reshards first}}
  %0 = dtc.exp %x {dist.sharding = #dist.sharding<@mesh, [{}]>} : tensor<8xf32>
  return
}
