"""Prints a capture of a cross entropy of logits that pass through COUNT activations: deep.py COUNT"""

import sys

print("""module attributes {torch.capture = {version = 1 : i64}} {
func.func @loss(%w: tensor<4x4xf32> {torch.parameter = "w"}, %x: tensor<3x4xf32> {torch.input = "x"},
    %labels: tensor<3xi64> {torch.input = "labels"}) -> tensor<f32> {
  %y0 = "aten.linear"(%x, %w) {operands = ["input", "weight"]} : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>""")
count = int(sys.argv[1])
for i in range(count):
    print(f'  %y{i + 1} = "aten.relu"(%y{i}) {{operands = ["self"]}} : (tensor<3x4xf32>) -> tensor<3x4xf32>')
print(f"""  %loss = "aten.cross_entropy_loss"(%y{count}, %labels) {{operands = ["self", "target"]}}
    : (tensor<3x4xf32>, tensor<3xi64>) -> tensor<f32>
  return %loss : tensor<f32>
}}
}}""")
