// RUN: dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages 2>/dev/null | FileCheck %s --check-prefix=NOTE
// RUN: dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages=starts=5 2>/dev/null | FileCheck %s --check-prefix=FIVE
// RUN: dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages=starts=4 2>/dev/null | FileCheck %s --check-prefix=FIVE
// RUN: dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='chunks=2 starts=1,5,7' 2>/dev/null | FileCheck %s --check-prefix=FOUR
// RUN: not dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages=starts=1,5 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not dtc-opt %s --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages=starts=9 2>&1 | FileCheck %s --check-prefix=BEHIND
// RUN: not dtc-opt %S/partition-stages-given-no-pipeline.mlir --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages=starts=1 2>&1 | FileCheck %s --check-prefix=AXIS

// A program without a backward pass says by the numbers of its ops where it was cut.
// NOTE: dist.stage_starts = array<i64: {{[0-9]+}}>

// Another one is cut at the first op whose number is at least that of the start; 4 is of an op that it does not have.
// FIVE: dist.stage_starts = array<i64: 5>
// FIVE: #dist.stage<0 forward>
// FIVE: #dist.stage<0 forward>
// FIVE: #dist.stage<1 forward>
// FIVE: #dist.stage<1 forward>

// FOUR: dist.stage_starts = array<i64: 3, 5, 7>
// FOUR: #dist.stage<0 forward>
// FOUR: #dist.stage<1 forward>
// FOUR: #dist.stage<2 forward>
// FOUR: #dist.stage<3 forward>

// COUNT: error: there are 2 starts of stages, expected 1, one less than the pipeline has stages
// BEHIND: error: no op of a later stage has a number of at least 9
// AXIS: error: stages are asked for, and the mesh has no pipeline axis; add pp to --mesh

dist.mesh @mesh <"pp"=2 pipeline link 1.0e12 0.0, "micro"=1 temporal> {device_flops = 1.0e9, device_bandwidth = 1.0e12}
func.func @decode(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<64x64xf32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w {dtc.op = 1 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dtc.einsum "bi,io->bo" %0, %w {dtc.op = 3 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = dtc.einsum "bi,io->bo" %1, %w {dtc.op = 5 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = dtc.einsum "bi,io->bo" %2, %w {dtc.op = 7 : i64} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %3 : tensor<64x64xf32>
}
