// RUN: dtc-opt %s --split-input-file --verify-diagnostics --dtc-build-train-step
// RUN: not dtc-opt %S/Inputs/identity.mlir --dtc-build-train-step=optimizer=adagrad 2>&1 | FileCheck %s --check-prefix=OPTIMIZER
// RUN: not dtc-opt %S/Inputs/no-parameter.mlir --dtc-build-train-step=freeze=w 2>&1 | FileCheck %s --check-prefix=NO-PARAMETER
// RUN: not dtc-opt %S/Inputs/identity.mlir --dtc-build-train-step=clip=-1.0 2>&1 | FileCheck %s --check-prefix=CLIP
// RUN: not dtc-opt %S/Inputs/identity.mlir --dtc-build-train-step=beta2=1.0 2>&1 | FileCheck %s --check-prefix=BETA

// OPTIMIZER: error: unknown optimizer 'adagrad'; known are adamw, adam, sgd, lion and none
// NO-PARAMETER: error: 'func.func' op has no parameter; mark arguments with dtc.param
// CLIP: error: the option clip is -1{{.*}}, expected a finite number that is not negative
// BETA: error: the option beta2 is 1{{.*}}, expected at least 0 and less than 1

// expected-error@+1 {{'func.func' op has results ('tensor<4xf32>'), expected a scalar, the loss, and then metrics alone}}
func.func @no_scalar(%w: tensor<4xf32> {dtc.param = "w"}) -> tensor<4xf32> {
  return %w : tensor<4xf32>
}

// -----

// expected-error@+1 {{'func.func' op has the result #1 of type 'tensor<f32>', expected the loss alone, or metrics and new values of arguments after it: mark them with 'dtc.metric' or 'dtc.updates'}}
func.func @two_results(%w: tensor<f32> {dtc.param = "w"}) -> (tensor<f32>, tensor<f32>) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// expected-error@+1 {{'func.func' op has results ('tensor<f32>', 'tensor<f32>'), expected a scalar, the loss, and then metrics alone}}
func.func @metric_first(%w: tensor<f32> {dtc.param = "w"}) -> (tensor<f32> {dtc.metric = "count"}, tensor<f32>) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// expected-error@+1 {{'func.func' op has the result #2 of type 'tensor<4xf32>', expected the loss alone, or metrics and new values of arguments after it: mark them with 'dtc.metric' or 'dtc.updates'}}
func.func @third_result(%w: tensor<f32> {dtc.param = "w"}, %x: tensor<4xf32> {dtc.input = "x"})
    -> (tensor<f32>, tensor<4xf32> {dtc.metric = "count"}, tensor<4xf32>) {
  return %w, %x, %x : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error@+1 {{'func.func' op has the result #1 of type 'tensor<f32>', a metric named "", expected a name of letters, digits and '_' that begins with a small letter, and after it ':' and what it is of, or nothing}}
func.func @empty_name(%w: tensor<f32> {dtc.param = "w"}) -> (tensor<f32>, tensor<f32> {dtc.metric = ""}) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// expected-error@+1 {{a metric named ":layers.0", expected a name of letters, digits and '_' that begins with a small letter}}
func.func @nothing_of_a_layer(%w: tensor<f32> {dtc.param = "w"}) -> (tensor<f32>, tensor<f32> {dtc.metric = ":layers.0"}) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// expected-error@+1 {{a metric named "Count", expected a name of letters, digits and '_' that begins with a small letter}}
func.func @capital(%w: tensor<f32> {dtc.param = "w"}) -> (tensor<f32>, tensor<f32> {dtc.metric = "Count"}) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// expected-error@+1 {{a metric named "token-count:layers.0", expected a name of letters, digits and '_' that begins with a small letter}}
func.func @hyphen(%w: tensor<f32> {dtc.param = "w"}) -> (tensor<f32>, tensor<f32> {dtc.metric = "token-count:layers.0"}) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// expected-error@+1 {{'func.func' op has the result #1 of type 'tensor<f32>', a metric named "loss", which is a name that steps have themselves; choose another one}}
func.func @loss_name(%w: tensor<f32> {dtc.param = "w"}) -> (tensor<f32>, tensor<f32> {dtc.metric = "loss"}) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// expected-error@+1 {{a metric named "grad_norm:layers.0", which is a name that steps have themselves; choose another one}}
func.func @norm_name(%w: tensor<f32> {dtc.param = "w"}) -> (tensor<f32>, tensor<f32> {dtc.metric = "grad_norm:layers.0"}) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// expected-error@+1 {{a metric named "grad:w", which is a name that steps have themselves; choose another one}}
func.func @gradient_name(%w: tensor<f32> {dtc.param = "w"}) -> (tensor<f32>, tensor<f32> {dtc.metric = "grad:w"}) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// expected-error@+1 {{'func.func' op has the result #3 of type 'tensor<f32>', a second metric named "count:a"; expected different names}}
func.func @twice(%w: tensor<f32> {dtc.param = "w"})
    -> (tensor<f32>, tensor<f32> {dtc.metric = "count:a"}, tensor<f32> {dtc.metric = "count:b"}, tensor<f32> {dtc.metric = "count:a"}) {
  return %w, %w, %w, %w : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
}

// -----

// expected-error@+1 {{a metric named "count:a", and there are metrics named 'count' with and without ':'; choose another name for one of them}}
func.func @part_and_whole(%w: tensor<f32> {dtc.param = "w"})
    -> (tensor<f32>, tensor<f32> {dtc.metric = "count"}, tensor<f32> {dtc.metric = "count:a"}) {
  return %w, %w, %w : tensor<f32>, tensor<f32>, tensor<f32>
}

// -----

// expected-error@+1 {{a metric named "count:", expected a name of letters, digits and '_' that begins with a small letter, and after it ':' and what it is of, or nothing}}
func.func @part_of_nothing(%w: tensor<f32> {dtc.param = "w"}) -> (tensor<f32>, tensor<f32> {dtc.metric = "count:"}) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// expected-error@+1 {{'func.func' op has the result #1 of type 'tensor<f64>', a metric, expected elements of type 'f32' as the loss has}}
func.func @other_float(%w: tensor<f32> {dtc.param = "w"}, %x: tensor<f64> {dtc.input = "x"}) -> (tensor<f32>, tensor<f64> {dtc.metric = "count"}) {
  return %w, %x : tensor<f32>, tensor<f64>
}

// -----

// expected-error@+1 {{'func.func' op has results (), expected a scalar, the loss, and then metrics alone}}
func.func @no_result(%w: tensor<f32> {dtc.param = "w"}) {
  return
}

// -----

// expected-error@+1 {{'func.func' op has results ('tensor<i32>'), expected a scalar, the loss, and then metrics alone}}
func.func @integer(%x: tensor<i32> {dtc.input = "x"}) -> tensor<i32> {
  return %x : tensor<i32>
}

// -----

// expected-error@+1 {{'func.func' op has no parameter; mark arguments with dtc.param}}
func.func @no_parameter(%x: tensor<f32> {dtc.input = "x"}) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// expected-error@+1 {{'func.func' op has a loss of type 'tensor<bf16>', expected f32 or f64: optimizers need it; a model in f32 can be compiled to compute in 16 bits (--dtype)}}
func.func @narrow(%w: tensor<bf16> {dtc.param = "w"}) -> tensor<bf16> {
  return %w : tensor<bf16>
}

// -----

// expected-error@+1 {{'func.func' op has a parameter of type 'tensor<4xf64>' and a loss of type 'tensor<f32>'; expected one element type}}
func.func @element_types(%w: tensor<4xf64> {dtc.param = "w"}, %x: tensor<f32> {dtc.input = "x"}) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// expected-error@+1 {{'func.func' op argument 0 has 27 dimensions, expected at most 16, which is what plans hold}}
func.func @rank(%w: tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32> {dtc.param = "w"}, %x: tensor<f32> {dtc.input = "x"}) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

func.func @no_gradient(%w: tensor<2xf32> {dtc.param = "w"}, %ids: tensor<2xi32> {dtc.input = "ids"}) -> tensor<f32> {
  // expected-error@+1 {{'dtc.pick_grad' op has no gradient, and the loss depends on it; implement DifferentiableOpInterface or take it out of the loss}}
  %0 = dtc.pick_grad %ids, %w : (tensor<2xi32>, tensor<2xf32>) -> tensor<2x4xf32>
  %1 = dtc.reduce sum %0 dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

// Ops that do not depend on a parameter, or that the loss does not depend on, need no gradient.
func.func @needs_none(%w: tensor<f32> {dtc.param = "w"}, %dy: tensor<2xf32> {dtc.input = "dy"}, %ids: tensor<2xi32> {dtc.input = "ids"}) -> tensor<f32> {
  %0 = dtc.pick_grad %ids, %dy : (tensor<2xi32>, tensor<2xf32>) -> tensor<2x4xf32>
  %1 = dtc.reduce sum %0 dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  %2 = dtc.mul %1, %w : tensor<f32>
  %3 = dtc.compare lt %w, %1 : tensor<f32>
  return %2 : tensor<f32>
}

// -----

// A loss that is a parameter, or that depends on none, is odd and no error.
func.func @parameter(%w: tensor<f32> {dtc.param = "w"}, %unused: tensor<4xf32> {dtc.param = "unused"}) -> tensor<f32> {
  return %w : tensor<f32>
}

// -----

// expected-error@+1 {{'func.func' op has no body, expected one that computes the loss}}
func.func private @no_body(tensor<4xf32> {dtc.param = "w"}) -> tensor<f32>

// -----

// expected-error@+1 {{'func.func' op has branches, expected straight-line code}}
func.func @branches(%w: tensor<f32> {dtc.param = "w"}) -> tensor<f32> {
  return %w : tensor<f32>
^unreachable:
  return %w : tensor<f32>
}

// -----

func.func @no_tensor(%w: tensor<f32> {dtc.param = "w"}) -> tensor<f32> {
  // expected-error@+1 {{'memref.alloc' op result 0 has type 'memref<4xf32>', expected a ranked tensor of f32, f64, bf16, f16, i32 or i1 with static sizes of at least 1}}
  %0 = memref.alloc() : memref<4xf32>
  return %w : tensor<f32>
}

// -----

// expected-error@below {{the module has 2 functions, expected one that computes the loss}}
module {
  func.func @loss(%w: tensor<f32> {dtc.param = "w"}) -> tensor<f32> {
    return %w : tensor<f32>
  }
  func.func private @other()
}

// -----

// expected-error@+1 {{'func.func' op has the result #1, which updates argument 0, expected a parameter that does not train: mark it with 'dtc.frozen'}}
func.func @updates_trained(%w: tensor<f32> {dtc.param = "w"}) -> (tensor<f32>, tensor<f32> {dtc.updates = 0}) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// expected-error@+1 {{'func.func' op result 1 updates argument 1, expected a parameter, a part of the optimizer's state, a cache or a step state}}
func.func @updates_input(%w: tensor<f32> {dtc.param = "w"}, %x: tensor<f32> {dtc.input = "x"}) -> (tensor<f32>, tensor<f32> {dtc.updates = 1}) {
  return %w, %w : tensor<f32>, tensor<f32>
}

// -----

// expected-error@+1 {{'func.func' op has results ('tensor<f32>'), expected a scalar, the loss, and then metrics alone}}
func.func @update_first(%w: tensor<f32> {dtc.param = "w"}, %m: tensor<f32> {dtc.param = "m", dtc.frozen}) -> (tensor<f32> {dtc.updates = 1}) {
  return %w : tensor<f32>
}
