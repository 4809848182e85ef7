// RUN: dtc-opt %s --split-input-file --verify-diagnostics

func.func @adamw_g(%p: tensor<4x8xf32>, %g: tensor<8x4xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>, %st: tensor<f32>, %gs: tensor<f32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.adamw' op g has type 'tensor<8x4xf32>', expected 'tensor<4x8xf32>' [adamw-c1]}}
  %0:3 = dtc.adamw %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<8x4xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adamw_m(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<8x4xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>, %st: tensor<f32>, %gs: tensor<f32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.adamw' op m has type 'tensor<8x4xf32>', expected 'tensor<4x8xf32>' [adamw-c1]}}
  %0:3 = dtc.adamw %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x4xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adamw_v(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<8x4xf32>, %lr: tensor<f32>, %st: tensor<f32>, %gs: tensor<f32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.adamw' op v has type 'tensor<8x4xf32>', expected 'tensor<4x8xf32>' [adamw-c1]}}
  %0:3 = dtc.adamw %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x4xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adamw_lr(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<1xf32>, %st: tensor<f32>, %gs: tensor<f32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.adamw' op lr has type 'tensor<1xf32>', expected 'tensor<f32>' [adamw-c2]}}
  %0:3 = dtc.adamw %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<1xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adamw_step(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>, %st: tensor<1xf32>, %gs: tensor<f32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.adamw' op step has type 'tensor<1xf32>', expected 'tensor<f32>' [adamw-c2]}}
  %0:3 = dtc.adamw %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<1xf32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adamw_grad_scale(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>, %st: tensor<f32>, %gs: tensor<1xf32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.adamw' op grad_scale has type 'tensor<1xf32>', expected 'tensor<f32>' [adamw-c2]}}
  %0:3 = dtc.adamw %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<1xf32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adamw_lr_element(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f64>, %st: tensor<f32>, %gs: tensor<f32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.adamw' op lr has type 'tensor<f64>', expected 'tensor<f32>' [adamw-c2]}}
  %0:3 = dtc.adamw %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f64>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adamw_beta1(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>, %st: tensor<f32>, %gs: tensor<f32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.adamw' op beta1 is 1.000000e+00, expected at least 0 and less than 1.000000e+00 [adamw-c4]}}
  %0:3 = dtc.adamw %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 1.0, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adamw_beta2(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>, %st: tensor<f32>, %gs: tensor<f32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.adamw' op beta2 is -5.000000e-01, expected at least 0 and less than 1.000000e+00 [adamw-c4]}}
  %0:3 = dtc.adamw %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = -0.5, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adamw_eps(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>, %st: tensor<f32>, %gs: tensor<f32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.adamw' op eps is -1.000000e+00, expected a finite number that is not negative [adamw-c5]}}
  %0:3 = dtc.adamw %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = 0.999, eps = -1.0, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adamw_weight_decay(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>, %st: tensor<f32>, %gs: tensor<f32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.adamw' op weight_decay is INF, expected a finite number that is not negative [adamw-c5]}}
  %0:3 = dtc.adamw %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0x7FF0000000000000 : f64} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adamw_results(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>, %st: tensor<f32>, %gs: tensor<f32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.adamw' op result #2 has type 'tensor<8x4xf32>', expected 'tensor<4x8xf32>'}}
  %0:3 = dtc.adamw %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x4xf32>)
  return
}

// -----

func.func @sgd_g(%p: tensor<4x8xf32>, %g: tensor<8x4xf32>, %m: tensor<4x8xf32>, %lr: tensor<f32>, %gs: tensor<f32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.sgd' op g has type 'tensor<8x4xf32>', expected 'tensor<4x8xf32>' [sgd-c1]}}
  %0:2 = dtc.sgd %p, %g, %m, %lr, %gs, %ap {momentum = 0.9, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<8x4xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @sgd_m(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<8x4xf32>, %lr: tensor<f32>, %gs: tensor<f32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.sgd' op m has type 'tensor<8x4xf32>', expected 'tensor<4x8xf32>' [sgd-c1]}}
  %0:2 = dtc.sgd %p, %g, %m, %lr, %gs, %ap {momentum = 0.9, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @sgd_lr(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %lr: tensor<1xf32>, %gs: tensor<f32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.sgd' op lr has type 'tensor<1xf32>', expected 'tensor<f32>' [sgd-c2]}}
  %0:2 = dtc.sgd %p, %g, %m, %lr, %gs, %ap {momentum = 0.9, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<1xf32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @sgd_grad_scale(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %lr: tensor<f32>, %gs: tensor<1xf32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.sgd' op grad_scale has type 'tensor<1xf32>', expected 'tensor<f32>' [sgd-c2]}}
  %0:2 = dtc.sgd %p, %g, %m, %lr, %gs, %ap {momentum = 0.9, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<1xf32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @sgd_momentum(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %lr: tensor<f32>, %gs: tensor<f32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.sgd' op momentum is -1.000000e+00, expected a finite number that is not negative [sgd-c4]}}
  %0:2 = dtc.sgd %p, %g, %m, %lr, %gs, %ap {momentum = -1.0, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @sgd_weight_decay(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %lr: tensor<f32>, %gs: tensor<f32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.sgd' op weight_decay is nan, expected a finite number that is not negative [sgd-c4]}}
  %0:2 = dtc.sgd %p, %g, %m, %lr, %gs, %ap {momentum = 0.9, weight_decay = 0x7FF8000000000000 : f64} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @sgd_results(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %lr: tensor<f32>, %gs: tensor<f32>) {
  %ap = dtc.constant dense<true> : tensor<i1>
  // expected-error@+1 {{'dtc.sgd' op result #1 has type 'tensor<8x4xf32>', expected 'tensor<4x8xf32>'}}
  %0:2 = dtc.sgd %p, %g, %m, %lr, %gs, %ap {momentum = 0.9, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<8x4xf32>)
  return
}

// -----

func.func @adamw_apply_shape(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>, %st: tensor<f32>, %gs: tensor<f32>, %ap: tensor<1xi1>) {
  // expected-error@+1 {{'dtc.adamw' op apply has type 'tensor<1xi1>', expected 'tensor<i1>' [adamw-c3]}}
  %0:3 = dtc.adamw %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<1xi1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adamw_apply_element(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>, %st: tensor<f32>, %gs: tensor<f32>, %ap: tensor<f32>) {
  // expected-error@+1 {{'dtc.adamw' op operand #7 must be ranked tensor of i1}}
  %0:3 = dtc.adamw %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @sgd_apply_shape(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %lr: tensor<f32>, %gs: tensor<f32>, %ap: tensor<4x8xi1>) {
  // expected-error@+1 {{'dtc.sgd' op apply has type 'tensor<4x8xi1>', expected 'tensor<i1>' [sgd-c3]}}
  %0:2 = dtc.sgd %p, %g, %m, %lr, %gs, %ap {momentum = 0.9, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<4x8xi1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @sgd_apply_element(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %lr: tensor<f32>, %gs: tensor<f32>, %ap: tensor<i32>) {
  // expected-error@+1 {{'dtc.sgd' op operand #5 must be ranked tensor of i1}}
  %0:2 = dtc.sgd %p, %g, %m, %lr, %gs, %ap {momentum = 0.9, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adam_v(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<8x4xf32>, %lr: tensor<f32>, %st: tensor<f32>, %gs: tensor<f32>, %ap: tensor<i1>) {
  // expected-error@+1 {{'dtc.adam' op v has type 'tensor<8x4xf32>', expected 'tensor<4x8xf32>' [adam-c1]}}
  %0:3 = dtc.adam %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x4xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adam_step(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>, %st: tensor<1xf32>, %gs: tensor<f32>, %ap: tensor<i1>) {
  // expected-error@+1 {{'dtc.adam' op step has type 'tensor<1xf32>', expected 'tensor<f32>' [adam-c2]}}
  %0:3 = dtc.adam %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<1xf32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adam_apply(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>, %st: tensor<f32>, %gs: tensor<f32>, %ap: tensor<1xi1>) {
  // expected-error@+1 {{'dtc.adam' op apply has type 'tensor<1xi1>', expected 'tensor<i1>' [adam-c3]}}
  %0:3 = dtc.adam %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<1xi1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adam_beta1(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>, %st: tensor<f32>, %gs: tensor<f32>, %ap: tensor<i1>) {
  // expected-error@+1 {{'dtc.adam' op beta1 is 1.000000e+00, expected at least 0 and less than 1.000000e+00 [adam-c4]}}
  %0:3 = dtc.adam %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 1.0, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adam_eps(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>, %st: tensor<f32>, %gs: tensor<f32>, %ap: tensor<i1>) {
  // expected-error@+1 {{'dtc.adam' op eps is -1.000000e+00, expected a finite number that is not negative [adam-c5]}}
  %0:3 = dtc.adam %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = 0.999, eps = -1.0, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @adam_results(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %v: tensor<4x8xf32>, %lr: tensor<f32>, %st: tensor<f32>, %gs: tensor<f32>, %ap: tensor<i1>) {
  // expected-error@+1 {{'dtc.adam' op result #1 has type 'tensor<8x4xf32>', expected 'tensor<4x8xf32>'}}
  %0:3 = dtc.adam %p, %g, %m, %v, %lr, %st, %gs, %ap {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<8x4xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @lion_g(%p: tensor<4x8xf32>, %g: tensor<8x4xf32>, %m: tensor<4x8xf32>, %lr: tensor<f32>, %gs: tensor<f32>, %ap: tensor<i1>) {
  // expected-error@+1 {{'dtc.lion' op g has type 'tensor<8x4xf32>', expected 'tensor<4x8xf32>' [lion-c1]}}
  %0:2 = dtc.lion %p, %g, %m, %lr, %gs, %ap {beta1 = 0.9, beta2 = 0.99, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<8x4xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @lion_m(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<8x4xf32>, %lr: tensor<f32>, %gs: tensor<f32>, %ap: tensor<i1>) {
  // expected-error@+1 {{'dtc.lion' op m has type 'tensor<8x4xf32>', expected 'tensor<4x8xf32>' [lion-c1]}}
  %0:2 = dtc.lion %p, %g, %m, %lr, %gs, %ap {beta1 = 0.9, beta2 = 0.99, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x4xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @lion_grad_scale(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %lr: tensor<f32>, %gs: tensor<f64>, %ap: tensor<i1>) {
  // expected-error@+1 {{'dtc.lion' op grad_scale has type 'tensor<f64>', expected 'tensor<f32>' [lion-c2]}}
  %0:2 = dtc.lion %p, %g, %m, %lr, %gs, %ap {beta1 = 0.9, beta2 = 0.99, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f64>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @lion_apply(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %lr: tensor<f32>, %gs: tensor<f32>, %ap: tensor<1xi1>) {
  // expected-error@+1 {{'dtc.lion' op apply has type 'tensor<1xi1>', expected 'tensor<i1>' [lion-c3]}}
  %0:2 = dtc.lion %p, %g, %m, %lr, %gs, %ap {beta1 = 0.9, beta2 = 0.99, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<1xi1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @lion_beta1(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %lr: tensor<f32>, %gs: tensor<f32>, %ap: tensor<i1>) {
  // expected-error@+1 {{'dtc.lion' op beta1 is -1.000000e+00, expected at least 0 and less than 1.000000e+00 [lion-c4]}}
  %0:2 = dtc.lion %p, %g, %m, %lr, %gs, %ap {beta1 = -1.0, beta2 = 0.99, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @lion_beta2(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %lr: tensor<f32>, %gs: tensor<f32>, %ap: tensor<i1>) {
  // expected-error@+1 {{'dtc.lion' op beta2 is 1.000000e+00, expected at least 0 and less than 1.000000e+00 [lion-c4]}}
  %0:2 = dtc.lion %p, %g, %m, %lr, %gs, %ap {beta1 = 0.9, beta2 = 1.0, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @lion_weight_decay(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %lr: tensor<f32>, %gs: tensor<f32>, %ap: tensor<i1>) {
  // expected-error@+1 {{'dtc.lion' op weight_decay is nan, expected a finite number that is not negative [lion-c5]}}
  %0:2 = dtc.lion %p, %g, %m, %lr, %gs, %ap {beta1 = 0.9, beta2 = 0.99, weight_decay = 0x7FF8000000000000 : f64} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @lion_momentum(%p: tensor<4x8xf32>, %g: tensor<4x8xf32>, %m: tensor<4x8xf32>, %lr: tensor<f32>, %gs: tensor<f32>, %ap: tensor<i1>) {
  // expected-error@+1 {{'dtc.lion' op requires attribute 'beta1'}}
  %0:2 = dtc.lion %p, %g, %m, %lr, %gs, %ap {momentum = 0.9, weight_decay = 0.1} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}
