// RUN: dtc-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{mesh axis "dp" has size 0, expected 1 to 1048576 [axis-c2]}}
dist.mesh @mesh <"dp"=0>

// -----

// expected-error@+1 {{mesh axis "dp" has size 1048577, expected 1 to 1048576 [axis-c2]}}
dist.mesh @mesh <"dp"=1048577>

// -----

// expected-error@+1 {{a mesh axis has an empty name [axis-c1]}}
dist.mesh @mesh <""=2>

// -----

// expected-error@+1 {{a mesh axis has an empty name [axis-c1]}}
#axis = #dist.axis<""=2>

// -----

// expected-error@+1 {{expected '='}}
#axis = #dist.axis<"dp" 2>

// -----

// expected-error@+1 {{'dist.mesh' op has two axes named "dp" [mesh-c1]}}
dist.mesh @mesh <"dp"=2, "dp"=2>

// -----

// expected-error@+1 {{'dist.mesh' op has more than 1048576 devices [mesh-c2]}}
dist.mesh @mesh <"dp"=1048576, "tp"=2>

// -----

// Microbatches are no devices.
dist.mesh @mesh <"dp"=1048576, "micro"=2 temporal>
// expected-error@+1 {{'dist.mesh' op has 2 temporal axes, expected at most one [mesh-c5]}}
dist.mesh @other <"dp"=2, "micro"=4 temporal, "nano"=2 temporal>

// -----

// expected-error@+1 {{'dist.mesh' op attribute 'axes' failed to satisfy constraint: array of axes}}
"dist.mesh"() <{sym_name = "mesh", axes = ["dp"]}> : () -> ()

// -----

// expected-error@+1 {{axis "dp" is used twice in one sharding; an axis can split one dimension, or be partial, but not both [sharding-c1]}}
#sharding = #dist.sharding<@mesh, [{"dp"}, {"dp"}]>

// -----

// expected-error@+1 {{axis "dp" is used twice in one sharding; an axis can split one dimension, or be partial, but not both [sharding-c1]}}
#sharding = #dist.sharding<@mesh, [{"dp"}, {}], partial = sum{"dp"}>

// -----

// expected-error@+1 {{'mean' is no reduction, expected sum, max or min}}
#sharding = #dist.sharding<@mesh, [{}], partial = mean{"dp"}>

// -----

// expected-error@+1 {{expected '{'}}
#sharding = #dist.sharding<@mesh, ["dp"]>

// -----

// expected-error@+1 {{expected string}}
#sharding = #dist.sharding<@mesh, [{dp}]>

// -----

// expected-error@+1 {{unknown attribute `shard` in dialect `dist`}}
#sharding = #dist.shard<@mesh, [{}]>

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

// expected-error@+1 {{'func.func' op argument 0 has a sharding on @other, which is not a dist.mesh; declare it in the module [sharding-c2]}}
func.func private @unknown_mesh(tensor<4xf32> {dist.sharding = #dist.sharding<@other, [{}]>})

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func private @f()
// expected-error@+1 {{argument 0 has a sharding on @f, which is not a dist.mesh; declare it in the module [sharding-c2]}}
func.func private @no_mesh(tensor<4xf32> {dist.sharding = #dist.sharding<@f, [{}]>})

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

// expected-error@+1 {{argument 1 has a sharding, but its type is 'index', expected a tensor [sharding-c3]}}
func.func private @no_tensor(index, index {dist.sharding = #dist.sharding<@mesh, []>})

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

// expected-error@+1 {{argument 0 has a sharding, but its type is 'tensor<*xf32>', expected a tensor [sharding-c3]}}
func.func private @unranked(tensor<*xf32> {dist.sharding = #dist.sharding<@mesh, []>})

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

// expected-error@+1 {{argument 0 has rank 2, but its sharding #dist.sharding<@mesh, [{}]> has 1 dimensions [sharding-c4]}}
func.func private @rank(tensor<4x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>})

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

// expected-error@+1 {{argument 0 is sharded over "pp", which is not an axis of @mesh [sharding-c5]}}
func.func private @unknown_axis(tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{"pp"}]>})

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

// expected-error@+1 {{result 1 is sharded over "pp", which is not an axis of @mesh [sharding-c5]}}
func.func private @unknown_partial() -> (tensor<4xf32>, tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}], partial = sum{"pp"}>})

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

// expected-error@+1 {{argument 0 has 'dist.sharding' = "dp", expected 'dist.sharding' with a #dist.sharding [dist-c7]}}
func.func private @no_sharding(tensor<4xf32> {dist.sharding = "dp"})

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

// expected-error@+1 {{argument 0 has 'dist.shard' = #dist.sharding<@mesh, [{}]>, expected 'dist.sharding' with a #dist.sharding [dist-c7]}}
func.func private @unknown_on_argument(tensor<4xf32> {dist.shard = #dist.sharding<@mesh, [{}]>})

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

// expected-error@+1 {{result 0 has 'dist.sharding' = [#dist.sharding<@mesh, [{}]>], expected 'dist.sharding' with a #dist.sharding [dist-c7]}}
func.func private @array_on_result() -> (tensor<4xf32> {dist.sharding = [#dist.sharding<@mesh, [{}]>]})

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @unknown_on_op(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dtc.exp' op has the attribute 'dist.shard', which the dist dialect does not know; expected 'dist.sharding' [dist-c3]}}
  %0 = dtc.exp %x {dist.shard = 1} : tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @rank_on_op(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dtc.exp' op result has rank 2, but its sharding #dist.sharding<@mesh, [{}]> has 1 dimensions [sharding-c4]}}
  %0 = dtc.exp %x {dist.sharding = #dist.sharding<@mesh, [{}]>} : tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @no_sharding_on_op(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dtc.exp' op has 'dist.sharding' = "dp", expected a sharding for each of its 1 results [dist-c5]}}
  %0 = dtc.exp %x {dist.sharding = "dp"} : tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @one_for_two(%x: tensor<16x8xf32>, %l: tensor<16xi32>) {
  // expected-error@+1 {{'dtc.cross_entropy' op has 2 results; 'dist.sharding' must be an array with one sharding for each [dist-c4]}}
  %0:2 = dtc.cross_entropy %x, %l {dist.sharding = #dist.sharding<@mesh, [{}]>} : (tensor<16x8xf32>, tensor<16xi32>) -> (tensor<16xf32>, tensor<16xf32>)
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @array_size(%x: tensor<16x8xf32>, %l: tensor<16xi32>) {
  // expected-error@+1 {{expected a sharding for each of its 2 results [dist-c5]}}
  %0:2 = dtc.cross_entropy %x, %l {dist.sharding = [#dist.sharding<@mesh, [{}]>]} : (tensor<16x8xf32>, tensor<16xi32>) -> (tensor<16xf32>, tensor<16xf32>)
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @array_element(%x: tensor<16x8xf32>, %l: tensor<16xi32>) {
  // expected-error@+1 {{'dtc.cross_entropy' op has 'dist.sharding' with "dp", expected a #dist.sharding [dist-c6]}}
  %0:2 = dtc.cross_entropy %x, %l {dist.sharding = [#dist.sharding<@mesh, [{}]>, "dp"]} : (tensor<16x8xf32>, tensor<16xi32>) -> (tensor<16xf32>, tensor<16xf32>)
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @array_axis(%x: tensor<16x8xf32>, %l: tensor<16xi32>) {
  // expected-error@+1 {{'dtc.cross_entropy' op result 1 is sharded over "pp", which is not an axis of @mesh [sharding-c5]}}
  %0:2 = dtc.cross_entropy %x, %l {dist.sharding = [unit, #dist.sharding<@mesh, [{"pp"}]>]} : (tensor<16x8xf32>, tensor<16xi32>) -> (tensor<16xf32>, tensor<16xf32>)
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @zero_results() {
  // expected-error@+1 {{'func.return' op has 0 results; 'dist.sharding' must be an array with one sharding for each [dist-c4]}}
  return {dist.sharding = #dist.sharding<@mesh, [{}]>}
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @constrain_mesh(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.constrain' op result has a sharding on @other, which is not a dist.mesh; declare it in the module [sharding-c2]}}
  %0 = dist.constrain %x to <@other, [{}, {}]> : tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @constrain_partial(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.constrain' op asks for the partial sharding #dist.sharding<@mesh, [{}, {}], partial = sum{"dp"}>; a value can be constrained only to a complete one [constrain-c1]}}
  %0 = dist.constrain %x to <@mesh, [{}, {}], partial = sum{"dp"}> : tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @constrain_type(%x: tensor<?xf32>) {
  // expected-error@+1 {{'dist.constrain' op operand #0 must be statically shaped tensor}}
  %0 = dist.constrain %x to <@mesh, [{}]> : tensor<?xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @reshard_meshes(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.reshard' op goes from @mesh to @other; both shardings must be on one mesh [reshard-c1]}}
  %0 = dist.reshard %x from <@mesh, [{}, {}]> to <@other, [{}, {}]> : tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @reshard_from(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.reshard' op operand has rank 2, but its sharding #dist.sharding<@mesh, [{}]> has 1 dimensions [sharding-c4]}}
  %0 = dist.reshard %x from <@mesh, [{}]> to <@mesh, [{}, {}]> : tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @reshard_to(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.reshard' op result is sharded over "pp", which is not an axis of @mesh [sharding-c5]}}
  %0 = dist.reshard %x from <@mesh, [{}, {}]> to <@mesh, [{"pp"}, {}]> : tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @reshard_partial(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.reshard' op makes the value partial over "tp", which its operand is not; a reshard can only complete a sum [reshard-c2]}}
  %0 = dist.reshard %x from <@mesh, [{}, {}], partial = sum{"dp"}> to <@mesh, [{}, {}], partial = sum{"tp"}> : tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @reshard_kind(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.reshard' op turns a value that is partial as a sum into one that is partial as a max [reshard-c3]}}
  %0 = dist.reshard %x from <@mesh, [{}, {}], partial = sum{"dp", "tp"}> to <@mesh, [{}, {}], partial = max{"tp"}> : tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @group_mesh(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.all_reduce' op is over @other, which is not a dist.mesh [all_reduce-c1]}}
  %0 = dist.all_reduce sum %x over @other ["dp"] : tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @group_axis(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.all_reduce' op is over axis "pp", which @mesh lacks [all_reduce-c2]}}
  %0 = dist.all_reduce sum %x over @mesh ["pp"] : tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @group_twice(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.all_reduce' op names axis "dp" twice [all_reduce-c2]}}
  %0 = dist.all_reduce sum %x over @mesh ["dp", "dp"] : tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @group_temporal(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.all_reduce' op is over axis "micro", which is temporal; nothing moves between microbatches [all_reduce-c2]}}
  %0 = dist.all_reduce sum %x over @mesh ["micro"] : tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @all_reduce_type(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.all_reduce' op failed to verify that all of {input, result} have same type}}
  %0 = "dist.all_reduce"(%x) <{kind = #dist<reduction sum>, mesh = @mesh, axes = ["dp"]}> : (tensor<16x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @all_reduce_axes(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.all_reduce' op attribute 'axes' failed to satisfy constraint: array of axis names}}
  %0 = "dist.all_reduce"(%x) <{kind = #dist<reduction sum>, mesh = @mesh, axes = [1]}> : (tensor<16x8xf32>) -> tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @all_gather_dim(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.all_gather' op names dimension 2 of 'tensor<16x8xf32>' [all_gather-c3]}}
  %0 = dist.all_gather %x dim 2 over @mesh ["dp"] : (tensor<16x8xf32>) -> tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @all_gather_type(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.all_gather' op has a result of type 'tensor<16x16xf32>', expected 'tensor<32x8xf32>' for a group of 2 [all_gather-c4]}}
  %0 = dist.all_gather %x dim 0 over @mesh ["dp"] : (tensor<16x8xf32>) -> tensor<16x16xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @all_gather_temporal(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.all_gather' op is over axis "micro", which is temporal; nothing moves between microbatches [all_gather-c2]}}
  %0 = dist.all_gather %x dim 0 over @mesh ["micro"] : (tensor<16x8xf32>) -> tensor<128x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @reduce_scatter_dim(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.reduce_scatter' op names dimension -1 of 'tensor<16x8xf32>' [reduce_scatter-c3]}}
  %0 = dist.reduce_scatter sum %x dim -1 over @mesh ["dp"] : (tensor<16x8xf32>) -> tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @reduce_scatter_divide(%x: tensor<6x8xf32>) {
  // expected-error@+1 {{'dist.reduce_scatter' op splits dimension 0 of 'tensor<6x8xf32>' in 4 blocks, which do not divide it [reduce_scatter-c4]}}
  %0 = dist.reduce_scatter sum %x dim 0 over @mesh ["tp"] : (tensor<6x8xf32>) -> tensor<1x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @reduce_scatter_element(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.reduce_scatter' op has a result of type 'tensor<4x8xf64>', expected 'tensor<4x8xf32>' for a group of 4 [reduce_scatter-c5]}}
  %0 = dist.reduce_scatter sum %x dim 0 over @mesh ["tp"] : (tensor<16x8xf32>) -> tensor<4x8xf64>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @all_to_all_same(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.all_to_all' op splits and concatenates the same dimension 0 [all_to_all-c6]}}
  %0 = dist.all_to_all %x split_dim 0 dim 0 over @mesh ["dp"] : (tensor<16x8xf32>) -> tensor<16x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @all_to_all_divide(%x: tensor<16x6xf32>) {
  // expected-error@+1 {{'dist.all_to_all' op splits dimension 1 of 'tensor<16x6xf32>' in 4 blocks, which do not divide it [all_to_all-c4]}}
  %0 = dist.all_to_all %x split_dim 1 dim 0 over @mesh ["tp"] : (tensor<16x6xf32>) -> tensor<64x1xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @all_to_all_dim(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.all_to_all' op names dimension 2 of 'tensor<16x8xf32>' [all_to_all-c3]}}
  %0 = dist.all_to_all %x split_dim 0 dim 2 over @mesh ["dp"] : (tensor<16x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @shard_slice_divide(%x: tensor<16x8xf32>) {
  // 8 elements in 16 blocks: each has room for one.
  // expected-error@+1 {{'dist.shard_slice' op has 0 elements in dimension 1, expected 1 for a block of 8 over ["dp", "micro"] [shard_slice-c5]}}
  %0 = dist.shard_slice %x dim 1 over @mesh ["dp", "micro"] : (tensor<16x8xf32>) -> tensor<16x0xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @shard_offset_size(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.shard_offset' op has size -1, expected at least 1 [shard_offset-c3]}}
  %0 = dist.shard_offset size -1 over @mesh ["dp"] : tensor<i32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @shard_offset_axis(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.shard_offset' op is over axis "pp", which @mesh lacks [shard_offset-c2]}}
  %0 = dist.shard_offset size 1 over @mesh ["pp"] : tensor<i32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @shard_offset_type(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.shard_offset' op result #0 must be 0D tensor of 32-bit signless integer values}}
  %0 = dist.shard_offset size 1 over @mesh ["dp"] : tensor<1xi32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @loop_mesh(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.microbatch_loop' op is over @other, which is not a dist.mesh [microbatch_loop-c1]}}
  dist.microbatch_loop @other "micro" {
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @loop_axis(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.microbatch_loop' op is over axis "pp", which @mesh lacks [microbatch_loop-c2]}}
  dist.microbatch_loop @mesh "pp" {
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @loop_spatial(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.microbatch_loop' op is over axis "dp", which is not temporal [microbatch_loop-c2]}}
  dist.microbatch_loop @mesh "dp" {
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @loop_sum(%x: tensor<16x8xbf16>) {
  // expected-error@+1 {{'dist.microbatch_loop' op adds up values of type 'tensor<16x8xbf16>', expected f32 or f64 [microbatch_loop-c3]}}
  %0 = dist.microbatch_loop @mesh "micro" : tensor<16x8xbf16> {
    dist.yield %x : tensor<16x8xbf16>
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @loop_yield(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.microbatch_loop' op yields values of types ('tensor<16x8xf32>'), expected those of its results ('tensor<8xf32>') [microbatch_loop-c7]}}
  %0 = dist.microbatch_loop @mesh "micro" : tensor<8xf32> {
    dist.yield %x : tensor<16x8xf32>
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @loop_yields_nothing(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.microbatch_loop' op yields values of types (), expected those of its results ('tensor<8xf32>') [microbatch_loop-c7]}}
  %0 = dist.microbatch_loop @mesh "micro" : tensor<8xf32> {
  }
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @loop_terminator(%x: tensor<16x8xf32>) {
  "dist.microbatch_loop"() <{mesh = @mesh, axis = "micro"}> ({
  // expected-error@+1 {{'func.return' op expects parent op 'func.func'}}
  return
  }) : () -> ()
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @yield_outside(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.yield' op expects parent op to be one of 'dist.microbatch_loop, dist.bucket, dist.fragment'}}
  dist.yield
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @all_gather_mesh(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.all_gather' op is over @other, which is not a dist.mesh [all_gather-c1]}}
  %0 = dist.all_gather %x dim 0 over @other ["dp"] : (tensor<16x8xf32>) -> tensor<32x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @reduce_scatter_mesh(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.reduce_scatter' op is over @other, which is not a dist.mesh [reduce_scatter-c1]}}
  %0 = dist.reduce_scatter sum %x dim 0 over @other ["dp"] : (tensor<16x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @reduce_scatter_axis(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.reduce_scatter' op is over axis "pp", which @mesh lacks [reduce_scatter-c2]}}
  %0 = dist.reduce_scatter sum %x dim 0 over @mesh ["pp"] : (tensor<16x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @all_to_all_mesh(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.all_to_all' op is over @other, which is not a dist.mesh [all_to_all-c1]}}
  %0 = dist.all_to_all %x split_dim 0 dim 1 over @other ["dp"] : (tensor<16x8xf32>) -> tensor<8x16xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @all_to_all_twice(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.all_to_all' op names axis "dp" twice [all_to_all-c2]}}
  %0 = dist.all_to_all %x split_dim 0 dim 1 over @mesh ["dp", "dp"] : (tensor<16x8xf32>) -> tensor<4x32xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @all_to_all_type(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.all_to_all' op has a result of type 'tensor<32x4xf32>', expected 'tensor<8x16xf32>' for a group of 2 [all_to_all-c5]}}
  %0 = dist.all_to_all %x split_dim 0 dim 1 over @mesh ["dp"] : (tensor<16x8xf32>) -> tensor<32x4xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @shard_offset_mesh(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.shard_offset' op is over @other, which is not a dist.mesh [shard_offset-c1]}}
  %0 = dist.shard_offset size 16 over @other ["dp"] : tensor<i32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @shard_slice_mesh(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.shard_slice' op is over @other, which is not a dist.mesh [shard_slice-c1]}}
  %0 = dist.shard_slice %x dim 0 over @other ["dp"] : (tensor<16x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=4, "micro"=8 temporal>

func.func @factors_no_lists(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dtc.exp' op has 'dist.factors' = ["dp"], expected a list of axes for each factor [dist-c2]}}
  %0 = dtc.exp %x {dist.factors = ["dp"]} : tensor<16x8xf32>
  return
}

// -----

func.func @copy_to(%x: tensor<16x8xf32>) {
  // expected-error@+1 {{'dist.copy' op is to 'disk', expected "host" or "device" [copy-c1]}}
  %0 = dist.copy %x to "disk" : tensor<16x8xf32>
  return
}

// -----

// expected-error@+1 {{argument 0 has 'dist.sample_dim' = 1, expected a dimension of 'tensor<8xf32>'}}
func.func private @sample_dim(tensor<8xf32> {dist.sample_dim = 1 : i64})
