// RUN: dtc-opt %s --verify-diagnostics --dtc-propagate-shardings=default-shard=batch=micro --dtc-partition-stages='stages=a|b'

dist.mesh @mesh <"micro"=4 temporal>
// expected-error@+1 {{the mesh has no pipeline axis; add pp to --mesh}}
func.func @loss(%x: tensor<64x64xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}, %w: tensor<64x64xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.einsum "bi,io->bo" %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = dtc.einsum "bi,io->bo" %0, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %sum = dtc.reduce sum %1 dims [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  return %sum : tensor<f32>
}
