// RUN: not dtc-opt %S/Inputs/sequences.mlir --dtc-propagate-shardings="zero-stage=4 zero-axes=tp" 2>&1 | FileCheck %s
// RUN: not dtc-opt %S/Inputs/sequences.mlir --dtc-propagate-shardings="zero-stage=-1 zero-axes=tp" 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// CHECK: error: zero-stage is 4, expected 0 to 3
// NEGATIVE: error: zero-stage is -1, expected 0 to 3
