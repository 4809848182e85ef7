// RUN: not dtc-opt %s --dtc-chunk-collectives=chunks=-1 2>&1 | FileCheck %s --check-prefix FEW
// RUN: not dtc-opt %s --dtc-chunk-collectives=chunks=65 2>&1 | FileCheck %s --check-prefix MANY
// RUN: not dtc-opt %s --dtc-chunk-collectives=chunks=2 2>&1 | FileCheck %s --check-prefix MESH

// FEW: error: the option chunks is -1, expected at least 0
// MANY: error: the option chunks is 65, expected at most 64
// MESH: error: 'builtin.module' op has no dist.mesh; declare one, or give dtc-compile --mesh
func.func @loss(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
