dist.mesh @mesh <"dp"=2>
func.func @alone(%x: tensor<4xf32> {dtc.input = "x"}) -> tensor<4xf32> {
  %0 = dtc.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
