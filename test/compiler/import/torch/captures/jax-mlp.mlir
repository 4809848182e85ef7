module attributes {torch.capture = {version = 1 : i64, jax = "0.10.2"}} {
func.func @loss(
    %a0: tensor<12xf32> {torch.parameter = "0.b"} loc("0.b"),
    %a1: tensor<7x12xf32> {torch.parameter = "0.w"} loc("0.w"),
    %a2: tensor<20xf32> {torch.parameter = "1.b"} loc("1.b"),
    %a3: tensor<12x20xf32> {torch.parameter = "1.w"} loc("1.w"),
    %a4: tensor<5xf32> {torch.parameter = "2.b"} loc("2.b"),
    %a5: tensor<20x5xf32> {torch.parameter = "2.w"} loc("2.w"),
    %a6: tensor<4xi32> {torch.input = "labels"} loc("labels"),
    %a7: tensor<4x7xf32> {torch.input = "x"} loc("x")) -> tensor<f32> {
  %v0 = "aten.einsum"(%a7, %a1) {equation = "ba,ac->bc", operands = ["tensors.0", "tensors.1"]} : (tensor<4x7xf32>, tensor<7x12xf32>) -> tensor<4x12xf32> loc("loss"("scripts/reference/jax_models.py":31:0))
  %v1 = "aten.view"(%a0) {size = array<i64: 1, 12>, operands = ["self"]} : (tensor<12xf32>) -> tensor<1x12xf32> loc("loss"("scripts/reference/jax_models.py":31:0))
  %v2 = "aten.add"(%v0, %v1) {operands = ["self", "other"]} : (tensor<4x12xf32>, tensor<1x12xf32>) -> tensor<4x12xf32> loc("loss"("scripts/reference/jax_models.py":31:0))
  %v3 = "aten.relu"(%v2) {operands = ["self"]} : (tensor<4x12xf32>) -> tensor<4x12xf32> loc("loss"("scripts/reference/jax_models.py":31:0))
  %v4 = "aten.einsum"(%v3, %a3) {equation = "ba,ac->bc", operands = ["tensors.0", "tensors.1"]} : (tensor<4x12xf32>, tensor<12x20xf32>) -> tensor<4x20xf32> loc("loss"("scripts/reference/jax_models.py":31:0))
  %v5 = "aten.view"(%a2) {size = array<i64: 1, 20>, operands = ["self"]} : (tensor<20xf32>) -> tensor<1x20xf32> loc("loss"("scripts/reference/jax_models.py":31:0))
  %v6 = "aten.add"(%v4, %v5) {operands = ["self", "other"]} : (tensor<4x20xf32>, tensor<1x20xf32>) -> tensor<4x20xf32> loc("loss"("scripts/reference/jax_models.py":31:0))
  %v7 = "aten.relu"(%v6) {operands = ["self"]} : (tensor<4x20xf32>) -> tensor<4x20xf32> loc("loss"("scripts/reference/jax_models.py":31:0))
  %v8 = "aten.einsum"(%v7, %a5) {equation = "ba,ac->bc", operands = ["tensors.0", "tensors.1"]} : (tensor<4x20xf32>, tensor<20x5xf32>) -> tensor<4x5xf32> loc("loss"("scripts/reference/jax_models.py":32:0))
  %v9 = "aten.view"(%a4) {size = array<i64: 1, 5>, operands = ["self"]} : (tensor<5xf32>) -> tensor<1x5xf32> loc("loss"("scripts/reference/jax_models.py":32:0))
  %v10 = "aten.add"(%v8, %v9) {operands = ["self", "other"]} : (tensor<4x5xf32>, tensor<1x5xf32>) -> tensor<4x5xf32> loc("loss"("scripts/reference/jax_models.py":32:0))
  %v11 = "aten.amax"(%v10) {dim = array<i64: 1>, keepdim = false, operands = ["self"]} : (tensor<4x5xf32>) -> tensor<4xf32> loc("loss"("scripts/reference/jax_models.py":32:0))
  %v12 = "aten.view"(%v11) {size = array<i64: 4, 1>, operands = ["self"]} : (tensor<4xf32>) -> tensor<4x1xf32> loc("loss"("scripts/reference/jax_models.py":32:0))
  %v14 = "aten.sub"(%v10, %v12) {operands = ["self", "other"]} : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32> loc("loss"("scripts/reference/jax_models.py":32:0))
  %v15 = "aten.exp"(%v14) {operands = ["self"]} : (tensor<4x5xf32>) -> tensor<4x5xf32> loc("loss"("scripts/reference/jax_models.py":32:0))
  %v16 = "aten.sum"(%v15) {dim = array<i64: 1>, keepdim = false, operands = ["self"]} : (tensor<4x5xf32>) -> tensor<4xf32> loc("loss"("scripts/reference/jax_models.py":32:0))
  %v17 = "aten.view"(%v16) {size = array<i64: 4, 1>, operands = ["self"]} : (tensor<4xf32>) -> tensor<4x1xf32> loc("loss"("scripts/reference/jax_models.py":32:0))
  %v18 = "aten.log"(%v17) {operands = ["self"]} : (tensor<4x1xf32>) -> tensor<4x1xf32> loc("loss"("scripts/reference/jax_models.py":32:0))
  %v19 = "aten.sub"(%v14, %v18) {operands = ["self", "other"]} : (tensor<4x5xf32>, tensor<4x1xf32>) -> tensor<4x5xf32> loc("loss"("scripts/reference/jax_models.py":32:0))
  %v20 = "aten.view"(%a6) {size = array<i64: 4, 1>, operands = ["self"]} : (tensor<4xi32>) -> tensor<4x1xi32> loc("loss"("scripts/reference/jax_models.py":33:0))
  %v22 = "aten.full"() {size = array<i64>, fill_value = 0 : i64} : () -> tensor<i32> loc("loss"("scripts/reference/jax_models.py":33:0))
  %v21 = "aten.lt"(%v20, %v22) {operands = ["self", "other"]} : (tensor<4x1xi32>, tensor<i32>) -> tensor<4x1xi1> loc("loss"("scripts/reference/jax_models.py":33:0))
  %v23 = "aten.add"(%v20) {other = 5 : i64, operands = ["self"]} : (tensor<4x1xi32>) -> tensor<4x1xi32> loc("loss"("scripts/reference/jax_models.py":33:0))
  %v24 = "aten.where"(%v21, %v23, %v20) {operands = ["condition", "self", "other"]} : (tensor<4x1xi1>, tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi32> loc("loss"("scripts/reference/jax_models.py":33:0))
  %v25 = "aten.view"(%v24) {size = array<i64: 4, 1, 1>, operands = ["self"]} : (tensor<4x1xi32>) -> tensor<4x1x1xi32> loc("loss"("scripts/reference/jax_models.py":33:0))
  %v26 = "aten.view"(%v25) {size = array<i64: 4, 1>, operands = ["self"]} : (tensor<4x1x1xi32>) -> tensor<4x1xi32> loc("loss"("scripts/reference/jax_models.py":33:0))
  %v27 = "aten.gather"(%v19, %v20) {dim = 1 : i64, operands = ["self", "index"]} : (tensor<4x5xf32>, tensor<4x1xi32>) -> tensor<4x1xf32> loc("loss"("scripts/reference/jax_models.py":33:0))
  %v28 = "aten.sum"(%v27) {dim = array<i64: 0, 1>, keepdim = false, operands = ["self"]} : (tensor<4x1xf32>) -> tensor<f32> loc("loss"("scripts/reference/jax_models.py":34:0))
  %v29 = "aten.div"(%v28) {other = 4.0 : f64, operands = ["self"]} : (tensor<f32>) -> tensor<f32> loc("loss"("scripts/reference/jax_models.py":34:0))
  %v30 = "aten.neg"(%v29) {operands = ["self"]} : (tensor<f32>) -> tensor<f32> loc("loss"("scripts/reference/jax_models.py":34:0))
  %v31 = "aten.pow"(%a1) {exponent = 2.0 : f64, operands = ["self"]} : (tensor<7x12xf32>) -> tensor<7x12xf32> loc("loss"("scripts/reference/jax_models.py":34:0))
  %v32 = "aten.sum"(%v31) {dim = array<i64: 0, 1>, keepdim = false, operands = ["self"]} : (tensor<7x12xf32>) -> tensor<f32> loc("loss"("scripts/reference/jax_models.py":34:0))
  %v33 = "aten.add"(%v32) {other = 0.0 : f64, operands = ["self"]} : (tensor<f32>) -> tensor<f32> loc("loss"("scripts/reference/jax_models.py":34:0))
  %v34 = "aten.pow"(%a3) {exponent = 2.0 : f64, operands = ["self"]} : (tensor<12x20xf32>) -> tensor<12x20xf32> loc("loss"("scripts/reference/jax_models.py":34:0))
  %v35 = "aten.sum"(%v34) {dim = array<i64: 0, 1>, keepdim = false, operands = ["self"]} : (tensor<12x20xf32>) -> tensor<f32> loc("loss"("scripts/reference/jax_models.py":34:0))
  %v36 = "aten.add"(%v33, %v35) {operands = ["self", "other"]} : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("loss"("scripts/reference/jax_models.py":34:0))
  %v37 = "aten.pow"(%a5) {exponent = 2.0 : f64, operands = ["self"]} : (tensor<20x5xf32>) -> tensor<20x5xf32> loc("loss"("scripts/reference/jax_models.py":34:0))
  %v38 = "aten.sum"(%v37) {dim = array<i64: 0, 1>, keepdim = false, operands = ["self"]} : (tensor<20x5xf32>) -> tensor<f32> loc("loss"("scripts/reference/jax_models.py":34:0))
  %v39 = "aten.add"(%v36, %v38) {operands = ["self", "other"]} : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("loss"("scripts/reference/jax_models.py":34:0))
  %v40 = "aten.mul"(%v39) {other = 0.0010000000474974513 : f64, operands = ["self"]} : (tensor<f32>) -> tensor<f32> loc("loss"("scripts/reference/jax_models.py":34:0))
  %v41 = "aten.add"(%v30, %v40) {operands = ["self", "other"]} : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("loss"("scripts/reference/jax_models.py":34:0))
  return %v41 : tensor<f32> loc("loss")
}
}
