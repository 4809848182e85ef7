// RUN: dtc-opt %s --verify-diagnostics --dtc-propagate-shardings --dtc-partition-stages

dist.mesh @mesh <"pp"=2 pipeline>
// expected-error@+1 {{pipelines and recomputation work on microbatches, and the mesh has no temporal axis; add one, such as "micro"=4 temporal}}
func.func @no_microbatches(%x: tensor<64x64xf32> {dtc.input = "x"}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dtc.einsum "bi,io->bo" %0, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %sum = dtc.reduce sum %1 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
