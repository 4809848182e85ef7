// RUN: not dtc-opt %s --dtc-offload-activations=fraction=0 2>&1 | FileCheck %s --check-prefix ZERO
// RUN: not dtc-opt %s --dtc-offload-activations=fraction=1.5 2>&1 | FileCheck %s --check-prefix MORE
// RUN: not dtc-opt %s --dtc-offload-activations=prefetch=-1 2>&1 | FileCheck %s --check-prefix AHEAD
// RUN: not dtc-opt %s --dtc-offload-activations 2>&1 | FileCheck %s --check-prefix LOOP

// ZERO: error: the fraction of activations to offload is 0.0{{.*}}, expected above 0 and at most 1
// MORE: error: the fraction of activations to offload is 1.5{{.*}}, expected above 0 and at most 1
// AHEAD: error: {{.*}}prefetch
// LOOP: error: 'func.func' op has 0 loops over microbatches, expected one without a schedule
dist.mesh @mesh <>
func.func @train_step(%x: tensor<4xf32> {dtc.input = "x"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
