// RUN: dtc-opt %s --dtc-build-train-step --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp,mlp=tp zero-stage=0 zero-axes=dp" | FileCheck %s --check-prefixes=STEP,STATE0,WHOLE,NONE
// RUN: dtc-opt %s --dtc-build-train-step --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp,mlp=tp zero-stage=1 zero-axes=dp" | FileCheck %s --check-prefixes=STEP,STATE1,WHOLE,NONE
// RUN: dtc-opt %s --dtc-build-train-step --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp,mlp=tp zero-stage=2 zero-axes=dp" | FileCheck %s --check-prefixes=STEP,STATE1,WHOLE,GRAD
// RUN: dtc-opt %s --dtc-build-train-step --canonicalize --cse --dtc-propagate-shardings="shard=batch=dp,mlp=tp zero-stage=3 zero-axes=dp" | FileCheck %s --check-prefixes=STEP,STATE1,SPLIT,GRAD

// The tensors that each ZeRO stage splits over dp, in addition to the splits by tp. The weight of six by four is split
// along its first dimension, which divides; the one of one by four along the second, after tp.
// STEP-LABEL: func.func @train_step(

// Parameters: from stage 3 on; below they do not follow the optimizer's state.
// WHOLE-SAME: tensor<6xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>, dtc.param = "n"}
// WHOLE-SAME: tensor<6x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>, {{.*}}dtc.param = "w"}
// WHOLE-SAME: tensor<1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>, dtc.param = "u"}
// SPLIT-SAME: tensor<6xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}]>, dtc.param = "n"}
// SPLIT-SAME: tensor<6x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>, {{.*}}dtc.param = "w"}
// SPLIT-SAME: tensor<1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp", "dp"}]>, dtc.param = "u"}
// The data are split by the batch in any case.
// STEP-SAME: tensor<8x6xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {}]>, {{.*}}dtc.input = "x"}

// The optimizer's state: from stage 1 on.
// STATE0-SAME: tensor<6xf32> {dist.sharding = #dist.sharding<@mesh, [{}]>, dtc.state = "exp_avg", dtc.state_of = "n"}
// STATE0-SAME: tensor<6x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp"}]>, {{.*}}dtc.state = "exp_avg_sq", dtc.state_of = "w"}
// STATE1-SAME: tensor<6xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}]>, dtc.state = "exp_avg", dtc.state_of = "n"}
// STATE1-SAME: tensor<6xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}]>, dtc.state = "exp_avg_sq", dtc.state_of = "n"}
// STATE1-SAME: tensor<6x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>, {{.*}}dtc.state = "exp_avg", dtc.state_of = "w"}
// STATE1-SAME: tensor<6x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"dp"}, {"tp"}]>, {{.*}}dtc.state = "exp_avg_sq", dtc.state_of = "w"}
// STATE1-SAME: tensor<1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp", "dp"}]>, dtc.state = "exp_avg", dtc.state_of = "u"}
// STATE1-SAME: tensor<1x4xf32> {dist.sharding = #dist.sharding<@mesh, [{}, {"tp", "dp"}]>, dtc.state = "exp_avg_sq", dtc.state_of = "u"}

// A norm of a shard of the batch gathers its weight, it is not split: its rows are whole.
// STEP: dtc.rms_norm %{{.*}}{dist.factors = {{\[\["dp"\], \[\]\]}},

// Gradients: from stage 2 on, where they are made.
// NONE-NOT: dist.constrain
// GRAD: %[[U:.*]] = dist.constrain %{{.*}} to <@mesh, [{}, {"tp", "dp"}]> {{.*}} : tensor<1x4xf32>
// GRAD: %[[DW:.*]] = dtc.einsum {{.*}} -> tensor<6x4xf32>
// GRAD-NEXT: %[[W:.*]] = dist.constrain %[[DW]] to <@mesh, [{"dp"}, {"tp"}]> {{.*}} : tensor<6x4xf32>
// STEP: %{{.*}}, %[[DN:[^ ]*]] = dtc.rms_norm_grad %{{.*}}{dist.factors = {{\[\["dp"\], \[\]\]}},
// GRAD-NEXT: %[[N:.*]] = dist.constrain %[[DN]] to <@mesh, [{"dp"}]> {{.*}} : tensor<6xf32>
// The clipping's norm reads the split ones, as the optimizer does.
// GRAD: dtc.einsum {{.*}}%[[N]], %[[N]]
// NONE: dtc.adamw %arg0, %[[DN]],
// GRAD: dtc.adamw %arg0, %[[N]],
// GRAD: dtc.adamw %arg1, %[[W]],
// GRAD: dtc.adamw %arg2, %[[U]],
dist.mesh @mesh <"dp"=2, "tp"=2>
func.func @loss(%n: tensor<6xf32> {dtc.param = "n"},
                %w: tensor<6x4xf32> {dtc.param = "w", dtc.axes = ["", "mlp"]},
                %u: tensor<1x4xf32> {dtc.param = "u"},
                %x: tensor<8x6xf32> {dtc.input = "x", dtc.axes = ["batch", ""]}) -> tensor<f32> {
  %0, %rstd = dtc.rms_norm %x, %n {eps = 1.0e-5} : (tensor<8x6xf32>, tensor<6xf32>) -> (tensor<8x6xf32>, tensor<8xf32>)
  %1 = dtc.einsum "bi,io->bo" %0, %w : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  %2 = dtc.einsum "bo,jo->bj" %1, %u : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x1xf32>
  %3 = dtc.reduce sum %2 dims [0, 1] : (tensor<8x1xf32>) -> tensor<f32>
  return %3 : tensor<f32>
}
