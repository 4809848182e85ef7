// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-propagate-shardings
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=shard=batch=pp 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=default-shard=batch=pp 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=shard=batch=dp+tp+dp 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=shard=batch=dp,batch=tp 2>&1 | FileCheck %s --check-prefix=REPEATED
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=shard=batch 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=shard==dp 2>&1 | FileCheck %s --check-prefix=NAMELESS
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=shard=bacth=dp 2>&1 | FileCheck %s --check-prefix=LOGICAL
// RUN: not dtc-opt %S/Inputs/narrow.mlir --dtc-propagate-shardings=shard=embed=dp+tp 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not dtc-opt %S/Inputs/narrow.mlir --dtc-propagate-shardings="default-shard=embed=dp+tp must-split=embed" 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: dtc-opt %S/Inputs/narrow.mlir --dtc-propagate-shardings="default-shard=embed=dp+tp must-split=batch" 2>&1 | FileCheck %s --check-prefix=WARN
// RUN: dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=shard=embed=dp+tp 2>&1 | FileCheck %s --check-prefix=PADDED
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=shard=batch=dp,embed=dp 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not dtc-opt %S/Inputs/sequences.mlir --dtc-propagate-shardings=shard=residual_seq=tp@-1 2>&1 | FileCheck %s --check-prefix=PRIORITY -DENTRY=residual_seq=tp@-1 -DTEXT=-1
// RUN: not dtc-opt %S/Inputs/sequences.mlir --dtc-propagate-shardings=shard=residual_seq=tp@x 2>&1 | FileCheck %s --check-prefix=PRIORITY -DENTRY=residual_seq=tp@x -DTEXT=x
// RUN: not dtc-opt %S/Inputs/sequences.mlir --dtc-propagate-shardings=shard=residual_seq=tp@ 2>&1 | FileCheck %s --check-prefix=PRIORITY -DENTRY=residual_seq=tp@ -DTEXT=
// RUN: not dtc-opt %S/Inputs/sequences.mlir --dtc-propagate-shardings=shard=residual_seq=tp@1@2 2>&1 | FileCheck %s --check-prefix=PRIORITY -DENTRY=residual_seq=tp@1@2 -DTEXT=1@2
// RUN: not dtc-opt %S/Inputs/sequences.mlir --dtc-propagate-shardings="zero-stage=1" 2>&1 | FileCheck %s --check-prefix=NOAXES
// RUN: not dtc-opt %S/Inputs/sequences.mlir --dtc-propagate-shardings="zero-stage=1 zero-axes=dp" 2>&1 | FileCheck %s --check-prefix=NOAXIS
// RUN: not dtc-opt %S/Inputs/sequences.mlir --dtc-propagate-shardings="zero-stage=1 zero-axes=micro" 2>&1 | FileCheck %s --check-prefix=TIME
// RUN: not dtc-opt %S/Inputs/sequences.mlir --dtc-propagate-shardings="zero-stage=1 zero-axes=tp" 2>&1 | FileCheck %s --check-prefix=NOOPTIMIZER

// UNKNOWN: error: shard: 'batch=pp' names the mesh axis 'pp', which does not exist; the mesh has dp, tp
// TWICE: error: shard: 'batch=dp+tp+dp' names axis 'dp' twice
// REPEATED: error: shard: 'batch=tp' maps 'batch' a second time
// FORM: error: shard: 'batch' is not of the form logical=axis+axis
// NAMELESS: error: shard: '=dp' is not of the form logical=axis+axis
// LOGICAL: error: shard: the model has no logical axis 'bacth'; it has batch, embed
// EMPTY: narrow.mlir:{{[0-9]+:[0-9]+}}: error: 'x': dimension 1 ('embed') has size 1, which {"dp", "tp"} would split in 4 shards, some of them empty; change the size or the mesh
// WARN: warning: mesh axis 'dp' of size 2 splits no tensor
// WARN: warning: mesh axis 'tp' of size 2 splits no tensor
// WARN-NOT: warning
// WARN: tensor<8x1xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {}]>
// 6 in halves of 3, and those in blocks of 2: no shard is empty.
// PADDED-NOT: warning
// PADDED: rows.mlir:{{[0-9]+:[0-9]+}}: remark: 'x': dimension 1 ('embed') of size 6 is padded to 8 to be split over {"dp", "tp"}
// PADDED: tensor<8x6xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"dp", "tp"}]>
// PRIORITY: error: shard: '[[ENTRY]]' has the priority '[[TEXT]]', expected a number of at least 0
// NOAXES: error: ZeRO stage 1 has no axes; name some
// NOAXIS: error: ZeRO stage 1 is over the mesh axis 'dp', which does not exist; name an axis that splits the batch
// TIME: error: ZeRO stage 1 is over the axis 'micro', which is temporal; states are split over devices
// NOOPTIMIZER: error: ZeRO stage 1 splits the optimizer's state, but the function has no optimizer; compile a train step, or leave ZeRO out
// BOTH: error: 'x': axis "dp" would split two dimensions of it, 'embed' and an earlier one; map them to different axes

// expected-error@+1 {{'builtin.module' op has no dist.mesh; declare one, or give dtc-compile --mesh}}
module {
  func.func @f() {
    return
  }
}

// -----

dist.mesh @mesh <>
// expected-error@+1 {{'dist.mesh' op is a second mesh beside @mesh; a program runs on one mesh}}
dist.mesh @other <>

// -----

dist.mesh @mesh <"dp"=2>
// expected-error@+1 {{'x': the sharding #dist.sharding<@mesh, [{}], partial = sum{"dp"}> is partial; only complete ones can be asked for}}
func.func @partial_argument(%x: tensor<4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{}], partial = sum{"dp"}>}) {
  return
}

// -----

dist.mesh @mesh <"dp"=2>
func.func @partial_op(%x: tensor<4xf32> {dtc.input = "x"}) {
  // expected-error@+1 {{dist.constrain: the sharding #dist.sharding<@mesh, [{}], partial = sum{"dp"}> is partial}}
  %0 = dtc.exp %x {dist.sharding = #dist.sharding<@mesh, [{}], partial = sum{"dp"}>} : tensor<4xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2>
// expected-error@+1 {{result 0: the sharding #dist.sharding<@mesh, [{}], partial = sum{"dp"}> is partial}}
func.func @partial_result(%x: tensor<4xf32> {dtc.input = "x"}) -> (tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{}], partial = sum{"dp"}>}) {
  return %x : tensor<4xf32>
}

// -----

dist.mesh @mesh <"micro"=2 temporal>
// expected-error@+1 {{result 0: the sharding #dist.sharding<@mesh, [{"micro"}]> splits it over the temporal axis "micro"; a result is there once for all microbatches}}
func.func @temporal_result(%x: tensor<4xf32> {dtc.input = "x"}) -> (tensor<4xf32> {dist.sharding = #dist.sharding<@mesh, [{"micro"}]>}) {
  return %x : tensor<4xf32>
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @constrained_twice(%x: tensor<4xf32> {dtc.input = "x"}) {
  // expected-note@+2 {{the other one is asked for here}}
  // expected-error@+1 {{dist.constrain: is asked to be [{"tp"}] and [{"dp"}]; remove one of the two}}
  %0 = dist.constrain %x to <@mesh, [{"dp"}]> {dist.sharding = #dist.sharding<@mesh, [{"tp"}]>} : tensor<4xf32>
  return
}

// -----

// Values that are no tensors of the dtc dialect.

dist.mesh @mesh <"dp"=2>
// expected-error@+1 {{'func.func' op argument 1 has type 'tensor<*xf32>', expected a ranked tensor of f32, f64, bf16, f16, i32 or i1 with static sizes of at least 1}}
func.func @unranked(%x: tensor<4xf32>, %y: tensor<*xf32>) {
  return
}

// -----

dist.mesh @mesh <"dp"=2>
// expected-error@+1 {{'func.func' op argument 0 has type 'tensor<?xf32>', expected a ranked tensor}}
func.func @dynamic(%x: tensor<?xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp"}]>}) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}

// -----

dist.mesh @mesh <"dp"=2>
// expected-error@+1 {{'func.func' op argument 0 has type 'tensor<4xi64>', expected a ranked tensor}}
func.func @element(%x: tensor<4xi64>) {
  return
}

// -----

dist.mesh @mesh <"dp"=2>
func.func private @g() -> index
func.func @call() {
  // expected-error@+1 {{'func.call' op result 0 has type 'index', expected a ranked tensor}}
  %0 = func.call @g() : () -> index
  return
}

// -----

dist.mesh @mesh <"dp"=2>
func.func private @g()
func.func @constant() {
  // expected-error@+1 {{'func.constant' op result 0 has type '() -> ()', expected a ranked tensor}}
  %0 = func.constant @g : () -> ()
  return
}

// -----

dist.mesh @mesh <"dp"=2>
// expected-error@+1 {{'func.func' op has branches, expected straight-line code}}
func.func @branches() {
  return
^unreachable:
  return
}

// -----

dist.mesh @mesh <"dp"=2>
// expected-error@+1 {{'func.func' op result 0 updates argument 0 and has type 'tensor<8xf32>', expected the argument's, 'tensor<4xf32>'}}
func.func @updates_type(%w: tensor<4xf32> {dtc.param = "w"}, %x: tensor<8xf32>) -> (tensor<8xf32> {dtc.updates = 0}) {
  return %x : tensor<8xf32>
}

// -----

dist.mesh @mesh <"dp"=2>
// expected-error@+1 {{'func.func' op result 0 updates argument 1, expected a parameter, a part of the optimizer's state, a cache or a step state}}
func.func @updates_input(%w: tensor<4xf32> {dtc.param = "w"}, %x: tensor<4xf32> {dtc.input = "x"}) -> (tensor<4xf32> {dtc.updates = 1}) {
  return %w : tensor<4xf32>
}

// -----

dist.mesh @mesh <"dp"=2>
// expected-error@+1 {{'func.func' op result 1 updates argument 0, which result 0 does already}}
func.func @updates_twice(%w: tensor<4xf32> {dtc.param = "w"}, %x: tensor<4xf32> {dtc.input = "x"}) -> (tensor<4xf32> {dtc.updates = 0}, tensor<4xf32> {dtc.updates = 0}) {
  return %w, %x : tensor<4xf32>, tensor<4xf32>
}

// -----

// One value in two places.
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @two_constraints(%x: tensor<4x4xf32> {dtc.input = "x"}) {
  %0 = dtc.exp %x : tensor<4x4xf32>
  // expected-note@+1 {{here it is constrained to [{"dp"}, {}]}}
  %1 = dist.constrain %0 to <@mesh, [{"dp"}, {}]> : tensor<4x4xf32>
  // expected-error@+1 {{a value is constrained to [{}, {"tp"}], and to another sharding elsewhere; constrain it once, and what must lie differently after that}}
  %2 = dist.constrain %0 to <@mesh, [{}, {"tp"}]> : tensor<4x4xf32>
  return
}

// -----

// An axis that is used twice is refused where it is read.
dist.mesh @mesh <"dp"=2, "tp"=2>
// expected-error@+1 {{axis "dp" is used twice in one sharding; an axis can split one dimension, or be partial, but not both}}
func.func @axis_twice(%x: tensor<4x4xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"dp"}]>}) {
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @axis_twice_in_one(%x: tensor<4x4xf32> {dtc.input = "x"}) {
  // expected-error@+1 {{axis "dp" is used twice in one sharding}}
  %0 = dist.constrain %x to <@mesh, [{"dp", "dp"}, {}]> : tensor<4x4xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @unknown_axis(%x: tensor<4x4xf32> {dtc.input = "x"}) {
  // expected-error@+1 {{'dist.constrain' op result is sharded over "pp", which is not an axis of @mesh}}
  %0 = dist.constrain %x to <@mesh, [{"pp"}, {}]> : tensor<4x4xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @unknown_mesh(%x: tensor<4x4xf32> {dtc.input = "x"}) {
  // expected-error@+1 {{'dist.constrain' op result has a sharding on @other, which is not a dist.mesh; declare it in the module}}
  %0 = dist.constrain %x to <@other, [{"dp"}, {}]> : tensor<4x4xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @priority(%x: tensor<4x4xf32> {dtc.input = "x"}) {
  // expected-error@+1 {{expected a priority such as p1 after a dimension}}
  %0 = dist.constrain %x to <@mesh, [{"dp"}p-1, {}]> : tensor<4x4xf32>
  return
}

// -----

// An op needs a dimension whole that the user asks to be split right there: both are named.
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @sequences(%q: tensor<2x4x2x4xf32> {dtc.input = "q"}, %k: tensor<2x4x2x4xf32> {dtc.input = "k"}) {
  // expected-note@+1 {{the constraint asks for [{}, {"tp"}, {}, {}]}}
  %0 = dist.constrain %k to <@mesh, [{}, {"tp"}, {}, {}]> : tensor<2x4x2x4xf32>
  // expected-error@+1 {{'dtc.attention' needs dimension 1 of its operand 1 whole, but the operand is constrained to be split over {"tp"} there; constrain another dimension, or none}}
  %out, %lse = dtc.attention %q, %0, %k {causal = true, scale = 0.5 : f64} : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  return
}

// -----

// The heads of an attention can be split.
dist.mesh @mesh <"tp"=2>
func.func @heads(%q: tensor<2x4x2x4xf32> {dtc.input = "q"}, %k: tensor<2x4x2x4xf32> {dtc.input = "k"}) {
  %0 = dist.constrain %q to <@mesh, [{}, {}, {"tp"}, {}]> : tensor<2x4x2x4xf32>
  %out, %lse = dtc.attention %0, %k, %k {causal = true, scale = 0.5 : f64} : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
  return
}
