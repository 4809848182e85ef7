// RUN: not dtc-opt %s --dtc-build-train-step=freeze=layers.2.* 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not dtc-opt %s --dtc-build-train-step=freeze=bias 2>&1 | FileCheck %s --check-prefix=WHOLE
// RUN: not dtc-opt %s --dtc-build-train-step="freeze={layers.0.*,x}" 2>&1 | FileCheck %s --check-prefix=SECOND
// RUN: not dtc-opt %s --dtc-build-train-step=freeze=layers.[ 2>&1 | FileCheck %s --check-prefix=UNREADABLE
// RUN: not dtc-opt %s --dtc-build-train-step="freeze=*" 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: not dtc-opt %s --dtc-build-train-step="freeze=layers.*" 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: not dtc-opt %s --dtc-build-train-step="optimizer=none freeze=*" 2>&1 | FileCheck %s --check-prefix=ALL

// A pattern that matches nothing is a mistake: an input is no parameter, and a part of a name is not the name.
// NOTHING: error: freeze names 'layers.2.*', which matches no parameter; the first one is called 'layers.0.weight'
// WHOLE: error: freeze names 'bias', which matches no parameter; the first one is called 'layers.0.weight'
// SECOND: error: freeze names 'x', which matches no parameter; the first one is called 'layers.0.weight'
// UNREADABLE: error: freeze has the pattern 'layers.[', which cannot be read ({{.*}})
// ALL: error: 'func.func' op has no parameter that trains: all of them are frozen

// RUN: not dtc-opt %s --dtc-build-train-step="param-group=head.*:lr_scale=1" 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not dtc-opt %s --dtc-build-train-step="param-group=layers.[:lr_scale=1" 2>&1 | FileCheck %s --check-prefix=GROUP-UNREADABLE
// RUN: not dtc-opt %s --dtc-build-train-step="param-group=*.bias" 2>&1 | FileCheck %s --check-prefix=SETTING -DSETTING=
// RUN: not dtc-opt %s --dtc-build-train-step="param-group=*.bias:lr=1" 2>&1 | FileCheck %s --check-prefix=SETTING -DSETTING=lr=1
// RUN: not dtc-opt %s --dtc-build-train-step="param-group=*.bias:lr_scale" 2>&1 | FileCheck %s --check-prefix=SETTING -DSETTING=lr_scale
// RUN: not dtc-opt %s --dtc-build-train-step="param-group=*.bias:lr_scale=" 2>&1 | FileCheck %s --check-prefix=SETTING -DSETTING=lr_scale=
// RUN: not dtc-opt %s --dtc-build-train-step="param-group=*.bias:lr_scale=-1" 2>&1 | FileCheck %s --check-prefix=SETTING -DSETTING=lr_scale=-1
// RUN: not dtc-opt %s --dtc-build-train-step="param-group=*.bias:lr_scale=inf" 2>&1 | FileCheck %s --check-prefix=SETTING -DSETTING=lr_scale=inf
// RUN: not dtc-opt %s --dtc-build-train-step="param-group=*.bias:weight_decay=nan" 2>&1 | FileCheck %s --check-prefix=SETTING -DSETTING=weight_decay=nan
// RUN: not dtc-opt %s --dtc-build-train-step="param-group=*.bias:weight_decay=1x" 2>&1 | FileCheck %s --check-prefix=SETTING -DSETTING=weight_decay=1x
// RUN: not dtc-opt %s --dtc-build-train-step="param-group={{*.bias:lr_scale=1,decay=0}}" 2>&1 | FileCheck %s --check-prefix=SETTING -DSETTING=decay=0

// GROUP: error: param-group names 'head.*', which matches no parameter; the first one is called 'layers.0.weight'
// GROUP-UNREADABLE: error: param-group has the pattern 'layers.[', which cannot be read ({{.*}})
// SETTING: error: param-group has '[[SETTING]]', expected weight_decay=W or lr_scale=S with a finite number that is not negative

// RUN: not dtc-opt %s --dtc-build-train-step=optimizer=adagrad 2>&1 | FileCheck %s --check-prefix=OPTIMIZER
// OPTIMIZER: error: unknown optimizer 'adagrad'; known are adamw, adam, sgd, lion and none
func.func @loss(%x: tensor<8xf32> {dtc.input = "x"}, %w: tensor<8xf32> {dtc.param = "layers.0.weight"}, %b: tensor<8xf32> {dtc.param = "layers.0.bias"}) -> tensor<f32> {
  %0 = dtc.mul %x, %w : tensor<8xf32>
  %1 = dtc.add %0, %b : tensor<8xf32>
  %2 = dtc.reduce sum %1 dims [0] : (tensor<8xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}
