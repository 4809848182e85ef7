// RUN: dtc-opt %s --split-input-file --dtc-build-train-step='optimizer=sgd accumulates separate-batches' | FileCheck %s --check-prefixes=STEP,BATCHES
// RUN: dtc-opt %s --split-input-file --dtc-build-train-step='optimizer=sgd separate-batches' | FileCheck %s --check-prefixes=STEP,SEPARATE --implicit-check-not '"batches"'
// RUN: dtc-opt %s --split-input-file --dtc-build-train-step=optimizer=sgd | FileCheck %s --check-prefixes=STEP,ONE --implicit-check-not batches
// RUN: dtc-opt %s --split-input-file --dtc-build-train-step=optimizer=none | FileCheck %s --check-prefix=NONE --implicit-check-not dtc.mul

// The step returns the metrics after its loss: sums over all batches, and of a mean the mean over them.
// STEP-LABEL: func.func @train_step
// BATCHES-SAME: %[[N:[^:]*]]: tensor<f32> {dtc.scalar = "batches"}
// STEP-SAME: -> (tensor<f32> {dtc.output = "loss"}, tensor<4xf32> {dtc.metric = "tokens:h.0", dtc.output = "tokens:h.0"}, tensor<f32> {dtc.metric = "balance", dtc.output = "balance"},
// STEP-SAME: tensor<2x4xf32> {dtc.metric = "lost:h.0", dtc.must_be_zero, dtc.output = "lost:h.0"}, tensor<f32> {dtc.output = "grad_norm"},
// STEP: %[[LOSS:.*]] = dtc.reduce sum %{{.*}} dims [0, 1]
// STEP-NEXT: %[[TOKENS:.*]] = dtc.reduce sum %{{.*}} dims [0]
// STEP-NEXT: %[[BALANCE:.*]] = dtc.reduce max
// STEP-NEXT: %[[LOST:.*]] = dtc.relu
// BATCHES: %[[ALLTOKENS:.*]] = dist.sum_batches %[[TOKENS]] : tensor<4xf32>
// BATCHES-NEXT: %[[ALLBALANCES:.*]] = dist.sum_batches %[[BALANCE]] : tensor<f32>
// BATCHES-NEXT: %[[ALLLOST:.*]] = dist.sum_batches %[[LOST]] : tensor<2x4xf32>
// BATCHES-NEXT: %[[ALLLOSSES:.*]] = dist.sum_batches %[[LOSS]] : tensor<f32>
// BATCHES-NEXT: %[[MEANLOSS:.*]] = dtc.div %[[ALLLOSSES]], %[[N]]
// BATCHES-NEXT: %[[EACH:.*]] = dtc.broadcast %[[N]] dims [] : (tensor<f32>) -> tensor<f32>
// BATCHES-NEXT: %[[MEANBALANCE:.*]] = dtc.div %[[ALLBALANCES]], %[[EACH]]
// SEPARATE: %[[ALLTOKENS:.*]] = dist.sum_batches %[[TOKENS]] : tensor<4xf32>
// SEPARATE-NEXT: %[[ALLBALANCES:.*]] = dist.sum_batches %[[BALANCE]] : tensor<f32>
// SEPARATE-NEXT: %[[ALLLOST:.*]] = dist.sum_batches %[[LOST]] : tensor<2x4xf32>
// SEPARATE-NEXT: %[[ALLLOSSES:.*]] = dist.sum_batches %[[LOSS]] : tensor<f32>

// In the norm of the gradient, a metric that must be zero is multiplied by the largest number twice: that is 0 of 0,
// else infinite.
// STEP: %[[NORMS:.*]] = dtc.einsum "a,a->"
// STEP-NEXT: %[[PART:.*]] = dtc.reshape %[[NORMS]] : (tensor<f32>) -> tensor<1xf32>
// BATCHES-NEXT: %[[COUNT:.*]] = dtc.reduce sum %[[ALLLOST]] dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
// SEPARATE-NEXT: %[[COUNT:.*]] = dtc.reduce sum %[[ALLLOST]] dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
// ONE-NEXT: %[[COUNT:.*]] = dtc.reduce sum %[[LOST]] dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
// STEP-NEXT: %[[LARGEST:.*]] = dtc.constant dense<3.40282347E+38> : tensor<f32>
// STEP-NEXT: %[[ONCE:.*]] = dtc.mul %[[COUNT]], %[[LARGEST]]
// STEP-NEXT: %[[AGAIN:.*]] = dtc.constant dense<3.40282347E+38> : tensor<f32>
// STEP-NEXT: %[[TWICE:.*]] = dtc.mul %[[ONCE]], %[[AGAIN]]
// STEP-NEXT: %[[ADDED:.*]] = dtc.reshape %[[TWICE]] : (tensor<f32>) -> tensor<1xf32>
// STEP-NEXT: %[[LIST:.*]] = dtc.concat %[[PART]], %[[ADDED]] dim 0
// STEP-NEXT: %[[SUM:.*]] = dtc.reduce sum %[[LIST]] dims [0] : (tensor<2xf32>) -> tensor<f32>
// STEP-NEXT: dtc.sqrt %[[SUM]]
// BATCHES: return %[[MEANLOSS]], %[[ALLTOKENS]], %[[MEANBALANCE]], %[[ALLLOST]],
// SEPARATE: return %[[ALLLOSSES]], %[[ALLTOKENS]], %[[ALLBALANCES]], %[[ALLLOST]],
// ONE: return %[[LOSS]], %[[TOKENS]], %[[BALANCE]], %[[LOST]],

// Without an optimizer there is no norm.
// NONE-LABEL: func.func @gradients
// NONE-SAME: -> (tensor<f32> {dtc.output = "loss"}, tensor<4xf32> {dtc.metric = "tokens:h.0", dtc.output = "tokens:h.0"}, tensor<f32> {dtc.metric = "balance", dtc.output = "balance"},
// NONE-SAME: tensor<2x4xf32> {dtc.metric = "lost:h.0", dtc.must_be_zero, dtc.output = "lost:h.0"}, tensor<4xf32> {dtc.output = "grad:w"})
func.func @loss(%w: tensor<4xf32> {dtc.param = "w"}, %x: tensor<2x4xf32> {dtc.input = "x"})
    -> (tensor<f32>, tensor<4xf32> {dtc.metric = "tokens:h.0"}, tensor<f32> {dtc.metric = "balance", dtc.mean}, tensor<2x4xf32> {dtc.metric = "lost:h.0", dtc.must_be_zero}) {
  %y = dtc.einsum "bi,i->bi" %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %loss = dtc.reduce sum %y dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  %tokens = dtc.reduce sum %x dims [0] : (tensor<2x4xf32>) -> tensor<4xf32>
  %balance = dtc.reduce max %x dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  %lost = dtc.relu %x : tensor<2x4xf32>
  return %loss, %tokens, %balance, %lost : tensor<f32>, tensor<4xf32>, tensor<f32>, tensor<2x4xf32>
}

// -----

// A loss with a divisor is no mean over batches; a metric may be one, and the norm is divided by the divisor alone.
// STEP-LABEL: func.func @train_step
// BATCHES-SAME: %[[N:[^:]*]]: tensor<f32> {dtc.scalar = "batches"}
// BATCHES: %[[COUNT:.*]] = dtc.reduce sum %{{.*}} dims [0]
// BATCHES: %[[OFBATCH:.*]] = dtc.reduce sum %{{.*}} dims [0] : (tensor<2x4xf32>) -> tensor<4xf32>
// BATCHES: %[[ALLSUMS:.*]] = dist.sum_batches %{{.*}} over_samples : tensor<f32>
// BATCHES-NEXT: %[[LOSS:.*]] = dtc.div %[[ALLSUMS]], %[[COUNT]]
// BATCHES: dist.sum_batches %{{.*}} : tensor<4xf32>
// BATCHES-NEXT: %[[ALLSHARES:.*]] = dist.sum_batches %[[OFBATCH]] : tensor<4xf32>
// BATCHES-NEXT: %[[EACH:.*]] = dtc.broadcast %[[N]] dims [] : (tensor<f32>) -> tensor<4xf32>
// BATCHES-NEXT: %[[SHARES:.*]] = dtc.div %[[ALLSHARES]], %[[EACH]]
// BATCHES: %[[ROOT:.*]] = dtc.sqrt
// BATCHES-NEXT: %[[MAGNITUDE:.*]] = dtc.abs %[[COUNT]]
// BATCHES-NEXT: %[[NORM:.*]] = dtc.div %[[ROOT]], %[[MAGNITUDE]]
// BATCHES: return %[[LOSS]], %[[SHARES]], %[[NORM]],
// NONE-LABEL: func.func @gradients
func.func @quotient(%w: tensor<4xf32> {dtc.param = "w"}, %x: tensor<2x4xf32> {dtc.input = "x"}, %n: tensor<2xi32> {dtc.input = "n"})
    -> (tensor<f32>, tensor<4xf32> {dtc.metric = "shares", dtc.mean}) {
  %0 = dtc.convert %n : (tensor<2xi32>) -> tensor<2xf32>
  %count = dtc.reduce sum %0 dims [0] : (tensor<2xf32>) -> tensor<f32>
  %y = dtc.einsum "bi,i->bi" %x, %w : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %sum = dtc.reduce sum %y dims [0, 1] : (tensor<2x4xf32>) -> tensor<f32>
  %loss = dtc.div %sum, %count : tensor<f32>
  %shares = dtc.reduce sum %x dims [0] : (tensor<2x4xf32>) -> tensor<4xf32>
  return %loss, %shares : tensor<f32>, tensor<4xf32>
}

// -----

// A scalar needs no sum, and the largest number is that of its type.
// STEP-LABEL: func.func @train_step
// STEP: %[[PART:.*]] = dtc.reshape %{{.*}} : (tensor<f64>) -> tensor<1xf64>
// STEP-NEXT: dtc.constant dense<1.797{{[0-9]*}}E+308> : tensor<f64>
// STEP-NEXT: dtc.mul
// STEP-NEXT: dtc.constant dense<1.797{{[0-9]*}}E+308> : tensor<f64>
// STEP-NEXT: dtc.mul
// NONE-LABEL: func.func @gradients
func.func @wide(%w: tensor<4xf64> {dtc.param = "w"}, %x: tensor<4xf64> {dtc.input = "x"}) -> (tensor<f64>, tensor<f64> {dtc.metric = "lost", dtc.must_be_zero}) {
  %loss = dtc.einsum "i,i->" %x, %w : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
  %lost = dtc.reduce max %x dims [0] : (tensor<4xf64>) -> tensor<f64>
  return %loss, %lost : tensor<f64>, tensor<f64>
}
