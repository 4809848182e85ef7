// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-insert-reshards

// expected-error@+1 {{'builtin.module' op has no dist.mesh}}
module {
}

// -----

dist.mesh @mesh <"tp"=2>
// expected-error@+1 {{'func.func' op has no sharding for argument 1; run dtc-propagate-shardings first}}
func.func @argument(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}, %y: tensor<4xf32>) {
  return
}

// -----

dist.mesh @mesh <"tp"=2>
func.func @result(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  // expected-error@+1 {{'dtc.exp' op has no sharding; run dtc-propagate-shardings first}}
  %0 = dtc.exp %x : tensor<4xf32>
  return
}

// -----

dist.mesh @mesh <"tp"=2>
func.func @one_result(%x: tensor<4x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}]>}, %l: tensor<4xi32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  // expected-error@+1 {{'dtc.cross_entropy' op has no sharding; run dtc-propagate-shardings first}}
  %0:2 = dtc.cross_entropy %x, %l {dist.sharding = [#dist.sharding<@mesh, [{}]>, unit]} : (tensor<4x4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

dist.mesh @mesh <"tp"=2>
func.func private @g(tensor<4xf32>) -> tensor<4xf32>
func.func @call(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) -> tensor<4xf32> {
  // expected-error@+1 {{'func.call' op has no sharding rule; implement ShardingRuleOpInterface}}
  %0 = func.call @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// The pass runs once.
dist.mesh @mesh <"tp"=2>
func.func @reshard(%x: tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  // expected-error@+1 {{'dist.reshard' op has no sharding rule}}
  %0 = dist.reshard %x from <@mesh, [{}]> to <@mesh, [{"tp"}]> {dist.sharding = #dist.sharding<@mesh, [{"tp"}]>} : tensor<4xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @sum_of_maxima(%x: tensor<4x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>}) {
  // A maximum is completed before it is summed.
  %0 = dtc.reduce max %x dims [1] {dist.sharding = #dist.sharding<@mesh, [{"dp"}]>} : (tensor<4x4xf32>) -> tensor<4xf32>
  %1 = dtc.reduce sum %0 dims [0] {dist.sharding = #dist.sharding<@mesh, []>} : (tensor<4xf32>) -> tensor<f32>
  return
}

// -----

dist.mesh @mesh <"tp"=2>
// expected-error@+1 {{'func.func' op argument 0 has type 'index', expected a ranked tensor}}
func.func @index(%x: index) {
  return
}
