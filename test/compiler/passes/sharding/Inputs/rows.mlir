dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @f(%x: tensor<8x6xf32> {dtc.input = "x", dtc.axes = ["batch", "embed"]}) {
  return
}
