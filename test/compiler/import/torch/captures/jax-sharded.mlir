module attributes {torch.capture = {version = 1 : i64, jax = "0.10.2"}} {
func.func @loss(
    %a0: tensor<20xf32> {torch.parameter = "bias"} loc("bias"),
    %a1: tensor<20x5xf32> {torch.parameter = "down"} loc("down"),
    %a2: tensor<12x20xf32> {torch.parameter = "up"} loc("up"),
    %a3: tensor<8xi32> {torch.input = "labels"} loc("labels"),
    %a4: tensor<8x12xf32> {torch.input = "x"} loc("x")) -> tensor<f32> {
  %v0 = "aten.einsum"(%a4, %a2) {equation = "ba,ac->bc", operands = ["tensors.0", "tensors.1"]} : (tensor<8x12xf32>, tensor<12x20xf32>) -> tensor<8x20xf32> loc("loss"("scripts/reference/jax_models.py":238:0))
  %v1 = "aten.view"(%a0) {size = array<i64: 1, 20>, operands = ["self"]} : (tensor<20xf32>) -> tensor<1x20xf32> loc("loss"("scripts/reference/jax_models.py":238:0))
  %v2 = "aten.add"(%v0, %v1) {operands = ["self", "other"]} : (tensor<8x20xf32>, tensor<1x20xf32>) -> tensor<8x20xf32> loc("loss"("scripts/reference/jax_models.py":238:0))
  %v3 = "aten.tanh"(%v2) {operands = ["self"]} : (tensor<8x20xf32>) -> tensor<8x20xf32> loc("loss"("scripts/reference/jax_models.py":238:0))
  %v4 = "aten.alias"(%v3) {axes = ["data", "model"], operands = ["self"]} : (tensor<8x20xf32>) -> tensor<8x20xf32> loc("loss"("scripts/reference/jax_models.py":239:0))
  %v5 = "aten.einsum"(%v4, %a1) {equation = "ba,ac->bc", operands = ["tensors.0", "tensors.1"]} : (tensor<8x20xf32>, tensor<20x5xf32>) -> tensor<8x5xf32> loc("loss"("scripts/reference/jax_models.py":240:0))
  %v6 = "aten.view"(%a3) {size = array<i64: 8, 1>, operands = ["self"]} : (tensor<8xi32>) -> tensor<8x1xi32> loc("loss"("optax/losses/_classification.py":401:0))
  %v8 = "aten.full"() {size = array<i64>, fill_value = 0 : i64} : () -> tensor<i32> loc("loss"("optax/losses/_classification.py":400:0))
  %v7 = "aten.lt"(%v6, %v8) {operands = ["self", "other"]} : (tensor<8x1xi32>, tensor<i32>) -> tensor<8x1xi1> loc("loss"("optax/losses/_classification.py":400:0))
  %v9 = "aten.add"(%v6) {other = 5 : i64, operands = ["self"]} : (tensor<8x1xi32>) -> tensor<8x1xi32> loc("loss"("optax/losses/_classification.py":400:0))
  %v10 = "aten.where"(%v7, %v9, %v6) {operands = ["condition", "self", "other"]} : (tensor<8x1xi1>, tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x1xi32> loc("loss"("optax/losses/_classification.py":400:0))
  %v11 = "aten.view"(%v10) {size = array<i64: 8, 1, 1>, operands = ["self"]} : (tensor<8x1xi32>) -> tensor<8x1x1xi32> loc("loss"("optax/losses/_classification.py":400:0))
  %v12 = "aten.view"(%v11) {size = array<i64: 8, 1>, operands = ["self"]} : (tensor<8x1x1xi32>) -> tensor<8x1xi32> loc("loss"("optax/losses/_classification.py":400:0))
  %v13 = "aten.gather"(%v5, %v6) {dim = 1 : i64, operands = ["self", "index"]} : (tensor<8x5xf32>, tensor<8x1xi32>) -> tensor<8x1xf32> loc("loss"("optax/losses/_classification.py":400:0))
  %v14 = "aten.full"() {size = array<i64: 1>, fill_value = 0 : i64} : () -> tensor<1xi32> loc("loss"("optax/losses/_classification.py":402:0))
  %v15 = "aten.select"(%v13) {dim = 1 : i64, index = 0 : i64, operands = ["self"]} : (tensor<8x1xf32>) -> tensor<8xf32> loc("loss"("optax/losses/_classification.py":402:0))
  %v16 = "aten.amax"(%v5) {dim = array<i64: 1>, keepdim = false, operands = ["self"]} : (tensor<8x5xf32>) -> tensor<8xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v17 = "aten.abs"(%v16) {operands = ["self"]} : (tensor<8xf32>) -> tensor<8xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v19 = "aten.full"() {size = array<i64>, fill_value = 0x7FF0000000000000 : f64} : () -> tensor<f32> loc("loss"("optax/losses/_classification.py":403:0))
  %v18 = "aten.lt"(%v17, %v19) {operands = ["self", "other"]} : (tensor<8xf32>, tensor<f32>) -> tensor<8xi1> loc("loss"("optax/losses/_classification.py":403:0))
  %v20 = "aten.full"() {size = array<i64: 8>, fill_value = 0.0 : f64} : () -> tensor<8xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v21 = "aten.where"(%v18, %v16, %v20) {operands = ["condition", "self", "other"]} : (tensor<8xi1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v23 = "aten.view"(%v21) {size = array<i64: 8, 1>, operands = ["self"]} : (tensor<8xf32>) -> tensor<8x1xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v24 = "aten.sub"(%v5, %v23) {operands = ["self", "other"]} : (tensor<8x5xf32>, tensor<8x1xf32>) -> tensor<8x5xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v25 = "aten.exp"(%v24) {operands = ["self"]} : (tensor<8x5xf32>) -> tensor<8x5xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v26 = "aten.sum"(%v25) {dim = array<i64: 1>, keepdim = false, operands = ["self"]} : (tensor<8x5xf32>) -> tensor<8xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v27 = "aten.ge"(%v26) {other = 0.0 : f64, operands = ["self"]} : (tensor<8xf32>) -> tensor<8xi1> loc("loss"("optax/losses/_classification.py":403:0))
  %v28 = "aten.neg"(%v26) {operands = ["self"]} : (tensor<8xf32>) -> tensor<8xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v29 = "aten.where"(%v27, %v26, %v28) {operands = ["condition", "self", "other"]} : (tensor<8xi1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v30 = "aten.log"(%v29) {operands = ["self"]} : (tensor<8xf32>) -> tensor<8xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v31 = "aten.add"(%v30, %v21) {operands = ["self", "other"]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v32 = "aten.sub"(%v31, %v15) {operands = ["self", "other"]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> loc("loss"("optax/losses/_classification.py":404:0))
  %v33 = "aten.sum"(%v32) {dim = array<i64: 0>, keepdim = false, operands = ["self"]} : (tensor<8xf32>) -> tensor<f32> loc("loss"("scripts/reference/jax_models.py":22:0))
  %v34 = "aten.div"(%v33) {other = 8.0 : f64, operands = ["self"]} : (tensor<f32>) -> tensor<f32> loc("loss"("scripts/reference/jax_models.py":22:0))
  return %v34 : tensor<f32> loc("loss")
}
}
