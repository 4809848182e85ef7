dist.mesh @mesh <"tp"=2, "micro"=2 temporal>
func.func @f(%between: tensor<2x8x4xf32> {dtc.input = "between", dtc.axes = ["", "residual_seq", ""]},
             %inside: tensor<2x8x4xf32> {dtc.input = "inside", dtc.axes = ["", "residual_seq", "mlp"]}) {
  return
}
