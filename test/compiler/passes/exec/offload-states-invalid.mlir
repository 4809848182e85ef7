// RUN: not dtc-opt %s --dtc-offload-states=fraction=0 2>&1 | FileCheck %s --check-prefix ZERO
// RUN: not dtc-opt %s --dtc-offload-states=fraction=1.5 2>&1 | FileCheck %s --check-prefix MORE

// ZERO: error: the fraction of states to offload is 0.0{{.*}}, expected above 0 and at most 1
// MORE: error: the fraction of states to offload is 1.5{{.*}}, expected above 0 and at most 1
dist.mesh @mesh <>
