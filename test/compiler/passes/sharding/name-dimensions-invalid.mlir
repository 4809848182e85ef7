// RUN: not dtc-opt %s --dtc-name-dimensions="shard=layers.0.wieght#1=tp" 2>&1 | FileCheck %s --check-prefix=MEANT
// RUN: not dtc-opt %s --dtc-name-dimensions="shard=layers.*.wieght#1=tp" 2>&1 | FileCheck %s --check-prefix=STAR
// RUN: not dtc-opt %s --dtc-name-dimensions="shard=nothing.like.it#1=tp" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not dtc-opt %s --dtc-name-dimensions="shard=layers.0.weight#2=tp" 2>&1 | FileCheck %s --check-prefix=DIM
// RUN: not dtc-opt %s --dtc-name-dimensions="shard=layers.0.weight#one=tp" 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not dtc-opt %s --dtc-name-dimensions="shard=#1=tp" 2>&1 | FileCheck %s --check-prefix=NAMELESS
// RUN: not dtc-opt %s --dtc-name-dimensions="shard=mlp=dp,layers.0.weight#1=tp" 2>&1 | FileCheck %s --check-prefix=NAMED
// RUN: not dtc-opt %s --dtc-name-dimensions="shard=layers.*.weight#1=tp,layers.0.weight#1=dp" 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not dtc-opt %s --dtc-fold-parameter-reshapes --dtc-name-dimensions="shard=layers.1.weight#1=tp" 2>&1 | FileCheck %s --check-prefix=INSIDE
// RUN: dtc-opt %s --dtc-fold-parameter-reshapes --dtc-name-dimensions="shard=layers.1.weight#0=tp" | FileCheck %s --check-prefix=BEGINS

// MEANT: <command line>:1:1: error: shard: 'layers.0.wieght#1': the model has no parameter or input 'layers.0.wieght'; did you mean "layers.0.weight"?
// STAR: error: shard: 'layers.*.wieght#1': the model has no parameter or input 'layers.*.wieght'; did you mean "layers.*.weight"?
// UNKNOWN: error: shard: 'nothing.like.it#1': the model has no parameter or input 'nothing.like.it'; it has "layers.0.weight", "layers.1.weight", "x"
// DIM: error: shard: 'layers.0.weight#2': 'layers.0.weight' has no dimension 2; it has 2, counted from 0
// FORM: error: shard: 'layers.0.weight#one' is not of the form name#dimension, such as layers.0.weight#1
// NAMELESS: error: shard: '#1' is not of the form name#dimension
// NAMED: error: shard: 'layers.0.weight#1' and 'mlp=dp' both map dimension 1 of 'layers.0.weight'; keep one of the two
// BOTH: error: shard: 'layers.0.weight#1' and 'layers.*.weight#1' both map dimension 1 of 'layers.0.weight'; keep one of the two
// INSIDE: error: shard: 'layers.1.weight#1': dimension 1 of 'layers.1.weight' is inside of a larger one in the program, which reshapes the parameter; name an earlier dimension
// BEGINS: tensor<16xf32> {dtc.axes = ["layers.1.weight#0"]
func.func @loss(%0: tensor<8x8xf32> {dtc.param = "layers.0.weight", dtc.axes = ["", "mlp"]},
                %1: tensor<4x4xf32> {dtc.param = "layers.1.weight"},
                %x: tensor<4x6xf32> {dtc.input = "x"}) -> tensor<16xf32> {
  %2 = dtc.reshape %1 : (tensor<4x4xf32>) -> tensor<16xf32>
  return %2 : tensor<16xf32>
}
