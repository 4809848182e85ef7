// RUN: not dtc-opt %s --dtc-recompute-activations=mode=some 2>&1 | FileCheck %s --check-prefix MODE
// MODE: error: there is no mode 'some'; there are none, gathers, elementwise, selective, full and auto
// RUN: not dtc-opt %s --dtc-recompute-activations=schedule=fast 2>&1 | FileCheck %s --check-prefix SCHEDULE
// SCHEDULE: error: there is no schedule 'fast'; there are naive, gpipe, 1f1b
// RUN: not dtc-opt %s --dtc-recompute-activations=chunks=2 2>&1 | FileCheck %s --check-prefix SHAPE
// SHAPE: error: {{.*}}1f1b
// RUN: not dtc-opt %s --dtc-recompute-activations="schedule=zb-v chunks=2" 2>&1 | FileCheck %s --check-prefix CHUNKS
// CHUNKS: error: 'dist.microbatch_loop' op has 2 stages, expected 4; run dtc-partition-stages with as many chunks
// RUN: not dtc-opt %s --dtc-schedule-pipeline --dtc-recompute-activations 2>&1 | FileCheck %s --check-prefix LATE
// LATE: error: 'func.func' op has 1 loops over microbatches, expected one without a schedule; run dtc-partition-stages and dtc-spmd-partition first
// RUN: not dtc-opt %S/Inputs/no-loop.mlir --dtc-recompute-activations 2>&1 | FileCheck %s --check-prefix NO-LOOP
// NO-LOOP: error: 'func.func' op has 0 loops over microbatches, expected one

dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
func.func @stages(%x: tensor<4xf32> {dtc.input = "x"}) -> tensor<4xf32> {
  %0 = dist.microbatch_loop @mesh "micro" : tensor<4xf32> {
    %1 = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
    %2 = dtc.exp %1 {dist.stage = #dist.stage<1 forward>} : tensor<4xf32>
    dist.yield %2 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
