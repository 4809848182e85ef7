// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-propagate-shardings
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=shard=batch=pp 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=default-shard=batch=pp 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=shard=batch=dp+tp+dp 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=shard=batch=dp,batch=tp 2>&1 | FileCheck %s --check-prefix=REPEATED
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=shard=batch 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=shard==dp 2>&1 | FileCheck %s --check-prefix=NAMELESS
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=shard=bacth=dp 2>&1 | FileCheck %s --check-prefix=LOGICAL
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=shard=embed=dp+tp 2>&1 | FileCheck %s --check-prefix=DIVIDE
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings="default-shard=embed=dp+tp must-divide=embed" 2>&1 | FileCheck %s --check-prefix=DIVIDE
// RUN: dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings="default-shard=embed=dp+tp must-divide=batch" 2>&1 | FileCheck %s --check-prefix=WARN
// RUN: not dtc-opt %S/Inputs/rows.mlir --dtc-propagate-shardings=shard=batch=dp,embed=dp 2>&1 | FileCheck %s --check-prefix=BOTH

// UNKNOWN: error: shard: 'batch=pp' names the mesh axis 'pp', which does not exist; the mesh has dp, tp
// TWICE: error: shard: 'batch=dp+tp+dp' names axis 'dp' twice
// REPEATED: error: shard: 'batch=tp' maps 'batch' a second time
// FORM: error: shard: 'batch' is not of the form logical=axis+axis
// NAMELESS: error: shard: '=dp' is not of the form logical=axis+axis
// LOGICAL: error: shard: the model has no logical axis 'bacth'; it has batch, embed
// DIVIDE: error: 'x': dimension 1 ('embed') has size 6, which {"dp", "tp"} would split in 4 shards that do not divide it; change the size or the mesh
// WARN: warning: mesh axis 'tp' of size 2 splits no tensor
// WARN-NOT: warning
// WARN: tensor<8x6xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"dp"}]>
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
// expected-error@+1 {{'x': dimension 0 of size 3 is sharded over {"dp"}, which makes 2 shards and does not divide it; change the size or the mesh}}
func.func @argument_divides(%x: tensor<3xf32> {dtc.input = "x", dist.sharding = #dist.sharding<@mesh, [{"dp"}]>}) {
  return
}

// -----

dist.mesh @mesh <"dp"=2>
func.func @op_divides(%x: tensor<3xf32> {dtc.input = "x"}) {
  // expected-error@+1 {{dist.constrain: dimension 0 of size 3 is sharded over {"dp"}, which makes 2 shards and does not divide it}}
  %0 = dtc.exp %x {dist.sharding = #dist.sharding<@mesh, [{"dp"}]>} : tensor<3xf32>
  return
}

// -----

dist.mesh @mesh <"dp"=2>
// expected-error@+1 {{result 0: dimension 0 of size 3 is sharded over {"dp"}, which makes 2 shards and does not divide it}}
func.func @result_divides(%x: tensor<3xf32> {dtc.input = "x"}) -> (tensor<3xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}]>}) {
  return %x : tensor<3xf32>
}

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
  // expected-error@+1 {{dist.constrain: is asked to be [{"tp"}] and [{"dp"}]; remove one of the two}}
  %0 = dist.constrain %x to <@mesh, [{"dp"}]> {dist.sharding = #dist.sharding<@mesh, [{"tp"}]>} : tensor<4xf32>
  return
}

// -----

// Values that are no tensors of the dtc dialect.

dist.mesh @mesh <"dp"=2>
// expected-error@+1 {{'func.func' op argument 1 has type 'tensor<*xf32>', expected a ranked tensor of f32, f64, i32 or i1 with static sizes of at least 1}}
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
// expected-error@+1 {{'func.func' op result 0 updates argument 1, expected a parameter or a part of the optimizer's state}}
func.func @updates_input(%w: tensor<4xf32> {dtc.param = "w"}, %x: tensor<4xf32> {dtc.input = "x"}) -> (tensor<4xf32> {dtc.updates = 1}) {
  return %w : tensor<4xf32>
}

// -----

dist.mesh @mesh <"dp"=2>
// expected-error@+1 {{'func.func' op result 1 updates argument 0, which result 0 does already}}
func.func @updates_twice(%w: tensor<4xf32> {dtc.param = "w"}, %x: tensor<4xf32> {dtc.input = "x"}) -> (tensor<4xf32> {dtc.updates = 0}, tensor<4xf32> {dtc.updates = 0}) {
  return %w, %x : tensor<4xf32>, tensor<4xf32>
}
