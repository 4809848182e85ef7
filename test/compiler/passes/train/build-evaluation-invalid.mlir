// RUN: not dtc-opt %S/Inputs/identity.mlir --dtc-build-evaluation 2>&1 | FileCheck %s --check-prefix=MESH
// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-build-evaluation

// MESH: error: 'builtin.module' op has no dist.mesh; declare one, or give dtc-compile --mesh

dist.mesh @mesh <>
// expected-error@+1 {{'func.func' op returns no output named 'loss'; run dtc-build-train-step}}
func.func @forward(%x: tensor<4xf32> {dtc.input = "x", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {dtc.output = "y", dtc.global_shape = array<i64: 4>, dist.sharding = #dist.sharding<@mesh, [{}]>}) {
  return %x : tensor<4xf32>
}
