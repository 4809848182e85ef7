// A classifier written by hand: 16 features, two hidden layers, 4 classes. docs/model-ir.md walks through it.
//
//     python3 examples/make_mlp_samples.py -o samples.safetensors
//     dtc-compile examples/mlp.mlir --mesh dp=2,tp=2 -o mlp.plan
//     dtc-run mlp.plan --data samples.safetensors --steps 200

// One training step sees 32 samples. The function is the loss of those 32, as one device would compute it: that it will
// run on many, and what its gradients are, is the compiler's business.
func.func @loss(
    // Parameters: what training changes. The name is the one in weights files; axes name the dimensions, so that a
    // strategy can say which mesh axes split them; init says how the parameter starts.
    %w0: tensor<16x64xf32> {dtc.param = "layers.0.weight", dtc.axes = ["", "mlp"], dtc.init = #dtc.normal<0.25>},
    %b0: tensor<64xf32> {dtc.param = "layers.0.bias", dtc.axes = ["mlp"], dtc.init = #dtc.zeros},
    %w1: tensor<64x64xf32> {dtc.param = "layers.1.weight", dtc.axes = ["mlp", ""], dtc.init = #dtc.normal<0.125>},
    %b1: tensor<64xf32> {dtc.param = "layers.1.bias", dtc.axes = [""], dtc.init = #dtc.zeros},
    %w2: tensor<64x4xf32> {dtc.param = "layers.2.weight", dtc.axes = ["", ""], dtc.init = #dtc.normal<0.125>},
    %b2: tensor<4xf32> {dtc.param = "layers.2.bias", dtc.axes = [""], dtc.init = #dtc.zeros},
    // Inputs: what each step is given. The names are those of the tensors in the data file.
    %features: tensor<32x16xf32> {dtc.input = "features", dtc.axes = ["batch", ""]},
    %labels: tensor<32xi32> {dtc.input = "labels", dtc.axes = ["batch"]}) -> tensor<f32> {

  // relu(features w0 + b0). On a mesh with an axis tp each of its devices computes some columns.
  %h0 = dtc.einsum "bi,ih->bh" %features, %w0
      : (tensor<32x16xf32>, tensor<16x64xf32>) -> tensor<32x64xf32> loc("layers.0")
  %b0_rows = dtc.broadcast %b0 dims [1] : (tensor<64xf32>) -> tensor<32x64xf32> loc("layers.0")
  %h0_biased = dtc.add %h0, %b0_rows : tensor<32x64xf32> loc("layers.0")
  %a0 = dtc.relu %h0_biased : tensor<32x64xf32> loc("layers.0")

  // relu(a0 w1 + b1). The sum runs over the dimension "mlp", so the devices of tp add up their parts.
  %h1 = dtc.einsum "bh,hk->bk" %a0, %w1
      : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32> loc("layers.1")
  %b1_rows = dtc.broadcast %b1 dims [1] : (tensor<64xf32>) -> tensor<32x64xf32> loc("layers.1")
  %h1_biased = dtc.add %h1, %b1_rows : tensor<32x64xf32> loc("layers.1")
  %a1 = dtc.relu %h1_biased : tensor<32x64xf32> loc("layers.1")

  // The logits of the classes.
  %h2 = dtc.einsum "bk,kc->bc" %a1, %w2
      : (tensor<32x64xf32>, tensor<64x4xf32>) -> tensor<32x4xf32> loc("layers.2")
  %b2_rows = dtc.broadcast %b2 dims [1] : (tensor<4xf32>) -> tensor<32x4xf32> loc("layers.2")
  %logits = dtc.add %h2, %b2_rows : tensor<32x4xf32> loc("layers.2")

  // The mean over the samples: a sum, then a factor of 1/32.
  %each, %lse = dtc.cross_entropy %logits, %labels
      : (tensor<32x4xf32>, tensor<32xi32>) -> (tensor<32xf32>, tensor<32xf32>) loc("loss")
  %sum = dtc.reduce sum %each dims [0] : (tensor<32xf32>) -> tensor<f32> loc("loss")
  %factor = dtc.constant dense<0.03125> : tensor<f32> loc("loss")
  %loss = dtc.mul %sum, %factor : tensor<f32> loc("loss")
  return %loss : tensor<f32>
}
