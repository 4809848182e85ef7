// RUN: not dtc-opt %s --dtc-schedule-pipeline=schedule=1f2b 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not dtc-opt %s --dtc-schedule-pipeline=schedule= 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not dtc-opt %s --dtc-schedule-pipeline=chunks=2 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not dtc-opt %s --dtc-schedule-pipeline="schedule=gpipe chunks=3" 2>&1 | FileCheck %s --check-prefix=GPIPE
// RUN: not dtc-opt %s --dtc-schedule-pipeline=schedule=interleaved 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: not dtc-opt %s --dtc-schedule-pipeline="schedule=zb-v chunks=3" 2>&1 | FileCheck %s --check-prefix=V
// RUN: not dtc-opt %s --dtc-schedule-pipeline=chunks=0 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not dtc-opt %s --dtc-schedule-pipeline="schedule=interleaved chunks=2" 2>&1 | FileCheck %s --check-prefix=STAGES

// RUN: not dtc-opt %s --dtc-schedule-pipeline=chunks=4294967297 2>&1 | FileCheck %s --check-prefix=CHUNKS
// RUN: not dtc-opt %s --dtc-partition-stages=chunks=4611686018427387905 2>&1 | FileCheck %s --check-prefix=STARTS
// RUN: not dtc-opt %s --dtc-recompute-activations=chunks=4294967297 2>&1 | FileCheck %s --check-prefix=CHUNKS
// RUN: not dtc-opt %s --dtc-recompute-activations=keep-bytes=-1 2>&1 | FileCheck %s --check-prefix=KEEP
// RUN: not dtc-opt %s --dtc-optimize-collectives=bucket-bytes=-1 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: not dtc-opt %s --dtc-gather-parameters-per-use=bucket-bytes=-1 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: not dtc-opt %s --dtc-gather-parameters-per-use=prefetch=-1 2>&1 | FileCheck %s --check-prefix=PREFETCH
// CHUNKS: schedule-options-invalid.mlir:[[#]]:1: error: the option chunks is 4294967297, expected at most 65536
// STARTS: schedule-options-invalid.mlir:[[#]]:1: error: the option chunks is 4611686018427387905, expected at most 65536
// KEEP: schedule-options-invalid.mlir:[[#]]:1: error: the option keep-bytes is -1, expected at least 0
// BYTES: schedule-options-invalid.mlir:[[#]]:1: error: the option bucket-bytes is -1, expected at least 0
// PREFETCH: schedule-options-invalid.mlir:[[#]]:1: error: the option prefetch is -1, expected at least 0

// Invalid schedules, and the list of those that exist.
// NAME: error: there is no schedule '1f2b'; there are naive, gpipe, 1f1b, interleaved, zb-h1, zb-v
// EMPTY: error: there is no schedule ''; there are naive
// MANY: error: 2 stages on each device; the schedule 1f1b expects 1; with more, choose interleaved
// GPIPE: error: 3 stages on each device; the schedule gpipe expects 1; with more, choose interleaved
// ONE: error: 1 stage on each device; the schedule interleaved expects at least 2; with one, choose 1f1b or zb-h1
// V: error: 3 stages on each device; the schedule zb-v expects 2
// NONE: error: 0 stages on each device; the schedule 1f1b expects 1
// A schedule that fits the option, and not the program.
// STAGES: error: 'dist.microbatch_loop' op has 2 stages, expected 4 for 2 devices of 2; run dtc-partition-stages with as many chunks
dist.mesh @mesh <"pp"=2 pipeline, "micro"=2 temporal>
func.func @step(%x: tensor<4xf32> {dtc.input = "x"}) -> (tensor<4xf32> {dtc.output = "y"}) {
  %0 = dist.microbatch_loop @mesh "micro" : tensor<4xf32> {
    %1 = dtc.exp %x {dist.stage = #dist.stage<0 forward>} : tensor<4xf32>
    %2 = dtc.exp %1 {dist.stage = #dist.stage<1 forward>} : tensor<4xf32>
    dist.yield %2 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
