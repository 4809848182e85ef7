module attributes {torch.capture = {version = 1 : i64, jax = "0.10.2"}} {
func.func @loss(
    %a0: tensor<7x12xf32> {torch.parameter = "0"} loc("0"),
    %a1: tensor<12x13xf32> {torch.parameter = "1"} loc("1"),
    %a2: tensor<13x14xf32> {torch.parameter = "2"} loc("2"),
    %a3: tensor<14x15xf32> {torch.parameter = "3"} loc("3"),
    %a4: tensor<15x16xf32> {torch.parameter = "4"} loc("4"),
    %a5: tensor<16x17xf32> {torch.parameter = "5"} loc("5"),
    %a6: tensor<17x18xf32> {torch.parameter = "6"} loc("6"),
    %a7: tensor<18x19xf32> {torch.parameter = "7"} loc("7"),
    %a8: tensor<19x20xf32> {torch.parameter = "8"} loc("8"),
    %a9: tensor<20x5xf32> {torch.parameter = "9"} loc("9"),
    %a10: tensor<4xi32> {torch.input = "labels"} loc("labels"),
    %a11: tensor<4x7xf32> {torch.input = "x"} loc("x")) -> tensor<f32> {
  %v0 = "aten.einsum"(%a11, %a0) {equation = "ba,ac->bc", operands = ["tensors.0", "tensors.1"]} : (tensor<4x7xf32>, tensor<7x12xf32>) -> tensor<4x12xf32> loc("loss"("scripts/reference/jax_models.py":217:0))
  %v1 = "aten.tanh"(%v0) {operands = ["self"]} : (tensor<4x12xf32>) -> tensor<4x12xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v7 = "aten.dropout"(%v1) {p = 0.25 : f64, train = true, operands = ["input"]} : (tensor<4x12xf32>) -> tensor<4x12xf32> loc("loss"("scripts/reference/jax_models.py":167:0))
  %v8 = "aten.einsum"(%v7, %a1) {equation = "ba,ac->bc", operands = ["tensors.0", "tensors.1"]} : (tensor<4x12xf32>, tensor<12x13xf32>) -> tensor<4x13xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v9 = "aten.tanh"(%v8) {operands = ["self"]} : (tensor<4x13xf32>) -> tensor<4x13xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v14 = "aten.mul"(%v9) {other = 0.75 : f64, operands = ["self"]} : (tensor<4x13xf32>) -> tensor<4x13xf32> loc("loss"("scripts/reference/jax_models.py":171:0))
  %v15 = "aten.dropout"(%v14) {p = 0.25 : f64, train = true, operands = ["input"]} : (tensor<4x13xf32>) -> tensor<4x13xf32> loc("loss"("scripts/reference/jax_models.py":171:0))
  %v16 = "aten.div"(%v15) {other = 0.75 : f64, operands = ["self"]} : (tensor<4x13xf32>) -> tensor<4x13xf32> loc("loss"("scripts/reference/jax_models.py":171:0))
  %v17 = "aten.einsum"(%v16, %a2) {equation = "ba,ac->bc", operands = ["tensors.0", "tensors.1"]} : (tensor<4x13xf32>, tensor<13x14xf32>) -> tensor<4x14xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v18 = "aten.tanh"(%v17) {operands = ["self"]} : (tensor<4x14xf32>) -> tensor<4x14xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v22 = "aten.mul"(%v18) {other = 0.75 : f64, operands = ["self"]} : (tensor<4x14xf32>) -> tensor<4x14xf32> loc("loss"("scripts/reference/jax_models.py":177:0))
  %v23 = "aten.dropout"(%v22) {p = 0.25 : f64, train = true, operands = ["input"]} : (tensor<4x14xf32>) -> tensor<4x14xf32> loc("loss"("scripts/reference/jax_models.py":177:0))
  %v24 = "aten.div"(%v23) {other = 0.75 : f64, operands = ["self"]} : (tensor<4x14xf32>) -> tensor<4x14xf32> loc("loss"("scripts/reference/jax_models.py":177:0))
  %v25 = "aten.einsum"(%v24, %a3) {equation = "ba,ac->bc", operands = ["tensors.0", "tensors.1"]} : (tensor<4x14xf32>, tensor<14x15xf32>) -> tensor<4x15xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v26 = "aten.tanh"(%v25) {operands = ["self"]} : (tensor<4x15xf32>) -> tensor<4x15xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v37 = "aten.dropout"(%v26) {p = 0.25 : f64, train = true, operands = ["input"]} : (tensor<4x15xf32>) -> tensor<4x15xf32> loc("loss"("equinox/nn/_dropout.py":96:0))
  %v38 = "aten.einsum"(%v37, %a4) {equation = "ba,ac->bc", operands = ["tensors.0", "tensors.1"]} : (tensor<4x15xf32>, tensor<15x16xf32>) -> tensor<4x16xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v39 = "aten.tanh"(%v38) {operands = ["self"]} : (tensor<4x16xf32>) -> tensor<4x16xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v45 = "aten.full"() {size = array<i64: 4, 1>, fill_value = 1.0 : f64} : () -> tensor<4x1xf32> loc("Dropout"("flax/linen/stochastic.py":107:0))
  %v46 = "aten.dropout"(%v45) {p = 0.25 : f64, train = true, operands = ["input"]} : (tensor<4x1xf32>) -> tensor<4x1xf32> loc("Dropout"("flax/linen/stochastic.py":107:0))
  %v47 = "aten.expand"(%v46) {size = array<i64: 4, 16>, operands = ["self"]} : (tensor<4x1xf32>) -> tensor<4x16xf32> loc("Dropout"("flax/linen/stochastic.py":107:0))
  %v48 = "aten.mul"(%v39, %v47) {operands = ["self", "other"]} : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32> loc("Dropout"("flax/linen/stochastic.py":107:0))
  %v49 = "aten.einsum"(%v48, %a5) {equation = "ba,ac->bc", operands = ["tensors.0", "tensors.1"]} : (tensor<4x16xf32>, tensor<16x17xf32>) -> tensor<4x17xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v50 = "aten.tanh"(%v49) {operands = ["self"]} : (tensor<4x17xf32>) -> tensor<4x17xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v52 = "aten.mul"(%v50) {other = 0.75 : f64, operands = ["self"]} : (tensor<4x17xf32>) -> tensor<4x17xf32> loc("loss"("scripts/reference/jax_models.py":192:0))
  %v53 = "aten.dropout"(%v52) {p = 0.25 : f64, train = true, operands = ["input"]} : (tensor<4x17xf32>) -> tensor<4x17xf32> loc("loss"("scripts/reference/jax_models.py":192:0))
  %v54 = "aten.div"(%v53) {other = 0.75 : f64, operands = ["self"]} : (tensor<4x17xf32>) -> tensor<4x17xf32> loc("loss"("scripts/reference/jax_models.py":192:0))
  %v55 = "aten.einsum"(%v54, %a6) {equation = "ba,ac->bc", operands = ["tensors.0", "tensors.1"]} : (tensor<4x17xf32>, tensor<17x18xf32>) -> tensor<4x18xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v56 = "aten.tanh"(%v55) {operands = ["self"]} : (tensor<4x18xf32>) -> tensor<4x18xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v65 = "aten.dropout"(%v56) {p = 0.25 : f64, train = true, operands = ["input"]} : (tensor<4x18xf32>) -> tensor<4x18xf32> loc("loss"("scripts/reference/jax_models.py":199:0))
  %v66 = "aten.einsum"(%v65, %a7) {equation = "ba,ac->bc", operands = ["tensors.0", "tensors.1"]} : (tensor<4x18xf32>, tensor<18x19xf32>) -> tensor<4x19xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v67 = "aten.tanh"(%v66) {operands = ["self"]} : (tensor<4x19xf32>) -> tensor<4x19xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v73 = "aten.dropout"(%v67) {p = 0.25 : f64, train = true, operands = ["input"]} : (tensor<4x19xf32>) -> tensor<4x19xf32> loc("Dropout"("flax/linen/stochastic.py":107:0))
  %v74 = "aten.einsum"(%v73, %a8) {equation = "ba,ac->bc", operands = ["tensors.0", "tensors.1"]} : (tensor<4x19xf32>, tensor<19x20xf32>) -> tensor<4x20xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v75 = "aten.tanh"(%v74) {operands = ["self"]} : (tensor<4x20xf32>) -> tensor<4x20xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v81 = "aten.dropout"(%v75) {p = 0.25 : f64, train = true, operands = ["input"]} : (tensor<4x20xf32>) -> tensor<4x20xf32> loc("loss"("flax/nnx/nn/stochastic.py":166:0))
  %v82 = "aten.einsum"(%v81, %a9) {equation = "ba,ac->bc", operands = ["tensors.0", "tensors.1"]} : (tensor<4x20xf32>, tensor<20x5xf32>) -> tensor<4x5xf32> loc("loss"("scripts/reference/jax_models.py":219:0))
  %v83 = "aten.view"(%a10) {size = array<i64: 4, 1>, operands = ["self"]} : (tensor<4xi32>) -> tensor<4x1xi32> loc("loss"("optax/losses/_classification.py":401:0))
  %v90 = "aten.gather"(%v82, %v83) {dim = 1 : i64, operands = ["self", "index"]} : (tensor<4x5xf32>, tensor<4x1xi32>) -> tensor<4x1xf32> loc("loss"("optax/losses/_classification.py":400:0))
  %v92 = "aten.select"(%v90) {dim = 1 : i64, index = 0 : i64, operands = ["self"]} : (tensor<4x1xf32>) -> tensor<4xf32> loc("loss"("optax/losses/_classification.py":402:0))
  %v93 = "aten.amax"(%v82) {dim = array<i64: 1>, keepdim = false, operands = ["self"]} : (tensor<4x5xf32>) -> tensor<4xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v94 = "aten.abs"(%v93) {operands = ["self"]} : (tensor<4xf32>) -> tensor<4xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v96 = "aten.full"() {size = array<i64>, fill_value = 0x7FF0000000000000 : f64} : () -> tensor<f32> loc("loss"("optax/losses/_classification.py":403:0))
  %v95 = "aten.lt"(%v94, %v96) {operands = ["self", "other"]} : (tensor<4xf32>, tensor<f32>) -> tensor<4xi1> loc("loss"("optax/losses/_classification.py":403:0))
  %v97 = "aten.full"() {size = array<i64: 4>, fill_value = 0.0 : f64} : () -> tensor<4xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v98 = "aten.where"(%v95, %v93, %v97) {operands = ["condition", "self", "other"]} : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v100 = "aten.view"(%v98) {size = array<i64: 4, 1>, operands = ["self"]} : (tensor<4xf32>) -> tensor<4x1xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v101 = "aten.sub"(%v82, %v100) {operands = ["self", "other"]} : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v102 = "aten.exp"(%v101) {operands = ["self"]} : (tensor<4x5xf32>) -> tensor<4x5xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v103 = "aten.sum"(%v102) {dim = array<i64: 1>, keepdim = false, operands = ["self"]} : (tensor<4x5xf32>) -> tensor<4xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v104 = "aten.ge"(%v103) {other = 0.0 : f64, operands = ["self"]} : (tensor<4xf32>) -> tensor<4xi1> loc("loss"("optax/losses/_classification.py":403:0))
  %v105 = "aten.neg"(%v103) {operands = ["self"]} : (tensor<4xf32>) -> tensor<4xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v106 = "aten.where"(%v104, %v103, %v105) {operands = ["condition", "self", "other"]} : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v107 = "aten.log"(%v106) {operands = ["self"]} : (tensor<4xf32>) -> tensor<4xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v108 = "aten.add"(%v107, %v98) {operands = ["self", "other"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("loss"("optax/losses/_classification.py":403:0))
  %v109 = "aten.sub"(%v108, %v92) {operands = ["self", "other"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("loss"("optax/losses/_classification.py":404:0))
  %v110 = "aten.sum"(%v109) {dim = array<i64: 0>, keepdim = false, operands = ["self"]} : (tensor<4xf32>) -> tensor<f32> loc("loss"("scripts/reference/jax_models.py":21:0))
  %v111 = "aten.div"(%v110) {other = 4.0 : f64, operands = ["self"]} : (tensor<f32>) -> tensor<f32> loc("loss"("scripts/reference/jax_models.py":21:0))
  return %v111 : tensor<f32> loc("loss")
}
}
