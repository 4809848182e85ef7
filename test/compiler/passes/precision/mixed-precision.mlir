// RUN: dtc-opt %s --split-input-file --dtc-build-train-step=optimizer=sgd --dtc-mixed-precision --canonicalize --cse | FileCheck %s
// RUN: dtc-opt %s --split-input-file --dtc-build-train-step="optimizer=adamw loss-scale=true" --dtc-mixed-precision=dtype=f16 --canonicalize --cse | FileCheck %s --check-prefix=F16
// RUN: dtc-opt %s --split-input-file --dtc-build-train-step=optimizer=none --dtc-mixed-precision --canonicalize --cse | FileCheck %s --check-prefix=NONE
// RUN: dtc-opt %s --split-input-file --dtc-mixed-precision --canonicalize --cse | FileCheck %s --check-prefix=FORWARD

// Parameters have 16 bits. Those that train have a master copy, the last part of the state, in f32 as the momentum is; the
// frozen one has neither. Scalars and inputs stay as they are.
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x8xf32> {dtc.input = "x"}, %[[LABELS:[^:]*]]: tensor<4xi32> {dtc.input = "labels"},
// CHECK-SAME: %[[NORM:[^:]*]]: tensor<8xbf16> {dtc.init = #dtc.ones, dtc.param = "norm"},
// CHECK-SAME: %[[W:[^:]*]]: tensor<8x16xbf16> {dtc.axes = ["embed", "mlp"], dtc.param = "w"},
// CHECK-SAME: %[[B:[^:]*]]: tensor<16xbf16> {dtc.param = "b"},
// CHECK-SAME: %[[F:[^:]*]]: tensor<16x16xbf16> {dtc.frozen, dtc.param = "f"},
// CHECK-SAME: %[[RATES:[^:]*]]: tensor<64xf32> {dtc.scalar = "learning_rates"},
// CHECK-SAME: tensor<i32> {dtc.step_state = "applied_steps"}
// CHECK-SAME: %[[NORMM:[^:]*]]: tensor<8xf32> {dtc.state = "momentum_buffer", dtc.state_of = "norm"},
// CHECK-SAME: %[[WM:[^:]*]]: tensor<8x16xf32> {dtc.axes = ["embed", "mlp"], dtc.state = "momentum_buffer", dtc.state_of = "w"},
// CHECK-SAME: %[[BM:[^:]*]]: tensor<16xf32> {dtc.state = "momentum_buffer", dtc.state_of = "b"},
// CHECK-SAME: %[[NORMMASTER:[^:]*]]: tensor<8xf32> {dtc.state = "master", dtc.state_of = "norm"},
// CHECK-SAME: %[[WMASTER:[^:]*]]: tensor<8x16xf32> {dtc.axes = ["embed", "mlp"], dtc.state = "master", dtc.state_of = "w"},
// CHECK-SAME: %[[BMASTER:[^:]*]]: tensor<16xf32> {dtc.state = "master", dtc.state_of = "b"})
// CHECK-SAME: -> (tensor<f32> {dtc.output = "loss"}, tensor<f32> {dtc.output = "grad_norm"},
// CHECK-SAME: tensor<8xbf16> {dtc.updates = 2 : i64}, tensor<8xf32> {dtc.updates = 10 : i64},
// CHECK-SAME: tensor<8x16xbf16> {dtc.updates = 3 : i64}, tensor<8x16xf32> {dtc.updates = 11 : i64},
// CHECK-SAME: tensor<16xbf16> {dtc.updates = 4 : i64}, tensor<16xf32> {dtc.updates = 12 : i64},
// CHECK-SAME: tensor<i32> {dtc.updates = 8 : i64}, tensor<i32> {dtc.updates = 9 : i64},
// CHECK-SAME: tensor<8xf32> {dtc.updates = 13 : i64}, tensor<8x16xf32> {dtc.updates = 14 : i64}, tensor<16xf32> {dtc.updates = 15 : i64})
// The input is rounded once. Activations have 16 bits, the statistic of the norm f32.
// CHECK: %[[XLOW:.*]] = dtc.convert %[[X]] : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// CHECK-NEXT: %[[N:[^,]*]], %[[RSTD:.*]] = dtc.rms_norm %[[XLOW]], %[[NORM]] {{.*}} -> (tensor<4x8xbf16>, tensor<4xf32>)
// CHECK-NEXT: %[[H:.*]] = dtc.einsum "bi,io->bo" %[[N]], %[[W]] : {{.*}} -> tensor<4x16xbf16>
// CHECK-NEXT: dtc.broadcast %[[B]] dims [1] : (tensor<16xbf16>) -> tensor<4x16xbf16>
// CHECK-NEXT: %[[S:.*]] = dtc.add {{.*}} : tensor<4x16xbf16>
// CHECK-NEXT: %[[A:.*]] = dtc.gelu tanh %[[S]] : tensor<4x16xbf16>
// CHECK-NEXT: %[[L:.*]] = dtc.einsum "bi,io->bo" %[[A]], %[[F]] : {{.*}} -> tensor<4x16xbf16>
// The losses, and what is made of them, are f32.
// CHECK-NEXT: %[[CE:[^,]*]], %[[LSE:.*]] = dtc.cross_entropy %[[L]], %[[LABELS]] : {{.*}} -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: %[[SUM:.*]] = dtc.reduce sum %[[CE]] dims [0] : (tensor<4xf32>) -> tensor<f32>
// CHECK-NEXT: %[[LOSS:.*]] = dtc.mul %[[SUM]], %{{.*}} : tensor<f32>
// CHECK: %[[DL:.*]] = dtc.cross_entropy_grad %[[L]], %[[LABELS]], %[[LSE]], %{{.*}} : {{.*}} -> tensor<4x16xbf16>
// Gradients of activations have 16 bits, those of parameters are f32 from the sum that makes them on: none is widened.
// CHECK-NEXT: %[[DA:.*]] = dtc.einsum "bo,io->bi" %[[DL]], %[[F]] : {{.*}} -> tensor<4x16xbf16>
// CHECK-NEXT: %[[DS:.*]] = dtc.gelu_grad tanh %[[S]], %[[DA]] : tensor<4x16xbf16>
// CHECK-NEXT: %[[DB:.*]] = dtc.reduce sum %[[DS]] dims [0] : (tensor<4x16xbf16>) -> tensor<16xf32>
// CHECK-NEXT: %[[DN:.*]] = dtc.einsum "bo,io->bi" %[[DS]], %[[W]] : {{.*}} -> tensor<4x8xbf16>
// CHECK-NEXT: %[[DW:.*]] = dtc.einsum "bi,bo->io" %[[N]], %[[DS]] {wide} : (tensor<4x8xbf16>, tensor<4x16xbf16>) -> tensor<8x16xf32>
// CHECK-NEXT: %[[DX:[^,]*]], %[[DNORM:.*]] = dtc.rms_norm_grad %[[XLOW]], %[[NORM]], %[[RSTD]], %[[DN]] : {{.*}} -> (tensor<4x8xbf16>, tensor<8xf32>)
// CHECK-NOT: dtc.convert
// CHECK: %[[RATE:.*]] = dtc.pick %[[RATES]], %{{.*}} -> tensor<f32>
// CHECK-NOT: dtc.convert
// CHECK: %[[TOTAL:.*]] = dtc.sqrt %{{.*}} : tensor<f32>
// The optimizer updates the masters; a parameter is its master, rounded.
// CHECK: %[[NEWNORM:[^,]*]], %[[NEWNORMM:.*]] = dtc.sgd %[[NORMMASTER]], %[[DNORM]], %[[NORMM]], %[[RATE]],
// CHECK-NEXT: %[[LOWNORM:.*]] = dtc.convert %[[NEWNORM]] : (tensor<8xf32>) -> tensor<8xbf16>
// CHECK-NEXT: %[[NEWW:[^,]*]], %[[NEWWM:.*]] = dtc.sgd %[[WMASTER]], %[[DW]], %[[WM]], %[[RATE]],
// CHECK-NEXT: %[[LOWW:.*]] = dtc.convert %[[NEWW]] : (tensor<8x16xf32>) -> tensor<8x16xbf16>
// CHECK-NEXT: %[[NEWB:[^,]*]], %[[NEWBM:.*]] = dtc.sgd %[[BMASTER]], %[[DB]], %[[BM]], %[[RATE]],
// CHECK-NEXT: %[[LOWB:.*]] = dtc.convert %[[NEWB]] : (tensor<16xf32>) -> tensor<16xbf16>
// CHECK: return %[[LOSS]], %[[TOTAL]], %[[LOWNORM]], %[[NEWNORMM]], %[[LOWW]], %[[NEWWM]], %[[LOWB]], %[[NEWBM]], %{{[^,]*}}, %{{[^,]*}}, %[[NEWNORM]], %[[NEWW]], %[[NEWB]] :

// In f16 the same, and the scale of the loss and the values made of it are f32 up to the gradient of the logits.
// F16-LABEL: func.func @train_step(
// F16-SAME: tensor<8x16xf16> {dtc.axes = ["embed", "mlp"], dtc.param = "w"}
// F16-SAME: %[[SCALE:[^:]*]]: tensor<f32> {dtc.step_state = "loss_scale"}
// F16-SAME: tensor<8x16xf32> {{{[^}]*}}dtc.state = "exp_avg", dtc.state_of = "w"}
// F16-SAME: tensor<8x16xf32> {{{[^}]*}}dtc.state = "exp_avg_sq", dtc.state_of = "w"}
// F16-SAME: tensor<8x16xf32> {{{[^}]*}}dtc.state = "master", dtc.state_of = "w"}
// F16: dtc.rms_norm {{.*}} -> (tensor<4x8xf16>, tensor<4xf32>)
// F16: %[[SCALED:.*]] = dtc.mul %[[SCALE]], %{{.*}} : tensor<f32>
// F16: %[[DCE:.*]] = dtc.broadcast %[[SCALED]] dims [] : (tensor<f32>) -> tensor<4xf32>
// F16: dtc.cross_entropy_grad {{.*}}, %[[DCE]] : {{.*}} -> tensor<4x16xf16>
// F16: dtc.einsum {{.*}} {wide} : (tensor<4x8xf16>, tensor<4x16xf16>) -> tensor<8x16xf32>
// F16: dtc.adamw {{.*}} -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>)
// F16-NEXT: dtc.convert {{.*}} : (tensor<16xf32>) -> tensor<16xf16>
// The scale and its rule stay in f32.
// F16: dtc.minimum {{.*}} : tensor<f32>
// F16: dtc.maximum {{.*}} : tensor<f32>
// F16: dtc.select {{.*}}, %[[SCALE]] : tensor<f32>

// Without an optimizer there are no masters; gradients are given out in f32.
// NONE-LABEL: func.func @gradients(
// NONE-SAME: tensor<16x16xbf16> {dtc.frozen, dtc.param = "f"}) -> (tensor<f32> {dtc.output = "loss"}, tensor<8xf32> {dtc.output = "grad:norm"}, tensor<8x16xf32> {dtc.output = "grad:w"}, tensor<16xf32> {dtc.output = "grad:b"})

// FORWARD-LABEL: func.func @loss(
// FORWARD-SAME: tensor<8xbf16> {dtc.init = #dtc.ones, dtc.param = "norm"}, %{{[^:]*}}: tensor<8x16xbf16> {dtc.axes = ["embed", "mlp"], dtc.param = "w"}, %{{[^:]*}}: tensor<16xbf16> {dtc.param = "b"}, %{{[^:]*}}: tensor<16x16xbf16> {dtc.frozen, dtc.param = "f"}) -> tensor<f32> {
// FORWARD: return %{{.*}} : tensor<f32>
func.func @loss(%x: tensor<4x8xf32> {dtc.input = "x"}, %labels: tensor<4xi32> {dtc.input = "labels"},
                %norm: tensor<8xf32> {dtc.param = "norm", dtc.init = #dtc.ones}, %w: tensor<8x16xf32> {dtc.param = "w", dtc.axes = ["embed", "mlp"]},
                %b: tensor<16xf32> {dtc.param = "b"}, %f: tensor<16x16xf32> {dtc.param = "f", dtc.frozen}) -> tensor<f32> {
  %n, %r = dtc.rms_norm %x, %norm {eps = 1.0e-5} : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
  %h = dtc.einsum "bi,io->bo" %n, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %bias = dtc.broadcast %b dims [1] : (tensor<16xf32>) -> tensor<4x16xf32>
  %s = dtc.add %h, %bias : tensor<4x16xf32>
  %a = dtc.gelu tanh %s : tensor<4x16xf32>
  %l = dtc.einsum "bi,io->bo" %a, %f : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  %ce, %lse = dtc.cross_entropy %l, %labels : (tensor<4x16xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %sum = dtc.reduce sum %ce dims [0] : (tensor<4xf32>) -> tensor<f32>
  %quarter = dtc.constant dense<0.25> : tensor<f32>
  %loss = dtc.mul %sum, %quarter : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A parameter that is used twice: both parts of its gradient are wide, and so is their sum.
// CHECK-LABEL: func.func @train_step(
// CHECK: %[[HEAD:.*]] = dtc.einsum "bi,bv->vi" %{{.*}} {wide} : (tensor<4x8xbf16>, tensor<4x16xbf16>) -> tensor<16x8xf32>
// CHECK: %[[TABLE:.*]] = dtc.embedding_grad %{{.*}} : (tensor<4xi32>, tensor<4x8xbf16>) -> tensor<16x8xf32>
// CHECK: %[[BOTH:.*]] = dtc.add %[[HEAD]], %[[TABLE]] : tensor<16x8xf32>
// CHECK: dtc.sgd %{{[^,]*}}, %[[BOTH]],

// FORWARD-LABEL: func.func @tied(
// FORWARD: dtc.embedding %{{.*}} -> tensor<4x8xbf16>
func.func @tied(%ids: tensor<4xi32> {dtc.input = "ids"}, %labels: tensor<4xi32> {dtc.input = "labels"}, %w: tensor<16x8xf32> {dtc.param = "w"}) -> tensor<f32> {
  %h = dtc.embedding %w, %ids : (tensor<16x8xf32>, tensor<4xi32>) -> tensor<4x8xf32>
  %l = dtc.einsum "bi,vi->bv" %h, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %ce, %lse = dtc.cross_entropy %l, %labels : (tensor<4x16xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %loss = dtc.reduce sum %ce dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A parameter that is reshaped: its gradient is so in f32. An input that two ops take is rounded once.
// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x8xf32> {dtc.input = "x"}
// CHECK: dtc.reshape %{{.*}} : (tensor<64xbf16>) -> tensor<8x8xbf16>
// CHECK-COUNT-1: dtc.convert %[[X]] : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// CHECK-NOT: dtc.convert %[[X]]
// CHECK: dtc.einsum "bi,bo->io" %{{.*}} {wide} : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<8x8xf32>
// CHECK-NEXT: %[[DM:.*]] = dtc.einsum "bi,bo->io" %{{.*}} {wide} : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<8x8xf32>
// CHECK: %[[DW:.*]] = dtc.reshape %[[DM]] : (tensor<8x8xf32>) -> tensor<64xf32>
// CHECK: dtc.sgd %{{[^,]*}}, %[[DW]],

// FORWARD-LABEL: func.func @reshaped(
// FORWARD-SAME: %[[X:[^:]*]]: tensor<4x8xf32> {dtc.input = "x"}
// FORWARD-COUNT-1: dtc.convert %[[X]] : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// FORWARD-NOT: dtc.convert %[[X]]
func.func @reshaped(%x: tensor<4x8xf32> {dtc.input = "x"}, %labels: tensor<4xi32> {dtc.input = "labels"}, %w: tensor<64xf32> {dtc.param = "w"}, %v: tensor<8x8xf32> {dtc.param = "v"}) -> tensor<f32> {
  %m = dtc.reshape %w : (tensor<64xf32>) -> tensor<8x8xf32>
  %h = dtc.einsum "bi,io->bo" %x, %m : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %g = dtc.einsum "bi,io->bo" %x, %v : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %l = dtc.mul %h, %g : tensor<4x8xf32>
  %ce, %lse = dtc.cross_entropy %l, %labels : (tensor<4x8xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %loss = dtc.reduce sum %ce dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A constant, and an integer that becomes a float, have the type of who takes them: one constant may have both. The model's
// own exp and log work on f32.
// FORWARD-LABEL: func.func @constants(
// FORWARD-SAME: %[[X:[^:]*]]: tensor<4x8xf32> {dtc.input = "x"}, %[[M:[^:]*]]: tensor<4x8xi32>
// FORWARD-DAG: %[[LOW:.*]] = dtc.constant dense<1.000980e-01> : tensor<bf16>
// FORWARD-DAG: %[[WIDE:.*]] = dtc.constant dense<1.000000e-01> : tensor<f32>
// FORWARD-DAG: %[[WIDES:.*]] = dtc.broadcast %[[WIDE]] dims [] : (tensor<f32>) -> tensor<4x8xf32>
// FORWARD: %[[H:.*]] = dtc.einsum {{.*}} -> tensor<4x8xbf16>
// FORWARD: %[[LOWS:.*]] = dtc.broadcast %[[LOW]] dims [] : (tensor<bf16>) -> tensor<4x8xbf16>
// FORWARD: %[[A:.*]] = dtc.mul %[[H]], %[[LOWS]] : tensor<4x8xbf16>
// FORWARD: %[[K:.*]] = dtc.convert %[[M]] : (tensor<4x8xi32>) -> tensor<4x8xbf16>
// FORWARD: %[[C:.*]] = dtc.mul %[[A]], %[[K]] : tensor<4x8xbf16>
// FORWARD: %[[D:.*]] = dtc.convert %[[C]] : (tensor<4x8xbf16>) -> tensor<4x8xf32>
// FORWARD: %[[E:.*]] = dtc.exp %[[D]] : tensor<4x8xf32>
// FORWARD: %[[F:.*]] = dtc.mul %[[E]], %[[WIDES]] : tensor<4x8xf32>
// FORWARD: dtc.log %[[F]] : tensor<4x8xf32>
// FORWARD-NOT: dtc.convert
// FORWARD: return %{{.*}} : tensor<f32>

// CHECK-LABEL: func.func @train_step(
// CHECK: dtc.exp {{.*}} : tensor<4x8xf32>
// CHECK: dtc.log {{.*}} : tensor<4x8xf32>
func.func @constants(%x: tensor<4x8xf32> {dtc.input = "x"}, %m: tensor<4x8xi32> {dtc.input = "m"}, %w: tensor<8x8xf32> {dtc.param = "w"}) -> tensor<f32> {
  %tenth = dtc.constant dense<0.1> : tensor<f32>
  %c = dtc.broadcast %tenth dims [] : (tensor<f32>) -> tensor<4x8xf32>
  %h = dtc.einsum "bi,io->bo" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %a = dtc.mul %h, %c : tensor<4x8xf32>
  %k = dtc.convert %m : (tensor<4x8xi32>) -> tensor<4x8xf32>
  %b = dtc.mul %a, %k : tensor<4x8xf32>
  %e = dtc.exp %b : tensor<4x8xf32>
  %f = dtc.mul %e, %c : tensor<4x8xf32>
  %l = dtc.log %f : tensor<4x8xf32>
  %loss = dtc.reduce sum %l dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// With an input in f32 the other operand of an elementwise op is widened, and all that follows. Dropout follows its operand.
// FORWARD-LABEL: func.func @squares(
// FORWARD-SAME: %[[X:[^:]*]]: tensor<4x8xf32> {dtc.input = "x"}, %[[Y:[^:]*]]: tensor<4x8xf32> {dtc.input = "y"}
// FORWARD: %[[H:.*]] = dtc.einsum {{.*}} -> tensor<4x8xbf16>
// FORWARD: %[[D:.*]] = dtc.dropout %[[H]], %{{.*}} : (tensor<4x8xbf16>, tensor<2xi32>) -> tensor<4x8xbf16>
// FORWARD: %[[W:.*]] = dtc.convert %[[D]] : (tensor<4x8xbf16>) -> tensor<4x8xf32>
// FORWARD: %[[S:.*]] = dtc.sub %[[W]], %[[Y]] : tensor<4x8xf32>
// FORWARD: %[[Q:.*]] = dtc.mul %[[S]], %[[S]] : tensor<4x8xf32>
// FORWARD: dtc.reduce sum %[[Q]] dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>

// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: tensor<2xi32> {dtc.scalar = "random_key"}
// CHECK: dtc.dropout {{.*}} -> tensor<4x8xbf16>
func.func @squares(%x: tensor<4x8xf32> {dtc.input = "x"}, %y: tensor<4x8xf32> {dtc.input = "y"}, %w: tensor<8x8xf32> {dtc.param = "w"}, %key: tensor<2xi32> {dtc.scalar = "random_key"}) -> tensor<f32> {
  %h = dtc.einsum "bi,io->bo" %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %d = dtc.dropout %h, %key {number = 0, rate = 0.5} : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<4x8xf32>
  %s = dtc.sub %d, %y : tensor<4x8xf32>
  %q = dtc.mul %s, %s : tensor<4x8xf32>
  %loss = dtc.reduce sum %q dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Results are f32: a parameter that is returned is widened.
// FORWARD-LABEL: func.func @returned(
// FORWARD-SAME: %[[W:[^:]*]]: tensor<bf16> {dtc.param = "w"}) -> tensor<f32>
// FORWARD: %[[WIDE:.*]] = dtc.convert %[[W]] : (tensor<bf16>) -> tensor<f32>
// FORWARD: return %[[WIDE]]

// CHECK-LABEL: func.func @train_step(
// CHECK-SAME: %[[W:[^:]*]]: tensor<bf16> {dtc.param = "w"}
// CHECK-SAME: %[[MASTER:[^:]*]]: tensor<f32> {dtc.state = "master", dtc.state_of = "w"})
// CHECK: dtc.sgd %[[MASTER]], {{.*}} : (tensor<f32>, tensor<f32>, tensor<f32>,
func.func @returned(%w: tensor<f32> {dtc.param = "w"}) -> tensor<f32> {
  return %w : tensor<f32>
}

// -----

// A float that becomes an integer is one whatever its own type.
// FORWARD-LABEL: func.func @integers(
// FORWARD: %[[H:.*]] = dtc.mul %{{.*}} : tensor<4xbf16>
// FORWARD: %[[I:.*]] = dtc.convert %[[H]] : (tensor<4xbf16>) -> tensor<4xi32>
// FORWARD-NEXT: dtc.add %[[I]], %[[I]] : tensor<4xi32>
// CHECK-LABEL: func.func @train_step(
// F16-LABEL: func.func @train_step(
// NONE-LABEL: func.func @gradients(
func.func @integers(%w: tensor<4xf32> {dtc.param = "w"}) -> tensor<f32> {
  %0 = dtc.mul %w, %w : tensor<4xf32>
  %1 = dtc.convert %0 : (tensor<4xf32>) -> tensor<4xi32>
  %2 = dtc.add %1, %1 : tensor<4xi32>
  %3 = dtc.convert %2 : (tensor<4xi32>) -> tensor<4xf32>
  %4 = dtc.add %0, %3 : tensor<4xf32>
  %5 = dtc.reduce sum %4 dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %5 : tensor<f32>
}
